"""Columns by recursive ridge leverage scores (Musco and Musco 2017)."""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Floats, Indices, row_blocks, to_host


def rls(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c distinct columns in proportion to approximate ridge leverage scores.

    The rows are halved until they are few; then, level by level, the scores of twice as
    many rows are estimated from a weighted sample of the level before (Algorithm 3 there).
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
        scores = leverage_scores(gram, order[:size], sample, weights, k)
        probabilities = np.minimum(1.0, oversampling * scores)
        chosen = np.flatnonzero(rng.uniform(size=size) < probabilities)
        if len(chosen) == 0:
            chosen = np.array([np.argmax(scores)])
        sample, weights = order[:size][chosen], 1 / np.sqrt(probabilities[chosen])
    scores = leverage_scores(gram, order, sample, weights, k)
    positive = np.maximum(scores, np.finfo(np.float64).tiny)
    return gram.landmarks(rng.choice(order, size=c, replace=False, p=positive / positive.sum()))


def leverage_scores(gram: Gram, rows: Indices, sample: Indices, weights: Floats, k: int) -> Floats:
    """Return approximate λ-ridge leverage scores of `rows` from a weighted sample.

    With K = G[rows, rows], S the weighted sampling matrix and B = K S, the score of row
    i is (K − B (SᵀKS + λI)⁻¹ Bᵀ)_ii / λ (Lemma 6 there), which is exact if S is the identity.

    Parameters
    ----------
    gram : Gram
        G.
    rows, sample : arrays of int
        Where scores are wanted, and the columns they are estimated from.
    weights : array of shape (len(sample),)
        The sampling weights, 1/√p.
    k : int
        λ is the sampled spectrum's tail beyond its k largest eigenvalues, over k.
    """
    inner = to_host(gram.block(sample, sample)).astype(np.float64) * np.outer(weights, weights)
    diag = to_host(gram.diag(rows)).astype(np.float64)
    top = np.linalg.eigvalsh(inner)[::-1][:k]
    tail = float(np.trace(inner)) - float(top.sum())
    ridge = max(tail / k, gram.eps * float(diag.sum()))
    lower = np.linalg.cholesky(inner + ridge * np.eye(len(sample)))
    explained = np.empty(len(rows))
    for block in row_blocks(len(rows), 8 * len(sample)):
        B = to_host(gram.block(rows[block], sample)).astype(np.float64) * weights
        explained[block] = (np.linalg.solve(lower, B.T) ** 2).sum(axis=0)
    scores: Floats = np.maximum(diag - explained, 0) / ridge
    return scores
