"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from nysboost.arrays import (
    Array,
    Indices,
    cutoff,
    dtype_name,
    epsilon,
    namespace,
    row_blocks,
    whereabouts,
)
from nysboost.blocks import MAX_MEMORY, as_bytes
from nysboost.distances import in_the_form_of
from nysboost.kernels import Kernel, make_kernel
from nysboost.rows import (
    ArrayRows,
    ForgottenRows,
    Rows,
    StoredRows,
    as_float,
    as_rows,
    scan,
    spread_indices,
)

INDEFINITE = 1e-4
"""A negative eigenvalue beyond this share of the largest is no rounding error."""

PROBE_SIZE = 256
"""Rows, spread evenly, on which a kernel is looked at before any work is done."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The m columns, or points, that one learner stands on.

    Parameters
    ----------
    indices : array of shape (m,) or None
        Column numbers; None where the landmarks are points that are no rows of the data.
    points : array or CSR matrix of shape (m, d), or None
        The points themselves; None for a precomputed matrix.
    """

    indices: Indices | None
    points: Array | None

    def __len__(self) -> int:
        some = self.indices if self.points is None else self.points
        return int(some.shape[0])  # type: ignore[union-attr]


def pooled(parts: Sequence[Landmarks]) -> Landmarks:
    """Return all the landmarks of several learners, in order, as one set."""
    indices = [part.indices for part in parts if part.indices is not None]
    points = [part.points for part in parts if part.points is not None]
    return Landmarks(
        np.concatenate(indices) if len(indices) == len(parts) else None,
        _stacked(points) if points else None,
    )


def _stacked(points: list[Array]) -> Array:
    return (
        vstack(points, format="csr") if issparse(points[0]) else namespace(*points).concat(points)
    )


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
        return self.kernel.against(in_the_form_of(form, Z))

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


class PrecomputedGram(Gram):
    """A Gram matrix that the user computed, in memory or memory-mapped.

    New rows X are rows of kernel values: against all n training points, or against
    the landmarks alone.
    """

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""
        return Landmarks(indices, None)

    def cross(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return G[rows, J], without reading the other columns where that can be helped."""
        G = self.rows.data if isinstance(self.rows, ArrayRows) else None
        if not isinstance(G, np.ndarray) or landmarks.indices is None:
            return super().cross(rows, landmarks)
        values = as_float(G[np.ix_(np.arange(self.n)[rows], landmarks.indices)])
        self.entries_evaluated += values.size
        return values

    def against(self, landmarks: Landmarks, form: Array) -> Callable[[Array], Array]:
        """Return the function that takes the landmarks' columns of X."""
        if form.shape[1] != self.n and form.shape[1] == len(landmarks):
            return lambda X: X
        if isinstance(form, np.ndarray):
            return lambda X: X[:, landmarks.indices]
        xp = namespace(form)
        columns = xp.asarray(landmarks.indices, device=form.device)
        return lambda X: xp.take(X, columns, axis=1)

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = G[J, J], shape (m, m)."""
        assert landmarks.indices is not None
        return self.block(landmarks.indices, landmarks.indices)

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""
        chosen = np.arange(self.n)[slice(None) if rows is None else rows]
        assert isinstance(self.rows, ArrayRows)
        return as_float(self.rows.data[chosen, chosen])


def make_gram(
    X: Any,
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    max_memory: int | str = MAX_MEMORY,
    **params: Any,
) -> Gram:
    """Turn data and a kernel into a Gram matrix, in the one place that does.

    Parameters
    ----------
    X : array-like of shape (n, d), or (n, n) if `kernel` is "precomputed"
        Data points, or kernel values. Never copied, never changed.
    kernel : str, Kernel or callable
        See `nysboost.kernels.make_kernel`; or "precomputed".
    max_memory : int or str
        What a pass over the rows may hold at a time, in bytes or as "500MB".
    **params
        Parameters of a named kernel.
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        given = [name for name, value in params.items() if value is not None]
        if given:
            msg = f"A precomputed kernel has no parameter {', '.join(given)}: leave it out."
            raise ValueError(msg)
        rows = as_rows(X, name="The precomputed kernel matrix")
        _check_precomputed(rows)
        gram: Gram = PrecomputedGram(rows)
    else:
        rows = as_rows(X)
        gram = KernelGram(rows, make_kernel(kernel, **params).resolve(rows))
    gram.max_memory = as_bytes(max_memory)
    return _probed(gram)


def _check_precomputed(rows: Rows) -> None:
    """Refuse what cannot be a Gram matrix: not square, not symmetric, clearly indefinite."""
    if not isinstance(rows, ArrayRows) or hasattr(rows.data, "tocsr"):
        msg = "A precomputed kernel matrix must be dense; pass matrix.toarray()."
        raise ValueError(msg)
    if isinstance(rows, StoredRows):
        msg = (
            "A precomputed kernel matrix is asked for columns, which an HDF5 or Zarr array reads "
            "slowly: pass it as an array or as a numpy.memmap."
        )
        raise TypeError(msg)
    G = rows.data
    if rows.n != rows.n_features:
        msg = (
            f"A precomputed kernel matrix is square, but shape {tuple(G.shape)} was given. "
            "To approximate the kernel of data points, pass the points and name the kernel."
        )
        raise ValueError(msg)
    xp, largest = namespace(G), 0.0
    for block in row_blocks(rows.n, 16 * rows.n, 2**26):
        upper = rows.take(block)
        gap = xp.max(xp.abs(upper - G[:, block].T))
        largest = max(largest, float(xp.max(xp.abs(upper))))
        if float(gap) > 1e3 * cutoff(1, epsilon(upper)) * largest:
            msg = (
                "A precomputed kernel matrix is symmetric, but G[i, j] and G[j, i] differ by up to "
                f"{float(gap):.3g}. Pass (G + G.T) / 2 if that is what you mean."
            )
            raise ValueError(msg)


def _probed(gram: Gram) -> Gram:
    """Refuse a kernel that a principal submatrix shows to be no kernel, before any work."""
    where = spread_indices(gram.n, PROBE_SIZE)
    W = gram.block(where, where)
    gram.entries_evaluated = 0  # every method looks at the same probe first
    xp = namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    refuse_indefinite(xp.linalg.eigvalsh(W))
    if not bool(xp.any(W != 0)) and not bool(xp.any(gram.diag() != 0)):
        raise ValueError(ALL_ZERO)
    return gram


ALL_ZERO = (
    "The kernel matrix is zero where it was looked at, so there is nothing to approximate. "
    "Check the kernel's parameters and the scale of the data."
)

NOT_FINITE = (
    "The kernel matrix contains NaN or infinity, though the data do not. "
    "Scale the data down, or check the kernel's parameters."
)


def refuse_indefinite(eigenvalues: Array) -> None:
    """Raise if a principal submatrix shows that G is not positive semidefinite."""
    smallest, largest = sorted((float(eigenvalues[0]), float(eigenvalues[-1])))
    if smallest < -INDEFINITE * max(largest, 0.0):
        msg = (
            "The kernel is not positive semidefinite: a principal submatrix has eigenvalues from "
            f"{smallest:.3g} to {largest:.3g}. Nyström approximations need a positive "
            "semidefinite kernel, such as rbf, laplacian, matern, linear or polynomial."
        )
        raise ValueError(msg)
