"""Sums over rows that a linear model on features needs: FᵀF, FᵀY and their kin.

They add over blocks, over batches that come later and over a cluster's workers, and a model
without some rows is a difference of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from nysboost.data.rows import ArrayRows, Stream, as_float, refuse_non_finite
from nysboost.engine.blocks import Plan, Scratch, each_block, plan
from nysboost.engine.feature_map import ENDLESS, FeatureMap
from nysboost.kernels.distances import in_the_form_of
from nysboost.numerics.arrays import (
    Array,
    block_bytes,
    in_float64,
    like,
    namespace,
    product_into,
    take,
)
from nysboost.numerics.memory import Budget
from nysboost.numerics.threads import usable_threads

WAITING = 4
"""Blocks for each thread whose sums wait until they can be added in the order of the rows."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over n rows with features F (n, r) and targets Y (n, t).

    Parameters
    ----------
    weight : array of shape ()
        Σω.
    F, Y : arrays of shape (r,) and (t,)
        Σωf and Σωy.
    FF, FY : arrays of shape (r, r) and (r, t)
        Σωffᵀ and Σωfyᵀ.
    YY : array of shape (t,)
        Σωy².
    """

    weight: Array
    F: Array
    Y: Array
    FF: Array
    FY: Array
    YY: Array

    @classmethod
    def of(cls, F: Array, Y: Array, weights: Array | None = None) -> Moments:
        """Return the moments of rows in memory."""
        xp = namespace(F)
        if weights is None:  # FᵀF of one and the same array costs BLAS half of a product
            G, V, count = F, Y, xp.ones_like(F[:, 0])
        else:
            G, V, count = F * weights[:, None], Y * weights[:, None], weights
        return cls(
            xp.sum(count), xp.sum(G, axis=0), xp.sum(V, axis=0), G.T @ F, G.T @ Y,
            xp.sum(V * Y, axis=0),
        )  # fmt: skip

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @property
    def mean(self) -> Array:
        """The mean target, shape (t,)."""
        return self.Y / self.weight


def moments_of(
    transform: FeatureMap,
    rows: Stream,
    Y: Array,
    *,
    weights: Array | None = None,
    budget: Budget | None = None,
    after: Callable[[int], None] = lambda _: None,
) -> Moments:
    """Return the moments of all rows in one pass, in float64, a block at a time.

    Parameters
    ----------
    transform : FeatureMap
        x ↦ f.
    rows : Stream
        n rows, wherever they come from.
    Y : array of shape (n, t)
        Targets; NumPy, or where the rows are.
    weights : array of shape (n,) or None
        How often each row counts.
    budget : Budget or None
        Memory and cores; None is the Gram's.
    after : callable
        Takes the number of rows of each piece when it is done.
    """
    if rows.lazy:
        beside = [Y] if weights is None else [Y, weights[:, None]]
        load: Any = transform.alone()
        found_there: Moments = rows.fold(  # type: ignore[attr-defined]
            _moments_of_block, operator.add, load, *beside, task="moments", size=0
        )
        return found_there
    form = in_float64(rows.form)
    evaluate = transform.gram.against(transform.landmarks, form)
    N = like(transform.normalization, form)
    shares = _plan(transform, rows, form, Y.shape[1], budget or transform.gram.budget)
    for_values, for_features = (Scratch(columns, form) for columns in N.shape)
    total: Moments | None = None
    start = 0
    for piece in rows.pieces(min(shares.piece, shares.block * shares.threads * WAITING)):
        found: dict[int, Moments] = {}

        def work(
            block: slice, piece: Array = piece, start: int = start, found: Any = found
        ) -> None:
            x = in_the_form_of(form, as_float(take(piece, block)))
            refuse_non_finite(x, start + block.start)
            at = slice(start + block.start, start + block.start + x.shape[0])
            of_rows = None if weights is None else like(weights[at], form)
            values = evaluate(x, for_values(x.shape[0]))
            F = product_into(values, N, for_features(x.shape[0]))
            found[block.start] = Moments.of(F, like(Y[at], form), of_rows)

        each_block(work, piece.shape[0], shares)
        for first in sorted(found):  # in order, so that threads do not change the sums
            total = found[first] if total is None else total + found[first]
        start += piece.shape[0]
        after(piece.shape[0])
    if total is None or start != Y.shape[0]:
        msg = f"X has {start} rows, but y has {Y.shape[0]}: give as many of one as of the other."
        raise ValueError(msg)
    return total


def _moments_of_block(
    transform: FeatureMap, X: Array, Y: Array, weights: Array | None = None
) -> Moments | None:
    """Return the moments of a block of rows, or nothing for none: this is what a worker runs."""
    if X.shape[0] == 0:
        return None
    of_rows = None if weights is None else weights[:, 0]
    return moments_of(transform, ArrayRows(X), Y, weights=of_rows)


def _plan(transform: FeatureMap, rows: Stream, form: Array, t: int, budget: Budget) -> Plan:
    """Share out the memory; sums of blocks that wait to be added in order are part of it."""
    c, d, r = len(transform.landmarks), rows.n_features, transform.n_features_out
    shared = isinstance(form, np.ndarray) and transform.gram.parallel
    threads = usable_threads(budget) if shared else 1
    return plan(
        ENDLESS if rows.n is None else rows.n,
        fixed=8 * (2 * c * (d + 2) + c * r + (2 + WAITING * threads) * r * (r + t)),
        block_row=8 * (2 * d + 8 + 2 * r + t) + transform.gram.bytes_per_value(form) * c,
        piece_row=0 if rows.in_memory else 8 * d,
        budget=budget,
        cache_bytes=block_bytes(form) * 4,
        parallel=shared,
    )
