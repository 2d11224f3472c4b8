"""Learners, components, clusters and tests of two samples, on what is hard or no data at all."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case, X, Y, close_to
from hostile.data import NO_TABLES

LABELS = (Y > 0).astype(int)
SMALL: dict[str, Any] = {"n_landmarks": 20, "random_state": 0}


def regressor(**how: Any) -> Any:
    options = {"n_components": 5, "landmarks": "uniform", "random_state": 0}
    return nb.NystroemRegressor(**(options | how))


def classifier(**how: Any) -> Any:
    options = {"n_components": 5, "landmarks": "uniform", "random_state": 0}
    return nb.NystroemClassifier(**(options | how))


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


def finite(result: Any) -> bool:
    return bool(np.isfinite(np.asarray(result, dtype=np.float64)).all())


WITH_GAPS = ("NaN", "None among numbers", "NaN in a sparse table", "NaN in a sparse array")
"""Learners fill gaps in."""

USES: dict[str, Callable[[Any], Any]] = {
    "regression on": lambda t: regressor().fit(t, Y),
    "a prediction for": lambda t: fitted("regressor").predict(t),
    "clusters for": lambda t: fitted("clusters").predict(t),
    "a process for": lambda t: fitted("process").predict_proba(t),
    "pre-images of": lambda t: fitted("components").inverse_transform(t),
    "two samples, one being": lambda t: nb.mmd_test(X, t, random_state=0),
}
NO_DATA = [
    Case(f"{use} {name}", lambda call=call, t=table: call(t))
    for use, call in USES.items()
    for name, table in NO_TABLES.items()
    if name not in ("an iterator", *WITH_GAPS)
]

BAD_TARGETS = {
    "None": None,
    "one number": 3.0,
    "too few": Y[:-1],
    "too many": np.append(Y, 1.0),
    "NaN": np.where(np.arange(60) == 5, np.nan, Y),
    "infinity": np.where(np.arange(60) == 5, np.inf, Y),
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
    "a word": "y",
}
BAD_LABELS = {
    "None": None,
    "None inside": [None, *LABELS[1:]],
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


TARGETS = [
    *(
        Case(f"regression of targets: {name}", lambda y=y: regressor().fit(X, y))
        for name, y in BAD_TARGETS.items()
    ),
    *(
        Case(f"{kind.__name__} with labels: {name}", lambda k=kind, y=y: k().fit(X, y))
        for kind in (classifier, nb.GaussianProcessClassifier)
        for name, y in BAD_LABELS.items()
    ),
    *(
        Case(
            f"regression of targets that are {name}",
            lambda y=y: regressor().fit(X, y).predict(X[:9]),
            scales_with(unit),
        )
        for name, (y, unit) in GOOD_TARGETS.items()
    ),
    *(
        Case(
            f"{kind.__name__} with labels: {name}",
            lambda k=kind, y=y: k().fit(X, y).classes_,
            lambda found, kept=kept: found.dtype.kind == kept,
        )
        for kind in (classifier, nb.GaussianProcessClassifier)
        for name, y, kept in (
            ("nullable whole numbers", pd.Series(LABELS, dtype="Int64"), "i"),
            ("nullable truth values", pd.Series(LABELS, dtype="boolean"), "b"),
            ("Decimals", [Decimal(int(i)) for i in LABELS], "f"),
        )
    ),
    Case(
        "labels of truth",
        lambda: classifier().fit(X, Y > 0).predict(X),
        lambda found: found.dtype == bool,
    ),
    Case(
        "a class of one row",
        lambda: classifier().fit(X, np.arange(60) == 7).predict_proba(X),
        lambda found: finite(found) and bool(np.allclose(found.sum(axis=1), 1)),
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
}
WEIGHTS = [
    Case(f"sample_weight: {name}", lambda w=w: regressor().fit(X, Y, sample_weight=w))
    for name, w in BAD_WEIGHTS.items()
] + [
    Case(
        "sample_weight: one number",
        lambda: regressor().fit(X, Y, sample_weight=3.0).predict(X[:9]),
        lambda found: close_to(fitted("regressor").predict(X[:9]))(found),
    ),
    *(
        Case(
            f"sample_weight of 0, and {what} rows than targets",
            lambda r=rows: regressor().fit(r, Y[:55], sample_weight=np.append(np.ones(54), 0.0)),
            says=f"X has {len(rows)} rows, but y has 55",
        )
        for what, rows in (("more", X), ("fewer", X[:50]), ("more listed", X.tolist()))
    ),
    Case(
        "class_weight below 0",
        lambda: classifier(class_weight={0: -1, 1: 1}).fit(X, LABELS),
        says="class_weight has -1.0 for the class 0",
    ),
    Case(
        "class_weight of 0 for one of two classes",
        lambda: classifier(class_weight={0: 0, 1: 1}).fit(X, LABELS),
        says="of rows that count",
    ),
]

PARAMETERS: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (regressor, "n_components", [0, -1, 2.5, "20", True, None, "AUTO"]),
    (regressor, "kernel", ["rfb", 3, nb.Gaussian, ["rbf"]]),
    (regressor, "metric", ["foo", 3]),
    (regressor, "landmarks", ["foo", 3]),
    (regressor, "scale", ["foo", 3, True]),
    (regressor, "missing", ["foo"]),
    (regressor, "max_memory", ["lots", -1, None]),
    (regressor, "random_state", ["a", -1, 1.5]),
    (classifier, "loss", ["foo", 3]),
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

TESTS = [
    *(
        Case(f"mmd_test({name}={value!r})", lambda n=name, v=value: nb.mmd_test(X, X + 1, **{n: v}))
        for name, value in (
            *(("n_permutations", v) for v in (0, -1, 2.5, "a")),
            *(("kernel", "foo"), ("method", "foo"), ("n_components", 0), ("max_memory", "lots")),
        )
    ),
    Case("two samples of other widths", lambda: nb.mmd_test(X, X[:, :2]), says="features"),
    *(
        Case(
            f"two samples {name}",
            lambda a=a, b=b: nb.mmd_test(a, b, random_state=0),
            lambda found, limit=limit: bool(limit[0] <= found.pvalue <= limit[1]),
        )
        for name, a, b, limit in (
            ("of one row each", X[:1], X[1:2], (1.0, 1.0)),
            ("that are one point", np.ones((10, 2)), np.ones((9, 2)), (1.0, 1.0)),
            ("far apart", X, X + 5, (0.0, 0.01)),
            ("that are the same", X, X, (0.5, 1.0)),
            ("sparse and dense", csr_matrix(X), X + 5, (0.0, 0.01)),
            ("in memory and lazy", X, pl.DataFrame(X + 5).lazy(), (0.0, 0.01)),
            ("of integers and floats", np.round(X).astype(int), X + 5, (0.0, 0.01)),
        )
    ),
]

HARD = {
    "huge": X * 1e200,
    "tiny": X * 1e-200,
    "at the end of the range": np.where(X > 0, 1e308, -1e308),
    "constant": np.ones((60, 4)),
    "one far row": np.vstack([X[:-1], np.full((1, 4), 1e12)]),
    "doubled": np.repeat(X[:6], 10, axis=0),
    "of truth values": X > 0,
    "in half precision": X.astype(np.float16),
}
TABLES = [
    *(
        Case(
            f"{use} rows that are {name}",
            lambda call=call, t=table: call(t),
            finite,
            says="out of range|no rows|differ",
        )
        for name, table in HARD.items()
        for use, call in {
            "a prediction for": lambda t: fitted("regressor").predict(t),
            "regression on": lambda t: regressor().fit(t, Y).predict(t),
            "quantiles of": lambda t: regressor(scale="quantile").fit(t, Y).predict(t),
            "margins on": lambda t: classifier(loss="hinge").fit(t, LABELS).predict_proba(t),
            "an ANOVA on": lambda t: regressor(kernel="anova").fit(t, Y).predict(t),
            "as many landmarks as it takes for": lambda t: (
                regressor(n_components="auto").fit(t, Y).predict(t)
            ),
            "a warped prediction for": lambda t: fitted("warped").predict(t),
            "components of": lambda t: nb.KernelPCA(2, **SMALL).fit_transform(t),
            "clusters of": lambda t: nb.SpectralClustering(2, **SMALL).fit(t).labels_,
            "a process on": lambda t: (
                nb.GaussianProcessClassifier(**SMALL).fit(t, LABELS).predict_proba(t)
            ),
        }.items()
    ),
    *(
        Case(
            f"{kind}: rows far out in the second block",
            lambda k=kind: fitted(k).predict(iter([X[:30], np.full((1, 4), -3.4e38)])),
            says="counted from row 30",
        )
        for kind in ("regressor", "classifier")
    ),
    *(
        Case(
            f"{kind}: sparse blocks",
            lambda k=kind: fitted(k).predict(iter([csr_matrix(X[:30]), csr_matrix(X[30:])])),
            lambda found, k=kind: close_to(fitted(k).predict(X), 1e-6)(found),
        )
        for kind in ("regressor", "clusters", "process")
    ),
    *(
        Case(f"{kind}: rows of another width", lambda k=kind: fitted(k).predict(X[:, :3]))
        for kind in ("regressor", "clusters", "process")
    ),
    *(
        Case(f"{type(model).__name__} before fit", lambda m=model: m.predict(X), says="fit")
        for model in (regressor(), classifier(), nb.SpectralClustering(2))
    ),
]


def more(kind: str, rows: Any, targets: Any, **how: Any) -> Any:
    """Add rows to a copy of a fitted learner, and return what it then predicts."""
    return deepcopy(fitted(kind)).partial_fit(rows, targets, **how).predict(X[:9])


ADDED = [
    *(
        Case(f"more rows for a {kind}, {what}", lambda k=kind, a=a: more(k, *a), says=says)
        for kind, what, a, says in (
            ("regressor", "too few targets", (X, Y[:5]), "60 rows, but y has 5"),
            ("regressor", "two targets for one", (X, np.c_[Y, Y]), "2 columns"),
            ("regressor", "another width", (X[:, :3], Y), "3 features"),
            ("regressor", "none at all", (X[:0], Y[:0]), "0 sample"),
            ("regressor", "NaN among targets", (X, BAD_TARGETS["NaN"]), "NaN"),
            ("regressor", "NaN where none was", (np.where(X > 1, np.nan, X), Y), "NaN"),
            ("regressor", "targets of 1e300", (X, 1e300 * Y), "out of range"),
            ("regressor", "one row without its table", (X[0], Y[:1]), "shape"),
            ("classifier", "too few labels", (X, LABELS[:5]), "60 rows, but y has 5"),
            ("classifier", "new labels", (X, LABELS + 5), "label"),
            ("classifier", "labels of another kind", (X, ["a"] * 60), "label 'a'"),
            ("classifier", "NaN labels", (X, np.where(LABELS, np.nan, 0.0)), "NaN"),
        )
    ),
    *(
        Case(f"more rows for a {kind} that are {what}", lambda k=kind, a=a: more(k, *a), finite)
        for kind, what, a in (
            ("regressor", "one", (X[:1], Y[:1])),
            ("regressor", "sparse", (csr_matrix(X), Y)),
            ("regressor", "in single precision", (X.astype("f4"), Y)),
            ("regressor", "lists", (X.tolist(), Y.tolist())),
            ("regressor", "far from all others", (1e200 * X, Y)),
            ("warped", "far from all others", (1e200 * X, Y)),
            ("classifier", "labelled by truth values", (X, LABELS > 0)),
        )
    ),
    Case(
        "more rows for a regressor, one of them with NaN and weight 0",
        lambda: more(
            "regressor",
            np.vstack([X, np.full((1, 4), np.nan)]),
            np.append(Y, 1e9),
            sample_weight=np.append(np.ones(60), 0.0),
        ),
        lambda found: close_to(more("regressor", X, Y, sample_weight=np.ones(60)))(found),
    ),
    *(
        Case(
            f"a first part with the classes {classes}",
            lambda c=classes: classifier().partial_fit(X, LABELS, classes=c),
            says="classes has the label",
        )
        for classes in ([0, 1, 2], ["a"])
    ),
    Case(
        "more rows for margins",
        lambda: hasattr(classifier(loss="hinge").fit(X, LABELS), "partial_fit"),
        lambda there: not there,
    ),
]

CASES = [*NO_DATA, *TARGETS, *WEIGHTS, *SETTINGS, *TESTS, *TABLES, *ADDED]
