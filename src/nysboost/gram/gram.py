"""The Gram matrix G: n×n, never formed, evaluated block by block and counted.

Its blocks are k(X, Z) of rows X against landmarks Z. A sample is some of the rows, with a Gram
matrix of its own.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from nysboost.kernels import Columns, Evaluator, Kernel, make_kernel
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Selection,
    convert_like,
    describe_location,
    dtype_name,
    floats_on_host,
    gather,
    in_dtype_of,
    in_float64,
    is_sparse,
    like,
    namespace,
    slices,
    spaced_indices,
    stack_tables,
    take,
    to_host,
)
from nysboost.numerics.checks import DEFAULT_BUDGET, Budget, Given, positions
from nysboost.numerics.linalg import max_abs, symmetric
from nysboost.numerics.tolerances import ALIKE, EPS, INDEFINITE
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.recognise import scan_rows
from nysboost.rows.rows import ArrayRows, DroppedRows, Rows
from nysboost.rows.sizes import PROBE_ROWS, TILE_COLS, TILE_ROWS

IN_RANGE = 1e140  # values from its inverse to it can be squared and summed in float64

COMPARED_ROWS = 32
"""Number of rows whose kernel values are compared in float32 and float64."""

ALL_ZERO = (
    "All kernel values that were evaluated are zero, or too small for floating point. Check the "
    "parameters of the kernel and the scale of the data."
)

NOT_FINITE = (
    "The kernel matrix contains NaN or infinity, though the data do not. "
    "Scale the data down, or check the kernel's parameters."
)


class EntryCounter:
    """The number of kernel values evaluated so far, by all threads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def add(self, n_rows: int, n_columns: int) -> None:
        """Count the entries of a block."""
        with self._lock:
            self.count += int(n_rows) * int(n_columns)

    def __reduce__(self) -> tuple[type[EntryCounter], tuple[int]]:
        return EntryCounter, (self.count,)


# Landmarks


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The m landmarks of a learner: columns, `indices` (m,), or `points` (m, d).

    Landmarks that are rows of the data have both. Columns of a precomputed matrix have no points,
    and other points have no indices.
    """

    indices: Indices | None
    points: Array | None

    def __len__(self) -> int:
        if self.points is None:
            return len(self.columns)
        return int(self.points.shape[0])

    @property
    def Z(self) -> Array:  # noqa: N802
        """The points, which exist unless the matrix is precomputed."""
        assert self.points is not None
        return self.points

    @property
    def columns(self) -> Indices:
        """The columns, which exist for landmarks that are rows, and for a precomputed matrix."""
        assert self.indices is not None
        return self.indices

    def evaluator(self, kernel: Kernel, template: Array) -> Evaluator:
        """Return x ↦ k(x, Z) for rows like `template`, prepared once for Z."""
        if isinstance(kernel, Columns):
            return kernel.at(self.columns)

        # landmarks stay where they were fitted
        x_location = describe_location(template)
        z_location = describe_location(self.Z)
        if x_location != z_location:
            raise ValueError(
                f"X is {x_location}, but this approximation was fitted with {z_location}. "
                "Move X there, or fit where X is."
            )
        return kernel.against(convert_like(template, self.Z))

    def take(self, places: Indices) -> Landmarks:
        """Return some of the landmarks by position."""
        indices, points = self.indices, self.points
        if indices is not None:
            indices = indices[places]
        if points is not None:
            points = take(points, places)
        return Landmarks(indices, points)

    def __repr__(self) -> str:
        kind = "points" if self.indices is None else "columns"
        return f"Landmarks({len(self)} {kind})"


def pool(parts: Sequence[Landmarks]) -> Landmarks:
    """Concatenate the landmarks of several learners."""
    if len(parts) == 1:
        return parts[0]

    # indices, if all landmarks are columns, and points, if the matrix is not precomputed
    indices = [part.indices for part in parts if part.indices is not None]
    points = [part.points for part in parts if part.points is not None]
    are_columns = len(indices) == len(parts)
    return Landmarks(
        indices=np.concatenate(indices) if are_columns else None,
        points=stack_tables(points) if points else None,
    )


# The matrix


class Gram(ABC):
    """A symmetric positive semidefinite n×n matrix, evaluated by blocks.

    Blocks of G are k(X[rows], Z) for landmarks Z, which may be columns of G or other points. All
    values are computed by `evaluate`, which counts them.

    Attributes
    ----------
    rows : Rows
        The n points, or the rows of a precomputed matrix.
    kernel : Kernel
        The function k.
    n : int
        Number of rows and columns.
    dtype : numpy.dtype
        float32 or float64, the dtype of the rows and the values.
    budget : Budget
        Memory and threads for passes over rows.
    counter : EntryCounter
        Counts the values; shared with Gram matrices derived from this one.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        budget: Budget = DEFAULT_BUDGET,
        counter: EntryCounter | None = None,
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.n = rows.n
        self.dtype = np.dtype(dtype_name(rows.template))
        self.budget = budget
        self.counter = counter or EntryCounter()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.kernel}, n={self.n}, n_features={self.rows.n_features}, "
            f"dtype={self.dtype}, entries_evaluated={self.entries_evaluated})"
        )

    @property
    def eps(self) -> float:
        """Machine epsilon of the entries."""
        return float(np.finfo(self.dtype).eps)

    @property
    def entries_evaluated(self) -> int:
        """Number of kernel values evaluated so far, a cost that does not depend on hardware."""
        return self.counter.count

    # What the two kinds of matrices do differently

    @abstractmethod
    def with_rows(self, rows: Rows) -> Gram:
        """Return the Gram matrix of other rows, counted together with this one."""

    @abstractmethod
    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""

    @abstractmethod
    def take(self, rows: Selection, landmarks: Landmarks) -> Array:
        """Return the part of some rows of the Gram on which k(X[rows], Z) depends."""

    @abstractmethod
    def diag(self, rows: Selection | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""

    @abstractmethod
    def restrict(self, indices: Indices) -> Gram:
        """Return G[S, S] as a separate Gram, with its rows in memory."""

    def in_float32(self) -> Gram:
        """Return G in float32 if its values change only by rounding, else G."""
        return self

    def forget_rows(self) -> Self:
        """Return this Gram without its data, for saving with the landmarks."""
        rows = self.rows
        forgotten = copy.copy(self)
        forgotten.rows = DroppedRows(rows.n, rows.n_features)
        return forgotten

    # Values

    def evaluate(self, X: Array, landmarks: Landmarks) -> Array:
        """Return k(X, Z) for any rows X, shape (len(X), m)."""
        evaluator = landmarks.evaluator(self.kernel, X)
        values = evaluator(X)
        self.counter.add(*values.shape)
        return values

    def cross(self, rows: Selection, landmarks: Landmarks) -> Array:
        """Return k(X[rows], Z), shape (len(rows), m)."""
        X = self.take(rows, landmarks)
        return self.evaluate(X, landmarks)

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return G[rows, cols]."""
        return self.cross(rows, self.landmarks(cols))

    def host_block(self, rows: Indices, cols: Indices) -> Floats:
        """Return G[rows, cols] on the host, in float64."""
        return floats_on_host(self.block(rows, cols))

    def host_diag(self, rows: Selection | None = None) -> Floats:
        """Return the diagonal, or its entries at `rows`, on the host, in float64."""
        return floats_on_host(self.diag(rows))

    def whole(self) -> Array:
        """Return all of G, from its blocks on and below the diagonal."""
        return symmetric(self.block, self.n)

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""
        if landmarks.points is None:
            J = landmarks.columns
            return self.block(J, J)
        return self.evaluate(landmarks.Z, landmarks)

    def times(self, V: Array, rows: Indices | None = None) -> Array:
        """Return G[rows, rows] V, shape (n, q), tile by tile in the precision of V."""
        if rows is None:
            rows = np.arange(self.n)
        n = len(rows)
        width = self.tile_width(V.shape[1])

        # rows of the product, each a sum over tiles
        xp = namespace(V)
        products = []
        for top in slices(0, n, TILE_ROWS):
            total = xp.zeros_like(V[top, :])
            for left in slices(0, n, width):
                tile = self.block(rows[top], rows[left])
                if isinstance(V, np.ndarray):
                    tile = to_host(tile)
                total += in_dtype_of(tile, V) @ V[left, :]
            products.append(total)
        return xp.concat(products)

    def tile_width(self, K: int) -> int:
        """Return the width of a tile that fits in memory, with its rows, columns and K features."""
        # values and their differences, and rows and features of both sides
        numbers_of_column = 4 * TILE_ROWS + 3 * (self.rows.n_features + K)
        column_bytes = 8 * numbers_of_column
        fitting = self.budget.bytes // column_bytes
        return max(1, min(TILE_COLS, fitting))


class KernelGram(Gram):
    """The Gram matrix of a kernel on the rows of a table."""

    def with_rows(self, rows: Rows) -> KernelGram:
        """Return the Gram matrix of other rows, counted together with this one."""
        return KernelGram(rows, self.kernel, self.budget, self.counter)

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the rows at `indices` as landmarks."""
        return Landmarks(indices, self.rows.take(indices))

    def take(self, rows: Selection, landmarks: Landmarks) -> Array:  # noqa: ARG002
        """Return X[rows]."""
        return self.rows.take(rows)

    def diag(self, rows: Selection | None = None) -> Array:
        """Return k(x, x) for all rows, or those at `rows`."""
        if rows is not None:
            return self.kernel.diag(self.rows.take(rows))

        # all of them in one pass
        task = BlockTask("diagonal", _diagonal, self.kernel, scan_size(self.rows))
        column = gather(self.rows.map(task, 1))
        return column[:, 0]

    def restrict(self, indices: Indices) -> KernelGram:
        """Return the Gram matrix of the rows at `indices`, which are read once."""
        return self.with_rows(ArrayRows(self.rows.take(indices)))

    def in_float32(self) -> KernelGram:
        """Return G in float32 if its values change only by rounding, else G.

        This is tested on a few evenly spaced rows. CSR rows stay in float64, because float32 would
        not be faster.
        """
        X = self.rows.take(slice(None))
        if is_sparse(X) or self.eps > EPS:
            return self

        # the values of some rows in both precisions
        xp = namespace(X)
        spread = spaced_indices(self.n, COMPARED_ROWS)
        with np.errstate(all="ignore"):
            coarse_rows = ArrayRows(xp.astype(X, xp.float32))
            in_float32 = self.with_rows(coarse_rows)
            coarse = in_float64(in_float32.block(spread, spread))
            exact = self.block(spread, spread)
            largest_error = max_abs(exact - coarse)

        if largest_error <= ALIKE * max_abs(exact):
            return in_float32
        return self


def _diagonal(kernel: Kernel, X: Array) -> Array:
    """Return k(x, x) as a column."""
    diagonal = kernel.diag(X)
    return diagonal[:, None]


# Samples of rows


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of the data in memory, at increasing `indices`, with `gram` = G[S, S].

    `kernel` is the kernel of the data; for a precomputed matrix, it picks columns.
    """

    indices: Indices
    gram: Gram
    kernel: Kernel

    @classmethod
    def of(cls, gram: Gram, indices: Indices) -> Sample:
        """Take these distinct rows. If all rows are in memory, they are not copied."""
        indices = np.unique(indices)
        part = gram
        if len(indices) < gram.n or not gram.rows.in_memory:
            part = gram.restrict(indices)
        return cls(indices, part, gram.kernel)

    def positions(self, indices: Indices) -> Indices:
        """Return the positions of rows of the data in the sample."""
        return np.searchsorted(self.indices, indices)

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def matrix(self) -> Array:
        """G[S, S], evaluated once, when it is first needed."""
        return self.gram.whole()

    @cached_property
    def single(self) -> Array:
        """The matrix in float32, if it is in range: values and products take half the time."""
        if "matrix" in self.__dict__:  # it has been evaluated
            G = self.matrix
        else:
            G = self.gram.in_float32().whole()

        # far from float32's smallest and largest numbers products neither vanish nor overflow
        xp = namespace(G)
        largest = float(xp.max(xp.linalg.diagonal(G)))
        if 1e-20 < largest < 1e20:
            return xp.astype(G, xp.float32, copy=False)
        return self.matrix

    def locate(self, landmarks: Landmarks) -> Landmarks:
        """Convert landmarks of the whole matrix to landmarks of the sample with their rows."""
        if landmarks.indices is None:
            return landmarks
        return replace(landmarks, indices=self.positions(landmarks.indices))

    def lift_to_rows(self, landmarks: Landmarks) -> Landmarks:
        """Convert landmarks of the sample to landmarks of the whole matrix."""
        if landmarks.indices is None:
            return landmarks  # points are the same everywhere
        return replace(landmarks, indices=self.indices[landmarks.indices])


def take_sample(gram: Gram, size: int, rng: np.random.Generator) -> Sample:
    """Return all rows or, if there are more than `size`, a uniform sample."""
    chosen = np.arange(gram.n)
    if gram.n > size:
        chosen = rng.choice(gram.n, size=size, replace=False)
    return Sample.of(gram, chosen)


# From data and a kernel to G, checked on a few rows before any work


def make_gram(
    X: Given,
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    budget: Budget = DEFAULT_BUDGET,
    corrupted: bool = False,
    **params: object,
) -> Gram:
    """Return the Gram matrix of data X (n, d), or (n, n) if "precomputed", under a kernel.

    `params` are the parameters of a named kernel. A `corrupted` matrix may be indefinite.
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        from nysboost.gram.precomputed import make_precomputed  # which stands on this module

        return make_precomputed(X, budget, params, corrupted=corrupted)

    # some of the kernel's parameters are read off the rows
    rows = scan_rows(X)
    resolved = make_kernel(kernel, **params).resolve(rows)
    return probe(KernelGram(rows, resolved, budget))


def require_points(gram: Gram) -> KernelGram:
    """Return a Gram matrix with points; raise if it is precomputed."""
    if isinstance(gram, KernelGram):
        return gram
    msg = 'This method needs points, but the kernel is precomputed: choose "rpcholesky".'
    raise ValueError(msg)


def on_other_rows(gram: Gram, X: Given) -> Gram:
    """Return the Gram matrix of the rows of X under the kernel of `gram`, if it has one."""
    if not isinstance(gram, KernelGram):
        raise ValueError(
            "A precomputed kernel matrix has no values for new rows. Leave X out to use the rows "
            "of the fit, or fit to points with a kernel."
        )

    rows = scan_rows(X)
    if rows.n_features != gram.rows.n_features:
        msg = f"X has {rows.n_features} columns, but the fit had {gram.rows.n_features}."
        raise ValueError(msg)
    return gram.with_rows(rows)


def given_landmarks(gram: Gram, landmarks: Given) -> Landmarks:
    """Return the user's landmarks from row numbers (m,), a mask of rows, or points (m, d)."""
    if np.ndim(landmarks) != 2:
        indices = positions(landmarks, gram.n, "landmarks")
        if len(indices) == 0:
            raise ValueError("landmarks is empty: give at least one row or point.")
        return gram.landmarks(indices)

    points = scan_rows(landmarks, name="landmarks")
    precomputed = isinstance(gram.kernel, Columns)
    if precomputed or points.n_features != gram.rows.n_features:
        raise ValueError(
            f"landmarks has shape ({points.n}, {points.n_features}), but it must hold "
            f"row numbers, or points with {gram.rows.n_features} features."
        )

    # in the namespace, dtype and form of the rows
    template = gram.rows.template
    Z = points.take(slice(None))
    if not is_sparse(Z):
        Z = like(Z, template)
    return Landmarks(None, convert_like(template, Z))


def probe(gram: Gram) -> Gram:
    """Raise before any work if a principal submatrix shows that a kernel is not valid."""
    # a principal submatrix of evenly spread rows, which is no cost of a method's
    spread = spaced_indices(gram.n, PROBE_ROWS)
    W = Sample.of(gram, spread).matrix
    gram.counter.count = 0

    xp = namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    refuse_indefinite(xp.linalg.eigvalsh(W))

    # zero on a few rows: zero on all of them, if the diagonal is
    largest = max_abs(W)
    if largest != 0 and not 1 / IN_RANGE < largest < IN_RANGE:
        raise ValueError(
            f"The kernel has values of {largest:.3g}, whose squares are outside the range of "
            "floating point: scale the data so that the values are nearer to 1."
        )
    if largest == 0 and max_abs(gram.diag()) == 0:
        raise ValueError(ALL_ZERO)
    return gram


def refuse_indefinite(eigenvalues: Array) -> None:
    """Raise if a principal submatrix shows that G is not positive semidefinite."""
    ends = [float(eigenvalues[0]), float(eigenvalues[-1])]
    smallest, largest = sorted(ends)
    if smallest < -INDEFINITE * max(largest, 0.0):
        raise ValueError(
            "The kernel is not positive semidefinite: a principal submatrix has eigenvalues from "
            f"{smallest:.3g} to {largest:.3g}. Nyström approximations need a positive "
            "semidefinite kernel, such as rbf, laplacian, matern, linear or polynomial."
        )
