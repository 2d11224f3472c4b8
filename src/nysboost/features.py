"""Feature maps: x ↦ k(x, Z) N, the form in which every approximation meets new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.arrays import (
    Array,
    Floats,
    block_bytes,
    cutoff,
    dtype_name,
    like,
    namespace,
    product_into,
    row_blocks,
)
from nysboost.gram import Gram, Landmarks
from nysboost.rows import as_float


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """x ↦ k(x, Z) N, with N = blockdiag(P_1, …, P_p) · rotation.

    Parameters
    ----------
    gram : Gram
        Evaluates the kernel.
    landmarks : Landmarks
        All landmarks Z, learner after learner.
    projections : tuple of arrays of shape (m_i, k_i)
        The learners' projections, scaled by the roots of their weights.
    rotation : array of shape (Σk_i, r) or None
        Mixes the learners' features; None leaves them side by side.
    """

    gram: Gram
    landmarks: Landmarks
    projections: tuple[Array, ...]
    rotation: Array | None = None

    @property
    def n_features_out(self) -> int:
        """Number of features r."""
        if self.rotation is not None:
            return int(self.rotation.shape[1])
        return sum(int(P.shape[1]) for P in self.projections)

    @property
    def normalization(self) -> Array:
        """N as one dense array of shape (Σm_i, r)."""
        parts, first = self.projections, self.projections[0]
        shape = (len(self.landmarks), sum(int(P.shape[1]) for P in parts))
        dense = like(np.zeros(shape), first)
        row = column = 0
        for P in parts:
            dense[row : row + P.shape[0], column : column + P.shape[1]] = P
            row, column = row + P.shape[0], column + P.shape[1]
        return dense if self.rotation is None else dense @ self.rotation

    def with_gram(self, gram: Gram) -> FeatureMap:
        """Return the same map over another Gram of the same kernel."""
        return replace(self, gram=gram)

    def simplified(self) -> FeatureMap:
        """Return the same map through N itself, where that costs fewer operations."""
        if self.rotation is None:
            return self
        r = self.n_features_out
        in_two = sum(P.shape[0] * P.shape[1] for P in self.projections)
        in_two += self.rotation.shape[0] * r
        if in_two <= len(self.landmarks) * r:
            return self
        return FeatureMap(self.gram, self.landmarks, (self.normalization,))

    def __call__(self, X: Array) -> Array:
        """Return the features of the rows of X, shape (n, r), one block of rows at a time."""
        sample = as_float(X[:1])
        xp, itemsize = namespace(self.projections[0]), np.dtype(dtype_name(sample)).itemsize
        reference = self.projections[0] if isinstance(sample, np.ndarray) else sample
        kind = getattr(xp, dtype_name(sample))
        parts = [like(P, reference, kind) for P in self.projections]
        rotation = None if self.rotation is None else like(self.rotation, reference, kind)
        shape = (int(X.shape[0]), self.n_features_out)
        out = xp.empty(shape, dtype=kind, device=parts[0].device)
        for block in row_blocks(shape[0], itemsize * len(self.landmarks), block_bytes(X)):
            values = self.gram.evaluate(as_float(X[block]), self.landmarks)
            if rotation is None:
                _multiply_blocks(values, parts, out[block, :])
            else:
                wide = xp.empty((values.shape[0], rotation.shape[0]), dtype=kind, device=out.device)
                _multiply_blocks(values, parts, wide)
                product_into(wide, rotation, out[block, :])
        return out


def _multiply_blocks(values: Array, parts: list[Array], out: Array) -> None:
    """Write values · blockdiag(parts) into `out`: p products of m×k, not one of pm×pk."""
    row = column = 0
    for P in parts:
        m, k = P.shape
        product_into(values[:, row : row + m], P, out[:, column : column + k])
        row, column = row + m, column + k


def spectrum(factor: Floats, signs: Floats, eps: float) -> tuple[Floats, Floats]:
    """Return the eigendecomposition of Z S Zᵀ from the triangular factor of Z = Q R.

    Parameters
    ----------
    factor : array of shape (K, K)
        R.
    signs : array of shape (K,)
        The diagonal of S, the weight of each feature; may be negative.
    eps : float
        Machine epsilon of the features.

    Returns
    -------
    eigenvalues : array of shape (r,)
        The nonzero eigenvalues, largest first, negative ones last.
    basis : array of shape (K, r)
        T, with Z T the orthonormal eigenvectors.
    """
    _, s, Vt = np.linalg.svd(factor, full_matrices=False)
    kept = s > cutoff(len(signs), eps) * s[0]
    s, Vt = s[kept], Vt[kept]
    scaled = s[:, None] * Vt
    eigenvalues, Y = np.linalg.eigh((scaled * signs) @ scaled.T)
    return eigenvalues[::-1], (Vt.T / s) @ Y[:, ::-1]
