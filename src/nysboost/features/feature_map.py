"""The feature map x ↦ k(x, Z) N, the form of every approximation, and plain Nyström."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import block_diag, rq

from nysboost.features.feature_pass import PANEL, Product, WriteFeatures, make_product
from nysboost.gram import (
    NOT_FINITE,
    EntryCounter,
    Gram,
    Landmarks,
    Sample,
    pool,
    refuse_indefinite,
)
from nysboost.kernels import Evaluator, Kernel
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Selection,
    TableLike,
    as_float,
    dense,
    empty,
    epsilon,
    floats_on_host,
    identity,
    in_dtype_of,
    in_float64,
    like,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.checks import DEFAULT_BUDGET, Budget, Given
from nysboost.numerics.linalg import all_finite, norms, triangular_inverse
from nysboost.numerics.tolerances import JITTER, ROUNDING
from nysboost.rows.recognise import make_stream
from nysboost.rows.rows import ArrayRows, RowStream

Encoder: TypeAlias = Callable[[TableLike], TableLike]
"""A function that converts the user's tables to numbers."""


# N: dense, triangular, or a block for each learner


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """N = blockdiag(P_1, …, P_p), with P_i of shape (m_i, k_i)."""

    blocks: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(Σm_i, Σk_i)."""
        heights = [P.shape[0] for P in self.blocks]
        widths = [P.shape[1] for P in self.blocks]
        return sum(heights), sum(widths)

    def dense(self) -> Array:
        """Return N as one array of shape (Σm_i, Σk_i)."""
        on_host = [to_host(P) for P in self.blocks]
        N = block_diag(*on_host)
        return like(N, self.blocks[0])


Projection: TypeAlias = Array | BlockDiagonal | None
"""N of shape (m, r), a block for each learner, or None for the identity."""


def diagonal_blocks(N: Projection) -> tuple[Array, ...]:
    """Return the diagonal blocks of N; the identity, given as None, has none."""
    if N is None:
        return ()
    if isinstance(N, BlockDiagonal):
        return N.blocks
    return (N,)


def make_triangular(N: Array) -> Array:
    """Return the triangular R of N = R Q, with R Rᵀ = N Nᵀ: cheaper features of the same K̂."""
    if N.shape[1] <= PANEL:
        return N
    on_host = floats_on_host(N)
    R = rq(on_host, mode="r", check_finite=False)
    return like(R, N)


# The map


class PreparedMap(NamedTuple):
    """x ↦ k(x, Z) and C ↦ C N for rows of one form; for N = I, the product is None."""

    evaluate: Evaluator
    product: Product | None


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """The map x ↦ k(x, Z) N, with the approximation K̂(x, y) = ⟨k(x, Z) N, k(y, Z) N⟩.

    Parameters
    ----------
    kernel : Kernel
        The function k.
    landmarks : Landmarks
        The m points Z, or columns of a precomputed matrix.
    projection : array of shape (m, r), BlockDiagonal or None
        N; None is the identity.
    """

    kernel: Kernel
    landmarks: Landmarks
    projection: Projection = None

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, N: Array | None = None) -> FeatureMap:
        """Return the map of a kernel with landmarks Z; by default N is L⁻ᵀ with k(Z, Z) = L Lᵀ."""
        landmarks = Landmarks(None, Z)
        if N is not None:
            return cls(kernel, landmarks, N)

        # W = L Lᵀ, with a jitter that keeps it positive definite
        W = kernel(Z, Z)
        symmetric = (W + W.T) / 2
        jitter = JITTER * float(W[0, 0])
        ridge = jitter * identity(len(landmarks), W)
        L = namespace(Z).linalg.cholesky(symmetric + ridge)
        N = triangular_inverse(L).T
        return cls(kernel, landmarks, N)

    @property
    def rank(self) -> int:
        """Number of features r."""
        if self.projection is None:
            return len(self.landmarks)
        return int(self.projection.shape[1])

    @property
    def projection_size(self) -> int:
        """Number of entries of N, without the zeros outside its blocks."""
        blocks = diagonal_blocks(self.projection)
        return sum(math.prod(P.shape) for P in blocks)

    @property
    def normalization(self) -> Array:
        """N as one dense array of shape (m, r)."""
        N = self.projection
        if isinstance(N, BlockDiagonal):
            return N.dense()
        if N is not None:
            return N

        # the identity, where the landmarks are
        reference: Array = np.empty(0)
        if self.landmarks.points is not None:
            reference = dense(self.landmarks.points[:1, :])
        return identity(len(self.landmarks), reference)

    def __repr__(self) -> str:
        return (
            f"FeatureMap({len(self.landmarks)} landmarks → {self.rank} features, {self.kernel!r})"
        )

    # Other maps

    def lift(self, sample: Sample) -> FeatureMap:
        """Turn a map on columns of a sample into a map on columns of the whole matrix."""
        landmarks = sample.lift_to_rows(self.landmarks)

        # a kernel that picks columns picks those of the whole matrix
        kernel = self.kernel
        if landmarks.points is None:
            kernel = sample.kernel
        return FeatureMap(kernel, landmarks, self.projection)

    def round_to(self, eps: float) -> FeatureMap:
        """Return the map in a lower precision, without features below its rounding level."""
        N = self.normalization
        if eps <= epsilon(N):
            return self

        # of plain Nyström ‖N_j‖² = 1/λ_j for the eigenvalues λ of W: those below ROUNDING · eps
        # of the largest are rounding
        lengths = to_host(norms(N, axis=0))
        sizes = lengths**2
        largest = sizes.min() / (ROUNDING * eps)
        kept = np.flatnonzero(sizes <= largest)
        rounded = take(N, kept, axis=1)
        return replace(self, projection=rounded)

    def times(self, matrix: Array) -> FeatureMap:
        """Return x ↦ k(x, Z) N · matrix, as one map."""
        N = self.normalization
        product = N @ like(matrix, N)
        return replace(self, projection=product)

    # Features

    def __call__(self, X: Given) -> Array:
        """Return the features of the rows of a table, shape (n, r)."""
        shape = getattr(X, "shape", ())
        if shape and shape[0] == 0:
            reference = as_float(dense(X))
            return empty((0, self.rank), reference)

        # rows of as many columns as the landmarks have
        rows = make_stream(X)
        if self.landmarks.points is not None:
            d = self.landmarks.points.shape[1]
            if rows.n_features != d:
                msg = f"X has {rows.n_features} columns of numbers, but the fit had {d}."
                raise ValueError(msg)
        return self.write(rows)

    def write(
        self,
        rows: RowStream,
        out: object = None,
        budget: Budget = DEFAULT_BUDGET,
        counter: EntryCounter | None = None,
    ) -> Array:
        """Return the features of all rows, shape (n, r), or write them, one block at a time.

        `out` is None for a new array, an array, a store, or the path of a .npy file.
        """
        counter = counter or EntryCounter()
        task = WriteFeatures(self, budget=budget, counter=counter)
        return rows.map(task, self.rank, out=out)

    def prepare(self, template: Array) -> PreparedMap:
        """Return the map prepared for rows like `template`; for NumPy arrays, this is cached."""
        # dtype and width describe rows of NumPy, but not of others; of a precomputed matrix there
        # are two widths
        form = template.dtype, template.shape[1]
        is_numpy = type(template) is np.ndarray
        if is_numpy and form in self._prepared:
            return self._prepared[form]

        evaluate = self.landmarks.evaluator(self.kernel, template)
        product = None
        if self.projection is not None:
            blocks = diagonal_blocks(self.projection)
            product = make_product(blocks, template)
        prepared = PreparedMap(evaluate, product)
        if is_numpy:
            self._prepared[form] = prepared
        return prepared

    @cached_property
    def _prepared(self) -> dict[tuple[np.dtype[np.generic], int], PreparedMap]:
        """The map for rows of each dtype and width."""
        return {}

    def __getstate__(self) -> dict[str, object]:
        state = dict(self.__dict__)
        state.pop("_prepared", None)
        return state


@dataclass(frozen=True, eq=False)
class EncodedMap(FeatureMap):
    """A feature map after an encoder, which converts the rows of a table to numbers."""

    encoder: Encoder = field(kw_only=True)

    def __call__(self, X: TableLike) -> Array:
        """Return the features of the rows of a table, shape (n, r)."""
        return super().__call__(self.encoder(X))


def features_of(gram: Gram, transform: FeatureMap, rows: Selection | None = None) -> Array:
    """Return the features F of some rows of a Gram, or of all rows, shape (len(rows), r)."""
    if rows is None:
        rows = slice(None)
    X = gram.take(rows, transform.landmarks)
    return features_of_block(gram, transform, X)


def features_of_block(gram: Gram, transform: FeatureMap, X: Array) -> Array:
    """Return the features of rows X in memory, within the Gram's budget and counted by it."""
    rows = ArrayRows(X)
    return transform.write(rows, budget=gram.budget, counter=gram.counter)


# Learners: standard Nyström approximations, and mixtures of them


def fit_learner(
    gram: Gram,
    landmarks: Landmarks,
    rank: int,
    weights: Floats | None = None,
) -> FeatureMap:
    """Fit the standard Nyström approximation C W_k⁺ Cᵀ (Section 2.2; steps 1 and 2e).

    With W = U Λ Uᵀ the projection is U_k Λ_k^(−1/2); eigenvalues at the rounding level are zero.
    With weights D it is (D^½ W D^½)_k⁺ between two D^½.
    """
    W = gram.within(landmarks)
    if not all_finite(W):
        raise ValueError(NOT_FINITE)

    # D^½, as a column
    if weights is None:
        weights = np.ones(len(landmarks))
    roots_of_weights = np.sqrt(weights)
    D_root = like(roots_of_weights[:, None], W)

    # D^½ W D^½ = U Λ Uᵀ
    weighted = D_root * W * D_root.T
    symmetric = (weighted + weighted.T) / 2
    xp = namespace(W)
    eigenvalues, U = xp.linalg.eigh(in_float64(symmetric))
    refuse_indefinite(eigenvalues)

    # the k leading ones, in falling order. Rounding errors of entries do not add up with m, so the
    # cut-off does not grow with m: eps·m would discard eigenvalues that float32 still resolves
    leading = xp.flip(eigenvalues)[:rank]
    rounding = ROUNDING * gram.eps * leading[0]
    kept = leading > rounding
    k = int(to_host(kept).sum())
    falling = xp.flip(U, axis=1)
    U_k = falling[:, :k]

    # D^½ U_k Λ_k^(−1/2)
    roots = xp.sqrt(leading[:k])
    scaled = D_root * (U_k / roots)
    projection = in_dtype_of(scaled, W)
    return FeatureMap(gram.kernel, landmarks, projection)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ_i w_i K_i: p learners and their weights, shape (p,), which may be negative."""

    learners: tuple[FeatureMap, ...]
    weights: Floats


def side_by_side(learners: Sequence[FeatureMap]) -> FeatureMap:
    """Return the map to the features of all learners, which evaluates the kernel once."""
    if len(learners) == 1:
        return learners[0]
    kernel = learners[0].kernel
    landmarks = pool([learner.landmarks for learner in learners])
    projections = tuple(learner.normalization for learner in learners)
    return FeatureMap(kernel, landmarks, BlockDiagonal(projections))
