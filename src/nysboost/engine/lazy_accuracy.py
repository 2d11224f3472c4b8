"""How far an approximation is from G on all of Dask's rows: tiles on the workers."""

from __future__ import annotations

import operator

import numpy as np

from nysboost.data.dask_rows import DaskRows
from nysboost.data.rows import as_float
from nysboost.engine.accuracy import TILE_COLS, TILE_ROWS, ratio, slices, sum_of_squares
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import KernelGram, Landmarks
from nysboost.numerics.arrays import Array, Floats, Indices, like, to_host


def lazy_error(
    transform: FeatureMap, rows: DaskRows, weights: Floats, norm: str, shift: float = 0.0
) -> float:
    """Return the error on all of Dask's rows, tile by tile on the workers.

    Parameters
    ----------
    transform : FeatureMap
        x ↦ F.
    rows : DaskRows
        X.
    weights : array of shape (K,)
        The diagonal of S in K̂ = F S Fᵀ.
    norm : "frobenius" or "trace"
        Which; a spectral norm passes over n² entries many times, and is refused.
    shift : float
        δ in K̂ = F S Fᵀ + δ I.
    """
    shared = (transform.alone(), weights, shift)
    if norm == "frobenius":
        squares = rows.fold_pairs(_pair_of_squares, operator.add, shared, task="squared-error")
        return ratio(*(float(part) for part in squares))
    if norm == "trace":
        ours, trace = rows.fold(_pair_of_traces, operator.add, shared, task="traces")
        return abs(float(trace - ours)) / float(trace)
    msg = (
        f"The spectral error passes over all {rows.n}² entries many times. Give rows, such as "
        "rows=range(0, 10_000): these are brought here."
    )
    raise ValueError(msg)


def _pair_of_squares(shared: tuple[FeatureMap, Floats, float], X: Array, Y: Array) -> Floats:
    """Return ‖K − K̂‖² and ‖K‖² on a pair of blocks, which stands for its mirror image too."""
    transform, weights, shift = shared
    same = Y is X
    X, Y = as_float(X), as_float(Y)
    total = np.zeros(2)
    right = transform(Y)
    for tile in slices(0, X.shape[0], TILE_ROWS):
        left = transform(X[tile])
        left = left * like(weights, left)
        for part in slices(0, Y.shape[0], TILE_COLS):
            truth = transform.gram.evaluate(X[tile], Landmarks(None, Y[part]))
            gap = truth - left @ right[part, :].T
            if shift and same:
                gap = gap - like(shift * np.equal.outer(_numbers(tile), _numbers(part)), gap)
            total += [sum_of_squares(gap), sum_of_squares(truth)]
    return total if same else 2 * total


def _numbers(rows: slice) -> Indices:
    return np.arange(rows.start, rows.stop)


def _pair_of_traces(shared: tuple[FeatureMap, Floats, float], X: Array) -> Floats:
    transform, weights, shift = shared
    F = to_host(transform(X)).astype(np.float64)
    ours = float((F**2 @ weights).sum()) + shift * len(F)
    assert isinstance(transform.gram, KernelGram)  # no other has Dask rows
    diagonal = to_host(transform.gram.kernel.diag(as_float(X))).astype(np.float64)
    return np.array([ours, diagonal.sum()])
