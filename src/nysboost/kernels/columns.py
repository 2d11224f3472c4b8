"""The kernel of a matrix of kernel values that the user computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nysboost.kernels.base import Evaluator, Kernel
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices


@dataclass(frozen=True)
class Columns(Kernel):
    """Columns of a precomputed matrix: a row of it holds its own kernel values.

    Landmarks are numbers of columns. A new row holds its kernel values against all n rows of the
    matrix, of which those are picked, or against the landmarks alone.
    """

    n: int
    temporaries: ClassVar[int] = 0

    def at(self, columns: Indices) -> Evaluator:
        """Return x ↦ the values of rows x at these columns, shape (n, m)."""

        def pick(X: Array, _: Array | None = None) -> Array:
            are_at_landmarks = X.shape[1] == len(columns) != self.n
            return X if are_at_landmarks else arrays.take(X, columns, axis=1)

        return pick
