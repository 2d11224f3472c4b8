"""The result of every method: K̂ = Σ_i w_i C_i P_i P_iᵀ C_iᵀ, as a linear operator."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from nysboost.boosting.learner import Learner, Mixture
from nysboost.boosting.rules import Rule
from nysboost.boosting.trajectory import Trajectory
from nysboost.certificate import N_ENTRIES, Certificate, certify
from nysboost.data.dask_graph import is_dask
from nysboost.data.dask_rows import DaskRows
from nysboost.engine import accuracy
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.lazy_accuracy import lazy_error
from nysboost.engine.residual import Residual
from nysboost.gram import ALL_ZERO, Gram, KernelGram, Landmarks, on_other_rows, pooled
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.numerics.checks import (
    positions,
    real_numbers,
    require_count,
    require_number,
    unknown,
)
from nysboost.numerics.linalg import refined, spectrum
from nysboost.numerics.seeds import RandomState, make_rng
from nysboost.numerics.tolerances import DEFINITE, UNSOLVED

ERRORS = {
    "frobenius": accuracy.relative_error,
    "trace": accuracy.relative_trace_error,
    "spectral": accuracy.relative_spectral_error,
}


@dataclass(frozen=True, eq=False)
class Origin:
    """Where an approximation comes from.

    Parameters
    ----------
    method : str
        The name that `approximate` knows it by.
    trajectory : Trajectory or None
        The run that found the learners, for the mixtures of its prefixes.
    rule : Rule or None
        The final rule of that run.
    """

    method: str = "unnamed"
    trajectory: Trajectory | None = None
    rule: Rule | None = None


class Approximation(LinearOperator):
    """A low-rank approximation K̂ of G, never formed.

    Parameters
    ----------
    gram : Gram
        The matrix G that is approximated.
    mixture : Mixture
        Learners and weights.
    origin : Origin
        The method, and the run that found the learners.

    Attributes
    ----------
    method : str
        The method's name.
    kernel : Kernel or None
        With its parameters as numbers; None for a precomputed matrix.
    learners : tuple of Learner
        The p learners.
    weights : array of shape (p,)
        Their weights; negative ones are possible under ridge regression.
    rank : int
        Number of features, which K̂ has at most as its rank.
    landmarks : Landmarks
        All landmarks, learner after learner: `indices` and `points`.
    entries_evaluated : int
        How many kernel values were evaluated to find it; of a prefix, by the whole run.
    has_features : bool
        Whether there is a map x ↦ features, for these rows and for others.
    shift : float
        δ, where K̂ has a multiple δI of the identity beside its low rank; 0 for most methods.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> approx = nb.approximate(X, "kmeans", nb.Gaussian(sigma=2.0), n_components=50,
    ...                         random_state=0)
    >>> approx.method, approx.kernel, approx.rank, len(approx.landmarks)
    ('kmeans', Gaussian(gamma=0.125), 50, 50)
    >>> approx.relative_error() < 0.01
    True
    >>> (approx @ np.ones(500)).shape
    (500,)
    """

    has_features = True
    shift = 0.0

    def __init__(self, gram: Gram, mixture: Mixture, origin: Origin | None = None) -> None:
        super().__init__(dtype=gram.dtype, shape=(gram.n, gram.n))
        if not any(learner.rank for learner in mixture.learners):
            raise ValueError(ALL_ZERO)
        self.gram = gram
        self.learners: tuple[Learner, ...] = mixture.learners
        self.weights: Floats = mixture.weights
        self.origin = origin or Origin()
        self.entries_evaluated: int = gram.entries_evaluated

    @property
    def method(self) -> str:
        """The method's name."""
        return self.origin.method

    @property
    def trajectory(self) -> Trajectory | None:
        """The run that found the learners; None where there is none, or it was saved."""
        return self.origin.trajectory

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, its parameters as numbers; None for a precomputed matrix."""
        return self.gram.kernel if isinstance(self.gram, KernelGram) else None

    @property
    def rank(self) -> int:
        """Number of features, which K̂ has at most as its rank."""
        return len(self._weight_of_each)

    @cached_property
    def landmarks(self) -> Landmarks:
        """All landmarks, learner after learner."""
        return pooled([learner.landmarks for learner in self.learners])

    def prefix(self, p: int) -> Approximation:
        """Return the mixture of the first p learners, weighed anew but not refitted."""
        if isinstance(p, bool) or not isinstance(p, Integral):
            require_count("p", p)
        trajectory, rule = self.origin.trajectory, self.origin.rule
        if trajectory is None or rule is None:
            if p == len(self.learners) == 1:
                return self
            msg = "Only ensemble and boosting runs have prefixes, and only before they are saved."
            raise ValueError(msg)
        shorter = Approximation(self.gram, trajectory.mixture(rule, p), self.origin)
        # errors asked for since then are no part of finding it
        shorter.entries_evaluated = self.entries_evaluated
        return shorter

    @property
    def is_psd(self) -> bool:
        """Whether K̂ is positive semidefinite by its form: no weight is negative."""
        return bool(self.weights.min() >= 0)

    @property
    def saw_everything(self) -> bool:
        """Whether as many entries were evaluated to find it as all of G has."""
        return bool(self.entries_evaluated >= self.shape[0] ** 2)

    def named(self, method: str) -> Approximation:
        """Let it be known by the name of the method that found it."""
        self.origin = replace(self.origin, method=method)
        return self

    # Entries

    def block(self, rows: ArrayLike | slice, cols: ArrayLike | slice) -> Array:
        """Return K̂[rows, cols]; both as in NumPy: positions, masks or slices."""
        n = self.shape[0]
        left, right = (positions(which, n) for which in (rows, cols))
        return (self._factor.at(left) * self._weights_like) @ self._factor.at(right).T

    def diag(self) -> Array:
        """Return the diagonal of K̂, shape (n,)."""
        return self._factor.map(_diagonal, self._weights_like, 1, task="diagonal")[:, 0]

    def trace(self) -> float:
        """Return tr K̂."""
        weights = self._weight_of_each
        return float(self._factor.fold(_trace, operator.add, weights, task="trace"))

    def to_dense(self) -> Array:
        """Return K̂ as an n×n array."""
        F = self._factor.all()
        return (F * self._weights_like) @ F.T

    # Products, spectrum, systems

    def __matmul__(self, V: Any) -> Any:
        """Return K̂ V, in the array namespace of V where that is the data's own."""
        shape = getattr(V, "shape", ())
        if shape and shape[0] != self.shape[1]:
            msg = f"K̂ has {self.shape[1]} columns, and an array of shape {shape} does not fit them."
            raise ValueError(msg)
        if is_array_api_obj(V) and not isinstance(V, np.ndarray):
            return self._matmat(V[:, None])[:, 0] if V.ndim == 1 else self._matmat(V)
        return super().__matmul__(V)

    def _matmat(self, V: Array) -> Array:
        return self._times(V)

    def _times(self, V: Array) -> Array:
        """Return F S Fᵀ V."""
        if isinstance(V, np.ndarray) and not isinstance(self._weights_like, np.ndarray):
            return to_host(self._times(like(V, self._weights_like)))
        inner = self._weights_like[:, None] * self._factor.inner(V)
        product = self._factor.map(_product, inner, V.shape[1], task="product")
        return self._as_asked(product, V)

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
        if k is not None:
            require_count("k", k)
        eigenvalues, basis = self._spectrum
        T = like(basis[:, :k], self._weights_like)
        vectors = self._factor.map(_product, T, T.shape[1], task="eigenvectors")
        return like(eigenvalues[:k], T), vectors

    def solve(self, b: Any, alpha: float) -> Array:
        """Return (K̂ + alpha·I)⁻¹ b without forming K̂.

        The solution is refined until its residual falls no further, which takes it as far as
        floating point goes: to about eps·‖K̂‖ / alpha, as a dense factorisation would. That of
        a Dask array is lazy, and as good as one step is.

        Parameters
        ----------
        b : array of shape (n,) or (n, q)
            Right-hand sides.
        alpha : float
            Positive, and above the magnitude of K̂'s most negative eigenvalue.

        Warns
        -----
        ConvergenceWarning
            If the relative residual that was reached is above 1e-6, or 1e-3 in float32: alpha
            is then too small beside K̂ for the precision of the data.
        """
        require_number("alpha", alpha)
        b = real_numbers("b", b)
        eigenvalues, basis = self._spectrum
        lowest = min(0.0, float(eigenvalues.min()))
        if not alpha > max(0.0, -lowest * (1 + DEFINITE)):
            msg = (
                f"solve needs alpha above {max(0.0, -lowest):.3g}, so that K̂ + alpha·I is positive "
                f"definite, but alpha={alpha!r} was given."
            )
            raise ValueError(msg)
        if b.ndim not in (1, 2) or b.shape[0] != self.shape[0]:
            msg = f"b has shape {tuple(b.shape)}, but the matrix has {self.shape[0]} rows."
            raise ValueError(msg)
        if isinstance(b, np.ndarray) and not isinstance(self._weights_like, np.ndarray):
            return to_host(self.solve(like(b, self._weights_like), alpha))
        V = b[:, None] if b.ndim == 1 else b
        T = like(basis, self._weights_like)
        gain = like(eigenvalues / (eigenvalues + alpha), T)

        def once(V: Array) -> Array:
            inner = T @ (gain[:, None] * (T.T @ self._factor.inner(V)))
            shared = (inner, float(alpha))
            solution = self._factor.map(_solution, shared, V.shape[1], V, task="solution")
            return self._as_asked(solution, V)

        if is_dask(V):  # to look at it, or at what is left of it, would be to compute it
            return once(V)[:, 0] if b.ndim == 1 else once(V)
        if not bool(namespace(V).all(namespace(V).isfinite(V))):
            msg = "b contains NaN or infinity: there is no solution to that."
            raise ValueError(msg)
        solution, reached = refined(lambda x: self._times(x) + alpha * x, once, V)
        if reached > UNSOLVED[self.dtype.name]:
            warnings.warn(_unsolved(alpha, reached), ConvergenceWarning, stacklevel=2)
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

    def feature_map(self, row_cap: int | None = None) -> tuple[FeatureMap, float]:
        """Return the map x ↦ features, for any rows, and the share of K̂ that it discards.

        With non-negative weights the learners' features stand side by side. Otherwise K̂ is
        projected onto the positive semidefinite cone, by the eigenvectors of all rows or of
        a sample of them.

        Parameters
        ----------
        row_cap : int or None
            Rows that take part in the projection, spread evenly; None is all.

        Returns
        -------
        transform : FeatureMap
        discarded_mass : float
            The negative eigenvalues' share of the sum of all absolute eigenvalues.
        """
        projections = tuple(learner.projection for learner in self.learners)
        if self.weights.min() >= 0:
            scaled = zip(projections, np.sqrt(self.weights), strict=True)
            side_by_side = tuple(P * float(w) for P, w in scaled)
            return FeatureMap(self.gram, self.landmarks, side_by_side), 0.0
        rotation, mass = self._factor.positive_part(self._weight_of_each, row_cap)
        rotated = like(rotation, projections[0])
        return FeatureMap(self.gram, self.landmarks, projections, rotated).simplified(), mass

    # Errors

    def relative_error(
        self,
        rows: ArrayLike | slice | None = None,
        norm: Literal["frobenius", "trace", "spectral"] = "frobenius",
    ) -> float:
        """Return ‖K̂ − G‖ / ‖G‖, from the residual itself, without ever holding n×n.

        Parameters
        ----------
        rows : positions, a mask, a slice or None
            Restrict both matrices to rows × rows; None is all of them, at a cost of n².
        norm : "frobenius", "trace" or "spectral"
            "trace" is ``|tr(K̂ − G)| / tr G``.
        """
        if norm not in ERRORS:
            raise ValueError(unknown("norm", norm, ERRORS))
        if rows is None and isinstance(self.gram.rows, DaskRows):
            transform, weights = self._factor.transform, self._weight_of_each
            return lazy_error(transform, self.gram.rows, weights, norm, self.shift)
        chosen = positions(slice(None) if rows is None else rows, self.shape[0])
        if len(chosen) == 0:
            msg = "No rows were given, and on no rows there is no error: give at least one."
            raise ValueError(msg)
        whole, fits = rows is None, self._factor.fits(len(chosen))
        kept = None if not fits else self._factor.all() if whole else self._factor.at(chosen)

        def features(at: slice) -> Array:
            return self._factor.at(chosen[at]) if kept is None else kept[at, :]

        return ERRORS[norm](self.gram, features, self._weight_of_each, chosen, self.shift)

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
        residual = self._residual(None if X is None else on_other_rows(self.gram, X))
        rng = make_rng(random_state)
        return certify(residual, confidence, n_entries, rng, new_rows=X is not None)

    def _residual(self, other: Gram | None) -> Residual:
        """Return G − K̂, on the rows of the fit or on others."""
        if other is None:
            return Residual.of(self.gram, self._factor, self._weight_of_each)
        factor = Factor(self._factor.transform.with_gram(other))
        return Residual.of(other, factor, self._weight_of_each)

    # Parts

    def _as_asked(self, result: Array, given: Array) -> Array:
        """Return a result that is a Dask array as what was given, if that is none."""
        return result.compute() if is_dask(result) and not is_dask(given) else result

    @cached_property
    def _weight_of_each(self) -> Floats:
        """The weight of each feature, shape (K,): the diagonal of S in K̂ = F S Fᵀ."""
        return np.repeat(self.weights, [learner.rank for learner in self.learners])

    @cached_property
    def _weights_like(self) -> Array:
        return like(self._weight_of_each, self.learners[0].projection)

    @cached_property
    def _factor(self) -> Factor:
        projections = tuple(learner.projection for learner in self.learners)
        return Factor(FeatureMap(self.gram, self.landmarks, projections))

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        return spectrum(self._factor.triangular(), self._weight_of_each, self.gram.eps)

    def detached(self) -> Approximation:
        """Return this approximation without the data rows, to be saved beside an estimator."""
        mixture = Mixture(self.learners, self.weights)
        kept = Approximation(self.gram.forget_rows(), mixture, Origin(self.method))
        kept.entries_evaluated = self.entries_evaluated
        return kept

    def __repr__(self) -> str:
        learners = f"{len(self.learners)} learners, " if len(self.learners) > 1 else ""
        return (
            f"Approximation({self.method!r}, {self.kernel or 'precomputed'}, n={self.shape[0]}, "
            f"{learners}{len(self.landmarks)} landmarks, rank={self.rank}, "
            f"{self.entries_evaluated} kernel values evaluated)"
        )

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_factor", "_spectrum", "_weights_like", "_weight_of_each", "landmarks")
        return {name: value for name, value in self.__dict__.items() if name not in derived}


def _unsolved(alpha: float, reached: float) -> str:
    return (
        f"With alpha={alpha:.3g} the system is solved only to a relative residual of "
        f"{reached:.1e}: raise alpha, or pass the data in float64 if they are not."
    )


# What passes do to a block of features: plain functions, which can be sent to where rows are


def _diagonal(weights: Array, F: Array) -> Array:
    return ((F * F) @ weights)[:, None]


def _trace(weights: Floats, F: Array) -> float:
    return float((to_host(F).astype(np.float64) ** 2 @ weights).sum())


def _product(T: Array, F: Array) -> Array:
    return F @ T


def _solution(shared: tuple[Array, float], F: Array, V: Array) -> Array:
    inner, alpha = shared
    return (V - F @ inner) / alpha
