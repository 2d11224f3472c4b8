"""Processor time to fit boosting against ensemble Nyström: same p, m, k and data.

n = 4000, p = 8, m = 120, k = 50, Gaussian σ = 5, on data of 784, 300 and 54 features: the more
there are, the more of the time goes into kernel values, of which boosting needs no more than
the ensemble. Every round has its own seed, the same for all methods. With --errors: those of
boosting against what it has with the paper's V, 5m of all columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from common import Report, compare, parser, points, race, run

import nysboost as nb

BASE = "ensemble-ridge"
GOALS = {"UUB-mean": 1.0, "UEB-mean": 1.0, "URB-mean": 1.3, "RRB-mean": None}


def measure(options: argparse.Namespace) -> Report:
    n, p, m, k = options.n, 8, options.columns, options.rank
    sizes, kernel = {"n_learners": p, "n_columns": m, "rank": k}, nb.Gaussian(sigma=5.0)

    def fit(X: np.ndarray, method: str, seed: int) -> None:
        nb.approximate(X, method, kernel, **sizes, random_state=seed)

    report = Report(f"Fit, n = {n}, p = {p}, m = {m}, k = {k}, float64")
    for data in options.sets:
        X = points(data, n, options)
        contestants = {name: partial(fit, X, name) for name in (BASE, *GOALS)}
        times = race(contestants, options.rounds, clock=time.process_time)
        for name, goal in GOALS.items():
            what = f"{name}, {data}, d = {X.shape[1]}"
            report.add(compare(what, BASE, times[name], times[BASE], goal))
    return report


def errors(options: argparse.Namespace) -> None:
    """Print each method's mean error over the rounds, over that with the paper's V."""
    sizes = {"n_learners": 8, "n_columns": options.columns, "rank": options.rank}
    papers = {"n_candidates": 5 * options.columns, "n_considered": options.n}
    for data in options.sets:
        X, kernel = points(data, options.n, options), nb.Gaussian(sigma=5.0)
        for method in GOALS:
            ours, theirs = (
                [
                    nb.approximate(
                        X, method, kernel, **sizes, **V, random_state=seed
                    ).relative_error()
                    for seed in range(options.rounds)
                ]
                for V in ({}, papers)
            )
            print(f"{method}, {data}: error / paper's V {np.mean(ours) / np.mean(theirs):.4f}")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=15)
    options.add_argument("--sets", nargs="+", default=["mnist", "glove", "covertype"])
    options.add_argument("--n", type=int, default=4000)
    options.add_argument("--columns", type=int, default=120)
    options.add_argument("--rank", type=int, default=50)
    options.add_argument("--errors", action="store_true")
    chosen = options.parse_args(arguments)
    run(chosen, measure)
    if chosen.errors:
        errors(chosen)


if __name__ == "__main__":
    main()
