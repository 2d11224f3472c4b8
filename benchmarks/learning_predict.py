"""predict of a learner against transform of as many landmarks.

A regressor is fitted on 4000 rows, and on 1000, where it is a mixture; `Nystroem` with uniform
landmarks has as many of them as all parts of it together, and the same kernel without a metric.
Both map the same 100,000 rows, in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from common import Report, compare, parser, race, run, synthetic

import nysboost as nb

FEATURES = 20


def pair(n: int, components: int, fresh: np.ndarray, rounds: int) -> tuple[int, dict[str, list]]:
    """Return the number of landmarks in all, and the times of both."""
    X = synthetic(n, FEATURES)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    model = nb.NystroemRegressor(components, random_state=0).fit(X, y)
    landmarks = sum(len(part.basis.Z) for part in model._models)
    kernel = nb.Matern(nu=1.5, sigma=3.0)
    plain = nb.Nystroem(kernel, method="uniform", n_components=min(landmarks, n), random_state=0)
    plain.fit(X.astype(fresh.dtype))
    runners = {
        "predict": lambda _: model.predict(fresh),
        "transform": lambda _: plain.transform(fresh),
    }
    return landmarks, race(runners, rounds)


def measure(options: argparse.Namespace) -> Report:
    report = Report(f"predict / transform, {options.rows:,} rows, d = {FEATURES}")
    for dtype in (np.float64, np.float32):
        fresh = synthetic(options.rows, FEATURES, seed=1).astype(dtype)
        for n in options.fitted:
            for components in options.components:
                landmarks, times = pair(n, components, fresh, options.rounds)
                what = f"predict, {landmarks} landmarks, fitted on {n:,} rows, {dtype.__name__}"
                ours, theirs = times["predict"], times["transform"]
                report.add(compare(what, "transform", ours, theirs, 1.1))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=5)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--fitted", type=int, nargs="+", default=[1000, 4000])
    options.add_argument("--components", type=int, nargs="+", default=[64, 256])
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
