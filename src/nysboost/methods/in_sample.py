"""An approximation of G on the rows at hand alone: F S Fᵀ + δI, with F kept."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import LinearOperator

from nysboost.approximation import Approximation
from nysboost.gram import Gram
from nysboost.numerics.arrays import Array, Floats, Indices, like, namespace


class InSample(Approximation):
    """K̂ = F S Fᵀ + δI on the n rows of the data, with no features for any other row.

    What has no landmarks cannot meet new rows. Products, entries, eigenpairs, systems and
    errors are exact all the same.

    Parameters
    ----------
    gram : Gram
        The matrix G that is approximated.
    F : array of shape (n, r)
        Kept in memory.
    signs : array of shape (r,)
        The diagonal of S, +1 or −1.
    shift : float
        δ, the multiple of the identity.
    corrupted : sparse array of shape (n, n) or None
        Entries that the approximation leaves out as corrupted, G − K̂ there.
    """

    has_features = False

    def __init__(
        self,
        gram: Gram,
        F: Array,
        signs: Floats,
        *,
        shift: float = 0.0,
        corrupted: coo_array | None = None,
    ) -> None:
        LinearOperator.__init__(self, dtype=gram.dtype, shape=(gram.n, gram.n))
        self.gram = gram
        self.learners = ()
        self.weights = np.ones(0)
        self.trajectory = None
        self.entries_evaluated = gram.entries_evaluated
        self.shift = shift
        self.corrupted = corrupted
        self._rule = None
        self._F = namespace(F).astype(F, getattr(namespace(F), gram.dtype.name))
        self._given_signs = signs

    @property
    def is_psd(self) -> bool:
        """Whether K̂ is positive semidefinite."""
        eigenvalues, _ = self._spectrum
        return bool(eigenvalues.min(initial=0.0) + self.shift >= -self.gram.eps * self.shape[0])

    def feature_map(
        self,
        n_components: int | None = None,  # noqa: ARG002
        row_cap: int | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Say that there are none."""
        msg = (
            "This approximation is one of the matrix on its own rows and has no features for "
            "others. Use it for products, eigenpairs and systems, or take a method with features, "
            'such as "joint" or "modified".'
        )
        raise ValueError(msg)

    # What the multiple of the identity changes

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return K̂[rows, cols]."""
        low = super().block(rows, cols)
        same = np.equal.outer(np.asarray(rows), np.asarray(cols))
        return low + like(self.shift * same, low)

    def diag(self) -> Array:
        """Return the diagonal of K̂, shape (n,)."""
        return super().diag() + self.shift

    def to_dense(self) -> Array:
        """Return K̂ as an n×n array."""
        low = super().to_dense()
        return low + like(self.shift * np.eye(self.shape[0]), low)

    def _matmat(self, V: Array) -> Array:
        return super()._matmat(V) + self.shift * V

    def eigh(self, k: int | None = None) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of K̂ on the range of F, and their eigenvectors.

        On all that is orthogonal to them K̂ is δ times the identity.
        """
        eigenvalues, eigenvectors = super().eigh(k)
        return eigenvalues + self.shift, eigenvectors

    def solve(self, b: Array, alpha: float) -> Array:
        """Return (K̂ + alpha·I)⁻¹ b without forming K̂."""
        return super().solve(b, alpha + self.shift)

    # Where F comes from

    def detached(self) -> InSample:
        """Return this approximation without the data rows."""
        kept = InSample(
            self.gram.forget_rows(),
            self._F,
            self._given_signs,
            shift=self.shift,
            corrupted=self.corrupted,
        )
        kept.entries_evaluated = self.entries_evaluated
        return kept

    @property
    def _signs(self) -> Floats:
        return self._given_signs

    @property
    def _signs_like(self) -> Array:
        return like(self._given_signs, self._F)

    @property
    def _kept_features(self) -> Array:
        return self._F

    def _all_features(self) -> Array:
        return self._F

    def _features_at(self, rows: Indices | slice) -> Array:
        if isinstance(rows, slice) or isinstance(self._F, np.ndarray):
            return self._F[rows, :]
        xp: Any = namespace(self._F)
        return xp.take(self._F, xp.asarray(rows, device=self._F.device), axis=0)
