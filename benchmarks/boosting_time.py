"""Time to fit boosting against ensemble Nyström: same p, m, k and data.

Covertype, n = 4000, p = 8, m = 120, k = 50, Gaussian σ = 5. Every round has its own seed, the
same for all methods.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from common import Report, compare, parser, points, race, run

import nysboost as nb

BASE = "ensemble-ridge"
GOALS = {"UUB-mean": 1.0, "UEB-mean": 1.0, "URB-mean": 1.5, "RRB-mean": None}


def measure(options: argparse.Namespace) -> Report:
    n, p, m, k = options.n, 8, options.columns, options.rank
    X, kernel = points("covertype", n, options), nb.Gaussian(sigma=5.0)

    def fit(method: str, seed: int) -> None:
        sizes = {"n_learners": p, "n_columns": m, "rank": k}
        nb.approximate(X, method, kernel, **sizes, random_state=seed)

    times = race({name: partial(fit, name) for name in (BASE, *GOALS)}, options.rounds)
    report = Report(f"Fit, Covertype, n = {n}, p = {p}, m = {m}, k = {k}, float64")
    for name, goal in GOALS.items():
        report.add(compare(name, BASE, times[name], times[BASE], goal))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=15)
    options.add_argument("--n", type=int, default=4000)
    options.add_argument("--columns", type=int, default=120)
    options.add_argument("--rank", type=int, default=50)
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
