"""Whether predictions may be evaluated in float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.budget import spaced_indices
from nysboost.rows.recognise import make_rows
from nysboost.rows.rows import Rows, RowsView
from nysboost.rows.sizes import PROBE_ROWS

NEGLIGIBLE_CHANGE = 0.01
"""float32 may change predictions by this share of their error, and squared errors by 1e-4."""


class Float64Rows(RowsView):
    """Rows that are evaluated in float64, whatever they are stored in."""

    @property
    def template(self) -> Array:
        """One row in float64."""
        return arrays.in_float64(self.rows.template)


def float32_suffices(predict: Callable[[Rows], Array], rows: Rows, error: Floats) -> bool:
    """Whether float32 moves no prediction by more than a hundredth of the error.

    It does where large terms nearly cancel, as in models with little noise. Some rows are predicted
    in each precision, and the difference is compared with the held-out error, shape (t,).
    """
    probed = rows.take(spaced_indices(rows.n, PROBE_ROWS))
    with np.errstate(over="ignore", invalid="ignore"):
        short = _in_float32(probed)
        numbers = arrays.to_host(arrays.entries(short))
        if not np.isfinite(numbers).all():  # beyond the range of float32
            return False
        single = make_rows(short)
        in_single = arrays.to_host(predict(single))
        in_double = arrays.to_host(predict(Float64Rows(single)))
    moved = np.abs(in_single - in_double).max(axis=0)
    return bool((moved <= NEGLIGIBLE_CHANGE * error).all())


def _in_float32(X: Array) -> Array:
    if arrays.is_numpy(X):  # or sparse
        return X.astype(np.float32)
    xp = arrays.namespace(X)
    return xp.astype(X, xp.float32)
