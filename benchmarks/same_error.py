"""Time to the same error on Covertype, ours and the peers, and error against time.

Standardised rows in float32, Gaussian kernel with σ = 5. The error is that of K̂ on 5,000 rows, the
same for all, against the kernel in float64. First `joint` with 240 landmarks against scikit-learn's
Nystroem with as many as it needs for the same mean error over the seeds. Then error against time,
over the number of landmarks; the floor is the time of the two bare products (X Zᵀ) N alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from common import FLOOR, Curve, Report, Row, benchmark, compare, points, progress, time_in_turn
from environment import machine_line
from sklearn.kernel_approximation import Nystroem

import nysboost as nb
from nysboost.compare.charts import find_style

GAMMA = 1 / 50
PEER = "nystrom"
LABELS = {
    "joint": "joint (ours)",
    PEER: "scikit-learn's Nystroem",
    "kmeans": "k-means Nyström",
    "rpcholesky": "RPCholesky",
    FLOOR: "floor: the two bare products, drawn at the error of joint",
}


def fit(method: str, c: int, X: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a method to all rows and return its feature map; "nystrom" is scikit-learn's."""
    how: dict[str, Any] = {"gamma": GAMMA, "n_components": c, "random_state": seed}
    made = Nystroem(**how) if method == PEER else nb.Nystroem(method=method, **how)
    features: Callable[[np.ndarray], np.ndarray] = made.fit(X).transform
    return features


def fit_transform(method: str, c: int, X: np.ndarray, seed: int) -> np.ndarray:
    """Return the features of all rows; for the floor, two products of the same shapes."""
    if method == FLOOR:
        floor: np.ndarray = (X @ X[:c].T) @ np.eye(c, dtype=X.dtype)
        return floor
    return fit(method, c, X, seed)(X)


class Sample:
    """Rows of X, chosen once, on which errors are measured against the kernel in float64."""

    def __init__(self, X: np.ndarray, n: int) -> None:
        self.X = X
        self.rows = np.sort(np.random.default_rng(1).choice(len(X), size=n, replace=False))
        exact = X[self.rows].astype(np.float64)
        self.K = nb.Gaussian(gamma=GAMMA)(exact, exact)

    def error(self, F: np.ndarray) -> float:
        """Return ‖K̂ − K‖ / ‖K‖ from the features of the chosen rows."""
        F = F.astype(np.float64)
        return float(np.linalg.norm(F @ F.T - self.K) / np.linalg.norm(self.K))

    def mean_error(self, method: str, c: int, seeds: int) -> float:
        """Return the mean error over fits to all rows, transforming only the chosen ones."""
        maps = (fit(method, c, self.X, seed) for seed in range(seeds))
        error = float(np.mean([self.error(features(self.X[self.rows])) for features in maps]))
        progress(f"{method}, {c} landmarks: error {error:.3g}")
        return error


def smallest_reaching(
    target: float, error: Callable[[int], float], start: int, most: int, step: int
) -> int:
    """Return the smallest size, to within a step, whose error is at most the target; or `most`."""
    low, high = 0, start
    while high < most and error(high) > target:
        low, high = high, min(2 * high, most)
    while high - low > step:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    return high


def curves(sample: Sample, sizes: dict[str, list[int]], rounds: int) -> list[Curve]:
    """Return time and error of fit and transform for each method and number of landmarks."""
    keys = {f"{method}, c = {c}": (method, c) for method, counts in sizes.items() for c in counts}
    errors: dict[tuple[str, int], list[float]] = {key: [] for key in keys.values()}

    def keep(name: str, F: np.ndarray) -> None:
        if keys[name][0] != FLOOR:
            errors[keys[name]].append(sample.error(F[sample.rows]))

    def work(method: str, c: int, seed: int) -> np.ndarray:
        return fit_transform(method, c, sample.X, seed)

    runs = {name: partial(work, *key) for name, key in keys.items()}
    times = time_in_turn(runs, rounds, warm_up=False, after=keep)
    seconds = {key: statistics.median(times[name]) for name, key in keys.items()}
    return [
        Curve(
            method,
            LABELS[method],
            list(counts),
            [seconds[method, c] for c in counts],
            [float(np.mean(errors["joint" if method == FLOOR else method, c])) for c in counts],
        )
        for method, counts in sizes.items()
    ]


def measure(options: argparse.Namespace) -> Iterator[Row | Curve]:
    """Yield the time of joint against its peer at the same error, then the curves."""
    X = points("covertype", options.rows, options).astype(np.float32)
    sample, ours = Sample(X, options.sample), options.components
    fit_transform("joint", 10, X[:2000], 0)  # libraries loaded, threads started
    target = sample.mean_error("joint", ours, options.rounds)
    peer_error = cache(partial(sample.mean_error, PEER, seeds=options.rounds))
    theirs = smallest_reaching(target, peer_error, ours, options.most, options.step)
    work: dict[str, Callable[[int], Any]] = {
        "joint": partial(fit_transform, "joint", ours, X),
        PEER: partial(fit_transform, PEER, theirs, X),
    }
    times = time_in_turn(work, options.rounds, warm_up=False)
    what, against = f"joint, {ours} landmarks", f"scikit-learn, {theirs} landmarks"
    note = f"errors {target:.3g} and {peer_error(theirs):.3g}"
    yield compare(what, against, times["joint"], times[PEER], 0.35, note=note)
    sizes = dict.fromkeys(("joint", PEER, "kmeans", "rpcholesky", FLOOR), options.landmarks)
    sizes[PEER] = [*options.landmarks, *options.more]
    yield from curves(sample, sizes, options.curve_rounds)


def draw(report: Report, path: Path) -> None:
    """Draw the curves of a report: error against time, one curve for each method."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(8.4, 5.8), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for curve in report.curves:
        look = find_style("optimal" if curve.method == FLOOR else curve.method)
        axes.plot(curve.seconds, curve.errors, label=curve.label, markersize=5, **look)
        for c, x, y in zip(curve.landmarks, curve.seconds, curve.errors, strict=True):
            place = {"xytext": (5, 4), "textcoords": "offset points"}
            axes.annotate(str(c), (x, y), fontsize=8, color=look["color"], **place)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("processor seconds (the number at a point is that of its landmarks)")
    axes.set_ylabel("relative Frobenius error")
    axes.grid(alpha=0.25, which="both")
    figure.legend(loc="outside upper center", ncols=2, title=report.title, frameon=False)
    figure.supxlabel(fill(machine_line(report.machine), 130), fontsize=7, color="0.4")
    figure.savefig(path, dpi=120)


main = benchmark(
    __file__, __doc__, "Fit and transform, Covertype, n = {rows:,}, float32, Gaussian σ = 5",
    (measure,), rounds=3,
    options={
        "curve-rounds": 1, "rows": 100_000, "sample": (5000, "rows on which errors are taken"),
        "components": (240, "landmarks of joint"), "most": (4000, "landmarks of the peer at most"),
        "step": 40, "landmarks": [60, 120, 240, 480], "more": ([960], "of the peer"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
