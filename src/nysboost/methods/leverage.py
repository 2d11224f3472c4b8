"""Columns drawn by leverage scores.

"rls" and "bless" estimate ridge leverage scores of some rows from a weighted sample of others, and
draw the next, better sample by these scores. "arp" updates the scores after each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from nysboost.boosting.state import Pool
from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, features_of, fit_learner
from nysboost.gram import Gram, KernelGram, Landmarks, take_sample
from nysboost.kernels import Linear
from nysboost.methods.cholesky import rpcholesky
from nysboost.methods.method_constants import FALL_OF_RIDGE, OVERSAMPLING
from nysboost.numerics.arrays import Floats, Indices, floats_on_host
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.tolerances import EPS, ROUNDING
from nysboost.rows.rows import ArrayRows


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """A weighted sample, K ≈ K S Sᵀ K: `rows` (s,), and `weights` (s,), the entries of S."""

    rows: Indices
    weights: Floats


def rls(gram: Gram, c: int, rng: Generator) -> Indices:
    """Sample c distinct columns in proportion to approximate ridge leverage scores.

    The scores are those of Musco and Musco (2017), Algorithm 3; see `recursive_scores`.
    """
    if c >= gram.n:
        return np.arange(gram.n)

    rows, scores = recursive_scores(gram, c, rng)
    probabilities = normalise(scores)
    return rng.choice(rows, size=c, replace=False, p=probabilities)


def normalise(scores: Floats) -> Floats:
    """Return positive probabilities in proportion to scores."""
    smallest = np.finfo(np.float64).tiny
    positive = np.maximum(scores, smallest)
    return np.asarray(positive / positive.sum())


def recursive_scores(gram: Gram, c: int, rng: Generator) -> tuple[Indices, Floats]:
    """Return all rows in random order, with ridge leverage scores for drawing c columns.

    The rows are halved until few are left. Then, level by level, a weighted sample of the previous
    level gives the scores of twice as many rows. The ridge λ is the tail of the spectrum beyond
    rank k, divided by k, where 4 k log c is about c. This takes about 2 n c kernel values.
    """
    # k, of which each direction takes 4 log c columns
    oversampling = np.log(c + 2)
    rank = np.ceil(c / (4 * oversampling))
    k = max(1, int(rank))

    # the levels: the first n, n/2, n/4, … rows in random order
    order = rng.permutation(gram.n)
    smallest = gram.n
    sizes: list[int] = []
    while smallest > 2 * c:
        sizes.append(smallest)
        smallest //= 2
    if not sizes:
        sizes = [gram.n]

    # the rows of the smallest level stand for all by a few of them, drawn uniformly
    few = min(c, smallest)
    weight = np.sqrt(smallest / few)
    weights = np.full(few, weight)
    sample = WeightedSample(order[:few], weights)

    # level by level: scores by the sample before, and the sample for the next level
    diag = gram.host_diag()
    for size in reversed(sizes):
        level = order[:size]
        ridge = tail_ridge(gram, sample, k)
        scores = leverage_scores(gram, level, sample, ridge, diag)
        if size < gram.n:
            expected = oversampling * scores
            probabilities = np.clip(expected, gram.eps, 1.0)
            sample = _draw_by_probabilities(level, probabilities, rng)
    return order, scores


def _draw_by_probabilities(rows: Indices, probabilities: Floats, rng: Generator) -> WeightedSample:
    """Take each row with its probability p and weight 1/√p; if none, take the likeliest."""
    uniform = rng.uniform(size=len(rows))
    chosen = np.flatnonzero(uniform < probabilities)
    if len(chosen) == 0:
        likeliest = np.argmax(probabilities)
        chosen = np.array([likeliest])
    weights = 1 / np.sqrt(probabilities[chosen])
    return WeightedSample(rows[chosen], weights)


def bless(gram: Gram, c: int, rng: Generator) -> Indices:
    """Sample c distinct columns by leverage scores along a path of decreasing ridges.

    Rudi, Calandriello, Carratino and Rosasco (2018), Algorithm 1: the ridge starts at n times the
    largest k(x, x), and is halved until c is five times the effective dimension.
    """
    n = gram.n
    diag = gram.host_diag()
    start = n * float(diag.max())
    ridge = start
    no_rows = np.arange(0)
    sample = WeightedSample(no_rows, np.ones(0))
    while True:
        # scores of a uniform sample of rows, at this ridge
        most_dimensions = start / ridge
        wanted = np.ceil(OVERSAMPLING * FALL_OF_RIDGE * most_dimensions)
        size = min(n, max(c, int(wanted)))
        rows = rng.choice(n, size=size, replace=False)
        scores = leverage_scores(gram, rows, sample, ridge, diag)

        # their sum over all rows is the effective dimension
        total = scores.sum()
        dimension = total * n / size
        is_enough = OVERSAMPLING * dimension >= c
        is_rounding = ridge <= gram.eps * start
        if is_enough or is_rounding:
            drawn = Pool(size).sample(c, rng, scores)
            return rows[drawn]

        # the sample for the next ridge, drawn by these scores
        count = max(1, round(OVERSAMPLING * dimension))
        probabilities = scores / total
        drawn = rng.choice(size, size=count, p=probabilities)
        expected = size * count * probabilities[drawn]
        weights = np.sqrt(n / expected)
        sample = WeightedSample(rows[drawn], weights)
        ridge /= FALL_OF_RIDGE


def leverage_scores(
    gram: Gram,
    rows: Indices,
    sample: WeightedSample,
    ridge: float,
    diag: Floats,
) -> Floats:
    """Return λ-ridge leverage scores of `rows` from a weighted sample.

    With B = K S the score of row i is (K − B (SᵀKS + λI)⁻¹ Bᵀ)_ii / λ (Musco and Musco, Lemma 6),
    and K_ii / λ without any sample; `diag` is the diagonal of K, shape (n,).
    """
    residual = diag[rows]
    if len(sample.rows) == 0:
        return np.maximum(residual, 0) / ridge

    # L Lᵀ = SᵀKS + λI
    landmarks = gram.landmarks(sample.rows)
    inner = _weighted_within(gram, landmarks, sample)
    identity = np.eye(len(inner))
    lower = np.linalg.cholesky(inner + ridge * identity)

    # the features B L⁻ᵀ = K S L⁻ᵀ
    inverse = triangular_inverse(lower).T
    projection = sample.weights[:, None] * inverse
    features = FeatureMap(gram.kernel, landmarks, projection)
    factor = Factor(gram, features)

    # rows as they are stored, so that each part of a store is read once
    order = np.argsort(rows)
    in_order = factor.only(rows[order])
    residual[order] -= in_order.squared_norms()
    return np.maximum(residual, 0) / ridge


def tail_ridge(gram: Gram, sample: WeightedSample, k: int) -> float:
    """Return the tail of the weighted sample's spectrum beyond its k largest, divided by k."""
    landmarks = gram.landmarks(sample.rows)
    inner = _weighted_within(gram, landmarks, sample)
    trace = float(np.trace(inner))
    rising = np.linalg.eigvalsh(inner)
    largest = rising[-k:]
    tail = trace - float(largest.sum())
    return max(tail / k, gram.eps * trace)


def _weighted_within(gram: Gram, landmarks: Landmarks, sample: WeightedSample) -> Floats:
    """Return SᵀKS, shape (s, s), for the landmarks at the sample's rows."""
    W = floats_on_host(gram.within(landmarks))
    scale = np.outer(sample.weights, sample.weights)
    return W * scale


def arp(gram: Gram, c: int, rng: Generator) -> Landmarks:
    """Draw columns by leverage scores, which are updated after each column.

    Cortinovis and Kressner (2024), "Adaptive randomized pivoting for column subset selection,
    DEIM, and low-rank approximation". Let V (n×c) have orthonormal columns. Column j is drawn with
    a probability proportional to ‖v_j‖², and then its direction is projected out of all rows of V.
    For the c leading eigenvectors V of G this gives a Nyström approximation with

        E tr(G − K̂) ≤ (c + 1) Σ_{i > c} λ_i,    E ‖G − C C⁺ G‖² ≤ (c + 1) Σ_{i > c} λ_i².

    The scores are the residual's diagonal of V Vᵀ, so this is randomly pivoted Cholesky of V Vᵀ.
    V comes from a Nyström approximation on 2c columns of `rpcholesky`, with all rows, or a uniform
    sample of as many as half of the working memory holds features of.
    """
    row_bytes = 2 * c * 8
    held = gram.budget.bytes // (2 * row_bytes)
    n_rows = max(4 * c, held)
    sample = take_sample(gram, n_rows, rng)
    G = sample.gram

    # a Nyström approximation F Fᵀ on 2c columns
    size = min(2 * c, len(sample))
    pivots = rpcholesky(G, size, rng)
    landmarks = G.landmarks(pivots)
    learner = fit_learner(G, landmarks, len(pivots))
    F = features_of(G, learner)

    # its eigenvectors, with F = Q R: Q times the left singular vectors of R
    Q, R = np.linalg.qr(floats_on_host(F))
    left, singular, _ = np.linalg.svd(R)

    # V, without directions that are rounding
    floor = ROUNDING * EPS * singular[0]
    leading = singular[:c]
    rank = int(np.count_nonzero(leading > floor))
    V = Q @ left[:, :rank]

    # pivots of V Vᵀ
    rows = ArrayRows(V)
    projector = KernelGram(rows, Linear(), gram.budget)
    columns = rpcholesky(projector, rank, rng)
    return sample.lift_to_rows(G.landmarks(columns))
