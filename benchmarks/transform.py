"""Time of transform: against the two bare matrix products, and scikit-learn's Nystroem.

`memory`: landmarks at random rows, float32 and float64, standard normal rows. The floor is
(X Zᵀ) N of the same shapes and precision in blocks of rows, which stay in the cache.
`row`: one row at a time, beyond scikit-learn's check of its input.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from common import FLOOR, Row, benchmark, compare, time_in_turn
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import check_array

import nysboost as nb

BLOCK = 1024
OURS, PEER, CHECK = "ours", "scikit-learn's `Nystroem`", "scikit-learn's `check_array`"
GOALS = {"float32": 0.55, "float64": 0.6}
"""Time over that of scikit-learn."""


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of transform in memory."""
    for dtype in ("float32", "float64"):
        for d in options.dimensions:
            X = np.random.default_rng(0).standard_normal((options.rows, d)).astype(dtype)
            work = _work(X, options.landmarks)
            times = time_in_turn(work, options.rounds)
            for other, goal in {FLOOR: 1.0, PEER: GOALS[dtype]}.items():
                yield compare(f"{dtype}, {d} columns", other, times[OURS], times[other], goal)


def _work(X: np.ndarray, c: int) -> dict[str, Callable[[int], Any]]:
    # at γ = 1/d no eigenvalue is cut, so that all multiply by a c×c matrix
    seen, how = X[:20_000], {"gamma": 1 / X.shape[1], "random_state": 0}
    ours = nb.Nystroem(method="uniform", n_components=c, **how).fit(seen)
    peer = Nystroem(n_components=c, **how).fit(seen)
    Z, N = ours.components_, ours.normalization_
    return {
        FLOOR: lambda _: bare_products(X, Z, N, np.empty((len(X), N.shape[1]), X.dtype)),
        OURS: lambda _: ours.transform(X),
        PEER: lambda _: peer.transform(X),
    }


def bare_products(X: np.ndarray, Z: np.ndarray, N: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return (X Zᵀ) N, a block of rows at a time."""
    for start in range(0, len(X), BLOCK):
        block = slice(start, start + BLOCK)
        np.matmul(X[block] @ Z.T, N, out=out[block])
    return out


def row(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the milliseconds of one row, 256 landmarks and 10 features."""
    X = np.random.default_rng(0).normal(size=(2000, 10))
    features = nb.Nystroem(method="uniform", gamma=0.1, n_components=256, random_state=0).fit(X)
    model = nb.NystroemRegressor(256, landmarks="uniform", local=False, random_state=0)
    model.fit(X, np.sin(X[:, 0]))
    classifier = nb.NystroemClassifier(random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1] > 0.5)

    def many(work: Callable[[np.ndarray], Any], _round: int) -> None:
        for i in range(options.calls):
            work(X[i % 500 : i % 500 + 1])

    ours = {
        "`Nystroem.transform`": features.transform,
        "`NystroemRegressor.predict` without leaves": model.predict,
        "`NystroemClassifier.predict` with leaves": classifier.predict,
    }
    calls = {CHECK: check_array, **ours}
    work = {name: partial(many, call) for name, call in calls.items()}
    times = time_in_turn(work, options.rounds)
    each = {name: [1000 * t / options.calls for t in found] for name, found in times.items()}
    for name in ours:
        yield compare(name, CHECK, each[name], each[CHECK], unit="ms")


main = benchmark(
    __file__, __doc__, "Transform", (memory, row), rounds=3,
    options={
        "rows": 10_000, "landmarks": 960, "dimensions": [16, 54, 300],
        "calls": (500, "of one row"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
