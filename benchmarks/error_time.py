"""Error against time over the number of landmarks: one race of all methods, on any device."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import FLOOR, Curve, progress, race
from sklearn.kernel_approximation import Nystroem

import nysboost as nb
from nysboost.data.rows import ArrayRows
from nysboost.numerics.arrays import Array, like, namespace

GAMMA = 1 / 50
PEER = "nystrom"
LABELS = {
    "joint": "joint (ours)",
    PEER: "scikit-learn's Nystroem",
    "kmeans": "k-means Nyström",
    "rpcholesky": "RPCholesky",
    "uniform": "uniform Nyström",
    FLOOR: "floor: the two bare products, drawn at the error of joint",
}


def fit(method: str, c: int, X: Array, seed: int) -> Callable[[Array], Array]:
    """Fit a method to all rows and return its feature map; "nystrom" is scikit-learn's."""
    how: dict[str, Any] = {"n_components": c, "random_state": seed}
    if method == PEER:
        features: Callable[[Array], Array] = Nystroem(gamma=GAMMA, **how).fit(X).transform
    elif method == "joint":
        features = nb.BoostedNystroem("joint", gamma=GAMMA, **how).fit(X).transform
    else:
        kernel = nb.Gaussian(gamma=GAMMA)
        features, _ = nb.approximate(X, method, kernel, **how).feature_map()
    return features


def fit_transform(method: str, c: int, X: Array, seed: int) -> Array:
    """Return the features of all rows; for the floor, two products of the same shapes."""
    if method == FLOOR:
        return (X @ X[:c].T) @ like(np.eye(c), X)
    return fit(method, c, X, seed)(X)


class Judge:
    """The error of features on rows of X chosen once, against the kernel in float64."""

    def __init__(self, X: Array, n: int) -> None:
        self.X = X
        self.rows = np.sort(np.random.default_rng(1).choice(len(X), size=n, replace=False))
        self.sample = ArrayRows(X).take(self.rows)
        exact = self._double(self.sample)
        self.K = nb.Gaussian(gamma=GAMMA)(exact, exact)

    def error(self, features: Array) -> float:
        """Return ‖K̂ − K‖ / ‖K‖ from the features of the chosen rows."""
        F, norm = self._double(features), namespace(self.K).linalg.vector_norm
        return float(norm(F @ F.T - self.K) / norm(self.K))

    def error_of_all(self, features: Array) -> float:
        """Return the same from the features of all rows."""
        return self.error(ArrayRows(features).take(self.rows))

    def mean_error(self, method: str, c: int, seeds: int) -> float:
        """Return the mean error over fits to all rows, transforming only the chosen ones."""
        maps = (fit(method, c, self.X, seed) for seed in range(seeds))
        error = float(np.mean([self.error(features(self.sample)) for features in maps]))
        progress(f"{method}, {c} landmarks: error {error:.3g}")
        return error

    @staticmethod
    def _double(array: Array) -> Array:
        return like(array, array, namespace(array).float64)


def curves(
    judge: Judge,
    sizes: Mapping[str, Sequence[int]],
    rounds: int,
    finish: Callable[[], None] = lambda: None,
) -> list[Curve]:
    """Return time and error of fit and transform for each method and number of landmarks.

    Parameters
    ----------
    judge : Judge
        Holds the rows and takes the errors.
    sizes : mapping of str to sequence of int
        The numbers of landmarks of each method; the floor's must be among those of joint.
    rounds : int
        Each has its own seed; times are medians and errors means.
    finish : callable
        Waits for a device, within the time.
    """
    keys = {f"{method}, c = {c}": (method, c) for method, counts in sizes.items() for c in counts}
    errors: dict[tuple[str, int], list[float]] = {key: [] for key in keys.values()}

    def contestant(method: str, c: int, seed: int) -> Array:
        features = fit_transform(method, c, judge.X, seed)
        finish()
        return features

    def keep(name: str, features: Array) -> None:
        if keys[name][0] != FLOOR:
            errors[keys[name]].append(judge.error_of_all(features))

    contestants = {name: partial(contestant, *key) for name, key in keys.items()}
    times = race(contestants, rounds, warm_up=False, after=keep)
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
