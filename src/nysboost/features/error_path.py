"""Errors of several mixtures of the same learners, in one pass over G."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, features_of_block
from nysboost.gram import Gram, Landmarks
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.budget import slices
from nysboost.rows.driver import PairTask

PART = 32
"""Rows of a tile whose values are held for all learners at once, 1 MB for each."""

Shared: TypeAlias = tuple[Gram, FeatureMap | None, tuple[int, ...]]


def mixture_errors(factor: Factor, ranks: Sequence[int], weights: Sequence[Floats]) -> Floats:
    """Return ‖G − Σ_i w_i F_i F_iᵀ‖_F / ‖G‖_F for each w, which weighs the first len(w) learners.

    `factor` has the learners' features side by side, `ranks` their numbers of columns.

    With E_i = G − F_i F_iᵀ the residual is (1 − Σ w_i) G + Σ w_i E_i, and its norm is known from
    the inner products of G, E_1, …, E_p. These are small already, so that little cancels: errors
    far below those of the learners alone, by 1e-6 or less, are rounding.
    """
    gram = factor.gram
    factor.keep()
    numbers = np.arange(factor.rows.n)[:, None]
    aligned: list[Any] = [numbers] if factor.kept is None else [numbers, factor.kept]
    transform = factor.transform if factor.kept is None else None
    shared: Shared = (gram.forget_rows(), transform, tuple(ranks))
    width = gram.tile_width(len(factor.weights))
    task = PairTask("inner-products", _load, _inner_products, shared, width, gram.budget)
    products = factor.rows.fold_pairs(task, np.add, *aligned)

    errors = []
    for w in weights:
        coefficients = np.zeros(len(products))
        coefficients[0] = 1 - w.sum()
        coefficients[1 : len(w) + 1] = w
        squared = float(coefficients @ products @ coefficients)
        errors.append(np.sqrt(max(squared, 0.0) / products[0, 0]))
    return np.array(errors)


def _load(shared: Shared, X: Array, numbers: Any, *kept: Array) -> tuple[Any, ...]:
    """Return the rows of a block, their numbers and their features."""
    gram, transform, _ = shared
    if transform is None:
        return X, numbers, kept[0]
    return X, numbers, features_of_block(gram, transform, X)


def _inner_products(shared: Shared, upper: tuple[Any, ...], lower: tuple[Any, ...]) -> Floats:
    """Return the inner products of G, E_1, …, E_p on a tile, shape (p + 1, p + 1)."""
    gram, _, ranks = shared
    X, _, F = upper
    Y, columns, H = lower
    G = arrays.floats_on_host(gram.evaluate(X, Landmarks(columns[:, 0], Y)))

    products = np.zeros((len(ranks) + 1, len(ranks) + 1))
    for at in slices(0, len(G), PART):
        parts = np.empty((len(ranks) + 1, G[at].size))
        parts[0] = G[at].ravel()
        begin = 0
        for i, rank in enumerate(ranks, start=1):
            own = slice(begin, begin + rank)
            learner = arrays.floats_on_host(F[at, own] @ H[:, own].T)
            parts[i] = (G[at] - learner).ravel()
            begin += rank
        products += parts @ parts.T
    return products
