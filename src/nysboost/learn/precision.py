"""In which precision a learner's predictions are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nysboost.data.recognise import rows_of
from nysboost.data.rows import PROBED, Rows, spread_indices
from nysboost.numerics.arrays import (
    Array,
    Floats,
    entries,
    in_float64,
    is_numpy,
    namespace,
    to_host,
)

NOTICED = 0.01
"""Of their error, predictions may move by this share: squared errors then grow by 1e-4 of it."""


@dataclass(frozen=True, eq=False)
class InDouble:
    """Rows that are evaluated in float64, whatever they are stored in."""

    rows: Any

    @property
    def form(self) -> Array:
        """One row in float64."""
        return in_float64(self.rows.form)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.rows, name)


def single_is_enough(predict: Callable[[Any], Array], rows: Rows, error: Floats) -> bool:
    """Whether float32 moves no prediction by more than a hundredth of the error.

    Weights of a model with little noise add up large numbers to small ones, and then it does: of
    1000 rows with 256 landmarks and an error of .002 by as much. Some rows, once in each precision,
    say so.

    Parameters
    ----------
    predict : callable
        From rows to predictions, shape (n, t), in the precision of the rows.
    rows : Rows
        Those that were fitted.
    error : array of shape (t,)
        Root mean squared error of predictions for rows that took no part.
    """
    some = rows.take(spread_indices(rows.n, PROBED))
    with np.errstate(over="ignore", invalid="ignore"):
        short = _in_float32(some)
        if not np.isfinite(to_host(entries(short))).all():  # numbers that float32 does not have
            return False
        single = rows_of(short)
        moved = to_host(predict(single) - predict(InDouble(single)))
    return bool((np.abs(moved).max(axis=0) <= NOTICED * error).all())


def _in_float32(table: Any) -> Any:
    xp = namespace(table)
    return table.astype(np.float32) if is_numpy(table) else xp.astype(table, xp.float32)
