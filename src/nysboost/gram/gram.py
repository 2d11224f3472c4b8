"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from nysboost.gram.landmarks import Landmarks
from nysboost.kernels import Columns, Evaluator, Kernel
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices
from nysboost.numerics.blocks import slices
from nysboost.numerics.budget import Budget
from nysboost.numerics.linalg import symmetric
from nysboost.numerics.magnitudes import max_abs
from nysboost.numerics.tolerances import ALIKE, EPS
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.driver import BlockTask
from nysboost.rows.lazy import gather
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import TILE_COLS, TILE_ROWS, scan_size
from nysboost.rows.views import DroppedRows

LOOKED_AT = 32  # rows whose values decide on float32


class EntryCounter:
    """How many kernel values have been evaluated, by all threads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def add(self, values: Array) -> Array:
        """Count the entries of a block, and return it."""
        with self._lock:
            self.count += int(values.shape[0]) * int(values.shape[1])
        return values

    def counted(self, evaluate: Evaluator) -> Evaluator:
        """Return the same evaluator, with every value counted."""
        return lambda X, out=None: self.add(evaluate(X, out))

    def __reduce__(self) -> Any:
        return EntryCounter, (self.count,)


class Gram(ABC):
    """A symmetric positive semidefinite n×n matrix, evaluated by blocks.

    Values pass through `against`, which counts them in `counter`; `budget` is for passes over rows.
    """

    kernel: Kernel
    _holding = False
    _held: Array | None = None
    _rounded: Self | None = None

    def __init__(self, rows: Rows, budget: Budget | None = None) -> None:
        self._set_rows(rows)
        self.budget = budget or Budget()
        self.counter = EntryCounter()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.kernel}, n={self.n}, n_features={self.rows.n_features}, "
            f"dtype={self.dtype}, entries_evaluated={self.entries_evaluated})"
        )

    def _set_rows(self, rows: Rows) -> None:
        self.rows, self.n = rows, rows.n
        self.dtype = np.dtype(arrays.dtype_name(rows.template))

    def with_rows(self, rows: Rows) -> Self:
        """Return the Gram matrix of other rows, counted together with this one."""
        other = copy.copy(self)
        other._set_rows(rows)
        other._holding, other._held, other._rounded = False, None, None
        return other

    def forget_rows(self) -> Self:
        """Return this Gram without its data, to be saved beside the landmarks."""
        forgotten = copy.copy(self)
        forgotten.rows = DroppedRows(self.rows.n, self.rows.n_features)
        return forgotten

    @property
    def eps(self) -> float:
        """Machine epsilon of the entries."""
        return float(np.finfo(self.dtype).eps)

    @property
    def entries_evaluated(self) -> int:
        """Number of kernel values so far: a cost that does not depend on hardware."""
        return self.counter.count

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return G[rows, cols]."""
        if self._holding and len(rows) == len(cols) == self.n:
            self.whole()  # nearly all blocks of this size are G itself
        held = self._cut_out(rows, cols)
        return self.cross(rows, self.landmarks(cols)) if held is None else held

    def whole(self) -> Array:
        """Return all of G, from its blocks on and below the diagonal; while it is held, once."""
        if self._held is not None:
            return self._held
        G = symmetric(lambda rows, cols: self.cross(rows, self.landmarks(cols)), self.n)
        self._held = G if self._holding else None
        return G

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep all of G from when it is first asked for; blocks are then cut out of it."""
        self._holding = True
        try:
            yield
        finally:
            self._holding, self._held, self._rounded = False, None, None

    def _cut_out(self, rows: Indices, cols: Indices) -> Array | None:
        """Return G[rows, cols] where G is held and both are consecutive, as those of a tile."""
        if self._held is None or not (_consecutive(rows) and _consecutive(cols)):
            return None
        return self._held[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]

    def times(self, V: Array, rows: Indices | None = None) -> Array:
        """Return G[rows, rows] V, shape (n, q), in the precision of V, a tile of G at a time."""
        rows = np.arange(self.n) if rows is None else rows
        xp, n, products = arrays.namespace(V), len(rows), []
        for top in slices(0, n, TILE_ROWS):
            total = xp.zeros_like(V[top, :])
            for left in slices(0, n, self.tile_width(V.shape[1])):
                tile = self.block(rows[top], rows[left])
                tile = arrays.to_host(tile) if isinstance(V, np.ndarray) else tile
                total += xp.astype(tile, V.dtype, copy=False) @ V[left, :]
            products.append(total)
        return xp.concat(products)

    def tile_width(self, K: int) -> int:
        """Return columns of a tile that fits in memory, with rows and K features of both sides."""
        held = 8 * (4 * TILE_ROWS + 3 * K + 3 * self.rows.n_features)
        return max(1, min(TILE_COLS, self.budget.bytes // held))

    def cross(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return k(X[rows], Z), shape (len(rows), m)."""
        return self.evaluate(self.take(rows, landmarks), landmarks)

    def take(self, rows: Indices | slice, landmarks: Landmarks) -> Array:  # noqa: ARG002
        """Return the Gram's own rows, or the columns of them that these landmarks need."""
        return self.rows.take(rows)

    def evaluate(self, X: Array, landmarks: Landmarks) -> Array:
        """Return k(X, Z) for any rows X, seen in fitting or not."""
        return self.against(landmarks, X)(X)

    def against(self, landmarks: Landmarks, template: Array) -> Evaluator:
        """Return x ↦ k(x, Z) for rows like `template`, with what depends on Z prepared once."""
        return self.counter.counted(landmarks.evaluator(self.kernel, template))

    @abstractmethod
    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = k(Z, Z), shape (m, m)."""
        if landmarks.points is None:
            return self.block(landmarks.columns, landmarks.columns)
        return self.evaluate(landmarks.Z, landmarks)

    def between_rows(self, X: Array, Y: Array, rows: Indices, columns: Indices) -> Array:
        """Return G[rows, columns], given the rows X and Y themselves."""
        held = self._cut_out(rows, columns)
        return self.evaluate(X, Landmarks(columns, Y)) if held is None else held

    @abstractmethod
    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""

    @abstractmethod
    def restrict(self, indices: Indices) -> Self:
        """Return G[S, S] as a Gram of its own, with its rows in memory."""

    def in_float32(self) -> Self:
        """Return G in float32, where values cost less so and are the same but for rounding."""
        return self


class KernelGram(Gram):
    """The Gram matrix of a kernel on the rows of a table."""

    def __init__(self, rows: Rows, kernel: Kernel, budget: Budget | None = None) -> None:
        super().__init__(rows, budget)
        self.kernel = kernel

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the rows at `indices` as landmarks."""
        return Landmarks(indices, self.rows.take(indices))

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return k(x, x) for all rows, or those at `rows`."""
        if rows is not None:
            return self.kernel.diag(self.rows.take(rows))
        task = BlockTask("diagonal", _diagonal, self.kernel, scan_size(self.rows))
        return gather(self.rows.map(task, 1))[:, 0]

    def restrict(self, indices: Indices) -> Self:
        """Return the Gram matrix of the rows at `indices`, which are read once."""
        return self.with_rows(ArrayRows(self.rows.take(indices)))

    def in_float32(self) -> Self:
        """Return G in float32, where values cost less so and are the same but for rounding."""
        X = self.rows.take(slice(None))
        if self._rounded is not None or arrays.is_sparse(X) or self.eps > EPS:
            return self._rounded or self
        xp, few = arrays.namespace(X), np.arange(0, self.n, max(1, self.n // LOOKED_AT))
        with np.errstate(all="ignore"):
            rounded = self.with_rows(ArrayRows(xp.astype(X, xp.float32)))
            exact, seen = (gram.block(few, few) for gram in (self, rounded))
            away = max_abs(exact - xp.astype(seen, exact.dtype))
        found = rounded if away <= ALIKE * max_abs(exact) else self
        if self._holding:
            rounded._holding, self._rounded = True, found
        return found


class PrecomputedGram(Gram):
    """A Gram matrix that the user computed, in memory or memory-mapped.

    New rows are kernel values against all n training points, or against the landmarks alone.
    """

    @property
    def kernel(self) -> Columns:  # type: ignore[override]
        """The kernel that picks columns of a row."""
        return Columns(self.n)

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""
        return Landmarks(indices, None)

    def take(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return G[rows, J], read without the other columns, or whole rows if J is as many."""
        everything = np.arange(self.n)
        columns = everything if len(landmarks) == self.n else landmarks.columns
        return self._entries(everything[rows], columns)

    @property
    def _matrix(self) -> Array:
        if isinstance(self.rows, ArrayRows):
            return self.rows.data
        return self.rows.take(slice(None))  # dropped rows raise an error

    def _entries(self, rows: Indices, columns: Indices) -> Array:
        G = self._matrix
        if isinstance(G, np.ndarray):
            return arrays.as_float(G[np.ix_(rows, columns)])
        return arrays.as_float(arrays.take(arrays.take(G, rows), columns, axis=1))

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""
        chosen, G = np.arange(self.n)[slice(None) if rows is None else rows], self._matrix
        return arrays.as_float(arrays.take(arrays.namespace(G).linalg.diagonal(G), chosen))

    def restrict(self, indices: Indices) -> Self:
        """Return G[S, S], copied into memory: s² values, however large n is."""
        return self.with_rows(ArrayRows(self._entries(indices, indices)))


def _consecutive(rows: Indices) -> bool:
    return len(rows) > 0 and bool((np.diff(rows) == 1).all())


def _diagonal(kernel: Kernel, X: Array) -> Array:
    """Return k(x, x) as a column."""
    return kernel.diag(X)[:, None]
