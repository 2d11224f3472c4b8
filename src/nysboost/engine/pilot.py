"""How the error of truncated Nyström falls with the rank, from a sample of rows."""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, to_host
from nysboost.numerics.tolerances import EPS, cutoff


def pilot(gram: Gram, size: int, rng: np.random.Generator) -> Floats:
    """Return the relative errors of rank c = 1, …, m, never rising, from m sampled columns.

    The eigenvectors of G[A, A], continued to other rows B, approximate G[B, B]: with
    V = G[B, A] U Λ^(−½) the residual of rank c is G[B, B] − V_c V_cᵀ, whose norms are sums over
    the leading entries of VᵀG V and of VᵀV. The diagonal counts as it does for n rows.

    Parameters
    ----------
    gram : Gram
        G.
    size : int
        m, and as many rows to judge by; half of all rows at most.
    rng : numpy.random.Generator
        Source of all randomness.
    """
    m = min(size, gram.n // 2)
    if m < 2:
        return np.ones(1)
    rows = rng.choice(gram.n, size=2 * m, replace=False)
    A, B = rows[:m], rows[m:]
    truth = to_host(gram.block(B, B)).astype(np.float64)
    eigenvalues, U = np.linalg.eigh(to_host(gram.block(A, A)).astype(np.float64))
    eigenvalues, U = eigenvalues[::-1], U[:, ::-1]
    kept = eigenvalues > cutoff(m, gram.eps) * eigenvalues[0]
    V = to_host(gram.block(B, A)).astype(np.float64) @ U[:, kept] / np.sqrt(eigenvalues[kept])
    g = np.diagonal(truth).copy()
    np.fill_diagonal(truth, 0.0)
    own = np.cumsum(V**2, axis=1)
    both = (V.T @ V) ** 2 - (V**2).T @ V**2
    squares = np.diagonal(np.cumsum(np.cumsum(both, axis=0), axis=1))
    across = np.cumsum(((truth @ V) * V).sum(axis=0))
    share = 1 / (m * max(1, m - 1))
    total = share * (truth**2).sum() + (g**2).mean() / gram.n
    left = share * ((truth**2).sum() - 2 * across + squares)
    left = left + ((g[:, None] - own) ** 2).mean(axis=0) / gram.n
    errors = np.sqrt(np.maximum(left, EPS**2 * total) / total)
    falling: Floats = np.minimum.accumulate(errors)
    return falling
