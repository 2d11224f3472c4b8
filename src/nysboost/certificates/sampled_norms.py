"""Norms of the residual R = G − K̂ and of G, estimated from random pairs of rows.

Rows and columns of blocks are drawn independently, with probability proportional to weights w_i
such that |R_ij|² ≤ w_i w_j. Then ‖R‖_F² = (Σ w)² E[B_ij²] with B_ij = R_ij / √(w_i w_j).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from nysboost.certificates.certificate_constants import BLOCK, GRAM_BLOCK, LEAST_BLOCKS
from nysboost.certificates.estimates import (
    Estimate,
    deviations,
    exactly,
    mean_of_pairs,
    mean_of_rows,
)
from nysboost.features.feature_map import features_of
from nysboost.features.residual import Residual
from nysboost.gram import Gram, KernelGram, Sample
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host


class SampledNorm(NamedTuple):
    """An estimate of ‖G‖_F², and the number of kernel values used."""

    squared: Estimate
    entries: int


class Findings(NamedTuple):
    """Estimates and bounds for the residual.

    Attributes
    ----------
    squared_norm : Estimate
        ‖R‖_F².
    least, most : float
        Bounds of ‖R‖_F² that are certain.
    trace : (float, float)
        Interval for tr R.
    entries, rows : int
        Numbers of kernel values and of rows that were evaluated.
    bounds : (float, float) or None
        Bounds of ‖R‖_F / ‖G‖_F that are certain.
    """

    squared_norm: Estimate
    least: float
    most: float
    trace: tuple[float, float]
    entries: int
    rows: int
    bounds: tuple[float, float] | None = None


def look_at_all_rows(
    residual: Residual, g: Floats, pairs: int, delta: float, rng: Generator
) -> Findings:
    """Evaluate the diagonal of all rows, and draw pairs in proportion to a_i a_j.

    `g` holds k(x_i, x_i), and a_i bounds the entries of R, see `Residual`.
    """
    d, a = residual.all_diagonals(g)
    c = 0
    if residual.factor.kept is None:  # features are computed again
        c = residual.n_landmarks
    choice = _choose_blocks(pairs, c, BLOCK)

    # B_ij of blocks, and R_ii / a_i of their rows
    blocks: list[Floats] = []
    ratios: list[Floats] = []
    for i, _, B, _, _ in _draw_residuals(residual, a, choice, rng):
        blocks.append(B)
        ratios.append(d[i] / a[i])

    # ‖R‖² = Σ R_ii² + Σ_{i≠j} R_ij²
    diagonal = float(d @ d)
    total = float(a.sum())
    mean = mean_of_pairs(blocks, np.concatenate(ratios), 1.0, delta)
    squared_norm = mean * total**2 + exactly(diagonal)

    trace = float(d.sum())
    return Findings(
        squared_norm,
        least=diagonal,
        most=total**2,
        trace=(trace, trace),
        entries=len(g) * residual.n_landmarks + len(blocks) * choice.entries,
        rows=len(g),
        bounds=_bounds_by_trace(residual, diagonal, trace),
    )


def _bounds_by_trace(
    residual: Residual, squared_diagonal: float, trace: float
) -> tuple[float, float] | None:
    """Return bounds of ‖R‖_F / ‖G‖_F where R and K̂ are positive semidefinite, else None.

    Then √(Σ R_ii²) ≤ ‖R‖_F ≤ tr R and ‖K̂‖_F ≤ ‖G‖_F ≤ ‖K̂‖_F + tr R.
    """
    if not residual.positive_semidefinite or residual.factor.weights.min() < 0:
        return None
    norm = residual.norm_of_approximation()
    least = float(np.sqrt(squared_diagonal))
    return least / (norm + trace), trace / norm


def look_at_some_rows(
    residual: Residual, g: Floats, entries: int, delta: float, rng: Generator
) -> Findings:
    """Draw rows in proportion to k(x, x), and evaluate their diagonal entries and pairs."""
    # blocks of c rows have half a pair for each kernel value of the features: best on MNIST
    c = residual.n_landmarks
    largest = min(4 * BLOCK, c)
    choice = _choose_blocks(entries, c, largest)

    # B_ij of blocks, and R_ii and a_i of their rows and columns
    blocks: list[Floats] = []
    rows: list[Indices] = []
    diagonals: list[Floats] = []
    for i, j, B, F, H in _draw_residuals(residual, g, choice, rng):
        blocks.append(B)
        rows += [i, j]
        diagonals.append(residual.diagonals(F, g[i]))
        diagonals.append(residual.diagonals(H, g[j]))
    seen = np.concatenate(rows)
    R_ii, a_i = np.concatenate(diagonals, axis=1)

    # their shares of g_i = k(x_i, x_i), in proportion to which rows were drawn
    g_i = g[seen]
    ratios = R_ii / g_i
    bounds = a_i / g_i

    # a row far from all landmarks has the ratio 1; larger ones are known from drawn rows only
    most = max(1.0, float(bounds.max()))
    total = float(g.sum())

    # Σ_{i≠j} R_ij²
    mean_of_squares = mean_of_pairs(blocks, ratios, most, delta)
    off_diagonal = mean_of_squares * total**2

    # Σ R_ii², from R_ii² / g_i of the rows drawn
    largest_square = float(g.max()) * most**2
    mean_of_diagonal = mean_of_rows(g_i * ratios**2, largest_square, delta)
    diagonal = mean_of_diagonal * total

    # tr R
    low, high = _interval_of_mean_ratio(ratios, most, delta)
    return Findings(
        off_diagonal + diagonal,
        least=0.0,
        most=(total * most) ** 2,
        trace=(total * low, total * high),
        entries=len(blocks) * choice.entries,
        rows=len(np.unique(seen)),
    )


def _interval_of_mean_ratio(ratios: Floats, most: float, delta: float) -> tuple[float, float]:
    """Return an interval for the mean of R_ii / g_i.

    The mean may be negative, but its distances from both ends of the range are not.
    """
    lowest = min(0.0, float(ratios.min()))
    width = most - lowest
    away = deviations(delta, len(ratios))

    above_lowest = mean_of_rows(ratios - lowest, width, delta)
    below_most = mean_of_rows(most - ratios, width, delta)
    _, from_most = below_most.interval(away)
    _, from_lowest = above_lowest.interval(away)
    return most - from_most, lowest + from_lowest


def squared_norm_of_gram(
    gram: Gram,
    g: Floats,
    pairs: int,
    delta: float,
    rng: Generator,
    largest: int = GRAM_BLOCK,
) -> SampledNorm:
    """Estimate ‖G‖_F² from blocks of at most `largest` rows; the diagonal g is known."""
    choice = _choose_blocks(pairs, 0, largest)
    blocks: list[Floats] = []
    for i, j, p, q, sample in _draw_rows(gram, g, choice, rng):
        G = sample.block(p, q)
        blocks.append(_scale(G, i, j, g))

    # ‖G‖² = Σ g_i² + Σ_{i≠j} G_ij²
    total = float(g.sum())
    diagonal = exactly(float(g @ g))
    mean = mean_of_pairs(blocks, np.ones(1), 1.0, delta)
    squared = mean * total**2 + diagonal
    return SampledNorm(squared, len(blocks) * choice.entries)


# Blocks of pairs


class Blocks(NamedTuple):
    """The size and number of square blocks of pairs, and the kernel values of each."""

    size: int
    number: int
    entries: int


def _choose_blocks(entries: int, c: int, largest: int) -> Blocks:
    """Return blocks with this many kernel values in total, including c values for each row."""
    # LEAST_BLOCKS blocks fit: size² + 2·size·c = entries / LEAST_BLOCKS
    root = np.sqrt(c * c + entries / LEAST_BLOCKS)
    size = int(root) - c
    size = max(2, min(size, largest))

    of_block = size**2 + 2 * size * c
    return Blocks(size, entries // of_block, of_block)


class ResidualBlock(NamedTuple):
    """A block B_ij = R_ij / √(w_i w_j) with its rows i, columns j, and the features of both."""

    i: Indices
    j: Indices
    B: Floats
    F: Array
    H: Array


def _draw_residuals(
    residual: Residual, weights: Floats, blocks: Blocks, rng: Generator
) -> Iterator[ResidualBlock]:
    """Yield blocks of the residual with rows and columns drawn in proportion to weights."""
    factor = residual.factor
    for i, j, p, q, sample in _draw_rows(residual.gram, weights, blocks, rng):
        if factor.kept is None:
            F = features_of(sample, factor.transform, p)
            H = features_of(sample, factor.transform, q)
        else:
            F = factor.at(i)
            H = factor.at(j)

        R = residual.block(sample.block(p, q), F, H)
        B = _scale(R, i, j, weights)
        yield ResidualBlock(i, j, B, F, H)


class DrawnRows(NamedTuple):
    """Rows i and columns j of a block, which are p and q in the Gram matrix of a sample."""

    i: Indices
    j: Indices
    p: Indices
    q: Indices
    sample: Gram


def _draw_rows(gram: Gram, weights: Floats, blocks: Blocks, rng: Generator) -> Iterator[DrawnRows]:
    """Yield rows and columns of blocks, drawn in proportion to weights.

    All are drawn before any is evaluated, so that a store is read once.
    """
    stored = isinstance(gram, KernelGram) and not gram.rows.in_memory
    count = blocks.number
    if stored:
        # a quarter of the memory, because the other sample is held beside it
        row_bytes = 8 * gram.rows.numbers_per_row
        block_bytes = 2 * blocks.size * row_bytes
        room = gram.budget.bytes // (4 * block_bytes)
        count = min(count, max(LEAST_BLOCKS, room))

    # row i with probability w_i / Σ w
    cumulated = np.cumsum(weights)
    uniform = rng.random((count, 2, blocks.size))
    masses = uniform * cumulated[-1]
    pairs = np.searchsorted(cumulated, masses, side="right")

    if not stored:
        for i, j in pairs:
            yield DrawnRows(i, j, i, j, gram)
        return

    sample = Sample.of(gram, pairs)
    for i, j in pairs:
        yield DrawnRows(i, j, sample.positions(i), sample.positions(j), sample.gram)


def _scale(values: Array, i: Indices, j: Indices, weights: Floats) -> Floats:
    """Return B_ij = values / √(w_i w_j), at most 1, and 0 where both are the same row."""
    products = np.outer(weights[i], weights[j])
    ratios = floats_on_host(values) / np.sqrt(products)
    B = np.clip(ratios, -1, 1)
    is_same = i[:, None] == j
    return np.where(is_same, 0.0, B)
