"""Columns drawn by leverage scores.

"rls" and "bless" estimate ridge leverage scores of some rows from a weighted sample of others, and
draw the next, better sample by these scores. "arp" updates the scores after each column.
"""

from __future__ import annotations

import math
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

    def within(self, gram: Gram, landmarks: Landmarks) -> Floats:
        """Return SᵀKS, shape (s, s), for the landmarks at these rows."""
        W = floats_on_host(gram.within(landmarks))
        scale = np.outer(self.weights, self.weights)
        return W * scale


def rls(gram: Gram, c: int, rng: Generator) -> Indices:
    """Sample c distinct columns in proportion to approximate ridge leverage scores.

    The scores are those of Musco and Musco (2017), Algorithm 3; see `recursive_scores`.
    """
    if c >= gram.n:
        return np.arange(gram.n)

    rows, probabilities = recursive_scores(gram, c, rng)
    return rng.choice(rows, size=c, replace=False, p=probabilities)


def recursive_scores(gram: Gram, c: int, rng: Generator) -> tuple[Indices, Floats]:
    """Return all rows in random order, with probabilities in proportion to leverage scores.

    The rows are halved until few are left. Then, level by level, a weighted sample of the previous
    level gives the scores of twice as many rows. The ridge λ is the tail of the spectrum beyond
    rank k, divided by k, where 4 k log c is about c. This takes about 2 n c kernel values.
    """
    # each of k directions takes 4 log c columns
    oversampling = np.log(c + 2)
    per_direction = 4 * oversampling
    k = math.ceil(c / per_direction)

    # the levels are the first n, n/2, n/4, … rows in random order
    order = rng.permutation(gram.n)
    sizes = _halved(gram.n, 2 * c)

    # level by level, from the smallest: the sample for the next level, by scores from the sample
    # before
    diag = gram.host_diag()
    smallest_level = order[: sizes[-1]]
    sample = _uniform_sample(smallest_level, c)
    for size in reversed(sizes[1:-1]):
        level = order[:size]
        ridge = tail_ridge(gram, sample, k)
        scores = leverage_scores(gram, level, sample, ridge, diag)
        expected = oversampling * scores
        probabilities = np.clip(expected, gram.eps, 1.0)
        sample = _draw_by_probabilities(level, probabilities, rng)

    # all rows, each with a positive probability
    ridge = tail_ridge(gram, sample, k)
    scores = leverage_scores(gram, order, sample, ridge, diag)
    smallest_float = np.finfo(np.float64).tiny
    positive = np.maximum(scores, smallest_float)
    probabilities = positive / positive.sum()
    return order, probabilities


def _halved(n: int, most: int) -> list[int]:
    """Return n, n/2, n/4, … down to the first size that is at most `most`."""
    sizes = [n]
    while sizes[-1] > most:
        half = sizes[-1] // 2
        sizes.append(half)
    return sizes


def _uniform_sample(rows: Indices, c: int) -> WeightedSample:
    """Return c rows, or all, that stand for rows in random order: each has the weight √(n/c)."""
    n = len(rows)
    size = min(c, n)
    weight = np.sqrt(n / size)
    weights = np.full(size, weight)
    return WeightedSample(rows[:size], weights)


def _draw_by_probabilities(rows: Indices, probabilities: Floats, rng: Generator) -> WeightedSample:
    """Take each row with its probability p and weight 1/√p; if none, take the likeliest."""
    uniform = rng.uniform(size=len(rows))
    is_drawn = uniform < probabilities
    if not is_drawn.any():
        likeliest = probabilities.argmax()
        is_drawn[likeliest] = True

    roots = np.sqrt(probabilities[is_drawn])
    weights = 1 / roots
    return WeightedSample(rows[is_drawn], weights)


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
    no_weights = np.ones(0)
    sample = WeightedSample(no_rows, no_weights)
    while True:
        # scores of a uniform sample of rows, at this ridge: the effective dimension is at most
        # n max k(x, x) / λ
        most_dimensions = start / ridge
        wanted = math.ceil(OVERSAMPLING * FALL_OF_RIDGE * most_dimensions)
        size = min(n, max(c, wanted))
        rows = rng.choice(n, size=size, replace=False)
        scores = leverage_scores(gram, rows, sample, ridge, diag)

        # the effective dimension is the sum of the scores of all rows
        dimension = scores.sum() * n / size
        columns = OVERSAMPLING * dimension
        is_rounding = ridge <= gram.eps * start
        if columns >= c or is_rounding:
            drawn = Pool(size).sample(c, rng, scores)
            return rows[drawn]

        # the sample for the next ridge, drawn by these scores
        count = max(1, round(columns))
        probabilities = scores / scores.sum()
        drawn = rng.choice(size, size=count, p=probabilities)

        # a row is drawn (size / n) · count · p times on average; one over this is its squared
        # weight, so that S Sᵀ is the identity on average
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
    inner = sample.within(gram, landmarks)
    identity = np.eye(len(inner))
    ridged = inner + ridge * identity
    L = np.linalg.cholesky(ridged)

    # the squared norm of the features B L⁻ᵀ = K S L⁻ᵀ is the diagonal of B (SᵀKS + λI)⁻¹ Bᵀ
    inverse = triangular_inverse(L).T
    projection = sample.weights[:, None] * inverse
    features = FeatureMap(gram.kernel, landmarks, projection)

    # rows as they are stored, so that each part of a store is read once
    order = np.argsort(rows)
    factor = Factor(gram, features)
    in_order = factor.only(rows[order])
    explained = in_order.squared_norms()
    residual[order] -= explained
    return np.maximum(residual, 0) / ridge


def tail_ridge(gram: Gram, sample: WeightedSample, k: int) -> float:
    """Return the tail of the weighted sample's spectrum beyond its k largest, divided by k."""
    landmarks = gram.landmarks(sample.rows)
    inner = sample.within(gram, landmarks)
    trace = float(np.trace(inner))
    rising = np.linalg.eigvalsh(inner)
    largest = rising[-k:]
    tail = trace - float(largest.sum())
    rounding = gram.eps * trace
    return max(tail / k, rounding)


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
    F = floats_on_host(features_of(G, learner))

    # its c leading eigenvectors V, without directions that are rounding; with F = Q R they are Q
    # times the left singular vectors of R
    Q, R = np.linalg.qr(F)
    left, singular, _ = np.linalg.svd(R)
    rounding = ROUNDING * EPS * singular[0]
    leading = singular[:c]
    rank = int(np.count_nonzero(leading > rounding))
    V = Q @ left[:, :rank]

    # pivots of V Vᵀ, the linear kernel of the rows of V
    rows = ArrayRows(V)
    projector = KernelGram(rows, Linear(), gram.budget)
    columns = rpcholesky(projector, rank, rng)
    landmarks = G.landmarks(columns)
    return sample.lift_to_rows(landmarks)
