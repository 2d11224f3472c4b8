"""Passes over rows in which features are computed, a block of rows at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nysboost.gram import EntryCounter
from nysboost.kernels import Evaluator
from nysboost.numerics.arrays import (
    Array,
    block_bytes,
    dtype_name,
    empty,
    in_float64,
    is_numpy,
    like,
    product_into,
    to_host,
)
from nysboost.numerics.checks import DEFAULT_BUDGET, Budget
from nysboost.rows.driver import BlockFunction, Cost, Plan, PlannedRows, Result, Shared, Task
from nysboost.rows.sizes import WAITING

if TYPE_CHECKING:
    from nysboost.features.feature_map import FeatureMap
    from nysboost.features.fused import FusedMap

FUSED_ROWS = 2**14  # from here on a GPU's fused kernel pays for preparing it, about 1 ms
BLOCKS_OF_FEATURES = 4  # times a cache, where features are multiplied: 32 MB run at full speed


@dataclass(frozen=True, eq=False)
class FeatureTask(Task):
    """A pass that computes the features F of each block of rows.

    Its result is F, if it is `in_place`, or what it makes of each block, of `result_bytes`.
    `counter` counts the kernel values. With `double`, they are evaluated in float64.
    """

    transform: FeatureMap
    _: KW_ONLY
    result_bytes: int = 0
    double: bool = False
    budget: Budget = DEFAULT_BUDGET
    counter: EntryCounter = field(default_factory=EntryCounter)
    finite = True

    def features(self, template: Array) -> BlockFeatures:
        """Return x ↦ F for blocks like `template`, with landmarks and N on their device."""
        if self.double:
            template = in_float64(template)
        transform = self.transform
        return BlockFeatures(
            *transform.prepare(template),
            for_values=Scratch(len(transform.landmarks), template),
            for_features=Scratch(transform.rank, template),
            counter=self.counter,
            double=self.double,
        )

    def plan(self, rows: PlannedRows, streamed: bool) -> Plan:
        """Return the sizes of a pass: operands, blocks of kernel values, pieces of rows."""
        template = rows.template
        if self.double:
            template = in_float64(template)
        itemsize = np.dtype(dtype_name(template)).itemsize

        transform = self.transform
        d = rows.numbers_per_row
        c = len(transform.landmarks)
        r = transform.rank

        # operands: Z, twice where it is prepared, and N
        point = 0  # of a precomputed matrix
        if transform.landmarks.points is not None:
            point = d
        numbers_of_z = 2 * c * (point + 2)
        operands = itemsize * (numbers_of_z + transform.projection_size)

        # a row of a block: its coordinates, its features and its kernel values
        numbers_of_row = 2 * point + 8
        if not self.in_place and transform.projection is not None:
            numbers_of_row += 2 * r
        value_bytes = transform.kernel.bytes_per_value(template)
        block_row = itemsize * numbers_of_row + value_bytes * c

        # a row of a piece, where rows or features go through files
        piece_row = 0
        if streamed:
            piece_row = 8 * d
            if self.in_place:
                piece_row += itemsize * r

        cost = Cost(
            fixed=operands + 2 * self.result_bytes,
            thread=WAITING * self.result_bytes,
            block_row=block_row,
            piece_row=piece_row,
        )

        cache_bytes = block_bytes(template)
        if not self.in_place:
            cache_bytes *= BLOCKS_OF_FEATURES

        # other libraries have threads of their own, and modes that belong to a thread
        parallel = transform.kernel.parallel and is_numpy(template)
        return cost.plan(rows.n, self.budget, cache_bytes=cache_bytes, parallel=parallel)


@dataclass(frozen=True, eq=False)
class WriteFeatures(FeatureTask):
    """A pass whose result is F itself."""

    name = "features"
    in_place = True

    def prepare(self, template: Array) -> BlockFeatures:
        """Return (block, out) ↦ F, in `out`."""
        return self.features(template)

    def fuse(self, template: Array, n: int) -> FusedPass | None:
        """Return the map as one GPU kernel, if PyTorch and Triton support it."""
        is_on_gpu = getattr(template, "is_cuda", False)
        if not is_on_gpu or n < FUSED_ROWS:
            return None

        # k(x, Z) N, with Z and N
        transform = self.transform
        points = transform.landmarks.points
        if points is None or transform.projection is None:
            return None

        try:
            from nysboost.features.fused import fused_map
        except ImportError:
            return None

        fused = fused_map(transform.kernel, points, transform.normalization)
        if fused is None:
            return None
        return FusedPass(fused, self.counter, len(transform.landmarks))


@dataclass(frozen=True, eq=False)
class FeaturePass(FeatureTask):
    """A pass whose result for a block is function(shared, F, *others)."""

    name: str
    function: BlockFunction
    shared: Shared = None

    def prepare(self, template: Array) -> BlockResult:
        """Return (block, *others) ↦ result."""
        features = self.features(template)
        return BlockResult(self.function, self.shared, features)


# Multiplication with N: dense, triangular, or a block for each learner

PANEL = 128
"""Columns of a triangular N that are multiplied together, without the zeros below them: 2/3 of the
time of a full product."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A nonzero part P of N, and its position: N[rows, columns] = P."""

    rows: slice
    columns: slice
    P: Array


@dataclass(frozen=True, eq=False)
class Product:
    """C ↦ C N for a matrix N that is zero outside its pieces."""

    pieces: tuple[Piece, ...]
    width: int

    def __call__(self, C: Array, out: Array | None = None) -> Array:
        """Return C N, shape (n, r), in `out` if it is given."""
        if out is None:
            if len(self.pieces) == 1:
                return C @ self.pieces[0].P
            shape = (C.shape[0], self.width)
            out = empty(shape, C)

        for piece in self.pieces:
            values = C[:, piece.rows]
            features = out[:, piece.columns]
            product_into(values, piece.P, features)
        return out


def make_product(blocks: Sequence[Array], template: Array) -> Product:
    """Return C ↦ C N for N with these diagonal blocks, moved to the device of the rows."""
    # blocks stand below and beside each other, the panels of a block beside each other
    pieces = []
    row = 0
    column = 0
    for block in blocks:
        for P in _panels(like(block, template)):
            height, width = P.shape
            rows = slice(row, row + height)
            columns = slice(column, column + width)
            pieces.append(Piece(rows, columns, P))
            column += width
        row += block.shape[0]
    return Product(tuple(pieces), column)


def _panels(P: Array) -> list[Array]:
    """Return an upper triangular projection as panels of columns, any other as one piece.

    Of an (m, k) matrix the last k rows are a triangle.
    """
    height, width = P.shape
    above = height - width
    if above < 0 or width <= PANEL:
        return [P]

    # in column j, rows after above + j are below the diagonal
    first_below = -above - 1
    below_diagonal = np.tril(to_host(P), first_below)
    if below_diagonal.any():
        return [P]

    # a panel ends where its last column does
    panels = []
    for start in range(0, width, PANEL):
        stop = min(start + PANEL, width)
        panels.append(P[: above + stop, start:stop])
    return panels


# What is done to a block of rows


class Scratch:
    """Memory for a block with this many columns, reused by each thread.

    Without it, Dask workers take a third more time.
    """

    def __init__(self, columns: int, template: Array) -> None:
        self._columns = columns
        self._dtype = template.dtype
        self._is_numpy = isinstance(template, np.ndarray)
        self._kept = threading.local()

    def rows(self, count: int) -> Array | None:
        """Return memory of shape (count, columns); None where the library is not NumPy."""
        if not self._is_numpy:
            return None

        memory: Array | None = getattr(self._kept, "memory", None)
        if memory is None or memory.shape[0] < count:
            shape = (count, self._columns)
            memory = np.empty(shape, self._dtype)
            self._kept.memory = memory
        return memory[:count]


@dataclass(frozen=True, eq=False)
class BlockFeatures:
    """x ↦ k(x, Z) N for blocks of rows."""

    evaluate: Evaluator
    product: Product | None
    for_values: Scratch
    for_features: Scratch
    counter: EntryCounter
    double: bool

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return the features of a block, shape (b, r), in `out` if it is given.

        Without `out`, the result is in memory that the next block of the thread overwrites.
        """
        if self.double:
            X = in_float64(X)
        count = X.shape[0]
        room = self.for_values.rows(count)
        values = self.evaluate(X, room)
        self.counter.add(*values.shape)

        if self.product is not None:
            if out is None:
                out = self.for_features.rows(count)
            return self.product(values, out)

        # N is the identity
        if out is not None:
            out[...] = values
        return values


@dataclass(frozen=True, eq=False)
class BlockResult:
    """x ↦ function(shared, k(x, Z) N) for blocks of rows."""

    function: BlockFunction
    shared: Shared
    features: BlockFeatures

    def __call__(self, X: Array, *others: Array) -> Result:
        """Return the function's result for a block and the same rows of other tables."""
        F = self.features(X)
        return self.function(self.shared, F, *others)


@dataclass(frozen=True, eq=False)
class FusedPass:
    """A fused map on a GPU, with counted values."""

    fused: FusedMap
    counter: EntryCounter
    n_landmarks: int

    def __call__(self, X: Array, out: Array) -> bool:
        """Write the features of X into `out`; return whether all rows were finite and in range."""
        done = self.fused(X, out)
        if done:
            self.counter.add(X.shape[0], self.n_landmarks)
        return done
