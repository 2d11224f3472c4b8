"""Columns drawn at random: uniformly, by leverage scores, or by a determinantal point process.

"rls" and "bless" estimate ridge leverage scores of some rows from a weighted sample of others, and
draw the next, better sample by these scores; "arp" updates the scores after each column.
"""

from __future__ import annotations

import numpy as np

from nysboost.boosting.trajectory import Pool
from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import fit_learner
from nysboost.gram import Gram, KernelGram, Landmarks
from nysboost.gram.landmarks import take_sample
from nysboost.kernels import Linear
from nysboost.methods.cholesky import random_pivots
from nysboost.numerics.arrays import Floats, Indices, floats_on_host
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.tolerances import EPS, ROUNDING, cutoff
from nysboost.rows.array_rows import ArrayRows

OVERSAMPLING = 5.0
"""Columns for each effective dimension in BLESS: its scores on two groups of points were then
within a factor of five of the exact ones, with three of them of seven, with two of 22."""

FALL_OF_RIDGE = 2.0
"""The factor between two regularisations of BLESS, as in the experiments of its paper."""


def uniform(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    return gram.landmarks(rng.choice(gram.n, size=c, replace=False))


def rls(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c distinct columns in proportion to approximate ridge leverage scores.

    Musco and Musco (2017), Algorithm 3: rows are halved until they are few; then, level by level,
    the scores of twice as many come from a weighted sample of the level before. The ridge λ is the
    spectrum's tail beyond rank k, divided by k, with 4 k log c about c.
    """
    if c >= gram.n:
        return gram.landmarks(np.arange(gram.n))
    oversampling = np.log(c + 2)
    k = max(1, int(np.ceil(c / (4 * oversampling))))
    order, g = rng.permutation(gram.n), floats_on_host(gram.diag())
    sizes = [gram.n]
    while sizes[-1] > 2 * c:
        sizes.append(sizes[-1] // 2)
    few = min(c, sizes[-1])
    sample, weights = order[:few], np.full(few, np.sqrt(sizes[-1] / few))
    for size in (*reversed(sizes[1:-1]), gram.n):
        ridge = tail_ridge(gram, sample, weights, k)
        scores = leverage_scores(gram, order[:size], sample, weights, ridge, g)
        if size < gram.n:
            probabilities = np.clip(oversampling * scores, gram.eps, 1.0)
            chosen = np.flatnonzero(rng.uniform(size=size) < probabilities)
            chosen = chosen if len(chosen) else np.array([np.argmax(scores)])
            sample, weights = order[:size][chosen], 1 / np.sqrt(probabilities[chosen])
    positive = np.maximum(scores, np.finfo(np.float64).tiny)
    return gram.landmarks(rng.choice(order, size=c, replace=False, p=positive / positive.sum()))


def bless(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c distinct columns by leverage scores along a path of falling ridges.

    Rudi, Calandriello, Carratino and Rosasco (2018), Algorithm 1: the ridge starts at n times the
    largest k(x, x) and is halved until five columns for each effective dimension are c.
    """
    g = floats_on_host(gram.diag())
    largest = float(g.max())
    ridge = gram.n * largest
    sample, weights = np.empty(0, dtype=np.intp), np.empty(0)
    while True:
        wanted = np.ceil(OVERSAMPLING * FALL_OF_RIDGE * gram.n * largest / ridge)
        size = int(min(gram.n, max(c, wanted)))
        rows = rng.choice(gram.n, size=size, replace=False)
        scores = leverage_scores(gram, rows, sample, weights, ridge, g)
        dimension = scores.sum() * gram.n / size
        if OVERSAMPLING * dimension >= c or ridge <= gram.eps * gram.n * largest:
            return gram.landmarks(rows[Pool(size).sample(c, rng, scores)])
        count = max(1, round(OVERSAMPLING * dimension))
        share = scores / scores.sum()
        drawn = rng.choice(size, size=count, p=share)
        sample, weights = rows[drawn], np.sqrt(gram.n / (size * count * share[drawn]))
        ridge /= FALL_OF_RIDGE


def arp(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Draw each column by leverage scores, which each column drawn updates.

    Cortinovis and Kressner (2024), "Adaptive randomized pivoting for column subset selection,
    DEIM, and low-rank approximation". Let V (n×c) have orthonormal columns. Column j is drawn with
    a probability proportional to ‖v_j‖², then its direction is taken out of all rows of V. For
    the c leading eigenvectors V of G this gives a Nyström approximation with

        E tr(G − K̂) ≤ (c + 1) Σ_{i > c} λ_i,    E ‖G − C C⁺ G‖² ≤ (c + 1) Σ_{i > c} λ_i².

    The scores are the residual's diagonal of V Vᵀ, so this is randomly pivoted Cholesky of V Vᵀ.
    V comes from a Nyström approximation on 2c columns of `rpcholesky`, with all rows, or a uniform
    sample of as many as half of the working memory holds features of.
    """
    held = gram.budget.bytes // (2 * 8 * 2 * c)
    sample = take_sample(gram, max(4 * c, held), rng)
    pilot = random_pivots(sample.gram, min(2 * c, len(sample)), rng)
    learner = fit_learner(sample.gram, sample.gram.landmarks(pilot), len(pilot))
    F = floats_on_host(features_of(sample.gram, learner))
    Q, R = np.linalg.qr(F)
    left, singular, _ = np.linalg.svd(R)
    rank = int(np.sum(singular[:c] > cutoff(ROUNDING, EPS) * singular[0]))
    projector = KernelGram(ArrayRows(Q @ left[:, :rank]), Linear(), gram.budget)
    return sample.lift_to_rows(sample.gram.landmarks(random_pivots(projector, rank, rng)))


def leverage_scores(
    gram: Gram, rows: Indices, sample: Indices, weights: Floats, ridge: float, g: Floats
) -> Floats:
    """Return λ-ridge leverage scores of `rows` from a sample of weights 1/√p (len(sample),).

    With B = K S the score of row i is (K − B (SᵀKS + λI)⁻¹ Bᵀ)_ii / λ (Musco and Musco, Lemma 6),
    and K_ii / λ without any sample; `g` is the diagonal of K, shape (n,).
    """
    residual = g[rows]
    if len(sample):
        landmarks = gram.landmarks(sample)
        inner = floats_on_host(gram.within(landmarks)) * np.outer(weights, weights)
        lower = np.linalg.cholesky(inner + ridge * np.eye(len(sample)))
        N = weights[:, None] * triangular_inverse(lower).T
        features = Factor(gram, FeatureMap(gram.kernel, landmarks, N))
        order = np.argsort(rows)  # as they are stored, so that each part of a store is read once
        residual[order] -= features.only(rows[order]).squared_norms()
    return np.maximum(residual, 0) / ridge


def tail_ridge(gram: Gram, sample: Indices, weights: Floats, k: int) -> float:
    """Return the tail of the weighted sample's spectrum beyond its k largest, divided by k."""
    inner = floats_on_host(gram.block(sample, sample)) * np.outer(weights, weights)
    tail = float(np.trace(inner)) - float(np.linalg.eigvalsh(inner)[::-1][:k].sum())
    return max(tail / k, gram.eps * float(np.trace(inner)))


STEPS_PER_COLUMN = 20
"""Proposals for each column: on Pendigits the error no longer falls after about ten."""

PROPOSALS = 64
"""Proposals whose kernel values are evaluated at once."""

SEED_ROWS = 2**13
"""k-means++ looks at this many rows, drawn uniformly, where there are more."""


def dpp(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c columns J with probability proportional to det G[J, J] (Li, Jegelka and Sra 2016).

    A Markov chain of 20 c swaps from kernel k-means++: an exchange is accepted with probability d'
    / (d + d'), with d and d' the determinants before and after.
    """
    return gram.landmarks(swap_chain(gram, spread_columns(gram, c, rng), STEPS_PER_COLUMN * c, rng))


def spread_columns(gram: Gram, c: int, rng: np.random.Generator) -> Indices:
    """Return c columns by k-means++ in the kernel's feature space."""
    rows = np.arange(gram.n)
    if gram.n > max(SEED_ROWS, 4 * c):
        rows = rng.choice(gram.n, size=max(SEED_ROWS, 4 * c), replace=False)
    diag = floats_on_host(gram.diag(rows))
    nearest, free, chosen = np.ones(len(rows)), np.ones(len(rows), dtype=bool), list[int]()
    for i in range(c):
        mass = np.where(free, nearest, 0.0)
        share = mass / mass.sum() if mass.sum() > 0 else free / free.sum()
        j = int(rng.choice(len(rows), p=share))
        column = floats_on_host(gram.block(rows, rows[j : j + 1]))[:, 0]
        distance = np.maximum(diag - 2 * column + diag[j], 0)
        nearest = np.minimum(nearest, distance) if i else distance
        free[j] = False
        chosen.append(j)
    return rows[chosen]


def swap_chain(gram: Gram, start: Indices, steps: int, rng: np.random.Generator) -> Indices:
    """Return the chain's state after so many proposals, from distinct columns.

    A multiple of the identity, √eps of the mean diagonal, keeps determinants away from zero.
    """
    ridge = float(np.sqrt(gram.eps)) * float(np.mean(floats_on_host(gram.diag(start)))) or 1.0
    inside = start
    for first in range(0, steps, PROPOSALS):
        proposed = rng.integers(gram.n, size=min(PROPOSALS, steps - first))
        places, local = np.unique(np.append(inside, proposed), return_inverse=True)
        K = floats_on_host(gram.block(places, places)) + ridge * np.eye(len(places))
        inside = places[_swaps(K, local[: len(inside)], local[len(inside) :], rng)]
    return inside


def _swaps(K: Floats, inside: Indices, proposed: Indices, rng: np.random.Generator) -> Indices:
    """Propose to exchange a random place of `inside` for each of `proposed`, one by one."""
    inside, A = inside.copy(), np.linalg.inv(K[np.ix_(inside, inside)])
    for t in proposed:
        s, uniform = int(rng.integers(len(inside))), rng.uniform()
        if t in inside:
            continue
        # the factor of the determinant when row and column s become b, with this corner
        b, corner = K[inside, t], float(K[t, t])
        u = A @ b
        ratio = float(A[s, s] * max(0.0, corner - b @ u) + u[s] ** 2)
        if uniform * (1 + ratio) < ratio:
            without = A - np.outer(A[:, s], A[s]) / A[s, s]
            change = -(without @ b)
            rest = corner + b @ change
            change[s] = 1.0
            A = without + np.outer(change, change) / rest
            inside[s] = t
    return inside
