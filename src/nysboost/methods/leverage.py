"""Columns by ridge leverage scores: recursive ones, and from the bottom up.

Both estimate the scores of some rows from a weighted sample of others, and take the next,
better sample by these scores.
"""

from __future__ import annotations

import numpy as np

from nysboost.data.dask_graph import here
from nysboost.data.dask_rows import DaskRows
from nysboost.data.rows import as_float
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, KernelGram, Landmarks
from nysboost.methods.adaptive import draw
from nysboost.numerics.arrays import (
    CACHE_BYTES,
    Array,
    Floats,
    Indices,
    floats_on_host,
    row_blocks,
)

OVERSAMPLING = 5.0
"""Columns for each effective dimension in BLESS: its scores on two groups of points were then
within a factor of five of the exact ones, with three of them of seven, with two of 22."""

STEP = 2.0
"""The factor between two regularisations of BLESS, as in the experiments of its paper."""


def rls(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c distinct columns in proportion to approximate ridge leverage scores.

    Musco and Musco (2017), "Recursive sampling for the Nyström method", Algorithm 3. The rows are
    halved until they are few; then, level by level, the scores of twice as many rows are
    estimated from a weighted sample of the level before.
    The ridge λ is the tail of the sample's spectrum beyond rank k, divided by k, with
    4 k log c about c.
    """
    if c >= gram.n:
        return gram.landmarks(np.arange(gram.n))
    oversampling = np.log(c + 2)
    k = max(1, int(np.ceil(c / (4 * oversampling))))
    order = rng.permutation(gram.n)
    sizes = [gram.n]
    while sizes[-1] > 2 * c:
        sizes.append(sizes[-1] // 2)
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1])
    if len(sample) > c:
        sample, weights = sample[:c], np.full(c, np.sqrt(len(sample) / c))
    for size in reversed(sizes[1:-1]):
        ridge = tail_ridge(gram, sample, weights, k)
        scores = leverage_scores(gram, order[:size], sample, weights, ridge)
        probabilities = np.clip(oversampling * scores, gram.eps, 1.0)
        chosen = np.flatnonzero(rng.uniform(size=size) < probabilities)
        if len(chosen) == 0:
            chosen = np.array([np.argmax(scores)])
        sample, weights = order[:size][chosen], 1 / np.sqrt(probabilities[chosen])
    ridge = tail_ridge(gram, sample, weights, k)
    scores = leverage_scores(gram, order, sample, weights, ridge)
    positive = np.maximum(scores, np.finfo(np.float64).tiny)
    return gram.landmarks(rng.choice(order, size=c, replace=False, p=positive / positive.sum()))


def bless(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c distinct columns by leverage scores along a path of falling ridges.

    Rudi, Calandriello, Carratino and Rosasco (2018), "On fast leverage score sampling and optimal
    learning", Algorithm 1. The ridge starts at n times the largest k(x, x), where one row is
    like another, and is halved until five columns for each effective dimension are c. At each
    step a uniform sample, as large as that ridge can need, gets scores from the sample before.
    The cost does not depend on n.
    """
    largest = float(np.max(floats_on_host(gram.diag())))
    ridge = gram.n * largest
    sample, weights = np.empty(0, dtype=np.intp), np.empty(0)
    while True:
        wanted = np.ceil(OVERSAMPLING * STEP * gram.n * largest / ridge)
        size = int(min(gram.n, max(c, wanted)))
        rows = rng.choice(gram.n, size=size, replace=False)
        scores = leverage_scores(gram, rows, sample, weights, ridge)
        dimension = scores.sum() * gram.n / size
        if OVERSAMPLING * dimension >= c or ridge <= gram.eps * gram.n * largest:
            return gram.landmarks(rows[draw(scores, np.empty(0, dtype=np.intp), c, rng)])
        count = max(1, round(OVERSAMPLING * dimension))
        share = scores / scores.sum()
        drawn = rng.choice(size, size=count, p=share)
        sample, weights = rows[drawn], np.sqrt(gram.n / (size * count * share[drawn]))
        ridge /= STEP


def leverage_scores(
    gram: Gram, rows: Indices, sample: Indices, weights: Floats, ridge: float
) -> Floats:
    """Return approximate λ-ridge leverage scores of `rows` from a weighted sample.

    With K the kernel matrix, S the weighted sampling matrix and B = K S, the score of row
    i is (K − B (SᵀKS + λI)⁻¹ Bᵀ)_ii / λ (Musco and Musco, Lemma 6), which is exact if S is the
    identity. Without any sample it is K_ii / λ.

    Parameters
    ----------
    gram : Gram
        G.
    rows, sample : arrays of int
        Where scores are wanted, and the columns they are estimated from.
    weights : array of shape (len(sample),)
        The sampling weights, 1/√p.
    ridge : float
        λ.
    """
    landmarks = gram.landmarks(sample)
    inner = floats_on_host(gram.within(landmarks)) if len(sample) else np.zeros((0, 0))
    inner = inner * np.outer(weights, weights) + ridge * np.eye(len(sample))
    lower = np.asarray(np.linalg.cholesky(inner), dtype=np.float64)
    residual, order = np.empty(len(rows)), np.argsort(rows)
    # in the order in which they are stored, so that each part of a store is read once
    if isinstance(gram.rows, DaskRows):
        shared = FeatureMap(gram, landmarks).alone(), lower, weights
        some = gram.rows.only(rows[order])
        residual[order] = here(some.map(_on_worker, shared, 1, task="leverage-scores"))[:, 0]
    else:
        held = 8 * (4 * len(sample) + 2 * gram.rows.numbers_per_row)
        for block in row_blocks(len(rows), held, min(CACHE_BYTES, gram.budget.bytes // 4)):
            at = rows[order[block]]
            values = gram.cross(at, landmarks) if len(sample) else np.zeros((len(at), 0))
            residual[order[block]] = _residual(gram.diag(at), values, lower, weights)
    positive: Floats = np.maximum(residual, 0) / ridge
    return positive


def _residual(diagonal: Array, values: Array, lower: Floats, weights: Floats) -> Floats:
    """Return (K − B (L Lᵀ)⁻¹ Bᵀ)_ii from k(x, x), k(x, Z) and L, with B = k(X, Z) · weights."""
    B = floats_on_host(values) * weights
    known: Floats = (np.linalg.solve(lower, B.T) ** 2).sum(axis=0)
    return floats_on_host(diagonal) - known


def _on_worker(shared: tuple[FeatureMap, Floats, Floats], X: Array) -> Floats:
    transform, lower, weights = shared
    X = as_float(X)
    assert isinstance(transform.gram, KernelGram)  # no other has Dask rows
    values = transform(X) if len(lower) else np.zeros((X.shape[0], 0))
    return _residual(transform.gram.kernel.diag(X), values, lower, weights)[:, None]


def tail_ridge(gram: Gram, sample: Indices, weights: Floats, k: int) -> float:
    """Return the tail of the weighted sample's spectrum beyond its k largest, divided by k."""
    inner = floats_on_host(gram.block(sample, sample)) * np.outer(weights, weights)
    tail = float(np.trace(inner)) - float(np.linalg.eigvalsh(inner)[::-1][:k].sum())
    return max(tail / k, gram.eps * float(np.trace(inner)))
