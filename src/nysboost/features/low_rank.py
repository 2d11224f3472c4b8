"""A matrix F S Fᵀ + δI that is never formed: entries, products, eigenpairs and systems."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from nysboost.features.factor import Factor
from nysboost.gram import Gram
from nysboost.numerics.arrays import (
    Array,
    Floats,
    TableLike,
    as_float,
    dense,
    floats_on_host,
    gather,
    identity,
    in_dtype_of,
    in_float64,
    is_array,
    is_sparse,
    like,
    to_host,
)
from nysboost.numerics.checks import positions, require_count, require_number, to_numbers
from nysboost.numerics.linalg import spectrum
from nysboost.numerics.tolerances import DEFINITE, UNSOLVED

REFINEMENTS = 8  # steps at most: each gains a digit or more, or is the last


class LowRankMatrix(LinearOperator):
    """F S Fᵀ + δI as a linear operator, with F of shape (n, K) and S diagonal, of either sign.

    Subclasses define F and S, and δ is `shift`.
    """

    gram: Gram
    shape: tuple[int, int]
    dtype: np.dtype[np.generic]
    shift: float = 0.0

    @property
    @abstractmethod
    def _factor(self) -> Factor:
        """F with S."""

    @property
    @abstractmethod
    def _weights_like(self) -> Array:
        """The diagonal of S, shape (K,), where the features are."""

    def block(self, rows: ArrayLike | slice, cols: ArrayLike | slice) -> Array:
        """Return K̂[rows, cols]; both as in NumPy: positions, masks or slices."""
        n = self.shape[0]
        left = positions(rows, n)
        right = positions(cols, n)

        # F[rows] S F[cols]ᵀ
        F = self._factor.at(left)
        H = self._factor.at(right)
        weighted = F * self._weights_like
        low_rank = weighted @ H.T
        if self.shift == 0:
            return low_rank

        # δ on the diagonal
        on_diagonal = np.equal.outer(left, right)
        return low_rank + like(self.shift * on_diagonal, low_rank)

    def diag(self) -> Array:
        """Return the diagonal of K̂, shape (n,)."""
        column = self._factor.map(_diagonal, self._weights_like, 1)
        return column[:, 0] + self.shift

    def trace(self) -> float:
        """Return tr K̂."""
        n = self.shape[0]
        low_rank = self._factor.squared_norms()
        return float(low_rank.sum()) + self.shift * n

    def to_dense(self) -> Array:
        """Return K̂ as an n×n array."""
        F = self._factor.all()
        weighted = F * self._weights_like
        low_rank = weighted @ F.T
        if self.shift == 0:
            return low_rank

        # δ on the diagonal
        unit = identity(self.shape[0], low_rank)
        return low_rank + self.shift * unit

    def __matmul__(self, V: TableLike) -> Array:
        """Return K̂ V, in the array namespace of V if that is the namespace of the data."""
        # SciPy multiplies operators and complex columns, and refuses numbers
        is_complex = isinstance(V, np.ndarray) and np.iscomplexobj(V)
        if is_complex or isinstance(V, LinearOperator) or np.isscalar(V):
            product: Array = super().__matmul__(V)
            return product

        columns = _as_columns(V, "V")
        shape = tuple(columns.shape)
        if len(shape) not in (1, 2) or shape[0] != self.shape[1]:
            msg = f"K̂ has {self.shape[1]} columns, so it cannot multiply an array of shape {shape}."
            raise ValueError(msg)

        if len(shape) == 2:
            return self._matmat(columns)
        column = self._matmat(columns[:, None])
        return column[:, 0]

    def _matmat(self, V: Array) -> Array:
        if self._is_elsewhere(V):
            there = like(V, self._weights_like)
            return to_host(self._matmat(there))

        # F S Fᵀ V + δV
        inner = self._factor.inner(V)
        weighted = self._weights_like[:, None] * inner
        low_rank = gather(self._factor.times(weighted), V)
        return low_rank + self.shift * V

    def _adjoint(self) -> LowRankMatrix:
        return self

    _transpose = _adjoint

    def eigh(self, k: int | None = None) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of K̂, in decreasing order, and their eigenvectors.

        They belong to the range of F. On its orthogonal complement, K̂ is `shift` times the
        identity.

        Parameters
        ----------
        k : int or None
            Number of eigenvalues; None returns all that are not zero.

        Returns
        -------
        eigenvalues : array of shape (k,)
        eigenvectors : array of shape (n, k)
        """
        if k is not None:
            require_count("k", k)

        eigenvalues, basis = self._spectrum
        T = like(basis[:, :k], self._weights_like)
        vectors = self._factor.times(T)
        shifted = eigenvalues[:k] + self.shift
        return like(shifted, T), vectors

    def solve(self, b: TableLike, alpha: float) -> Array:
        """Return (K̂ + alpha·I)⁻¹ b without forming K̂.

        The solution is refined until its residual falls no further, to about eps·‖K̂‖ / alpha, like
        a dense factorisation. For a Dask array, the result is lazy and is refined on the workers.

        Parameters
        ----------
        b : array of shape (n,) or (n, q)
            Right-hand sides.
        alpha : float
            Positive, and larger than the magnitude of the most negative eigenvalue of K̂.

        Warns
        -----
        ConvergenceWarning
            If the relative residual is above 1e-6, or 1e-3 in float32. Then alpha is too small
            relative to K̂ for the precision of the data.
        """
        require_number("alpha", alpha)
        self._require_definite(alpha)
        B = self._take_sides(b)

        # where the data are, and as columns
        if self._is_elsewhere(B):
            there = like(B, self._weights_like)
            return to_host(self.solve(there, alpha))
        if B.ndim == 2:
            return self._solve_columns(B, alpha)
        column = self._solve_columns(B[:, None], alpha)
        return column[:, 0]

    def _take_sides(self, b: TableLike) -> Array:
        """Return right-hand sides as an array, lazy if they are, of as many rows as the matrix."""
        B = _as_columns(b, "b")
        n = self.shape[0]
        if B.ndim not in (1, 2) or B.shape[0] != n:
            msg = f"b has shape {tuple(B.shape)}, but the matrix has {n} rows."
            raise ValueError(msg)
        return B

    def _is_elsewhere(self, V: Array) -> bool:
        """Whether an array is a NumPy array while the data are from another library."""
        are_on_host = isinstance(self._weights_like, np.ndarray)
        return isinstance(V, np.ndarray) and not are_on_host

    def _solve_columns(self, b: Array, alpha: float) -> Array:
        """Return (K̂ + alpha·I)⁻¹ b, shape (n, q), and warn if it is inaccurate."""
        ridge = float(alpha) + self.shift
        y, reached = self._solve(b, ridge)
        if reached > UNSOLVED[self.dtype.name]:
            msg = (
                f"With alpha={alpha:.3g}, the solution has a relative residual of "
                f"{reached:.1e}: raise alpha, or fit to float64 data."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=3)

        # x = (b − F y) / α
        terms = _Solution(self._like(y), ridge)
        q = b.shape[1]
        x = self._factor.map(_solution, terms, q, b)
        return gather(x, b)

    def _require_definite(self, alpha: float) -> None:
        """Raise unless K̂ + alpha·I is positive definite."""
        eigenvalues, _ = self._spectrum
        lowest = float(eigenvalues.min(initial=0.0))
        needed = -lowest * (1 + DEFINITE)

        ridge = float(alpha) + self.shift
        if not ridge > max(0.0, needed):
            least = -lowest - self.shift
            raise ValueError(
                f"solve needs alpha above {least:.3g}, so that K̂ + alpha·I is positive "
                f"definite, but alpha={alpha!r} was given."
            )

    def _solve(self, b: Array, alpha: float) -> tuple[Floats, float]:
        """Return y, which gives the solution x = (b − F y) / α, and the relative residual of x.

        The residual is F (y − S Fᵀ x): each step of refinement is one pass over the rows.
        """
        # F S Fᵀ has the eigenvectors F T, with the eigenvalues Λ
        eigenvalues, T = self._spectrum
        S = self._factor.weights[:, None]
        R = self._triangle
        gains = eigenvalues / (eigenvalues + alpha)
        gain = gains[:, None]

        # y = 0 gives x = b / α, and with it ‖b‖
        shape = (len(S), b.shape[1])
        best = np.zeros(shape)
        inner, squares = self._inner(best, alpha, b)
        norm = float(np.sqrt(squares.sum()))
        if not np.isfinite(norm):
            raise ValueError("b contains NaN or infinity: remove such values.")

        # the first y is T Λ (Λ + α)⁻¹ Tᵀ Fᵀ b; for y = 0, Fᵀ x is Fᵀ b / α
        inner_b = alpha * inner
        projected = T.T @ inner_b
        y = T @ (gain * projected)
        reached = np.inf
        for _ in range(1 + REFINEMENTS):
            # at the solution, y = S Fᵀ x; with F = Q R, ‖F (y − S Fᵀ x)‖ = ‖R (y − S Fᵀ x)‖
            inner, _ = self._inner(y, alpha, b)
            target = S * inner
            missing = R @ (y - target)
            norm_of_missing = float(np.linalg.norm(missing))
            residual = norm_of_missing / (norm or 1.0)
            if not residual < reached:
                break  # the y before is the best

            # a step that does not halve the residual is the last
            is_slow = residual >= reached / 2
            best = y
            reached = residual
            if is_slow or residual <= self.gram.eps:
                break

            # the residual r = F (y − S Fᵀ x) is the next right-hand side, with Fᵀ r = Rᵀ missing
            inner_r = R.T @ missing
            projected = T.T @ inner_r
            y = target + T @ (gain * projected)
        return best, reached

    def _inner(self, y: Floats, alpha: float, b: Array) -> tuple[Floats, Floats]:
        """Return Fᵀ x for x = (b − F y) / α, and ‖b‖² of each column."""
        terms = _Solution(self._like(y), alpha)
        found = self._factor.fold(_inner, terms, b)
        return found[:-1], found[-1]

    def _like(self, y: Floats) -> Array:
        """Return y in float64, in the namespace and on the device of the features."""
        return like(y, in_float64(self._weights_like))

    @cached_property
    def _triangle(self) -> Floats:
        return self._factor.triangular()

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        weights = self._factor.weights
        return spectrum(self._triangle, weights, self.gram.eps)


def _as_columns(V: TableLike, name: str) -> Array:
    """Return numbers as an array of floats; one of another library is left as it is."""
    if is_sparse(V):
        return as_float(dense(V))
    if is_array(V) and not isinstance(V, np.ndarray):
        elsewhere: Array = V
        return elsewhere
    return as_float(to_numbers(V, name))


# Functions of a block of features, which can be pickled for the workers of a pass


def _diagonal(weights: Array, F: Array) -> Array:
    diagonal = (F * F) @ weights
    return diagonal[:, None]


@dataclass(frozen=True, eq=False)
class _Solution:
    """y and α of x = (b − F y) / α."""

    y: Array
    alpha: float


def _solution(terms: _Solution, F: Array, b: Array) -> Array:
    """Return x = (b − F y) / α, computed in float64: the difference cancels."""
    approximated = in_float64(F) @ terms.y
    x = (in_float64(b) - approximated) / terms.alpha
    return in_dtype_of(x, b)


def _inner(terms: _Solution, F: Array, b: Array) -> Floats:
    """Return Fᵀ x for x = (b − F y) / α, and below it ‖b‖² of each column."""
    b = in_float64(b)
    x = _solution(terms, F, b)
    inner = floats_on_host(in_float64(F).T @ x)
    squares = floats_on_host(b) ** 2
    sums = squares.sum(axis=0, keepdims=True)
    return np.concatenate([inner, sums])
