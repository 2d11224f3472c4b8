"""Time to fit the flagship: against n, and against scikit-learn's KMeans on the same data.

n = 10⁴ and 10⁶ rows, d = 54, c = 480: the ratio should be near 1. MNIST, 70,000 rows, c = 240:
the ratio to KMeans with 240 clusters, which is the first half of a k-means Nyström.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from common import Report, compare, parser, points, race, run
from sklearn.cluster import KMeans

import nysboost as nb


def fit(X: np.ndarray, c: int) -> Callable[[int], object]:
    kernel = nb.Gaussian(sigma=5.0)
    return lambda seed: nb.approximate(X, "joint", kernel, n_components=c, random_state=seed)


def measure(options: argparse.Namespace) -> Report:
    report = Report("Fit of joint, float64")
    few, many = sorted(options.rows)
    X = np.random.default_rng(0).normal(size=(many, 54))
    c = options.landmarks
    fit(X[:2000], 10)(0)  # libraries loaded, threads started
    contestants = {"few": fit(X[:few].copy(), c), "many": fit(X, c)}
    times = race(contestants, options.rounds, warm_up=False)
    what = f"fit, d = 54, c = {c}, n = {many:,}"
    report.add(compare(what, f"n = {few:,}", times["many"], times["few"], 1.3))

    X, c = points("mnist", options.images, options), options.clusters
    contestants = {
        "ours": fit(X, c),
        "KMeans": lambda seed: KMeans(c, n_init=1, random_state=seed).fit(X),
    }
    times = race(contestants, options.rounds, warm_up=False)
    what = f"fit, {'MNIST' if options.data == 'paper' else 'synthetic'}, c = {c}, n = {len(X):,}"
    report.add(compare(what, f"KMeans({c}, n_init=1)", times["ours"], times["KMeans"], 1.0))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=2)
    options.add_argument("--rows", type=int, nargs=2, default=[10**4, 10**6])
    options.add_argument("--landmarks", type=int, default=480)
    options.add_argument("--images", type=int, default=70_000)
    options.add_argument("--clusters", type=int, default=240)
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
