"""Time of transform: against the two bare matrix products, and scikit-learn's Nystroem.

One learner of c = 960 landmarks, float32 and float64, d = 16, 54, 300 and 784, n = 100,000
standard normal rows; where d = 54 also the mixture URB-mean, 8 learners of 120 columns and rank
50, as many landmarks in all. The floor is (X Zᵀ) N of the same shapes and dtype: as it is written,
and in blocks of rows, which stay in the cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import Report, compare, parser, race, run
from sklearn.kernel_approximation import Nystroem

import nysboost as nb

MIXTURE_AT = 54
OURS, FLOOR, PEER = "StandardNystroem", "bare products", "scikit-learn"
BLOCKS = "bare products in blocks"
BLOCK = 1024
MIXTURES = {"URB-mean": False, "URB-mean, nonnegative": True}


def measure(options: argparse.Namespace) -> Report:
    title = f"Transform, n = {options.rows:,}, c = {options.landmarks}"
    report = Report(title)
    for dtype in ("float32", "float64"):
        for d in options.dimensions:
            _add(report, dtype, d, options)
    return report


def _add(report: Report, dtype: str, d: int, options: argparse.Namespace) -> None:
    X = np.random.default_rng(0).standard_normal((options.rows, d)).astype(dtype)
    mixtures = MIXTURES if d == MIXTURE_AT else {}
    times = race(_contestants(X, options.landmarks, mixtures), options.rounds)
    where = f"{dtype}, d = {d}"
    single = dtype == "float32"
    goals = {FLOOR: 1.25 if single else None, BLOCKS: None, PEER: 0.65 if single else 0.85}
    for other, goal in goals.items():
        report.add(compare(f"transform, {where}", other, times[OURS], times[other], goal))
    for name, nonnegative in mixtures.items():
        goal = None if nonnegative else 0.4
        report.add(compare(f"{name}, {where}", PEER, times[name], times[PEER], goal))


def _contestants(
    X: np.ndarray, c: int, mixtures: dict[str, bool]
) -> dict[str, Callable[[int], Any]]:
    # at γ = 1/d no eigenvalue is cut, so that all multiply by a c×c matrix
    seen, how = X[:20_000], {"gamma": 1 / X.shape[1], "random_state": 0}
    ours = nb.StandardNystroem(n_columns=c, **how).fit(seen)
    peer = Nystroem(n_components=c, **how).fit(seen)
    Z, N = ours.components_, ours.normalization_
    if N.shape != peer.normalization_.shape:
        raise RuntimeError(f"N is {N.shape}, scikit-learn's is {peer.normalization_.shape}.")
    p, m, k = 8, c // 8, c * 50 // 960
    mixed = {
        name: nb.BoostedNystroem(
            "URB-mean", n_learners=p, n_columns=m, rank=k, nonnegative=sign, **how
        ).fit(seen)
        for name, sign in mixtures.items()
    }
    return {
        FLOOR: lambda _: (X @ Z.T) @ N,
        BLOCKS: lambda _: _in_blocks(X, Z, N),
        OURS: partial(_transform, ours, X),
        PEER: partial(_transform, peer, X),
        **{name: partial(_transform, mixture, X) for name, mixture in mixed.items()},
    }


def _in_blocks(X: np.ndarray, Z: np.ndarray, N: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), N.shape[1]), X.dtype)
    for start in range(0, len(X), BLOCK):
        block = slice(start, start + BLOCK)
        np.matmul(X[block] @ Z.T, N, out=out[block])
    return out


def _transform(estimator: Any, X: np.ndarray, _round: int) -> np.ndarray:
    features: np.ndarray = estimator.transform(X)
    return features


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=5)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--landmarks", type=int, default=960)
    options.add_argument("--dimensions", type=int, nargs="+", default=[16, 54, 300, 784])
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
