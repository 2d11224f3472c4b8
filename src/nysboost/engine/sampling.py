"""Norms of the residual and of G from pairs of rows that are drawn at random.

A normal approximation alone is too sure of itself where most of a mean rests on a few values that
the sample may have missed. What makes up a share ε of all rows is missing from s of them with
probability e^(−sε): a share of L/s, with L = log 1/δ, is added to the upper end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nysboost.engine.residual import Residual
from nysboost.gram import Gram, KernelGram, Sample
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host

PAIRS = 10**6
"""Pairs of rows beyond which an interval is narrow enough: 2 % of the error on MNIST."""

GROUP = 64
"""Rows and columns of a block of pairs. Larger blocks are faster, smaller ones meet more rows."""

GRAM_GROUP = 8
"""The same for ‖G‖, which needs no features: here more rows are worth more than speed."""

GRAM_SHARE = 0.15
"""Of the pairs, for ‖G‖, which varies less than the residual."""

PAIRS_PER_FEATURE = 0.5
"""Pairs for each kernel value of the features, where drawn rows need theirs: best on MNIST."""

WORTH_ALL = 0.7
"""Up to this share of the kernel values for the features of all rows: drawn rows take as many."""

LEAST_GROUPS = 6
"""With fewer blocks the rows of one block would count for all."""


@dataclass(frozen=True)
class Findings:
    """What was found about R: ‖R‖_F² with its least and most, and tr R, with what it took."""

    squared_norm: Estimate
    least: float
    most: float
    trace: tuple[float, float]
    entries: int
    rows: int
    all_rows: bool
    bounds: tuple[float, float] | None = None


def from_all_rows(
    residual: Residual, g: Floats, pairs: int, risk: Risk, rng: np.random.Generator
) -> Findings:
    """Look at the diagonal of all rows, and draw pairs in proportion to a_i a_j."""
    d, a = residual.all_diagonals(g)
    draw, total = _drawing(a, rng), float(a.sum())
    again = residual.n_landmarks if residual.factor.kept is None else 0
    size, groups = _sizes(pairs, again, GROUP)
    drawn = _Drawn.of(residual.gram, draw, size, groups)
    blocks, ratios = [], []
    for i, j, R, *_ in drawn.residuals(residual):
        blocks.append(_scale(R, i, j, a))
        ratios.append(d[i] / a[i])
    off_diagonal = mean_of_pairs(blocks, np.concatenate(ratios), 1.0, risk) * total**2
    diagonal, trace, bounds = float(d @ d), float(d.sum()), None
    if residual.positive_semidefinite and residual.factor.weights.min() >= 0:
        known = residual.norm_of_approximation()  # √(Σ R_ii²) ≤ ‖R‖_F ≤ tr R, for K̂ and R are ≥ 0
        bounds = float(np.sqrt(diagonal)) / (known + trace), trace / known
    return Findings(
        squared_norm=off_diagonal + Estimate(diagonal, 0.0, 0.0),
        least=diagonal,
        most=total**2,
        trace=(trace, trace),
        entries=residual.gram.n * residual.n_landmarks + len(blocks) * (size**2 + 2 * size * again),
        rows=len(g),
        all_rows=True,
        bounds=bounds,
    )


def from_some_rows(
    residual: Residual, g: Floats, entries: int, risk: Risk, rng: np.random.Generator
) -> Findings:
    """Draw rows in proportion to k(x, x), and look at their diagonal and at pairs of them."""
    draw, total, c = _drawing(g, rng), float(g.sum()), residual.n_landmarks
    size, groups = _sizes(entries, c, min(4 * GROUP, int(2 * PAIRS_PER_FEATURE * c)))
    drawn = _Drawn.of(residual.gram, draw, size, groups)
    blocks, d, a = [], [], []
    for i, j, R, F, H in drawn.residuals(residual):
        blocks.append(_scale(R, i, j, g))
        for rows, features in ((i, F), (j, H)):
            own, bound = residual.diagonals(features, g[rows])
            d.append(own / g[rows])
            a.append(bound / g[rows])
    ratios, rows = np.concatenate(d), np.concatenate([np.concatenate(pair) for pair in drawn.pairs])
    # a row that no landmark knows misses all of k(x, x); more than that only where it was seen
    most = max(1.0, float(np.concatenate(a).max()))
    off_diagonal = mean_of_pairs(blocks, ratios, most, risk) * total**2
    diagonal = mean_of_rows(g[rows] * ratios**2, float(g.max()) * most**2, risk) * total
    # tr R may be negative: seen from either end, what is measured is not
    deviations, lowest = risk.deviations(len(rows)), min(0.0, float(ratios.min()))
    high = mean_of_rows(ratios - lowest, most - lowest, risk).interval(deviations)[1] + lowest
    low = most - mean_of_rows(most - ratios, most - lowest, risk).interval(deviations)[1]
    return Findings(
        squared_norm=off_diagonal + diagonal,
        least=0.0,
        most=(total * most) ** 2,
        trace=(total * low, total * high),
        entries=len(blocks) * (size**2 + 2 * size * c),
        rows=len(np.unique(rows)),
        all_rows=False,
    )


def squared_norm_of_gram(
    gram: Gram,
    g: Floats,
    pairs: int,
    risk: Risk,
    rng: np.random.Generator,
    group: int = GRAM_GROUP,
) -> tuple[Estimate, int]:
    """Estimate ‖G‖_F², and return the number of kernel values that it took."""
    size, groups = _sizes(pairs, 0, group)
    drawn, blocks = _Drawn.of(gram, _drawing(g, rng), size, groups), []
    for i, j in drawn.pairs:
        blocks.append(_scale(floats_on_host(drawn.block(i, j)), i, j, g))
    off_diagonal = mean_of_pairs(blocks, np.ones(1), 1.0, risk) * float(g.sum()) ** 2
    return off_diagonal + Estimate(float(g @ g), 0.0, 0.0), len(blocks) * size**2


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Rows and columns of all blocks, drawn before any is evaluated: a store is read once."""

    pairs: list[tuple[Indices, Indices]]
    sample: Sample

    @classmethod
    def of(cls, gram: Gram, draw: Callable[[int], Indices], size: int, groups: int) -> _Drawn:
        """Draw so many blocks."""
        stored = isinstance(gram, KernelGram) and not gram.rows.in_memory
        if stored:  # a quarter of the memory, because the other sample is held beside it
            room = gram.budget.bytes // (4 * 8 * 2 * size * gram.rows.numbers_per_row)
            groups = min(groups, max(LEAST_GROUPS, room))
        pairs = [(draw(size), draw(size)) for _ in range(groups)]
        everything = Sample(np.arange(gram.n), gram)
        return cls(pairs, Sample.of(gram, np.ravel(pairs)) if stored else everything)

    def block(self, i: Indices, j: Indices) -> Array:
        """Return G[i, j]."""
        return self.sample.gram.block(self.sample.positions(i), self.sample.positions(j))

    def residuals(
        self, residual: Residual
    ) -> Iterator[tuple[Indices, Indices, Floats, Array, Array]]:
        """Yield rows, columns and values of R for each block, with the features of both sides."""
        factor, sample = residual.factor, self.sample
        transform = factor.transform.with_gram(sample.gram)
        for i, j in self.pairs:
            if factor.kept is not None:
                F, H = factor.at(i), factor.at(j)
            else:
                F, H = (transform.features(sample.positions(rows)) for rows in (i, j))
            yield i, j, residual.block(self.block(i, j), F, H), F, H


def _drawing(weights: Floats, rng: np.random.Generator) -> Callable[[int], Indices]:
    """Return the function that draws so many rows, with probability in proportion to weights."""
    cumulated = np.cumsum(weights)
    return lambda size: np.searchsorted(cumulated, rng.random(size) * cumulated[-1], side="right")


def _scale(values: Floats, i: Indices, j: Indices, weights: Floats) -> Floats:
    """Return B_ij = values / √(w_i w_j), at most 1, and 0 where both are the same row."""
    B = np.clip(values / np.sqrt(np.outer(weights[i], weights[j])), -1, 1)
    return np.where(i[:, None] == j, 0.0, B)


def _sizes(entries: int, c: int, most: int) -> tuple[int, int]:
    """Return the size of a block and how many, where each row costs c kernel values more."""
    # the size of which as many as there must be fit: size² + 2·size·c = entries / groups
    size = int(np.sqrt(c * c + entries / LEAST_GROUPS)) - c
    size = max(2, min(size, most))
    return size, entries // (size**2 + 2 * size * c)


# Means of non-negative values that are drawn at random


@dataclass(frozen=True)
class Risk:
    """The probability with which either end of an interval may be wrong."""

    delta: float

    @property
    def log(self) -> float:
        """L = log 1/δ: the expected number of draws of something that was never drawn."""
        return float(np.log(1 / self.delta))

    def deviations(self, size: int) -> float:
        """Return how many standard errors lie between the mean of `size` values and an end."""
        return float(stdtrit(max(1, size - 1), 1 - self.delta))


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
        """Return what lies within so many standard errors, and what may not have been seen."""
        margin = deviations * self.error
        return self.value - margin, self.value + margin + self.unseen


def mean_of_rows(values: Floats, most: float, risk: Risk) -> Estimate:
    """Estimate the mean of what independent rows have; those not drawn have `most` at most."""
    s, mean = len(values), float(values.mean())
    unseen = min(1.0, risk.log / s)
    return Estimate(mean, float(values.std(ddof=1)) / s**0.5, unseen * (most - mean))


def mean_of_pairs(blocks: list[Floats], diagonal: Floats, most: float, risk: Risk) -> Estimate:
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
    share = min(1.0, risk.log / (2 * half))
    of_few_rows = 2 * share * max(left.max(), right.max()) + (share * most) ** 2
    of_few_pairs = risk.log / squares.size * np.mean(diagonal**2)
    unseen = float(max(of_few_rows, of_few_pairs))
    return Estimate(float(left.mean()), float(np.sqrt(variance)), unseen)
