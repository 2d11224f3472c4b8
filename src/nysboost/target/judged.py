"""What a judge hands over: models, and what rows that took no part say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nysboost.numerics.arrays import Floats
from nysboost.target.linear import Weighed


@dataclass(frozen=True, eq=False)
class Judged:
    """A model and what rows that took no part in finding it, nor in its weights, say.

    Parameters
    ----------
    models : sequence of Weighed
        Fitted on all rows.
    shares : array of shape (m,)
        What each contributes to the prediction.
    truth, mean : arrays of shape (h, t)
        Targets of the held-out rows, and predictions by models that had not seen them.
    spread : array of shape (h, t)
        Their predicted standard deviations.
    weights : array of shape (h,) or None
        How often each held-out row counts.
    notes : list of (str, float)
        Each candidate and its root mean squared error on held-out rows.
    seen : array of shape (h, t) or None
        Predictions by the models with weights without these rows, which their landmarks have seen;
        None where these have not.
    """

    models: Sequence[Weighed]
    shares: Floats
    truth: Floats
    mean: Floats
    spread: Floats
    weights: Floats | None
    notes: list[tuple[str, float]]
    seen: Floats | None = None

    @property
    def missed(self) -> list[Floats]:
        """What predictions miss, by models that saw too little and by landmarks that saw too much.

        New rows are between the two, each of shape (h, t).
        """
        return [self.truth - mean for mean in (self.mean, self.seen) if mean is not None]
