"""The kernel of a matrix of kernel values that the user computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nysboost.kernels.base import Kernel
from nysboost.kernels.evaluator import Evaluator
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
        return PickColumns(columns, self.n)


@dataclass(frozen=True, eq=False)
class PickColumns(Evaluator):
    """Rows of kernel values ↦ those at the landmarks' columns, of n."""

    columns: Indices
    n: int

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the values, shape (len(X), m)."""
        are_at_landmarks = X.shape[1] == len(self.columns) != self.n
        if are_at_landmarks:
            return arrays.dense(X)
        return arrays.dense(arrays.take(X, self.columns, axis=1))
