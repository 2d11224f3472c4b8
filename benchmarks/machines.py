"""Support vector machines on landmarks against scikit-learn's SVC, for `uses.py`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Row, compare, placed, progress, synthetic
from sklearn.svm import SVC

import nysboost as nb
from nysboost.experiments import datasets

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def labelled(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of a data set as features, and their labels."""
    if options.data == "synthetic":
        X = synthetic(400, 6)
        return X, (X[:, 0] > np.median(X[:, 0])).astype(int)
    points = datasets.load(name, options.data_dir)
    y = np.load(points.source)["y"]
    return (points.values.astype(np.float64) - points.shift) / points.scale, y.astype(int)


def split(name: str, rows: int, options: argparse.Namespace) -> Split:
    """Return training rows, at random from the first part of a data set, and test rows."""
    X, y = labelled(name, options)
    first = {"mnist": 60_000, "ijcnn": 49_990, "pendigits": 7494}[name]
    first = min(first, 3 * len(X) // 4)
    rng = np.random.default_rng(0)
    train = rng.permutation(first)[:rows]
    test = first + rng.permutation(len(X) - first)[: options.test_rows]
    return X[train], y[train], X[test], y[test]


def hinge(options: argparse.Namespace) -> Iterator[Row]:
    """Yield accuracy and time of 500 landmarks against SVC, on its own kernel and on ours."""
    for data in options.classified:
        X, y, test, labels = split(data, options.train_rows, options)
        for landmarks in options.places:
            model, seconds = _machine(X, y, landmarks, options)
            right = model.score(placed(test, options.device), labels)
            where = f", {options.device}" if options.device else ""
            what = f"hinge, {landmarks} landmarks, {data}, {len(X)} rows{where}"
            progress(f"{what}: accuracy {right:.4f} in {seconds:.3g} s")
            metric = model.kernel_.metric
            kernels = {
                "SVC, γ by its rule": ("scale", lambda rows: rows),
                "SVC on the same kernel": (0.5, metric),
            }
            for name in options.rivals:
                gamma, mapped = kernels[name]
                machine, seen = SVC(C=10.0, gamma=gamma, cache_size=2000), mapped(X)
                slow = timed(lambda machine=machine, seen=seen, y=y: machine.fit(seen, y))
                theirs = machine.score(mapped(test), labels)
                short = (theirs - right) / 0.005
                yield Row(f"{what}: accuracy", name, right, theirs, "", short, short, short, 1.0)
                yield compare(f"{what}: time", name, [seconds], [slow], 0.2)


RIVALS = ("SVC, γ by its rule", "SVC on the same kernel")


def _machine(
    X: np.ndarray, y: np.ndarray, landmarks: str, options: argparse.Namespace
) -> tuple[nb.NystroemClassifier, float]:
    """Return a fitted machine and its seconds."""
    model = nb.NystroemClassifier(
        options.machine_landmarks, loss="hinge", kernel="gaussian", landmarks=landmarks,
        scale=None, random_state=0,
    )  # fmt: skip
    rows, clock = placed(X, options.device), time.process_time
    if options.device:  # whose libraries take seconds to load
        model.fit(rows[:4000], y[:4000])
        clock = time.perf_counter
    return model, timed(lambda: model.fit(rows, y), clock)


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds of some work; the processor's, which say more on a busy machine."""
    began = clock()
    work()
    return clock() - began
