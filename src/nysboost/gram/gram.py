"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nysboost.data.dask_graph import here
from nysboost.data.forgotten import ForgottenRows
from nysboost.data.rows import ArrayRows, Rows, as_float, scan_size
from nysboost.gram.landmarks import Landmarks
from nysboost.kernels import Evaluator, Kernel
from nysboost.kernels.distances import in_the_form_of
from nysboost.numerics.arrays import (
    Array,
    Indices,
    dtype_name,
    is_sparse,
    namespace,
    whereabouts,
)
from nysboost.numerics.memory import Budget
from nysboost.numerics.tolerances import ALIKE, EPS

LOOKED_AT = 32
"""Rows by whose values float32 is judged."""


class Tally:
    """How many kernel values have been evaluated, by all threads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def add(self, values: Array) -> Array:
        """Count the entries of a block, and return it."""
        with self._lock:
            self.count += int(values.shape[0]) * int(values.shape[1])
        return values

    def __reduce__(self) -> Any:
        return Tally, (self.count,)


class Gram(ABC):
    """A symmetric positive semidefinite n×n matrix that is asked for blocks.

    Every value passes through `against`, which counts it. `budget` is what a pass over
    the rows may use.

    Parameters
    ----------
    rows : Rows
        The data, or the rows of a precomputed matrix.
    budget : Budget
        Memory and cores of a pass.
    tally : Tally or None
        Counts the values; the parts of one Gram share it.
    """

    parallel = True
    _holding = False
    _held: Array | None = None

    def __init__(self, rows: Rows, budget: Budget | None = None, tally: Tally | None = None):
        self.rows = rows
        self.n = rows.n
        self.dtype = np.dtype(dtype_name(rows.form))
        self.budget = budget or Budget()
        self.tally = tally or Tally()

    @property
    def eps(self) -> float:
        """Machine epsilon of the entries."""
        return float(np.finfo(self.dtype).eps)

    @property
    def entries_evaluated(self) -> int:
        """The entries asked for so far: a cost that no hardware changes."""
        return self.tally.count

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return G[rows, cols]."""
        if self._holding and _is_run(rows) and _is_run(cols):
            if self._held is None and len(rows) == len(cols) == self.n:
                self._held = self.cross(rows, self.landmarks(cols))
            if self._held is not None:
                return self._held[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
        return self.cross(rows, self.landmarks(cols))

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep all of G from when it is first asked for: where fit after fit will ask again.

        Runs of rows are then cut out of it; other blocks are evaluated, as they would be without.
        """
        self._holding = True
        try:
            yield
        finally:
            self._holding, self._held = False, None

    def cross(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return k(X[rows], Z), shape (len(rows), m)."""
        X, evaluate = self.operands(rows, landmarks)
        return evaluate(X)

    def operands(self, rows: Indices | slice, landmarks: Landmarks) -> tuple[Array, Evaluator]:
        """Return the Gram's own rows, as far as they are needed, and x ↦ k(x, Z)."""
        X = self.rows.take(rows)
        return X, self.against(landmarks, X)

    def evaluate(self, X: Array, landmarks: Landmarks) -> Array:
        """Return k(X, Z) for any rows X, seen in fitting or not."""
        return self.against(landmarks, X)(X)

    def against(self, landmarks: Landmarks, form: Array) -> Evaluator:
        """Return x ↦ k(x, Z), with what depends on Z alone prepared once.

        Parameters
        ----------
        landmarks : Landmarks
            Z.
        form : array or CSR matrix
            Shows the namespace, the device and the dtype of the rows to come.
        """
        prepared = self._against(landmarks, form)
        return lambda X, out=None: self.tally.add(prepared(X, out))

    @abstractmethod
    def _against(self, landmarks: Landmarks, form: Array) -> Evaluator:
        """Return x ↦ k(x, Z), not counted."""

    @abstractmethod
    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""

    @abstractmethod
    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""

    @abstractmethod
    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""

    @abstractmethod
    def restricted(self, indices: Indices) -> Gram:
        """Return G[S, S] as a Gram of its own, with its rows in memory."""

    def rounded(self) -> Gram:
        """Return G in float32, where values cost less so and are the same but for rounding."""
        return self

    def bytes_per_value(self, form: Array) -> int:
        """Return what evaluating a block of such rows holds for each of its values."""
        return int(np.dtype(dtype_name(form)).itemsize)

    def forget_rows(self) -> Gram:
        """Return this Gram without its data, to be saved beside the landmarks."""
        forgotten = copy.copy(self)
        forgotten.rows = ForgottenRows(self.rows.n, self.rows.n_features)
        return forgotten


class KernelGram(Gram):
    """The Gram matrix of a kernel on the rows of a table."""

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        budget: Budget | None = None,
        tally: Tally | None = None,
    ) -> None:
        super().__init__(rows, budget, tally)
        self.kernel = kernel
        self.parallel = kernel.parallel

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the rows at `indices` as landmarks."""
        return Landmarks(indices, self.rows.take(indices))

    def _against(self, landmarks: Landmarks, form: Array) -> Evaluator:
        Z = landmarks.Z
        if whereabouts(form) != whereabouts(Z):
            msg = (
                f"X is {whereabouts(form)}, but this approximation was fitted with "
                f"{whereabouts(Z)}. Move X there, or fit where X is."
            )
            raise ValueError(msg)
        return (landmarks.basis or self.kernel).against(in_the_form_of(form, Z))

    def bytes_per_value(self, form: Array) -> int:
        """Return what evaluating a block of such rows holds for each of its values."""
        return self.kernel.bytes_per_value(form)

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""
        return self.between(landmarks.Z, landmarks.Z)

    def between(self, X: Array, Y: Array) -> Array:
        """Return k(X, Y) for any points."""
        return self.evaluate(X, Landmarks(None, Y))

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return k(x, x) for all rows, or those at `rows`."""
        if rows is not None:
            return self.kernel.diag(self.rows.take(rows))
        whole = self.rows.map(_diagonal, self.kernel, 1, task="diagonal", size=scan_size(self.rows))
        values: Array = here(whole)[:, 0]
        return values

    def restricted(self, indices: Indices) -> KernelGram:
        """Return the Gram matrix of the rows at `indices`, which are read once."""
        rows = ArrayRows(self.rows.take(indices))
        return KernelGram(rows, self.kernel, self.budget, self.tally)

    def rounded(self) -> Gram:
        """Return G in float32, where values cost less so and are the same but for rounding.

        Rows far from the origin, or out of float32's range, lose what tells them apart.
        """
        X = self.rows.take(slice(None))
        if is_sparse(X) or self.eps > EPS:
            return self
        xp, few = namespace(X), np.arange(0, self.n, max(1, self.n // LOOKED_AT))
        with np.errstate(all="ignore"):
            there = KernelGram(
                ArrayRows(xp.astype(X, xp.float32)), self.kernel, self.budget, self.tally
            )
            exact, seen = (gram.block(few, few) for gram in (self, there))
            away = xp.max(xp.abs(exact - xp.astype(seen, exact.dtype)))
        alike = bool(away <= ALIKE * xp.max(xp.abs(exact)))
        return there if alike else self

    def __repr__(self) -> str:
        return (
            f"KernelGram({self.kernel}, n={self.n}, n_features={self.rows.n_features}, "
            f"dtype={self.dtype}, entries_evaluated={self.entries_evaluated})"
        )


def _is_run(rows: Indices) -> bool:
    """Whether rows follow each other, as those of a tile do."""
    return len(rows) > 0 and bool((np.diff(rows) == 1).all())


def _diagonal(kernel: Kernel, X: Array) -> Array:
    """Return k(x, x) as a column: this is what a worker runs."""
    return kernel.diag(as_float(X))[:, None]
