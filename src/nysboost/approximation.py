"""The result of every method: K̂ = Σ_i w_i C_i P_i P_iᵀ C_iᵀ, as a linear operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse.linalg import LinearOperator

from nysboost.boosting.learner import Learner, Mixture
from nysboost.boosting.rules import Rule
from nysboost.boosting.trajectory import Trajectory
from nysboost.certificate import N_ENTRIES, Certificate, certify
from nysboost.data.rows import ArrayRows, spread_indices
from nysboost.engine import accuracy
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.residual import Residual
from nysboost.gram import ALL_ZERO, Gram, on_other_rows, pooled
from nysboost.numerics.arrays import Array, Floats, Indices, empty, like, to_host
from nysboost.numerics.checks import unknown
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.seeds import RandomState, make_rng
from nysboost.numerics.tolerances import cutoff

BLOCK_BYTES = 2**25
"""A block of features of this size is factorised at full speed."""

ERRORS = {
    "frobenius": accuracy.relative_error,
    "trace": accuracy.relative_trace_error,
    "spectral": accuracy.relative_spectral_error,
}


class Approximation(LinearOperator):
    """A low-rank approximation K̂ of G, never formed.

    Parameters
    ----------
    gram : Gram
        The matrix G that is approximated.
    mixture : Mixture
        Learners and weights.
    trajectory : Trajectory or None
        The run that found them, for the mixtures of its prefixes.
    rule : Rule or None
        The final rule of that run.

    Attributes
    ----------
    learners : tuple of Learner
        The p learners.
    weights : array of shape (p,)
        Their weights; negative ones are possible under ridge regression.
    entries_evaluated : int
        How many kernel values were evaluated to find it; of a prefix, by the whole run.
    """

    def __init__(
        self,
        gram: Gram,
        mixture: Mixture,
        trajectory: Trajectory | None = None,
        rule: Rule | None = None,
    ) -> None:
        super().__init__(dtype=gram.dtype, shape=(gram.n, gram.n))
        if not any(learner.rank for learner in mixture.learners):
            raise ValueError(ALL_ZERO)
        self.gram = gram
        self.learners: tuple[Learner, ...] = mixture.learners
        self.weights: Floats = mixture.weights
        self.trajectory = trajectory
        self.entries_evaluated: int = gram.entries_evaluated
        self._rule = rule

    def prefix(self, p: int) -> Approximation:
        """Return the mixture of the first p learners, weighed anew but not refitted."""
        if self.trajectory is None or self._rule is None:
            if p == len(self.learners) == 1:
                return self
            msg = "Only ensemble and boosting runs have prefixes, and only before they are saved."
            raise ValueError(msg)
        mixture = self.trajectory.mixture(self._rule, p)
        shorter = Approximation(self.gram, mixture, self.trajectory, self._rule)
        # errors asked for since then are no part of finding it
        shorter.entries_evaluated = self.entries_evaluated
        return shorter

    # Entries

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return K̂[rows, cols]."""
        left = self._features_at(np.asarray(rows)) * self._signs_like
        return left @ self._features_at(np.asarray(cols)).T

    def diag(self) -> Array:
        """Return the diagonal of K̂, shape (n,)."""
        return self._row_by_row(lambda _, F: (F * F) @ self._signs_like)

    def to_dense(self) -> Array:
        """Return K̂ as an n×n array."""
        F = self._all_features() if self._kept_features is None else self._kept_features
        return (F * self._signs_like) @ F.T

    # Products, spectrum, systems

    def __matmul__(self, V: Any) -> Any:
        """Return K̂ V, in the array namespace of V where that is the data's own."""
        if is_array_api_obj(V) and not isinstance(V, np.ndarray):
            return self._matmat(V[:, None])[:, 0] if V.ndim == 1 else self._matmat(V)
        return super().__matmul__(V)

    def _matmat(self, V: Array) -> Array:
        if isinstance(V, np.ndarray) and not isinstance(self._signs_like, np.ndarray):
            return to_host(self._matmat(like(V, self._signs_like)))
        inner = sum(F.T @ V[block, :] for block, F in self._feature_blocks())
        inner = self._signs_like[:, None] * inner
        return self._row_by_row(lambda _, F: F @ inner)

    def _adjoint(self) -> Approximation:
        return self

    def _transpose(self) -> Approximation:
        return self

    def eigh(self, k: int | None = None) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of K̂, in falling order, and their eigenvectors.

        Parameters
        ----------
        k : int or None
            How many; None is all that are not zero.

        Returns
        -------
        eigenvalues : array of shape (k,)
        eigenvectors : array of shape (n, k)
        """
        if k is not None and k < 1:
            msg = f"eigh needs at least one eigenpair, but k={k!r} was given."
            raise ValueError(msg)
        eigenvalues, basis = self._spectrum
        T = like(basis[:, :k], self._signs_like)
        return like(eigenvalues[:k], T), self._row_by_row(lambda _, F: F @ T)

    def solve(self, b: Array, alpha: float) -> Array:
        """Return (K̂ + alpha·I)⁻¹ b without forming K̂.

        Parameters
        ----------
        b : array of shape (n,) or (n, q)
            Right-hand sides.
        alpha : float
            Positive, and above the magnitude of K̂'s most negative eigenvalue.
        """
        b = b if is_array_api_obj(b) else np.asarray(b, dtype=self.dtype)
        eigenvalues, basis = self._spectrum
        lowest = min(0.0, float(eigenvalues.min()))
        if not alpha > max(0.0, -lowest * (1 + 1e-6)):
            msg = (
                f"solve needs alpha above {max(0.0, -lowest):.3g}, so that K̂ + alpha·I is positive "
                f"definite, but alpha={alpha!r} was given."
            )
            raise ValueError(msg)
        if b.shape[0] != self.shape[0]:
            msg = f"b has {b.shape[0]} rows, but the matrix has {self.shape[0]}."
            raise ValueError(msg)
        if isinstance(b, np.ndarray) and not isinstance(self._signs_like, np.ndarray):
            return to_host(self.solve(like(b, self._signs_like), alpha))
        V = b[:, None] if b.ndim == 1 else b
        inner = sum(F.T @ V[block] for block, F in self._feature_blocks())
        T, gain = like(basis, inner), like(eigenvalues / (eigenvalues + alpha), inner)
        inner = T @ (gain[:, None] * (T.T @ inner))
        solution = self._row_by_row(lambda block, F: (V[block] - F @ inner) / alpha)
        return solution[:, 0] if b.ndim == 1 else solution

    # Features

    def features(self, out: Any = None) -> Array:
        """Return F of shape (n, r) with F Fᵀ the positive semidefinite part of K̂.

        Parameters
        ----------
        out : None, array, HDF5 or Zarr array, or path of a .npy file
            Where they go; None is a new array.
        """
        transform, _ = self.feature_map()
        return transform.write(self.gram.rows, out)

    def feature_map(
        self, n_components: int | None = None, row_cap: int | None = None
    ) -> tuple[FeatureMap, float]:
        """Return the map x ↦ features, for any rows, and the share of K̂ that it discards.

        With non-negative weights and no cut the learners' features stand side by side.
        Otherwise K̂ is projected onto the positive semidefinite cone and cut to its
        leading eigenvectors, those of all rows or of a sample of them.

        Parameters
        ----------
        n_components : int or None
            Number of features to cut to; None keeps all.
        row_cap : int or None
            Rows that take part in the projection, spread evenly; None is all.

        Returns
        -------
        transform : FeatureMap
        discarded_mass : float
            The negative eigenvalues' share of the sum of all absolute eigenvalues.
        """
        landmarks = pooled([learner.landmarks for learner in self.learners])
        projections = tuple(learner.projection for learner in self.learners)
        K = len(self._signs)
        if self.weights.min() >= 0 and (n_components is None or n_components >= K):
            scaled = zip(projections, np.sqrt(self.weights), strict=True)
            return FeatureMap(self.gram, landmarks, tuple(P * float(w) for P, w in scaled)), 0.0
        n = self.shape[0]
        if row_cap is None or n <= max(row_cap, 2 * K):
            eigenvalues, basis = self._spectrum
        else:
            sample = self._features_at(spread_indices(n, max(row_cap, 2 * K)))
            factor = triangular_factor(iter([sample]))
            eigenvalues, basis = spectrum(factor, self._signs, self.gram.eps)
        floor = cutoff(4, self.gram.eps) * float(np.abs(eigenvalues).max())
        positive = np.flatnonzero(eigenvalues > floor)[:n_components]
        rotation = basis[:, positive] * np.sqrt(eigenvalues[positive])
        mass = float(-eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum())
        whole = FeatureMap(self.gram, landmarks, projections, like(rotation, projections[0]))
        return whole.simplified(), mass

    # Errors

    def relative_error(
        self,
        rows: Indices | None = None,
        norm: Literal["frobenius", "trace", "spectral"] = "frobenius",
    ) -> float:
        """Return ‖K̂ − G‖ / ‖G‖, from the residual itself, without ever holding n×n.

        Parameters
        ----------
        rows : array of int or None
            Restrict both matrices to rows × rows; None is all of them, at a cost of n².
        norm : "frobenius", "trace" or "spectral"
            "trace" is |tr(K̂ − G)| / tr G.
        """
        if norm not in ERRORS:
            raise ValueError(unknown("norm", norm, ERRORS))
        chosen = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        kept = self._kept_features if rows is None else None
        if kept is None and self._fits(len(chosen)):
            kept = self._features_at(chosen)

        def features(at: slice) -> Array:
            return self._features_at(chosen[at]) if kept is None else kept[at, :]

        return ERRORS[norm](self.gram, features, self._signs, chosen)

    def certificate(
        self,
        confidence: float = 0.95,
        X: Any = None,
        *,
        n_entries: int = N_ENTRIES,
        random_state: RandomState = None,
    ) -> Certificate:
        """Return intervals for the relative Frobenius and trace errors, from few kernel values.

        Parameters
        ----------
        confidence : float
            At least this share of such intervals contain the truth.
        X : array-like of shape (n, d), or None
            Rows to speak of that are not those of the fit.
        n_entries : int
            Kernel values that may be evaluated, whatever the number of rows.
        random_state : int, numpy.random.Generator, numpy.random.RandomState or None
            Seed of the sample.

        Returns
        -------
        Certificate
            `frobenius` and `trace` are pairs (low, high); as a text it is a sentence.

        Examples
        --------
        >>> import numpy as np, nysboost as nb
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> approx = nb.approximate(X, "kmeans", nb.Gaussian(sigma=1.0), n_components=30,
        ...                         random_state=0)
        >>> certificate = approx.certificate(n_entries=10**6, random_state=0)
        >>> low, high = certificate.frobenius
        >>> low < approx.relative_error(np.arange(4000)) < high
        True
        """
        gram = self.gram if X is None else on_other_rows(self.gram, X)
        residual = Residual(gram, self._plain_map, self._signs)
        rng = make_rng(random_state)
        return certify(residual, confidence, n_entries, rng, new_rows=X is not None)

    # Parts

    @cached_property
    def _signs(self) -> Floats:
        """The weight of each feature, shape (K,): the diagonal of S in K̂ = F S Fᵀ."""
        return np.repeat(self.weights, [learner.rank for learner in self.learners])

    @cached_property
    def _signs_like(self) -> Array:
        return like(self._signs, self.learners[0].projection)

    @cached_property
    def _plain_map(self) -> FeatureMap:
        landmarks = pooled([learner.landmarks for learner in self.learners])
        return FeatureMap(self.gram, landmarks, tuple(ln.projection for ln in self.learners))

    def _features_at(self, rows: Indices | slice) -> Array:
        return self._plain_map(self.gram.rows.take(rows))

    def _feature_blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield F in blocks of rows: computed once if it fits in memory, else each time."""
        kept, stop = self._kept_features, 0
        # an eighth, because a factorisation holds several copies of a block
        budget = min(BLOCK_BYTES, self.gram.max_memory // 8)
        size = max(1, budget // (8 * (len(self._signs) + self.gram.rows.n_features)))
        pieces = ArrayRows(kept).pieces(size) if kept is not None else self.gram.rows.pieces(size)
        for piece in pieces:
            start, stop = stop, stop + piece.shape[0]
            yield slice(start, stop), (self._plain_map(piece) if kept is None else piece)

    def _row_by_row(self, function: Callable[[slice, Array], Array]) -> Array:
        """Return function(rows, F[rows]) for all rows, in blocks of them."""
        result = None
        for block, F in self._feature_blocks():
            part = function(block, F)
            if result is None:
                result = empty((self.shape[0], *part.shape[1:]), part)
            result[block] = part
        return result

    def _all_features(self) -> Array:
        return self._plain_map.write(self.gram.rows)

    def _fits(self, n: int) -> bool:
        """Whether the features of n rows may be kept: in half of the working memory."""
        return bool(n * len(self._signs) * self.dtype.itemsize <= self.gram.max_memory // 2)

    @cached_property
    def _kept_features(self) -> Array | None:
        return self._all_features() if self._fits(self.shape[0]) else None

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        factor = triangular_factor(F for _, F in self._feature_blocks())
        return spectrum(factor, self._signs, self.gram.eps)

    def detached(self) -> Approximation:
        """Return this approximation without the data rows, to be saved beside an estimator."""
        kept = Approximation(self.gram.forget_rows(), Mixture(self.learners, self.weights))
        kept.entries_evaluated = self.entries_evaluated
        return kept

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_kept_features", "_spectrum", "_plain_map", "_signs_like")
        return {name: value for name, value in self.__dict__.items() if name not in derived}
