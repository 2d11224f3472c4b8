"""Time to the same error: fit and transform of all of Covertype, ours and the peers.

All 581,012 standardised rows in float32, Gaussian kernel with σ = 5. The error is that of K̂ on
5,000 rows, the same for all, against the kernel in float64. First `joint` with 240 landmarks
against scikit-learn's Nystroem with as many as it needs for the same mean error over the seeds.
Then error against time, over the number of landmarks, for both, k-means Nyström and RPCholesky;
the floor is the time of the two bare products (X Zᵀ) N alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from common import FLOOR, Report, compare, parser, points, race, run
from error_time import PEER, Judge, curves, fit_transform


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


def measure(options: argparse.Namespace) -> Report:
    X = points("covertype", options.rows, options).astype(np.float32)
    name = "Covertype" if options.data == "paper" else "synthetic data"
    report = Report(f"Fit and transform, {name}, n = {len(X):,}, float32, Gaussian σ = 5")
    judge, ours = Judge(X, options.sample), options.components
    fit_transform("joint", 10, X[:2000], 0)  # libraries loaded, threads started
    target = judge.mean_error("joint", ours, options.rounds)
    peer_error = cache(partial(judge.mean_error, PEER, seeds=options.rounds))
    theirs = smallest_reaching(target, peer_error, ours, options.most, options.step)
    contestants = {
        "joint": partial(fit_transform, "joint", ours, X),
        PEER: partial(fit_transform, PEER, theirs, X),
    }
    times = race(contestants, options.rounds, warm_up=False)
    what, against = f"joint, {ours} landmarks", f"scikit-learn, {theirs} landmarks"
    note = f"errors {target:.3g} and {peer_error(theirs):.3g}"
    report.add(compare(what, against, times["joint"], times[PEER], 0.35, note=note))

    sizes = dict.fromkeys(("joint", PEER, "kmeans", "rpcholesky", FLOOR), options.landmarks)
    sizes[PEER] = [*options.landmarks, *options.more]
    report.curves += curves(judge, sizes, options.curve_rounds)
    peer = report.curves[1]
    if theirs > max(peer.landmarks):
        peer.landmarks.append(theirs)
        peer.seconds.append(statistics.median(times[PEER]))
        peer.errors.append(peer_error(theirs))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=3)
    options.add_argument("--curve-rounds", type=int, default=1)
    options.add_argument("--rows", type=int, default=581_012)
    options.add_argument("--sample", type=int, default=5000, help="rows on which errors are taken")
    options.add_argument("--components", type=int, default=240, help="landmarks of joint")
    options.add_argument("--landmarks", type=int, nargs="+", default=[60, 120, 240, 480])
    options.add_argument("--more", type=int, nargs="*", default=[960], help="scikit-learn's alone")
    options.add_argument("--most", type=int, default=2000, help="scikit-learn's at most")
    options.add_argument("--step", type=int, default=20, help="precision of its number")
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
