"""Learners, components, clusters and tests of two samples, on what is hard or no data at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case, X, Y, cases, close_to, finite, refused
from hostile.data import NO_TABLES

LABELS = (Y > 0).astype(int)
SMALL: dict[str, Any] = {"n_landmarks": 20, "random_state": 0}


OPTIONS: dict[str, Any] = {"n_components": 5, "landmarks": "uniform", "random_state": 0}


def regressor(**how: Any) -> Any:
    return nb.NystroemRegressor(**OPTIONS | how)


def classifier(**how: Any) -> Any:
    return nb.NystroemClassifier(**OPTIONS | how)


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
NO_ROWS = {name: t for name, t in NO_TABLES.items() if name not in ("an iterator", *WITH_GAPS)}
NO_DATA = [case for use, call in USES.items() for case in cases(f"{use} {{}}", call, NO_ROWS)]

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
}
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
                lambda given: (
                    lambda found: (
                        found.dtype.kind in given[1]
                        and np.mean(found == np.asarray(given[0])) > 0.6
                    )
                ),
            ),
        )
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
    *refused(
        "class_weight {}",
        lambda weights: classifier(class_weight=weights).fit(X, LABELS),
        {
            "below 0": ({0: -1, 1: 1}, "class_weight has -1.0 for the class 0"),
            "of 0 for one of two classes": ({0: 0, 1: 1}, "of rows that count"),
        },
    ),
    Case(
        "sample_weight: one number",
        lambda: regressor().fit(X, Y, sample_weight=3.0).predict(X[:9]),
        lambda found: close_to(fitted("regressor").predict(X[:9]))(found),
    ),
]

PARAMETERS: list[tuple[Callable[..., Any], str, list[Any]]] = [
    (regressor, "n_components", [0, -1, 2.5, "20", True, None, "AUTO"]),
    (regressor, "kernel", ["rfb", 3, nb.Gaussian, ["rbf"]]),
    (regressor, "metric", ["foo", 3]),
    (regressor, "landmarks", ["foo", 3]),
    (regressor, "local", [0, -3, 2.5, "all", None]),
    (regressor, "scale", ["foo", 3, True]),
    (regressor, "missing", ["foo"]),
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
SETTINGS = (
    [
        Case(
            f"{kind.__name__}({name}={value!r:.30})",
            lambda k=kind, n=name, v=value: k(**{n: v}).fit(X, LABELS),
        )
        for kind, name, values in PARAMETERS
        for value in values
    ]
    + refused(
        "learning with an array as {}",
        lambda name: regressor(**{name: X}).fit(X, Y),
        {name: (name, f"{name} is a name or None, but") for name in ("metric", "landmarks")},
    )
    + refused(
        "landmarks of {} to learn on",
        lambda name: regressor(landmarks=name).fit(X, Y),
        {
            "spectral-shift": ("spectral-shift", "has no features"),
            "random-fourier": ("random-fourier", "features of another kind"),
            "meka": ("meka", "features of another kind"),
        },
    )
)

TESTS = [
    *(
        Case(f"mmd_test({name}={value!r})", lambda n=name, v=value: nb.mmd_test(X, X + 1, **{n: v}))
        for name, value in (
            *(("n_permutations", v) for v in (0, -1, 2.5, "a")),
            *(("kernel", "foo"), ("method", "foo"), ("n_components", 0), ("max_memory", "lots")),
        )
    ),
    Case(
        "two samples of other widths",
        lambda: nb.mmd_test(X, X[:, :2]),
        says="X has 4 features and Y has 2",
    ),
    *cases(
        "two samples {}",
        lambda given: nb.mmd_test(*given[:2], random_state=0),
        {
            "of one row each": (X[:1], X[1:2], 1.0, 1.0),
            "that are one point": (np.ones((10, 2)), np.ones((9, 2)), 1.0, 1.0),
            "far apart": (X, X + 5, 0.0, 0.01),
            "that are the same": (X, X, 0.5, 1.0),
            "sparse and dense": (csr_matrix(X), X + 5, 0.0, 0.01),
            "in memory and lazy": (X, pl.DataFrame(X + 5).lazy(), 0.0, 0.01),
            "of integers and floats": (np.round(X).astype(int), X + 5, 0.0, 0.01),
        },
        lambda given: lambda found: bool(given[2] <= found.pvalue <= given[3]),
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
ON_HARD: dict[str, Callable[[Any], Any]] = {
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
    "a process on": lambda t: nb.GaussianProcessClassifier(**SMALL).fit(t, LABELS).predict_proba(t),
}
PREDICTORS = {kind: kind for kind in ("regressor", "clusters", "process")}
TABLES = [
    *(
        case
        for use, call in ON_HARD.items()
        for case in cases(
            f"{use} rows that are {{}}", call, HARD, lambda _: finite, "out of range|no rows|differ"
        )
    ),
    *cases(
        "{}: rows far out in the second block",
        lambda kind: fitted(kind).predict(iter([X[:30], np.full((1, 4), -3.4e38)])),
        {kind: kind for kind in ("regressor", "classifier")},
        says="counted from row 30",
    ),
    *cases(
        "{}: sparse blocks",
        lambda kind: fitted(kind).predict(iter([csr_matrix(X[:30]), csr_matrix(X[30:])])),
        PREDICTORS,
        lambda kind: lambda found: close_to(fitted(kind).predict(X), 1e-6)(found),
    ),
    *cases("{}: rows of another width", lambda k: fitted(k).predict(X[:, :3]), PREDICTORS),
    *(
        Case(f"{type(model).__name__} before fit", lambda m=model: m.predict(X), says="fit")
        for model in (regressor(), classifier(), nb.SpectralClustering(2))
    ),
]


def more(kind: str, rows: Any, targets: Any, **how: Any) -> Any:
    """Add rows to a copy of a fitted learner, and return what it then predicts."""
    return deepcopy(fitted(kind)).partial_fit(rows, targets, **how).predict(X[:9])


MORE: dict[str, tuple[Any, str]] = {
    "regressor, too few targets": ((X, Y[:5]), "60 rows, but y has 5"),
    "regressor, two targets for one": ((X, np.c_[Y, Y]), "2 columns"),
    "regressor, another width": ((X[:, :3], Y), "3 features"),
    "regressor, none at all": ((X[:0], Y[:0]), "0 sample"),
    "regressor, NaN among targets": ((X, BAD_TARGETS["NaN"]), "NaN"),
    "regressor, NaN where none was": ((np.where(X > 1, np.nan, X), Y), "NaN"),
    "regressor, targets of 1e300": ((X, 1e300 * Y), "out of range"),
    "regressor, one row without its table": ((X[0], Y[:1]), "shape"),
    "classifier, too few labels": ((X, LABELS[:5]), "60 rows, but y has 5"),
    "classifier, new labels": ((X, LABELS + 5), "which the first rows did not have"),
    "classifier, labels of another kind": ((X, ["a"] * 60), "label 'a'"),
    "classifier, NaN labels": ((X, np.where(LABELS, np.nan, 0.0)), "NaN"),
    "regressor that are one": ((X[:1], Y[:1]), ""),
    "regressor that are sparse": ((csr_matrix(X), Y), ""),
    "regressor that are in single precision": ((X.astype("f4"), Y), ""),
    "regressor that are lists": ((X.tolist(), Y.tolist()), ""),
    "regressor that are far from all others": ((1e200 * X, Y), ""),
    "warped that are far from all others": ((1e200 * X, Y), ""),
    "classifier that are labelled by truth values": ((X, LABELS > 0), ""),
}
SCATTERED = np.random.default_rng(5).normal(size=(400, 5)) * [1e-2, 1e2, 1e3, 10.0, 10.0]
ADDED = [
    *cases(
        "clusters with a kernel's own width, as {}",
        lambda how: nb.SpectralClustering(2, **SMALL, **how).fit(X).features_.approximation_.kernel,
        {
            "an object": {"kernel": nb.Gaussian(gamma=0.3)},
            "a parameter": {"kernel_params": {"gamma": 0.3}},
        },
        lambda _: lambda kernel: kernel == nb.Gaussian(gamma=0.3),
    ),
    Case(
        "no landmarks for components",
        lambda: nb.KernelPCA(2, n_landmarks=0).fit(X),
        says="n_landmarks=0",
    ),
    Case(
        "a process of variance 1e300",
        lambda: (
            nb.GaussianProcessClassifier(variance=1e300, **SMALL).fit(X, LABELS).predict_proba(X)
        ),
        finite,
    ),
    Case(
        "clusters of rows that are far from all landmarks",
        lambda: nb.SpectralClustering(3, **SMALL).fit(SCATTERED),
        lambda model: (model.predict(SCATTERED) == model.labels_).mean() > 0.99,
    ),
    *(
        Case(
            f"more rows for a {what}",
            lambda kind=kind, given=given: more(kind, *given),
            None if says else finite,
            says,
        )
        for what, (given, says) in MORE.items()
        for kind in [re.split(r",? ", what)[0]]
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
    *cases(
        "a first part with the classes {}",
        lambda classes: classifier().partial_fit(X, LABELS, classes=classes),
        {"[0, 1, 2]": [0, 1, 2], "['a']": ["a"]},
        says="classes has the label",
    ),
    Case(
        "more rows for margins",
        lambda: hasattr(classifier(loss="hinge").fit(X, LABELS), "partial_fit"),
        lambda there: not there,
    ),
]

CASES = [*NO_DATA, *TARGETS, *WEIGHTS, *SETTINGS, *TESTS, *TABLES, *ADDED]
