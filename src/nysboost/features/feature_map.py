"""The feature map x ↦ k(x, Z) N: the form of every approximation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.features.projection import BlockDiagonal, Multiply, diagonal_blocks, product_with
from nysboost.gram import EntryCounter, Gram, Landmarks, Sample
from nysboost.kernels import Evaluator, Kernel
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices
from nysboost.numerics.budget import Budget
from nysboost.numerics.devices import block_bytes
from nysboost.numerics.linalg import norms, triangular_inverse
from nysboost.numerics.tolerances import JITTER, ROUNDING, cutoff
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.driver import Cost, Plan, Task
from nysboost.rows.recognise import make_stream
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import WAITING

FUSED_ROWS = 2**14  # from here on a GPU's fused kernel pays for preparing it, about 1 ms
BLOCKS_OF_FEATURES = 4  # times a cache, where features are multiplied: 32 MB run at full speed


Encoder: TypeAlias = Callable[[Any], Any]
"""What makes numbers of a table of the user's, and leaves numbers as they are."""


def no_encoder(X: Any) -> Any:
    """Return a table of numbers as it is."""
    return X


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """x ↦ k(x, Z) N, of which K̂(x, y) = ⟨k(x, Z) N, k(y, Z) N⟩ is the approximation.

    N is a `projection` of shape (m, r), a `BlockDiagonal`, or None for the identity.
    """

    kernel: Kernel
    landmarks: Landmarks
    projection: Any = None

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, N: Array | None = None) -> FeatureMap:
        """Return the map of a kernel with landmarks Z; N is L⁻ᵀ of k(Z, Z) unless given."""
        if N is None:
            W = kernel(Z, Z)
            W = (W + W.T) / 2 + JITTER * float(W[0, 0]) * arrays.identity(Z.shape[0], W)
            N = triangular_inverse(arrays.namespace(Z).linalg.cholesky(W)).T
        return cls(kernel, Landmarks(None, Z), N)

    @property
    def rank(self) -> int:
        """Number of features r."""
        N = self.projection
        return len(self.landmarks) if N is None else int(N.shape[1])

    @property
    def normalization(self) -> Array:
        """N as one dense array of shape (m, r)."""
        N = self.projection
        if N is None:
            Z = self.landmarks.points
            like = np.empty(0) if Z is None else arrays.dense(Z[:1, :])
            return arrays.identity(len(self.landmarks), like)
        return N.dense() if isinstance(N, BlockDiagonal) else N

    def __repr__(self) -> str:
        return (
            f"FeatureMap({len(self.landmarks)} landmarks → {self.rank} features, {self.kernel!r})"
        )

    # Other maps

    def lift(self, sample: Sample) -> FeatureMap:
        """Return a map on columns of a sample as one on columns of the whole matrix."""
        kernel = sample.kernel if self.landmarks.points is None else self.kernel
        return FeatureMap(kernel, sample.lift_to_rows(self.landmarks), self.projection)

    def round_to(self, eps: float) -> FeatureMap:
        """Return the map for values of lower precision, without features below its rounding."""
        if eps <= arrays.epsilon(self.projection):
            return self
        # the inverses of W's eigenvalues
        sizes = arrays.to_host(norms(self.projection, axis=0)) ** 2
        kept = np.flatnonzero(sizes * cutoff(ROUNDING, eps) <= sizes.min())
        return replace(self, projection=arrays.take(self.projection, kept, axis=1))

    def times(self, matrix: Array) -> FeatureMap:
        """Return x ↦ k(x, Z) N · matrix, as one map."""
        N = self.normalization
        return replace(self, projection=N @ arrays.like(matrix, N))

    # Features

    def __call__(self, X: Any) -> Array:
        """Return the features of the rows of a table, shape (n, r)."""
        if getattr(X, "shape", ())[:1] == (0,):
            return arrays.empty((0, self.rank), arrays.as_float(arrays.dense(X)))
        rows, Z = make_stream(X), self.landmarks.points
        if Z is not None and rows.n_features != Z.shape[1]:
            raise ValueError(
                f"X makes {rows.n_features} columns of numbers, but the fit {Z.shape[1]}."
            )
        return self.write(rows)

    def write(
        self,
        rows: Rows,
        out: Any = None,
        budget: Budget | None = None,
        counter: EntryCounter | None = None,
    ) -> Array:
        """Return the features of all rows, shape (n, r), or write them, one block at a time.

        `out` is None for a new array, an array, a store, or the path of a .npy file.
        """
        task = FeaturePass(self, budget=budget, counter=counter)
        return rows.map(task, self.rank, out=out)

    def prepare(self, template: Array) -> tuple[Evaluator, Multiply | None]:
        """Return x ↦ k(x, Z) and values ↦ values · N for rows like `template`; NumPy's are kept."""
        kept: dict[Any, tuple[Evaluator, Multiply | None]]
        kept = self.__dict__.setdefault("_prepared", {}) if type(template) is np.ndarray else {}
        key = template.dtype, template.shape[1]  # rows of a precomputed matrix come in two widths
        if key not in kept:
            evaluate = self.landmarks.evaluator(self.kernel, template)
            kept[key] = evaluate, product_with(self.projection, template)
        return kept[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_prepared"}


@dataclass(frozen=True, eq=False)
class EncodedMap(FeatureMap):
    """A feature map behind an encoder, which makes numbers of the rows of a table."""

    encoder: Encoder = no_encoder

    def __call__(self, X: Any) -> Array:
        """Return the features of the rows of a table, shape (n, r)."""
        return super().__call__(self.encoder(X))


def features_of(gram: Gram, transform: FeatureMap, rows: Indices | slice | None = None) -> Array:
    """Return a map's features F at rows of a Gram, all if None, shape (len(rows), r)."""
    X = gram.take(slice(None) if rows is None else rows, transform.landmarks)
    return features_of_block(gram, transform, X)


def features_of_block(gram: Gram, transform: FeatureMap, X: Array) -> Array:
    """Return a map's features at rows X in memory, as the Gram counts and budgets them."""
    return transform.write(ArrayRows(X), budget=gram.budget, counter=gram.counter)


@dataclass(frozen=True, eq=False)
class FeaturePass(Task):
    """A pass whose result for a block is F, or function(shared, F, *others).

    A result takes `result_bytes`; `double` evaluates in float64; kernel values are counted in
    `counter`.
    """

    transform: FeatureMap
    name: str = "features"
    function: Callable[..., Any] | None = None
    shared: Any = None
    result_bytes: int = 0
    double: bool = False
    budget: Budget | None = None
    counter: EntryCounter | None = None
    finite = True

    @property
    def in_place(self) -> bool:  # type: ignore[override]
        """Whether the features themselves are the result."""
        return self.function is None

    def prepare(self, template: Array) -> Callable[..., Any]:
        """Return the function of a block, with the landmarks and N where the rows are."""
        transform, double, function = self.transform, self.double, self.function
        template = arrays.in_float64(template) if double else template
        evaluate, multiply = transform.prepare(template)
        evaluate = evaluate if self.counter is None else self.counter.counted(evaluate)
        widths = len(transform.landmarks), transform.rank
        for_values, for_features = (_scratch(columns, template) for columns in widths)

        def features(x: Array, out: Array | None) -> Array:
            values = evaluate(arrays.in_float64(x) if double else x, for_values(x.shape[0]))
            if multiply is None:
                if out is not None:
                    out[...] = values
                return values
            return multiply(values, for_features(x.shape[0]) if out is None else out)

        if function is None:
            return features
        return lambda x, *others: function(self.shared, features(x, None), *others)

    def fuse(self, template: Array, n: int) -> Callable[[Array, Array], bool] | None:
        """Return the map as one GPU kernel, where PyTorch and Triton have one for it."""
        landmarks, counter = self.transform.landmarks, self.counter
        if n < FUSED_ROWS or not getattr(template, "is_cuda", False) or landmarks.points is None:
            return None
        if self.transform.projection is None:
            return None
        try:
            from nysboost.features.fused import fused_map
        except ImportError:
            return None
        fused = fused_map(self.transform.kernel, landmarks.Z, self.transform.normalization)
        if fused is None:
            return None

        def write(X: Array, out: Array) -> bool:
            done = fused(X, out)
            if done and counter is not None:
                counter.add(X.shape[0], len(landmarks))
            return done

        return write

    def plan(self, rows: Any, streamed: bool) -> Plan:
        """Return the sizes of the pass: operands, blocks of kernel values, pieces of rows."""
        landmarks, kernel, N = (
            self.transform.landmarks, self.transform.kernel, self.transform.projection
        )  # fmt: skip
        template = arrays.in_float64(rows.template) if self.double else rows.template
        c, d, r = len(landmarks), rows.numbers_per_row, self.transform.rank
        itemsize = np.dtype(arrays.dtype_name(template)).itemsize
        held = d if landmarks.points is not None else 0  # values are taken, not computed
        per_value = kernel.bytes_per_value(template)
        sizes = [P.shape[0] * P.shape[1] for P in diagonal_blocks(N)]
        own = 0 if self.in_place or N is None else 2 * r
        cost = Cost(
            fixed=itemsize * (2 * c * (held + 2) + sum(sizes)) + 2 * self.result_bytes,
            thread=WAITING * self.result_bytes,
            block_row=itemsize * (2 * held + 8 + own) + per_value * c,
            piece_row=(8 * d + (itemsize * r if self.in_place else 0)) if streamed else 0,
        )
        suits = block_bytes(template) * (1 if self.in_place else BLOCKS_OF_FEATURES)
        # other libraries have threads of their own, and modes that belong to a thread
        parallel = kernel.parallel and arrays.is_numpy(template)
        budget = self.budget or Budget()
        return cost.plan(rows.n, budget, cache_bytes=suits, parallel=parallel)


def _scratch(columns: int, template: Array) -> Callable[[int], Array | None]:
    """Return a function of a number of rows that returns memory, the same in each call of a thread.

    Without it Dask's workers take a third more time.
    """
    kept = threading.local()

    def memory(count: int) -> Array | None:
        if not isinstance(template, np.ndarray):
            return None
        rows = getattr(kept, "rows", None)
        if rows is None or rows.shape[0] < count:
            rows = kept.rows = np.empty((count, columns), template.dtype)
        return rows[:count]

    return memory
