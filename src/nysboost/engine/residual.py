"""The residual R = G − F S Fᵀ, entry by entry, with what bounds an entry from its two rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nysboost.engine.factor import Factor
from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Array, Floats, Indices, like, row_blocks, to_host
from nysboost.numerics.tolerances import EPS, cutoff


@dataclass(frozen=True, eq=False)
class Residual:
    """R = G − F S Fᵀ on the rows of a Gram, with F = k(X, Z) N.

    In the kernel's feature space K̂(x, y) = ⟨φ(x), T φ(y)⟩ with an operator T that lives on
    the span of the landmarks, and R(x, y) = ⟨φ(x), (I − T) φ(y)⟩. The eigenvalues of T are those of
    S Nᵀ W N: where none is above 1 the residual is positive semidefinite, whatever the rows. In
    any case |R_ij|² ≤ a_i a_j with a_i = ⟨φ_i, |I − T| φ_i⟩ = R_ii + 2⟨φ_i, (T − I)₊ φ_i⟩.

    Parameters
    ----------
    factor : Factor
        F, on the rows in question: those of the fit, or others.
    signs : array of shape (K,)
        The diagonal of S.
    """

    factor: Factor
    signs: Floats

    @property
    def gram(self) -> Gram:
        """G."""
        return self.factor.transform.gram

    @property
    def landmarks(self) -> Landmarks:
        """Z."""
        return self.factor.transform.landmarks

    def diagonals(self, F: Array, g: Floats) -> tuple[Floats, Floats]:
        """Return R_ii and a_i for rows with features F and k(x, x) = g, both of shape (len(g),)."""
        d, a = np.empty(len(g)), np.empty(len(g))
        for block in row_blocks(len(g), 16 * (len(self.signs) + 1)):
            part = to_host(F[block, :]).astype(np.float64)
            d[block] = g[block] - part**2 @ self.signs
            a[block] = d[block] + 2 * ((part @ self._excess) ** 2).sum(axis=1)
        return d, np.maximum(a, self.noise * g)

    def block(self, rows: Indices, cols: Indices, F: Array, H: Array) -> Floats:
        """Return R[rows, cols] on the host, from the features F and H of its rows and columns."""
        mine = (F * like(self.signs, F)) @ H.T
        return to_host(self.gram.block(rows, cols) - mine).astype(np.float64)

    def norm_of_approximation(self, F: Array) -> float:
        """Return ‖F S Fᵀ‖_F from the features of all rows, where no weight is negative."""
        moments = np.zeros((len(self.signs), len(self.signs)))
        for block in row_blocks(F.shape[0], 16 * len(self.signs)):
            part = to_host(F[block, :]).astype(np.float64) * np.sqrt(self.signs)
            moments += part.T @ part
        return float(np.linalg.norm(moments))

    @property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows at all: no eigenvalue of T exceeds 1, but for rounding."""
        return bool(self._operator[0].max(initial=0.0) <= 1 + self._blur)

    @cached_property
    def noise(self) -> float:
        """What rounding does to R_ij / √(g_i g_j): eps of an entry, and of its features."""
        scale = np.sqrt(np.trace(self._within)) * _norm(self._normalization)
        return self.gram.eps * float(1 + scale * np.sqrt(np.abs(self.signs).max()))

    @cached_property
    def _blur(self) -> float:
        """What rounding does to the eigenvalues of Nᵀ W N."""
        size = _norm(self._within) * _norm(self._normalization) ** 2
        return cutoff(8, self.gram.eps) * float(1 + size)

    @cached_property
    def _within(self) -> Floats:
        return to_host(self.gram.within(self.landmarks)).astype(np.float64)

    @cached_property
    def _normalization(self) -> Floats:
        return to_host(self.factor.transform.normalization).astype(np.float64)

    @cached_property
    def _operator(self) -> tuple[Floats, Floats]:
        """The eigenvalues λ of T, and E with ⟨e_k, φ_i⟩ = (F E)_ik for its eigenvectors e_k."""
        theta, V = np.linalg.eigh(self._normalization.T @ self._within @ self._normalization)
        kept = theta > cutoff(len(theta), EPS) * theta.max(initial=0.0)
        V, root = V[:, kept], np.sqrt(theta[kept])
        core = root[:, None] * (V.T @ (self.signs[:, None] * V)) * root
        eigenvalues, Y = np.linalg.eigh((core + core.T) / 2)
        return eigenvalues, (V / root) @ Y

    @cached_property
    def _excess(self) -> Floats:
        """E with ‖F_i E‖² = ⟨φ_i, (T − I)₊ φ_i⟩: what K̂ is too large by, in one norm."""
        eigenvalues, E = self._operator
        above = eigenvalues > 1
        return E[:, above] * np.sqrt(eigenvalues[above] - 1)


def _norm(A: Floats) -> float:
    """Return ‖A‖₂ to a digit, all that a rounding error needs: an SVD takes long."""
    v = np.ones(A.shape[1])
    for _ in range(10):
        v = A.T @ (A @ (v / np.linalg.norm(v)))
    return float(np.sqrt(np.linalg.norm(v)))
