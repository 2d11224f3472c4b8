"""What each model contributes to a mixture, by predictions for rows that it had not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from nysboost.numerics.arrays import Floats

SHRINKAGE = 0.001
"""Pull of the shares towards equal ones, relative to the models' predictions. On splits 5 to 7 of
three tables of 500 to 1000 rows 1e-4 to 5e-3 made no difference, and 0.05 lost some."""

NEGLIGIBLE = 0.02
"""A model with a smaller share leaves the mixture."""


def shares_of(
    means: Sequence[Floats], truth: Floats, weights: Floats | None, gain: float
) -> Floats:
    """Return shares ≥ 0 of sum 1, shape (m,): ridge regression of y on held-out predictions.

    The pull is towards equal shares. The first model, the simplest, is taken alone where the
    mixture's squared error is not below `gain` times its own.

    Parameters
    ----------
    means : sequence of arrays of shape (h, t)
        Predictions of each model, for rows that it had not seen.
    truth : array of shape (h, t)
        y.
    weights : array of shape (h,) or None
        How often each row counts.
    gain : float
        At most 1.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[-1.0], [0.0], [1.0]])
    >>> shares_of([0 * y, y - 0.1, y + 0.1], y, None, 0.98).round(2)
    array([0. , 0.5, 0.5])
    """
    m = len(means)
    alone: Floats = np.eye(m)[0]
    if m == 1:
        return alone
    mass = np.ones(len(truth)) if weights is None else weights
    root = np.sqrt(mass / mass.sum())[:, None]
    centre = np.average(truth, axis=0, weights=mass)
    P = np.stack([((mean - centre) * root).ravel() for mean in means], axis=1)
    y = ((truth - centre) * root).ravel()
    scale = np.sqrt(np.mean(np.sum(P**2, axis=0))) or 1.0
    pull = np.sqrt(SHRINKAGE) * scale
    total = 100 * scale  # a heavy row: shares of sum 1, to 1e-4
    A = np.vstack([P, pull * np.eye(m), np.full((1, m), total)])
    shares, _ = nnls(A, np.concatenate([y, np.full(m, pull / m), [total]]))
    shares = np.where(shares >= NEGLIGIBLE * shares.sum(), shares, 0.0)
    shares /= shares.sum()
    missed, missed_alone = (float(np.sum((y - P @ s) ** 2)) for s in (shares, alone))
    return shares if missed <= gain * missed_alone else alone
