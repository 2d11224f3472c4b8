"""Learners, components, clusters and tests of two samples, on what is hard or no data at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case, X, Y, cases, close_to, finite, listed, refused
from hostile.data import NO_TABLES
from nysboost.kernels.metric import Quantiles

LABELS = (Y > 0).astype(int)
SMALL: dict[str, Any] = {"n_landmarks": 20, "random_state": 0}


OPTIONS: dict[str, Any] = {"n_components": 5, "landmarks": "uniform", "random_state": 0}


def regressor(**how: Any) -> Any:
    return nb.NystroemRegressor(**OPTIONS | how)


def classifier(**how: Any) -> Any:
    return nb.NystroemClassifier(**OPTIONS | how)


def given_kernel(**how: Any) -> Any:
    return regressor(metric=None, landmarks="target", **how)


def machine(**how: Any) -> Any:
    return classifier(loss="hinge", **how)


@cache
def fitted(kind: str) -> Any:
    makers: dict[str, Callable[[], Any]] = {
        "regressor": lambda: regressor().fit(X, Y),
        "warped": lambda: regressor(scale="quantile").fit(X, Y),
        "classifier": lambda: classifier().fit(X, LABELS),
        "components": lambda: nb.KernelPCA(2, fit_inverse_transform=True, **SMALL).fit(X),
        "clusters": lambda: nb.SpectralClustering(3, **SMALL).fit(X),
        "process": lambda: nb.GaussianProcessClassifier(**SMALL).fit(X, LABELS),
    }
    return makers[kind]()


WITH_GAPS = ("NaN", "None among numbers", "NaN in a sparse table")
"""Learners fill gaps in."""

USES: dict[str, Callable[[Any], Any]] = {
    "regression on": lambda t: regressor().fit(t, Y),
    "a prediction for": lambda t: fitted("regressor").predict(t),
    "clusters for": lambda t: fitted("clusters").predict(t),
    "a process for": lambda t: fitted("process").predict_proba(t),
    "pre-images of": lambda t: fitted("components").inverse_transform(t),
    "two samples, one being": lambda t: nb.mmd_test(X, t, random_state=0),
}
NO_ROWS = {name: t for name, t in NO_TABLES.items() if name not in ("an iterator", *WITH_GAPS)}
NO_DATA = [case for use, call in USES.items() for case in cases(f"{use} {{}}", call, NO_ROWS)]

BAD_TARGETS = {
    "None": None,
    "one number": 3.0,
    "too few": Y[:-1],
    "NaN": np.where(np.arange(60) == 5, np.nan, Y),
    "text": np.array(["a"] * 60),
    "complex": Y + 1j,
    "dates": np.arange(60).astype("M8[D]"),
    "objects": np.array([object()] * 60),
    "no columns": np.empty((60, 0)),
    "three axes": Y[:, None, None],
    "masked": np.ma.masked_array(Y, Y > 1),
    "None inside": [None, *Y[1:]],
    "10 to the 400": [10**400, *Y[1:]],
    "sparse": csr_matrix(Y[:, None]),
    "a dictionary": {"a": 1},
    "beyond the range": np.where(Y > 0, 1.7e308, -1.7e308),
}
RAGGED = [[0], [1, 0]] * 30
BAD_LABELS = {
    "in rows that differ": RAGGED,
    "None": None,
    "None inside": [None, *LABELS[1:]],
    **{
        f"text and {gap!r}": np.array([gap, *map(str, LABELS[1:])], dtype=object)
        for gap in (None, np.nan, pd.NA)
    },
    "a lazy frame": pl.LazyFrame({"y": LABELS}),
    "too few": LABELS[:-1],
    "one class": np.ones(60),
    "text and numbers": np.array(["a", 1] * 30, dtype=object),
    "NaN": np.array([np.nan, 1.0] * 30),
    "masked": np.ma.masked_array(LABELS, LABELS > 0),
    "two columns": np.eye(3)[np.arange(60) % 3],
    "complex": Y + 1j,
}
GOOD_TARGETS = {
    "huge": (1e300 * Y, 1e300),
    "tiny": (1e-300 * Y, 1e-300),
    "at the end of the range": (np.where(Y > 0, 1e308, -1e308), None),
    "whole": (np.arange(60), None),
    "one value": (np.ones(60), None),
}


def scales_with(unit: float | None) -> Callable[[Any], bool]:
    """Return a check that predictions are finite, and those of Y times a unit."""

    def right(found: Any) -> bool:
        expected = None if unit is None else fitted("regressor").predict(X[:9])
        same = expected is None or np.allclose(found / unit, expected, rtol=1e-6)
        return finite(found) and bool(same)

    return right


CLASSIFIERS = (classifier, nb.GaussianProcessClassifier)
GOOD_LABELS = {
    "nullable whole numbers": (pd.Series(LABELS, dtype="Int64"), "i"),
    "nullable truth values": (pd.Series(LABELS, dtype="boolean"), "b"),
    "Decimals": ([Decimal(int(i)) for i in LABELS], "f"),
    "truth": (Y > 0, "b"),
    "NumPy's texts": (np.array(["no", "yes"], dtype=np.dtypes.StringDType())[LABELS], "OU"),
    "whole numbers as objects": (np.array(LABELS, dtype=object), "i"),
    "truth as objects": (np.array(LABELS > 0, dtype=object), "b"),
    "texts of polars": (pl.Series(["no" if v else "yes" for v in LABELS]), "OU"),
    "numbers of Arrow": (pa.array(LABELS), "i"),
    "dates": (np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]")[LABELS], "M"),
}


def are_those_of_numbers(kind: Any, labels: Any, dtypes: str) -> Callable[[Any], bool]:
    """Return a check that predicted labels are of a dtype, and where numbers would be predicted."""

    def right(found: Any) -> bool:
        rows = [int(np.argmax(label == LABELS)) for label in kind().fit(X, LABELS).predict(X)]
        return found.dtype.kind in dtypes and bool(np.mean(found == np.asarray(labels)[rows]) > 0.9)

    return right


TARGETS = [
    *cases("regression of targets: {}", lambda y: regressor().fit(X, y), BAD_TARGETS),
    *cases(
        "regression of targets that are {}",
        lambda given: regressor().fit(X, given[0]).predict(X[:9]),
        GOOD_TARGETS,
        lambda given: scales_with(given[1]),
    ),
    *(
        case
        for kind in CLASSIFIERS
        for case in (
            *cases(
                f"{kind.__name__} with labels: {{}}", lambda y, k=kind: k().fit(X, y), BAD_LABELS
            ),
            *cases(
                f"{kind.__name__} with labels: {{}}",
                lambda given, k=kind: k().fit(X, given[0]).predict(X),
                GOOD_LABELS,
                lambda given, k=kind: are_those_of_numbers(k, *given),
            ),
        )
    ),
]

BAD_WEIGHTS = {
    "negative": -np.ones(60),
    "all zero": np.zeros(60),
    "NaN": np.full(60, np.nan),
    "too few": np.ones(59),
    "text": ["a"] * 60,
    "a table": np.ones((60, 2)),
    "huge": np.full(60, 1e300),
    "tiny": np.full(60, 1e-300),
    "one huge": np.where(np.arange(60) == 3, 1e300, 1.0),
    "all but one tiny": np.where(np.arange(60) == 3, 60.0, 1e-298),
}
HALVES = [(X[:30], Y[:30]), (X[30:], Y[30:])]
TESTED = [(np.arange(30, 60), np.arange(30)), (np.arange(30), np.arange(30, 50))]
ANOTHER = "are not kernel values with landmarks"
INFINITE = X.copy()
INFINITE[1, 1] = np.nan
INFINITE[4, 2] = np.inf
SINGLE: dict[str, Any] = {
    "class_weight below 0": (
        lambda: classifier(class_weight={0: -1, 1: 1}).fit(X, LABELS),
        "class_weight has -1 for the class 0"),
    "class_weight of a Gaussian process below 0": (
        lambda: nb.GaussianProcessClassifier(class_weight={0: -1, 1: 1}, **SMALL).fit(X, LABELS),
        "class_weight has -1 for the class 0"),
    "class_weight of another name": (
        lambda: classifier(class_weight="even").fit(X, LABELS), "but 'even' was given"),
    "class_weight of 0 for one of two classes": (
        lambda: classifier(class_weight={0: 0, 1: 1}).fit(X, LABELS), "rows with positive weight"),
    "class_weight for a label that is none": (
        lambda: classifier(class_weight={0: 1, 7: 2}).fit(X, LABELS),
        "a weight for 7, which is no class of y, and none for the class 1"),
    "expected classes without one of y": (
        lambda: classifier().partial_fit(X, LABELS, classes=[0]), "y has the label 1, which"),
    "other expected classes later": (
        lambda: classifier().fit(X, LABELS).partial_fit(X, LABELS, classes=[2]),
        "classes has the label 2"),
    "splits of some rows": (
        lambda: regressor(cv=TESTED).fit(X, Y), "test sets of cv, have 50 rows"),
    "landmarks of no name": (lambda: regressor(landmarks=None).fit(X, Y), "landmarks is a name, b"),
    "a metric of no name": (lambda: regressor(metric=5).fit(X, Y), "metric is a name or None, b"),
    "one weight for an iterator": (
        lambda: regressor().fit(iter(HALVES), sample_weight=3.0).predict(X[:9]),
        lambda found: np.allclose(found, regressor().fit(X, Y).predict(X[:9]))),
    "an iterator of rows": (
        lambda: regressor().fit(zip(X, Y, strict=True)), "has 4 rows in X and 1 values in y"),
    "targets of blocks in two shapes": (
        lambda: regressor().fit(iter([HALVES[0], (X[30:], Y[30:, None])])),
        "y of shapes"),
    "expected classes with a gap": (
        lambda: classifier().partial_fit(X, LABELS, classes=[0, None]), "has the label None"),
    "targets with NaN": (
        lambda: regressor().fit(X, BAD_TARGETS["NaN"]), "y contains NaN, first at row 5"),
    "targets with an infinity in the second column": (
        lambda: regressor().fit(X, np.c_[Y, np.where(np.arange(60) == 7, -np.inf, Y)]),
        "y contains infinity, first at row 7, column 1"),
    "labels with NaN": (
        lambda: classifier().fit(X, BAD_LABELS["NaN"]), "y contains NaN, first at row 0"),
    "labels that are intervals": (
        lambda: classifier().fit(X, pd.cut(Y, 2)), "labels of type Interval, such as Interval"),
    "an infinity among gaps": (
        lambda: fitted("regressor").predict(INFINITE), "infinity, first at row 4, column 2"),
    "an infinity among gaps of a sparse table to learn from": (
        lambda: regressor().fit(csr_matrix(INFINITE), Y), "infinity, first at row 4, column 2"),
    "local=True out of an array of settings": (
        lambda: regressor(local=np.array([True])[0]).fit(X, Y).n_local_rows_,
        lambda rows: rows == regressor(local=True).fit(X, Y).n_local_rows_),
    "more sparse columns than memory holds as an array": (
        lambda: regressor(max_memory="10MB").fit(csr_matrix((60, 30_000)), Y),
        "take about 57.6 MB for 30000 columns, but max_memory is 10.0 MB"),
    "sample_weight: one number": (
        lambda: regressor().fit(X, Y, sample_weight=3.0).predict(X[:9]),
        lambda found: close_to(fitted("regressor").predict(X[:9]))(found)),
    "a class of one row": (
        lambda: classifier().fit(X, np.arange(60) == 7).predict_proba(X),
        lambda found: finite(found) and bool(np.allclose(found.sum(axis=1), 1))),
    **{
        f"learning with an array as {name}": (
            lambda n=name: regressor(**{n: X}).fit(X, Y), f"{name} is a name.*, but")
        for name in ("metric", "landmarks")
    },
    **{
        f"landmarks of {name} to learn on": (
            lambda n=name: regressor(landmarks=n).fit(X, Y), says)
        for name, says in (("spectral-shift", "has no features"), ("meka", ANOTHER),
                           ("random-fourier", ANOTHER))
    },
}  # fmt: skip
WRONG_WEIGHTS = {
    "too few": (np.ones(59), "X has 60 rows, but sample_weight has 59"),
    "one below 0": (np.where(np.arange(60) == 3, -1, 1), "sample_weight has -1 in row 3"),
    "one NaN": (np.where(np.arange(60) == 3, np.nan, 1), "sample_weight contains NaN, .* row 3"),
    "none that counts": (np.zeros(60), "zero for every row"),
}
WEIGHTS = [
    *refused("weights, {}", lambda w: regressor().fit(X, Y, sample_weight=w), WRONG_WEIGHTS),
    *cases("sample_weight: {}", lambda w: regressor().fit(X, Y, sample_weight=w), BAD_WEIGHTS),
    *refused(
        "sample_weight of 0, and {} rows than targets",
        lambda rows: regressor().fit(rows, Y[:55], sample_weight=np.append(np.ones(54), 0.0)),
        {
            "more": (X, "X has 60 rows, but y has 55"),
            "fewer": (X[:50], "X has 50 rows, but y has 55"),
            "more listed": (X.tolist(), "X has 60 rows, but y has 55"),
        },
    ),
    *listed(SINGLE),
]

PARAMETERS: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (regressor, "n_components", [0, -1, 2.5, "20", True, None, "AUTO"]),
    (regressor, "kernel", ["rfb", 3, nb.Gaussian, ["rbf"]]),
    (regressor, "metric", ["foo", 3]),
    (regressor, "landmarks", ["foo", 3]),
    (regressor, "local", [0, -3, 2.5, "all", None]),
    (regressor, "scale", ["foo", 3, True]),
    (regressor, "missing", ["foo"]),
    (given_kernel, "kernel", ["linear", nb.Gaussian(metric=nb.Metric(1.0, Quantiles.of(X)))]),
    (regressor, "max_memory", ["lots", -1, None]),
    (regressor, "random_state", ["a", -1, 1.5]),
    (classifier, "loss", ["foo", 3, "absolute"]),
    (machine, "C", [0.0, -1.0, np.inf, np.nan, True, "big", [1.0]]),
    (nb.KernelPCA, "n_components", [0, -1, 2.5, "2", True]),
    (nb.KernelPCA, "gamma", ["foo", -1, 0, np.nan, np.inf]),
    (nb.KernelPCA, "method", ["foo", 3, None]),
    (nb.KernelPCA, "n_landmarks", [0, -1, 2.5, "3"]),
    (nb.KernelPCA, "kernel_params", [3, {"foo": 1}]),
    (nb.SpectralClustering, "n_clusters", [0, 61, "a", 2.5]),
    (nb.SpectralClustering, "n_components", [0, -1, 2.5, True]),
    (nb.SpectralClustering, "n_init", [0, -1, "auto"]),
    (nb.SpectralClustering, "assign_labels", ["foo", None]),
    (nb.GaussianProcessClassifier, "variance", [0, -1, np.nan, np.inf, "a"]),
    (nb.GaussianProcessClassifier, "max_iter", [0, -1, "a"]),
]
SETTINGS = [
    Case(
        f"{kind.__name__}({name}={value!r:.30})",
        lambda k=kind, n=name, v=value: k(**{n: v}).fit(X, LABELS),
    )
    for kind, name, values in PARAMETERS
    for value in values
]

CASES = [*NO_DATA, *TARGETS, *WEIGHTS, *SETTINGS]
