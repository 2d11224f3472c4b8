"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.sparse import issparse

from nysboost.data.rows import (
    ForgottenRows,
    Rows,
    scan,
)
from nysboost.gram.landmarks import Landmarks
from nysboost.kernels import Kernel
from nysboost.kernels.distances import in_the_form_of
from nysboost.numerics.arrays import (
    Array,
    Indices,
    dtype_name,
    namespace,
    whereabouts,
)
from nysboost.numerics.memory import MAX_MEMORY


class Gram(ABC):
    """A symmetric positive semidefinite n×n matrix that is asked for blocks.

    `entries_evaluated` counts the entries asked for so far: a cost that no hardware
    changes. `max_memory` is what a pass over its rows may hold at a time, in bytes.
    """

    parallel = True

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.n = rows.n
        self.dtype = np.dtype(dtype_name(rows.form))
        self.entries_evaluated = 0
        self.max_memory = MAX_MEMORY

    @property
    def eps(self) -> float:
        """Machine epsilon of the entries."""
        return float(np.finfo(self.dtype).eps)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return G[rows, cols]."""
        return self.cross(rows, self.landmarks(cols))

    def cross(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return k(X[rows], Z), shape (len(rows), m)."""
        values = self.evaluate(self.rows.take(rows), landmarks)
        self.entries_evaluated += values.shape[0] * values.shape[1]
        return values

    @abstractmethod
    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""

    def lean(self, form: Array) -> bool:  # noqa: ARG002
        """Whether evaluating blocks of such rows takes no memory beyond their values."""
        return True

    def evaluate(self, X: Array, landmarks: Landmarks) -> Array:
        """Return k(X, Z) for any rows X, seen in fitting or not."""
        return self.against(landmarks, X)(X)

    @abstractmethod
    def against(self, landmarks: Landmarks, form: Array) -> Callable[[Array], Array]:
        """Return x ↦ k(x, Z), with what depends on Z alone prepared once.

        Parameters
        ----------
        landmarks : Landmarks
            Z.
        form : array or CSR matrix
            Shows the namespace, the device and the dtype of the rows to come.
        """

    @abstractmethod
    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""

    @abstractmethod
    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""

    def forget_rows(self) -> Gram:
        """Return this Gram without its data, to be saved beside the landmarks."""
        forgotten = copy.copy(self)
        forgotten.rows = ForgottenRows(self.rows.n, self.rows.n_features)
        return forgotten


class KernelGram(Gram):
    """The Gram matrix of a kernel on the rows of a table."""

    def __init__(self, rows: Rows, kernel: Kernel) -> None:
        super().__init__(rows)
        self.kernel = kernel
        self.parallel = kernel.parallel

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the rows at `indices` as landmarks."""
        return Landmarks(indices, self.rows.take(indices))

    def against(self, landmarks: Landmarks, form: Array) -> Callable[[Array], Array]:
        """Return x ↦ k(x, Z), with what depends on Z alone prepared once."""
        Z = landmarks.points
        if whereabouts(form) != whereabouts(Z):
            msg = (
                f"X is {whereabouts(form)}, but this approximation was fitted with "
                f"{whereabouts(Z)}. Move X there, or fit where X is."
            )
            raise ValueError(msg)
        return (landmarks.basis or self.kernel).against(in_the_form_of(form, Z))

    def lean(self, form: Array) -> bool:
        """Whether evaluating blocks of such rows takes no memory beyond their values."""
        return self.kernel.lean and not issparse(form)

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""
        return self.between(landmarks.points, landmarks.points)

    def between(self, X: Array, Y: Array) -> Array:
        """Return k(X, Y) for any points, counted like entries of G."""
        self.entries_evaluated += X.shape[0] * Y.shape[0]
        return self.kernel(X, Y)

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return k(x, x) for all rows, or those at `rows`."""
        if rows is not None:
            return self.kernel.diag(self.rows.take(rows))
        blocks = [self.kernel.diag(block) for block in scan(self.rows)]
        return namespace(blocks[0]).concat(blocks)
