"""Support vector machines on landmarks against scikit-learn's: a part of uses.py."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from common import Row, compare, labelled, progress, timed
from environment import placed
from sklearn.svm import SVC

import nysboost as nb

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split(name: str, rows: int, options: argparse.Namespace) -> Split:
    """Return training rows, at random from the first part of a data set, and test rows.

    In float32: no data set has more digits.
    """
    X, y = labelled(name, options)
    first = {"mnist": 60_000, "ijcnn": 49_990, "pendigits": 7494}[name]
    first = min(first, 3 * len(X) // 4)
    rng = np.random.default_rng(0)
    train = rng.permutation(first)[:rows]
    test = first + rng.permutation(len(X) - first)[: options.test_rows]
    return X[train].astype(np.float32), y[train], X[test].astype(np.float32), y[test]


def hinge(options: argparse.Namespace) -> Iterator[Row]:
    """Yield accuracy and time of 500 landmarks against SVC, on the same kernel and with the same C.

    The kernel is the one that SVC chooses by default, γ = 1 / (d · var X).
    """
    for data in options.classified:
        X, y, test, labels = split(data, options.train_rows, options)
        gamma = 1 / (X.shape[1] * float(X.var(dtype=np.float64)))
        exact = SVC(C=STRENGTH, gamma=gamma, cache_size=2000)
        theirs = _measured(exact, X, y, test, labels)
        for landmarks in options.places:
            model = nb.NystroemClassifier(
                options.machine_landmarks, loss="hinge", C=STRENGTH, random_state=0,
                kernel=nb.Gaussian(gamma=gamma), metric=None, landmarks=landmarks,
            )  # fmt: skip
            ours = _measured(model, X, y, test, labels, options.device)
            what = f"{TITLES.get(data, data)}, {len(X):,} rows, `{landmarks}`"
            if options.device:
                what += f", {options.device}"
            right = [100 * found[0] for found in (ours, theirs)]
            seconds = [sum(found[1:]) for found in (ours, theirs)]
            yield compare(f"{what}: accuracy", RIVAL, [right[0]], [right[1]], unit="%")
            yield compare(f"{what}: fit and predict", RIVAL, [seconds[0]], [seconds[1]], 0.2)


STRENGTH = 10.0
"""C of both."""

RIVAL = "`SVC`"
TITLES = {"pendigits": "Pendigits", "ijcnn": "IJCNN", "mnist": "MNIST"}

SHORT, ROUNDS = 2.0, 5
"""Machines that are fitted in fewer seconds are fitted so many times; medians are reported."""

Measured = tuple[float, float, float]
"""Share of right labels, seconds to fit, seconds to predict the test rows."""


def _measured(
    model: Any, X: Any, y: np.ndarray, test: Any, labels: np.ndarray, device: str = ""
) -> Measured:
    """Fit and predict; on a GPU once before with a few rows, whose libraries take long to load."""
    X, test, clock = placed(X, device), placed(test, device), time.process_time
    if device:
        model.fit(X[:4000], y[:4000]).predict(test)
        clock = time.perf_counter
    fits, later, found = [], [], []
    while not fits or (fits[0] < SHORT and len(fits) < ROUNDS):
        fits.append(timed(lambda: model.fit(X, y), clock))
        later.append(timed(lambda: found.append(model.predict(test)), clock))
    right, seconds = float(np.mean(found[-1] == labels)), (median(fits), median(later))
    progress("{}, {} rows: {:.4f}, {:.3g} + {:.3g} s".format(
        type(model).__name__, len(X), right, *seconds
    ))  # fmt: skip
    return right, *seconds
