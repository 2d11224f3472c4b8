"""The sizes of a run and every point that the paper leaves open, by name."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from nysboost.numerics.parameters import require_count

Shape: TypeAlias = Literal["columns", "square"]

DEFAULT_LEARNERS = 8
DEFAULT_COLUMNS = 120
DEFAULT_COMPONENTS = 240
DEFAULT_VALIDATION = 20
"""The paper's sizes on its real data: p up to 8, m = 120, v1 = v2 = 20."""

CANDIDATES_PER_COLUMN = 4
"""The paper's s is 5m; with 4m errors on Covertype are 1.004 of that, with 3m 1.025."""

STEPS_SHARED = 3
"""V is drawn from 3s columns: errors .997 to 1.006 of those from all columns, three data sets."""

RESIDUAL_ROWS = 448
"""Rows beside the columns considered: errors on Covertype are 1.016 with 384, 1.035 with 256."""

GRID = tuple(float(value) for value in np.logspace(-12, 2, 29))
"""λ and η are tuned on this grid, relative to the scale of the errors."""


@dataclass(frozen=True)
class Settings:
    """Sizes of one run, and choices that the paper leaves open; None is a default that suits n.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_components : int or None
        c, the number of landmarks in all, for every method. A mixture has n_learners learners
        of n_components // n_learners columns each. None is p·m where m is given; otherwise
        960 for a mixture and 240 for one core, or as many as n allows.
    n_learners : int or None
        p, the number of learners in all; None is 8.
    n_columns : int or None
        m, the number of columns of one learner, where `n_components` does not say.
    rank : int or None
        k, the rank of one learner; None is m.
    n_candidates : int or None
        s, the number of columns of V, whose residual is clustered; None is 4m. Where
        fewer columns are left, V shrinks, and the trajectory records it.
    n_considered : int or None
        The columns that V is drawn from, the same until s are no longer left of them, so
        that steps share values. None is 3s; n draws from all, as the paper does, and J.
    n_fit, n_tune : int or None
        v1 and v2, the numbers of columns of V1 and V2; None is 20, or n/20 if smaller.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Allow no negative ridge weights.
    lambdas : tuple of float
        The grid of ridge penalties, relative to the scale of the normal matrix.
    residual_shape : "columns" or "square"
        V as whole columns, [n] × J, or as the paper's notation has it, J × J.
    validation_shape : "columns" or "square"
        The same for V1 and V2. A square block's diagonal dominates and the ridge
        weights that it gives are poor.
    row_cap : int
        Up to this many rows a run looks at all of them; beyond it at a uniform sample of this
        many, or of four for each landmark, so that the cost of fitting does not grow with n.
    residual_rows : int
        In boosting the columns of V, V1 and V2 are observed on this many rows: clustering needs
        the distances of columns alone, and only p weights are fitted. Ensembles, and the letter
        J in the boosting step, use `row_cap` rows.

    See Also
    --------
    approximate : takes its fields by name.

    References
    ----------
    .. [1] K. Hamm, Z. Lu, W. Ouyang and H. H. Zhang (2023). Boosting Nyström Method.
          arXiv:2302.11032.

    Examples
    --------
    >>> Settings(n_components=100, n_learners=4).resolve(1000).n_columns
    25
    """

    n_components: int | None = None
    n_learners: int | None = None
    n_columns: int | None = None
    rank: int | None = None
    n_candidates: int | None = None
    n_considered: int | None = None
    n_fit: int | None = None
    n_tune: int | None = None
    eta: float | Literal["tune"] = 0.01
    nonnegative: bool = False
    lambdas: tuple[float, ...] = GRID
    residual_shape: Shape = "columns"
    validation_shape: Shape = "columns"
    row_cap: int = 4096
    residual_rows: int = RESIDUAL_ROWS

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name.endswith("_shape"):
                if value not in ("columns", "square"):
                    msg = f'{name} is "columns" or "square", but {name}={value!r} was given.'
                    raise ValueError(msg)
            elif name not in ("eta", "nonnegative", "lambdas") and value is not None:
                require_count(name, value)

    def landmarks(self, n: int) -> int:
        """Return c, the number of landmarks in all, for n rows and one core."""
        p_times_m = self.n_columns and (self.n_learners or DEFAULT_LEARNERS) * self.n_columns
        asked = self.n_components or p_times_m
        if asked and asked > n:
            warnings.warn(_say_clipped(asked, n, n), stacklevel=2)
        return min(asked or DEFAULT_COMPONENTS, n)

    def resolve(self, n: int, *, validated: bool = True, boosted: bool = True) -> Sizes:
        """Return the sizes of a run on n rows, every None replaced by its number.

        Parameters
        ----------
        n : int
            Number of rows.
        validated, boosted : bool
            Whether V1 and V2, and V, are needed.

        Raises
        ------
        ValueError
            If n is too small for the columns asked, with the number that is needed.
        """
        few = DEFAULT_VALIDATION if n >= 20 * DEFAULT_VALIDATION else max(1, n // 20)
        n_fit, n_tune = (few if v is None else v for v in (self.n_fit, self.n_tune))
        validation = n_fit + n_tune if validated else 0
        p, m = self._mixture(n - validation)
        if p * m + validation > n:
            validating = f" plus {n_fit} + {n_tune} validation columns" if validated else ""
            raise ValueError(
                f"{p} learner(s) of {m} columns{validating} need at least {p * m + validation} "
                f"rows, but n_samples = {n} were given. "
                "Lower n_columns or n_learners, or give more rows."
            )
        rank = self.rank or m
        if rank > m:
            raise ValueError(f"rank={rank} is above n_columns={m}: no learner has more than that.")
        n_candidates = self.n_candidates or CANDIDATES_PER_COLUMN * m
        if boosted and n_candidates < m:
            raise ValueError(
                f"n_candidates={n_candidates} columns cannot be clustered into "
                f"n_columns={m} groups: raise n_candidates or lower n_columns."
            )
        n_considered = self.n_considered or STEPS_SHARED * n_candidates
        return Sizes(p, m, rank, n_candidates, n_considered, n_fit, n_tune)

    def _mixture(self, room: int) -> tuple[int, int]:
        """Return p and m, with p·m columns that fit where only their sum was asked for."""
        p = self.n_learners or DEFAULT_LEARNERS
        if self.n_columns is not None:
            return p, self.n_columns
        if self.n_components is None:
            return p, max(1, min(DEFAULT_COLUMNS, room // p))
        p = min(p, self.n_components, max(1, room))
        if self.n_components > room > 0:
            warnings.warn(_say_clipped(self.n_components, room, p * (room // p)), stacklevel=3)
        return p, max(1, min(self.n_components, room) // p)


class Sizes(NamedTuple):
    """The sizes of a run, all of them numbers; see `Settings`."""

    n_learners: int
    n_columns: int
    rank: int
    n_candidates: int
    n_considered: int
    n_fit: int
    n_tune: int


def _say_clipped(asked: int, room: int, taken: int) -> str:
    return (
        f"{asked} landmarks were asked for, but there are only {room} rows to take them from: "
        f"{taken} are used. Lower n_components to silence this."
    )
