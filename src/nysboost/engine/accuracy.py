"""How far an approximation is from G, from the residual itself, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative
error of about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nysboost.gram import Gram
from nysboost.numerics.arrays import Array, Floats, Indices, like, namespace, to_host

TILE_ROWS, TILE_COLS = 512, 4096
"""Entries of G that are held at a time: 16 MB, beside which the sums cost nothing."""

Features: TypeAlias = Callable[[slice], Array]
"""F at rows[slice], shape (len, K): kept by whoever asks, or computed anew each time."""


def relative_error(
    gram: Gram, features: Features, weights: Floats, rows: Indices, shift: float = 0.0
) -> float:
    """Return ‖G − F S Fᵀ − δI‖_F / ‖G‖_F on rows × rows, holding one tile at a time.

    Parameters
    ----------
    gram : Gram
        G.
    features : callable
        F, of shape (len(rows), K), asked for by slices.
    weights : array of shape (K,)
        The diagonal of S.
    rows : array of int
        Which principal submatrix of G is meant.
    shift : float
        δ.
    """
    squared_residual = squared_norm = 0.0
    # strips as high as tiles are wide: features that are computed anew cost little beside a strip
    width = _tile_width(gram, len(weights))
    for strip in slices(0, len(rows), width):
        F = features(strip)
        weighted = F * like(weights, F)
        for columns in (strip, *slices(strip.stop, len(rows), width)):
            right = F if columns is strip else features(columns)
            for tile, part, times in _tiles(strip, columns):
                truth = gram.block(rows[tile], rows[part])
                mine = weighted[_within(tile, strip), :] @ right[_within(part, columns), :].T
                if shift:  # a row that was asked for twice is equal to itself off the diagonal too
                    mine = mine + like(shift * np.equal.outer(rows[tile], rows[part]), mine)
                squared_residual += times * sum_of_squares(truth - mine)
                squared_norm += times * sum_of_squares(truth)
    return ratio(squared_residual, squared_norm)


def ratio(squared_residual: float, squared_norm: float) -> float:
    """Return the relative error from its two sums of squares."""
    if squared_norm == 0:
        msg = "The kernel matrix is zero on these rows, so no error is relative to it."
        raise ValueError(msg)
    return float(np.sqrt(squared_residual / squared_norm))


def _tiles(strip: slice, columns: slice) -> Iterator[tuple[slice, slice, int]]:
    """Cut strip × columns into tiles, each with how often it counts.

    What is right of the diagonal stands for its mirror image too.
    """
    for tile in slices(strip.start, strip.stop, TILE_ROWS):
        if columns is not strip:
            yield tile, columns, 2
            continue
        yield tile, tile, 1
        if tile.stop < strip.stop:
            yield tile, slice(tile.stop, strip.stop), 2


def _tile_width(gram: Gram, K: int) -> int:
    """Return how wide a tile may be: a few copies of it, with rows and features of both sides."""
    d = gram.rows.n_features
    return max(1, min(TILE_COLS, gram.budget.bytes // (8 * (4 * TILE_ROWS + 3 * K + 3 * d))))


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Cut range(start, stop) into slices of `size`."""
    return (slice(i, min(i + size, stop)) for i in range(start, stop, size))


def _within(part: slice, whole: slice) -> slice:
    return slice(part.start - whole.start, part.stop - whole.start)


def relative_trace_error(
    gram: Gram, features: Features, weights: Floats, rows: Indices, shift: float = 0.0
) -> float:
    """Return |tr(G − F S Fᵀ − δI)| / tr G on rows × rows.

    For plain Nyström, whose residual is positive semidefinite, this is the error in the
    trace norm.
    """
    trace, ours = 0.0, shift * len(rows)
    for block in slices(0, len(rows), _tile_width(gram, len(weights))):
        trace += float(to_host(gram.diag(rows[block])).astype(np.float64).sum())
        squares = to_host(features(block)).astype(np.float64) ** 2
        ours += float((squares @ weights).sum())
    return abs(trace - ours) / trace


def relative_spectral_error(
    gram: Gram, features: Features, weights: Floats, rows: Indices, shift: float = 0.0
) -> float:
    """Return ‖G − F S Fᵀ − δI‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration.

    Each step evaluates the rows × rows entries of G once more, tile by tile.
    """
    n, width = len(rows), _tile_width(gram, len(weights))
    which = np.unique(rows, return_inverse=True)[1]  # δI on rows that may have been asked for twice

    def times_gram(v: Floats) -> Floats:
        product = np.zeros(n)
        for left in slices(0, n, width):
            for top in slices(0, n, TILE_ROWS):
                tile = to_host(gram.block(rows[top], rows[left])).astype(np.float64)
                product[top] += tile @ v[left]
        return product

    def times_residual(v: Floats) -> Floats:
        inner = weights * sum(F.T @ v[at] for at, F in blocks())
        product = times_gram(v) - shift * np.bincount(which, v)[which]
        for at, F in blocks():
            product[at] -= F @ inner
        return product

    def blocks() -> Iterator[tuple[slice, Floats]]:
        for at in slices(0, n, width):
            yield at, to_host(features(at)).astype(np.float64)

    return _largest_eigenvalue(times_residual, n) / _largest_eigenvalue(times_gram, n)


def _largest_eigenvalue(times: Callable[[Floats], Floats], n: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    if n < 3:
        dense = np.column_stack([times(column) for column in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh(dense)).max())
    operator = LinearOperator((n, n), matvec=lambda v: times(v.ravel()), dtype=np.float64)
    start = np.ones(n) + np.linspace(0, 1, n)  # a fixed vector: the answer has no seed
    values = eigsh(operator, k=1, which="LM", tol=1e-4, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


def sum_of_squares(tile: Array) -> float:
    """Return the sum of the squared entries, in float64."""
    xp = namespace(tile)
    return float(xp.sum(xp.astype(tile, xp.float64) ** 2))
