"""Norms of the residual and of G, estimated from random pairs of rows.

A normal approximation alone gives too narrow intervals where most of a mean comes from a few values
that the sample may have missed. What makes up a share ε of all rows is missing from s of them with
probability e^(−sε): a share of L/s, with L = log 1/δ, is added to the upper end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from nysboost.features.feature_map import features_of
from nysboost.features.residual import Residual
from nysboost.gram import Gram, KernelGram, Sample
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host

PAIRS = 10**6  # pairs of rows that make an interval narrow enough: 2 % of the error on MNIST
GROUP = 64  # rows and columns of a block of pairs: larger are faster, smaller meet more rows
GRAM_GROUP = 8  # the same for ‖G‖, which needs no features: more rows are worth more than speed
GRAM_SHARE = 0.15  # of the pairs, for ‖G‖, which varies less than the residual
WORTH_ALL = 0.7  # share of the kernel values up to which the features of all rows are computed
LEAST_GROUPS = 6  # with fewer blocks the rows of one block would count for all


class Findings(NamedTuple):
    """Estimates of ‖R‖_F², within bounds, and of tr R, with kernel values and rows evaluated."""

    squared_norm: Estimate
    least: float
    most: float
    trace: tuple[float, float]
    entries: int
    rows: int
    bounds: tuple[float, float] | None = None


def look_at_all_rows(
    residual: Residual, g: Floats, pairs: int, delta: float, rng: np.random.Generator
) -> Findings:
    """Evaluate the diagonal of all rows, and draw pairs in proportion to a_i a_j."""
    d, a = residual.all_diagonals(g)
    again = residual.n_landmarks if residual.factor.kept is None else 0
    size, groups = _sizes(pairs, again, GROUP)
    drawn = list(_draw_residuals(residual, a, size, groups, rng))
    ratios = np.concatenate([d[i] / a[i] for i, *_ in drawn])
    off_diagonal = mean_of_pairs([B for _, _, B, _ in drawn], ratios, 1.0, delta)
    total, diagonal, trace, bounds = float(a.sum()), float(d @ d), float(d.sum()), None
    if residual.positive_semidefinite and residual.factor.weights.min() >= 0:
        known = residual.norm_of_approximation()  # √(Σ R_ii²) ≤ ‖R‖_F ≤ tr R, for K̂ and R are ≥ 0
        bounds = float(np.sqrt(diagonal)) / (known + trace), trace / known
    entries = len(g) * residual.n_landmarks + len(drawn) * (size**2 + 2 * size * again)
    squared_norm = off_diagonal * total**2 + Estimate(diagonal, 0.0, 0.0)
    return Findings(squared_norm, diagonal, total**2, (trace, trace), entries, len(g), bounds)


def look_at_some_rows(
    residual: Residual, g: Floats, entries: int, delta: float, rng: np.random.Generator
) -> Findings:
    """Draw rows in proportion to k(x, x), and evaluate their diagonal and pairs of them."""
    total, c = float(g.sum()), residual.n_landmarks
    # blocks of c rows have half a pair for each kernel value of the features: best on MNIST
    size, groups = _sizes(entries, c, min(4 * GROUP, c))
    blocks, rows, both = [], [], []
    for i, j, B, features in _draw_residuals(residual, g, size, groups, rng):
        blocks.append(B)
        rows += [i, j]
        both += [residual.diagonals(F, g[at]) for at, F in zip((i, j), features, strict=True)]
    seen = np.concatenate(rows)
    ratios, bounds = np.concatenate(both, axis=1) / g[seen]
    # a row far from all landmarks has R_ii = k(x, x); larger ratios are known from drawn rows only
    most = max(1.0, float(bounds.max()))
    off_diagonal = mean_of_pairs(blocks, ratios, most, delta) * total**2
    diagonal = mean_of_rows(g[seen] * ratios**2, float(g.max()) * most**2, delta) * total
    # tr R may be negative; distances from either end of the range are not
    away, lowest = deviations(delta, len(seen)), min(0.0, float(ratios.min()))
    high = mean_of_rows(ratios - lowest, most - lowest, delta).interval(away)[1] + lowest
    low = most - mean_of_rows(most - ratios, most - lowest, delta).interval(away)[1]
    trace, spent = (total * low, total * high), len(blocks) * (size**2 + 2 * size * c)
    rows_seen = len(np.unique(seen))
    return Findings(off_diagonal + diagonal, 0.0, (total * most) ** 2, trace, spent, rows_seen)


def squared_norm_of_gram(
    gram: Gram,
    g: Floats,
    pairs: int,
    delta: float,
    rng: np.random.Generator,
    group: int = GRAM_GROUP,
) -> tuple[Estimate, int]:
    """Estimate ‖G‖_F², and return the number of kernel values that it took."""
    size, groups = _sizes(pairs, 0, group)
    drawn, sample = _draw(gram, g, size, groups, rng)
    blocks = [_scale(sample.gram.block(*sample.positions(ij)), ij[0], ij[1], g) for ij in drawn]
    off_diagonal = mean_of_pairs(blocks, np.ones(1), 1.0, delta) * float(g.sum()) ** 2
    return off_diagonal + Estimate(float(g @ g), 0.0, 0.0), len(blocks) * size**2


def _draw_residuals(
    residual: Residual, weights: Floats, size: int, groups: int, rng: np.random.Generator
) -> Iterator[tuple[Indices, Indices, Floats, tuple[Array, Array]]]:
    """Yield rows, columns and R_ij / √(w_i w_j) of each block, with the features of both sides."""
    factor, (drawn, sample) = residual.factor, _draw(residual.gram, weights, size, groups, rng)
    for i, j in drawn:
        p, q = sample.positions(i), sample.positions(j)
        if factor.kept is None:
            F, H = (features_of(sample.gram, factor.transform, at) for at in (p, q))
        else:
            F, H = factor.at(i), factor.at(j)
        R = residual.block(sample.gram.block(p, q), F, H)
        yield i, j, _scale(R, i, j, weights), (F, H)


def _draw(
    gram: Gram, weights: Floats, size: int, groups: int, rng: np.random.Generator
) -> tuple[Any, Sample]:
    """Draw rows and columns of blocks, shape (groups, 2, size), in proportion to weights.

    All are drawn before any is evaluated, so that a store is read once: the sample has its rows.
    """
    stored = isinstance(gram, KernelGram) and not gram.rows.in_memory
    if stored:  # a quarter of the memory, because the other sample is held beside it
        room = gram.budget.bytes // (4 * 8 * 2 * size * gram.rows.numbers_per_row)
        groups = min(groups, max(LEAST_GROUPS, room))
    cumulated, uniform = np.cumsum(weights), rng.random((groups, 2, size))
    drawn = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    return drawn, Sample.of(gram, drawn) if stored else Sample(np.arange(gram.n), gram, gram.kernel)


def _scale(values: Array, i: Indices, j: Indices, weights: Floats) -> Floats:
    """Return B_ij = values / √(w_i w_j), at most 1, and 0 where both are the same row."""
    B = np.clip(floats_on_host(values) / np.sqrt(np.outer(weights[i], weights[j])), -1, 1)
    return np.where(i[:, None] == j, 0.0, B)


def _sizes(entries: int, c: int, most: int) -> tuple[int, int]:
    """Return the size of a block and how many, where each row costs c kernel values more."""
    # the size of which as many as there must be fit: size² + 2·size·c = entries / groups
    size = int(np.sqrt(c * c + entries / LEAST_GROUPS)) - c
    size = max(2, min(size, most))
    return size, entries // (size**2 + 2 * size * c)


# Means of non-negative values that are drawn at random; δ is the risk at either end of an interval


def deviations(delta: float, size: int) -> float:
    """Return how many standard errors lie between the mean of `size` values and an end."""
    return float(stdtrit(max(1, size - 1), 1 - delta))


@dataclass(frozen=True)
class Estimate:
    """An estimate ≥ 0: its value, its standard `error`, and what values not drawn may add."""

    value: float
    error: float
    unseen: float

    def __add__(self, other: Estimate) -> Estimate:
        """Return the estimate of a sum; both may err in the same direction."""
        error, unseen = self.error + other.error, self.unseen + other.unseen
        return Estimate(self.value + other.value, error, unseen)

    def __mul__(self, factor: float) -> Estimate:
        """Return the estimate of a multiple."""
        return Estimate(self.value * factor, self.error * factor, self.unseen * factor)

    def interval(self, deviations: float) -> tuple[float, float]:
        """Return the ends at so many standard errors, the upper one with `unseen`."""
        margin = deviations * self.error
        return self.value - margin, self.value + margin + self.unseen


def mean_of_rows(values: Floats, most: float, delta: float) -> Estimate:
    """Estimate the mean of values of independent rows; those not drawn are at most `most`."""
    s, mean = len(values), float(values.mean())
    unseen = min(1.0, math.log(1 / delta) / s)
    return Estimate(mean, float(values.std(ddof=1)) / s**0.5, unseen * (most - mean))


def mean_of_pairs(blocks: list[Floats], diagonal: Floats, most: float, delta: float) -> Estimate:
    """Estimate the mean of B_ij² over independent pairs of rows, as a two-sample U-statistic.

    Rows and columns of the blocks B, all of one size, were drawn independently. A share ε = L/s of
    the rows may be missed: it adds (ε·most)², and 2ε times the average row. Or it is pairs almost
    alike, with the values of the `diagonal` B_ii of the rows drawn.
    """
    squares = np.square(blocks)
    left, right = squares.mean(axis=2).ravel(), squares.mean(axis=1).ravel()
    half = len(left)
    variance = (left.var(ddof=1) + right.var(ddof=1)) / half
    # a mean of a block's row carries the noise of its values, which thus counts twice
    variance = max(variance - squares.var() / squares.size, variance / 2)
    expected = math.log(1 / delta)  # draws of what was never drawn
    share = min(1.0, expected / (2 * half))
    of_few_rows = 2 * share * max(left.max(), right.max()) + (share * most) ** 2
    of_few_pairs = expected / squares.size * np.mean(diagonal**2)
    unseen = float(max(of_few_rows, of_few_pairs))
    return Estimate(float(left.mean()), float(np.sqrt(variance)), unseen)
