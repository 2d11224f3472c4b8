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
from nysboost.numerics.checks import Budget, Given, positions
from nysboost.numerics.linalg import max_abs, symmetric
from nysboost.numerics.tolerances import ALIKE, EPS, INDEFINITE
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.recognise import scan_rows
from nysboost.rows.rows import ArrayRows, Rows
from nysboost.rows.sizes import PROBE_ROWS, TILE_COLS, TILE_ROWS
from nysboost.rows.views import DroppedRows

SQUARABLE = 1e140  # values below it and above its inverse can be squared and summed in float64

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

    def counted(self, evaluate: Evaluator) -> Evaluator:
        """Return an evaluator that counts its values."""
        return CountedEvaluator(evaluate, self)

    def __reduce__(self) -> tuple[type[EntryCounter], tuple[int]]:
        return EntryCounter, (self.count,)


@dataclass(frozen=True, eq=False)
class CountedEvaluator(Evaluator):
    """An evaluator that adds the number of its values to a counter."""

    evaluate: Evaluator
    counter: EntryCounter

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(X, Z), shape (n, m)."""
        values = self.evaluate(X, out)
        self.counter.add(*values.shape)
        return values


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
        indices = None
        if self.indices is not None:
            indices = self.indices[places]

        points = None
        if self.points is not None:
            points = take(self.points, places)
        return Landmarks(indices, points)

    def __repr__(self) -> str:
        kind = "columns"
        if self.indices is None:
            kind = "points"
        return f"Landmarks({len(self)} {kind})"


def pool(parts: Sequence[Landmarks]) -> Landmarks:
    """Concatenate the landmarks of several learners."""
    if len(parts) == 1:
        return parts[0]

    # indices, if all landmarks are columns
    indices = [part.indices for part in parts if part.indices is not None]
    pooled_indices = None
    if len(indices) == len(parts):
        pooled_indices = np.concatenate(indices)

    # points, if they are not columns of a precomputed matrix
    points = [part.points for part in parts if part.points is not None]
    pooled_points = None
    if points:
        pooled_points = stack_tables(points)
    return Landmarks(pooled_indices, pooled_points)


# The matrix


class Gram(ABC):
    """A symmetric positive semidefinite n×n matrix, evaluated by blocks.

    Blocks of G are k(X[rows], Z) for landmarks Z, which may be columns of G or other points. All
    values are computed through `against`, which counts them.

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
        budget: Budget | None = None,
        counter: EntryCounter | None = None,
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.n = rows.n
        self.dtype = np.dtype(dtype_name(rows.template))
        self.budget = budget or Budget()
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

    def against(self, landmarks: Landmarks, template: Array) -> Evaluator:
        """Return x ↦ k(x, Z) for rows like `template`, prepared for Z and counted."""
        evaluator = landmarks.evaluator(self.kernel, template)
        return self.counter.counted(evaluator)

    def evaluate(self, X: Array, landmarks: Landmarks) -> Array:
        """Return k(X, Z) for any rows X, shape (len(X), m)."""
        return self.against(landmarks, X)(X)

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
        # values and their differences
        of_values = 4 * TILE_ROWS

        # rows and features of both sides
        d = self.rows.n_features
        of_rows = 3 * (d + K)

        column_bytes = 8 * (of_values + of_rows)
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
            X = self.rows.take(rows)
            return self.kernel.diag(X)

        # all of them in one pass
        size = scan_size(self.rows)
        task = BlockTask("diagonal", _diagonal, self.kernel, size)
        column = gather(self.rows.map(task, 1))
        return column[:, 0]

    def restrict(self, indices: Indices) -> KernelGram:
        """Return the Gram matrix of the rows at `indices`, which are read once."""
        X = self.rows.take(indices)
        return self.with_rows(ArrayRows(X))

    def in_float32(self) -> KernelGram:
        """Return G in float32 if its values change only by rounding, else G.

        This is tested on a few evenly spaced rows. CSR rows stay in float64, because float32 would
        not be faster.
        """
        X = self.rows.take(slice(None))
        if is_sparse(X) or self.eps > EPS:
            return self

        step = max(1, self.n // COMPARED_ROWS)
        spread = np.arange(0, self.n, step)

        # their values in both precisions
        xp = namespace(X)
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
        if len(indices) == gram.n and gram.rows.in_memory:
            return cls(indices, gram, gram.kernel)
        return cls(indices, gram.restrict(indices), gram.kernel)

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
        is_evaluated = "matrix" in self.__dict__
        if is_evaluated:
            G = self.matrix
        else:
            G = self.gram.in_float32().whole()

        # far from float32's smallest and largest numbers products neither vanish nor overflow
        xp = namespace(G)
        diagonal = xp.linalg.diagonal(G)
        largest = float(xp.max(diagonal))
        if 1e-20 < largest < 1e20:
            return xp.astype(G, xp.float32, copy=False)
        return self.matrix

    def locate(self, landmarks: Landmarks) -> Landmarks:
        """Convert landmarks of the whole matrix to landmarks of the sample with their rows."""
        if landmarks.indices is None:
            return landmarks
        places = self.positions(landmarks.indices)
        return replace(landmarks, indices=places)

    def lift_to_rows(self, landmarks: Landmarks) -> Landmarks:
        """Convert landmarks of the sample to landmarks of the whole matrix."""
        if landmarks.indices is None:
            return landmarks  # points are the same everywhere

        # of the first rows, positions in the sample are those in the whole
        are_first_rows = len(self) == self.indices[-1] + 1
        if are_first_rows:
            return landmarks
        row_numbers = self.indices[landmarks.indices]
        return replace(landmarks, indices=row_numbers)


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
    budget: Budget | None = None,
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
    made = make_kernel(kernel, **params)
    resolved = made.resolve(rows)
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
    if largest != 0 and not 1 / SQUARABLE < largest < SQUARABLE:
        raise ValueError(
            f"The kernel has values of {largest:.3g}, whose squares are outside the range of "
            "floating point: scale the data so that the values are nearer to 1."
        )
    if largest == 0 and max_abs(gram.diag()) == 0:
        raise ValueError(ALL_ZERO)
    return gram


def refuse_indefinite(eigenvalues: Array) -> None:
    """Raise if a principal submatrix shows that G is not positive semidefinite."""
    ends = float(eigenvalues[0]), float(eigenvalues[-1])
    smallest, largest = sorted(ends)

    if smallest < -INDEFINITE * max(largest, 0.0):
        raise ValueError(
            "The kernel is not positive semidefinite: a principal submatrix has eigenvalues from "
            f"{smallest:.3g} to {largest:.3g}. Nyström approximations need a positive "
            "semidefinite kernel, such as rbf, laplacian, matern, linear or polynomial."
        )
