"""Adaptive sampling in rounds, and the best cores, which need all entries of G.

In each round after the first, column j is drawn with a probability proportional to ‖e_j‖², the
squared norm of its residual:

- *exact* (Deshpande, Rademacher, Vempala and Wang 2006): E = G − Q Qᵀ G, with Q an orthonormal
  basis of the columns so far, at a cost of all n² entries in each round;
- *partial* (Kumar, Mohri and Talwalkar 2012, Figure 4): from the columns so far alone, as the
  rows of C − C W_k⁺ W, at a cost that grows with n, not n².

Modified Nyström and its spectral shift use the columns of "uniform + adaptive²" (Wang and
Zhang 2013): a third of them uniform, then two rounds by the exact squared residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from nysboost.boosting.state import Pool
from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, fit_learner
from nysboost.gram import Gram
from nysboost.joint.core import optimal_core
from nysboost.kernels.distances import squared_norms
from nysboost.methods.in_sample import InSample
from nysboost.methods.method_constants import BLOCK_BYTES, ROUNDS
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    identity,
    in_float64,
    like,
    namespace,
    row_blocks,
    to_host,
)
from nysboost.numerics.linalg import max_abs, range_basis


def strips(gram: Gram) -> Iterator[Array]:
    """Yield all rows of G, in order, as blocks of shape (b, n)."""
    everything = np.arange(gram.n)
    columns = gram.landmarks(everything)
    row_bytes = 8 * gram.n
    held = min(BLOCK_BYTES, gram.budget.bytes // 4)
    for block in row_blocks(gram.n, row_bytes, held):
        yield gram.cross(block, columns)


def optimal(gram: Gram, c: int, rng: Generator) -> FeatureMap:  # noqa: ARG001
    """Return the truncated eigendecomposition U_c Λ_c U_cᵀ, for small n: P = U_c Λ_c^(−1/2)."""
    n = gram.n
    landmarks = gram.landmarks(np.arange(n))
    G = gram.within(landmarks)

    # Λ_c and U_c, in increasing order
    host = floats_on_host(G)
    symmetric = (host + host.T) / 2
    largest = (n - c, n - 1)
    eigenvalues, U = eigh(symmetric, subset_by_index=largest)

    # without eigenvalues that are rounding
    rounding = n * gram.eps * eigenvalues[-1]
    kept = eigenvalues > rounding
    roots = np.sqrt(eigenvalues[kept])
    scaled = U[:, kept] / roots
    P = like(scaled, G)
    return FeatureMap(gram.kernel, landmarks, P)


def exact_residuals(gram: Gram, chosen: Indices) -> Floats:
    """Return ‖(I − QQᵀ) g_j‖² for every column, with Q a basis of the chosen ones."""
    landmarks = gram.landmarks(chosen)
    C = gram.cross(slice(None), landmarks)
    Q, _ = range_basis(C)

    squares = []
    for strip in strips(gram):
        # G is symmetric: its rows are its columns
        rows = in_float64(strip)
        coordinates = rows @ Q
        explained = coordinates @ Q.T
        norms = squared_norms(rows - explained)
        squares.append(to_host(norms))
    return np.concatenate(squares)


def partial_residuals(gram: Gram, chosen: Indices) -> Floats:
    """Return the squared norm of each row of C − C W_k⁺ W, with k half of the columns."""
    # W_k⁺ = P Pᵀ
    landmarks = gram.landmarks(chosen)
    c = len(chosen)
    k = max(1, c // 2)
    learner = fit_learner(gram, landmarks, k)
    P = learner.normalization

    # C − C W_k⁺ W are features, with the projection I − P Pᵀ W
    W = gram.within(landmarks)
    features_of_W = P.T @ W
    explained = P @ features_of_W
    projection = identity(c, P) - explained
    missed = FeatureMap(gram.kernel, landmarks, projection)
    return Factor(gram, missed).squared_norms()


@dataclass(frozen=True)
class AdaptiveSampling:
    """Distinct columns in rounds: the first uniform, the others by their squared residuals."""

    residuals: Callable[[Gram, Indices], Floats]
    rounds: int

    def __call__(self, gram: Gram, c: int, rng: Generator) -> Indices:
        """Choose c columns, in rounds of nearly equal size."""
        unused = Pool(gram.n)
        first, *others = split_evenly(c, self.rounds)
        chosen = unused.draw(first, rng)
        for size in others:
            weights = self.residuals(gram, chosen)
            drawn = unused.draw(size, rng, weights)
            chosen = np.append(chosen, drawn)
        return chosen


def split_evenly(c: int, most: int) -> list[int]:
    """Split c into at most this many positive numbers that are nearly equal."""
    n_parts = min(c, most)
    parts = np.array_split(np.arange(c), n_parts)
    return [len(part) for part in parts]


adaptive = AdaptiveSampling(exact_residuals, ROUNDS)
adaptive_partial = AdaptiveSampling(partial_residuals, ROUNDS)
uniform_adaptive_squared = AdaptiveSampling(exact_residuals, rounds=3)


# The best cores for these columns


def modified(gram: Gram, c: int, rng: Generator) -> FeatureMap:
    """Return C U Cᵀ with U = C⁺ G C⁺ᵀ, the best core for these columns (Wang and Zhang 2013)."""
    columns = uniform_adaptive_squared(gram, c, rng)
    landmarks = gram.landmarks(columns)
    C = gram.cross(slice(None), landmarks)
    core = optimal_core(C, gram.times)
    projection = like(core.projection, C)
    return FeatureMap(gram.kernel, landmarks, projection)


def spectral_shift(gram: Gram, c: int, rng: Generator) -> InSample:
    """Return C̄ Ū C̄ᵀ + δI, the best core and the best multiple of the identity.

    Wang, Zhang, Qian and Zhang (2014), "Improving the modified Nyström method using spectral
    shifting", with C̄ = (G − δ̄I) P for the columns P, and an orthonormal basis Q of C̄:

        δ = (tr G − tr QᵀGQ) / (n − rank C̄),    C̄ Ū C̄ᵀ = Q (QᵀGQ − δI) Qᵀ.

    The first shift δ̄, the mean of the tail of the spectrum, comes from the space spanned by P and
    G P, not from a randomised singular value decomposition as in the paper. So the same columns are
    used twice, and G = low rank + δI is recovered exactly.
    """
    # C = G P, and P
    columns = uniform_adaptive_squared(gram, c, rng)
    landmarks = gram.landmarks(columns)
    values = gram.cross(slice(None), landmarks)
    C = in_float64(values)
    everything = np.arange(gram.n)
    is_chosen = np.equal.outer(everything, columns)
    P = like(is_chosen, C)

    # δ̄, from the space of P and G P
    xp = namespace(C)
    scaled = P * max_abs(C)
    space = xp.concat([scaled, C], axis=1)
    first_shift = _find_tail(gram, space).mean

    # δ, Q and QᵀGQ, from the space of C̄
    C_shifted = C - first_shift * P
    tail = _find_tail(gram, C_shifted)
    delta = tail.mean

    # QᵀGQ − δI = Y S Λ Yᵀ, with the signs S
    symmetric = (tail.inner + tail.inner.T) / 2
    eigenvalues, Y = xp.linalg.eigh(symmetric)
    shifted = eigenvalues - delta
    signs = np.sign(to_host(shifted))

    # C̄ Ū C̄ᵀ = F S Fᵀ with F = Q Y Λ^½
    roots = xp.sqrt(xp.abs(shifted))
    Y_scaled = Y * roots
    F = tail.Q @ Y_scaled
    return InSample(gram, F, signs, shift=delta)


class Tail(NamedTuple):
    """The mean eigenvalue of G outside a space, a basis Q of the space, and `inner` = QᵀGQ."""

    mean: float
    Q: Array
    inner: Array


def _find_tail(gram: Gram, space: Array) -> Tail:
    """Return (tr G − tr QᵀGQ) / (n − rank Q), at least 0, for a basis Q of a space."""
    # QᵀGQ
    Q, _ = range_basis(space)
    GQ = gram.times(Q)
    inner = Q.T @ GQ

    # without a tail, its mean is 0
    rank = Q.shape[1]
    outside = gram.n - rank
    if outside == 0:
        return Tail(0.0, Q, inner)

    trace = gram.host_diag().sum()
    trace_within = np.trace(to_host(inner))
    rest = float(trace - trace_within)
    mean = max(0.0, rest / outside)
    return Tail(mean, Q, inner)
