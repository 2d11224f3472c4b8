"""Sizes, seeds, indices, right-hand sides, files: arguments that are out of range or no numbers."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import (
    X,
    Y,
    approximate,
    cases,
    close_to,
    finite,
    gaussian,
    has_error,
    listed,
    standard,
)

FITTED = approximate(kernel=nb.Gaussian(gamma=0.3))
DENSE = FITTED.to_dense()


def solved_as_well_as_dense(alpha: float) -> Any:
    """Return a check for the residual that a dense factorisation reaches."""
    A = DENSE + alpha * np.eye(60)
    reference = np.linalg.norm(A @ np.linalg.solve(A, Y) - Y)
    floor = 1e-13 * np.linalg.norm(Y)
    return lambda x: bool(np.linalg.norm(A @ x - Y) <= 20 * reference + floor)


def by_name(*values: Any) -> dict[str, Any]:
    return {f"{value!r}": value for value in values}


SIZES: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    ("uniform", "n_components", {}, [0, -1, 2.5, "20", True, [20]]),
    ("uniform", "n_columns", {"n_components": None}, [0]),
    ("nystrom", "rank", {}, [0, 21]),  # above the number of columns
    ("URB-mean", "n_learners", {}, [0, 1.5]),
    ("URB-mean", "n_fit", {}, [1000]),
    ("URB-mean", "n_candidates", {}, [1]),
    ("uniform", "row_cap", {}, [0]),
    ("uniform", "residual_shape", {}, ["triangle"]),
    ("ensemble-exponential", "eta", {}, [0, "best"]),
    ("ensemble-ridge", "lambdas", {}, [(), (-1.0,)]),
    ("uniform", "n_jobs", {}, [True, 1.5, "two"]),
    ("uniform", "max_memory", {}, ["lots", -1, True]),
    ("uniform", "random_state", {}, ["seed", -1, 1.5]),
    ("uniform", "n_compnents", {}, [20]),
]

BAD_LANDMARKS = {
    "none of them": [],
    "a mask of none": np.zeros(60, dtype=bool),
    "a mask of another length": np.ones(9, dtype=bool),
    "rows out of range": [60],
    "rows as fractions": [0.5, 2.0],
    "one number": 3,
    "a word": "kmeans",
    "an iterator": (i for i in range(3)),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "points of another width": X[:3, :2],
    "points of three axes": X[:3, :, None],
    "points with NaN": np.where(X[:3] > 0, np.nan, X[:3]),
    "complex points": X[:3] * 1j,
    "masked points": np.ma.masked_array(X[:3], X[:3] > 0),
}
GOOD_LANDMARKS = {
    "rows twice": [1, 1, 2],
    "rows from the end": [-1, -2],
    "a mask": np.arange(60) < 5,
    "small whole numbers": np.array([1, 2], dtype=np.uint8),
    "sparse points": csr_matrix(X[:3]),
    "more points than rows": np.vstack([X, X + 0.1]),
    "one point three times": np.ones((3, 4)),
    "points out of sight": 1e200 * X[:3],
    "points in single precision": X[:3].astype(np.float32),
}


def on_own(landmarks: Any, method: str = "nystrom", **how: Any) -> Any:
    return nb.approximate(X, method, gamma=0.3, landmarks=landmarks, random_state=0, **how)


ERROR = standard().fit(X).approximation_.relative_error()
SINGLE: dict[str, Any] = {
    "own landmarks for a method that finds them": (
        lambda: on_own([1, 2], "kmeans"), "'kmeans' chooses its own landmarks"),
    "own landmarks and their number": (lambda: on_own([1, 2], n_components=7), "already"),
    "a right-hand side of integers": (
        lambda: FITTED.solve(np.arange(60), 0.1),
        close_to(np.linalg.solve(DENSE + 0.1 * np.eye(60), np.arange(60.0)), 1e-7)),
    "a certificate of 100 values": (
        lambda: FITTED.certificate(n_entries=100),
        r"too few for 20 landmarks: give at least \d+"),
    "a certificate of 0.5 values": (
        lambda: FITTED.certificate(n_entries=0.5), "n_entries must be a positive whole number"),
    "a tolerance and a number of columns": (
        lambda: approximate(method="URB-mean", tol=0.1, n_columns=3, n_components=None),
        "but n_columns sets it"),
    "the spectral error of an exact approximation": (
        lambda: approximate(np.ones((9, 2)), "EUB-mean", gamma=1.0).relative_error(norm="spectral"),
        lambda error: error < 1e-7),
    "n_jobs out of an array": (
        lambda: approximate(n_jobs=np.int64(1), gamma=0.3).relative_error(),
        close_to(approximate(n_jobs=1, gamma=0.3).relative_error())),
    "more validation columns than rows": (
        lambda: approximate(method="URB-mean", n_fit=1000, n_components=1), "Lower n_fit or n_tun"),
    "a series": (
        lambda: standard().fit(pd.Series(Y, name="y")), r"numpy.reshape\(X, \(-1, 1\)\) makes one"),
    "a series as the sentence says": (
        lambda: standard().fit(np.reshape(pd.Series(Y), (-1, 1))).transform(Y[:, None]),
        close_to(standard().fit(Y[:, None]).transform(Y[:, None]))),
    "three axes": (
        lambda: standard().fit(X[:, :, None]), r"numpy.reshape\(X, \(len\(X\), -1\)\) makes one"),
    "an unknown norm": lambda: FITTED.relative_error(norm="nuclear"),
    "eigh(2.5)": lambda: FITTED.eigh(2.5),
    "more eigenpairs than there are": (
        lambda: FITTED.eigh(1000)[0], lambda values: len(values) <= 20),
    "a prefix of a single learner": (lambda: FITTED.prefix(3), "Only ensemble and boos"),
    "a product with another length": lambda: FITTED @ np.ones(7),
    "more landmarks than rows": (
        lambda: approximate(n_components=100, kernel=nb.Gaussian(gamma=0.3)).to_dense(),
        close_to(gaussian(X, 0.3), 1e-6)),
    "a transformer with more features than rows": (
        lambda: standard(n_components=100).fit_transform(X),
        lambda features: features.shape[0] == 60 and features.shape[1] <= 60),
    "n_learners = None": (
        lambda: nb.BoostedNystroem("URB-mean", n_learners=None).fit_transform(X), finite),
    "n_learners = None in an ensemble": (
        lambda: nb.EnsembleNystroem(n_learners=None).fit_transform(X), finite),
    "a kernel where a variant belongs": (lambda: nb.BoostedNystroem("rbf").fit(X), "kernel="),
    "an unknown weight rule": lambda: nb.EnsembleNystroem("mean").fit(X),
    "a deep copy of a fitted transformer": (
        lambda: copy.deepcopy(standard().fit(X)).approximation_.relative_error(), close_to(ERROR)),
    "a shallow copy of a fitted transformer": (
        lambda: copy.copy(standard().fit(X)).approximation_.relative_error(), close_to(ERROR)),
    "the errors of a pickled transformer": (
        lambda: pickle.loads(pickle.dumps(standard().fit(X))).approximation_.relative_error(),
        "training rows"),
    "out= beside set_output": (
        lambda: standard().set_output(transform="pandas").fit(X).transform(X, np.empty((60, 10))),
        lambda result: type(result) is np.ndarray),
    "too little memory": (lambda: approximate(max_memory=100).features(), "Raise"),
    "a model from nowhere": lambda: nb.load("/nowhere/at/all"),
    "a model into nowhere": lambda: nb.save(standard(), "/nowhere/at/all"),
    "a model file that is a table": (lambda: nb.load(__file__), "not a model file"),
    "something else as a model": (lambda: nb.save(object(), "model"), "an estimator of NysBoost"),
    "a path of ONNX that is none": (lambda: nb.to_onnx(standard().fit(X), None), "None"),
    "features into a masked array": (
        lambda: standard().fit(X).transform(X, out=np.ma.empty((60, 10))), "out is a MaskedArray"),
    "verbose as text": (lambda: standard(verbose="a").fit(X), "verbose='a'"),
}  # fmt: skip
BAD_RIGHT_HAND_SIDES = {
    "a number": 1.0,
    "too short": Y[:9],
    "NaN": np.full(60, np.nan),
    "text": ["a"] * 60,
    "complex": Y * 1j,
    "three axes": np.ones((60, 2, 2)),
}
CASES = [
    *(
        case
        for method in ("joint", "nystrom")
        for landmarks, right in (
            (BAD_LANDMARKS, None),
            (GOOD_LANDMARKS, lambda _: has_error(gaussian(X, 0.3))),
        )
        for case in cases(
            f"own landmarks for {method}: {{}}", partial(on_own, method=method), landmarks, right
        )
    ),
    *cases(
        "{}",
        lambda how: approximate(**how),
        {
            f"{method} with {name}={value!r}": {"method": method, name: value, **more}
            for method, name, more, values in SIZES
            for value in values
        },
    ),
    *cases("method={}", lambda m: approximate(method=m), by_name("nystroem", None, ["joint"])),
    *cases(
        "a system with alpha = {}",
        lambda alpha: FITTED.solve(Y, alpha),
        by_name(10.0, 1e-3, 1e-7, 1e-9, 1e-11),
        solved_as_well_as_dense,
    ),
    *cases(
        "alpha = {}",
        lambda alpha: FITTED.solve(Y, alpha),
        by_name("0.1", 0, -1.0, np.nan, None),
    ),
    *cases("a right-hand side: {}", lambda b: FITTED.solve(b, 0.1), BAD_RIGHT_HAND_SIDES),
    *cases(
        "a certificate of confidence {}",
        FITTED.certificate,
        by_name(0, 1, 95, "0.9", True, None, np.nan),
        says="confidence lies between 0 and 1",
    ),
    *cases(
        "a tolerance of {}",
        lambda tol: approximate(tol=tol, n_components=None),
        by_name(0, 1, -0.1, "0.1", True, np.nan),
        says="tol lies between 0 and 1",
    ),
    *listed(SINGLE),
]
