"""Predictions, components, clusters and tests of two samples, of rows that are hard."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case, X, Y, cases, close_to, finite, listed
from hostile.learning import BAD_TARGETS, LABELS, SMALL, classifier, fitted, regressor

BOTH = pd.DataFrame({"a": Y, "b": Y})
SINGLE_TESTS: dict[str, Any] = {
    "two samples, an option that there is not": (
        lambda: nb.mmd_test(X, X, gama=1.0), "Did you mean 'gamma'"),
    "two samples, a column of the first not in the second": (
        lambda: nb.mmd_test(BOTH, BOTH[["a"]]), "Y has no column 'b'"),
    "two samples, NaN in the second": (
        lambda: nb.mmd_test(X, np.where(X[3, 1] == X, np.nan, X)),
        "Y contains NaN, first at row 3, column 1"),
    "two samples of other widths": (
        lambda: nb.mmd_test(X, X[:, :2]), "X has 4 features, but Y has 2"),
    "two samples and gamma": (
        lambda: nb.mmd_test(X, X + 5, gamma=0.3, random_state=0).pvalue, lambda p: p < 0.01),
    "gamma beside another in kernel_params": (
        lambda: nb.approximate(X, gamma=1.0, kernel_params={"gamma": 2.0}).kernel,
        lambda kernel: kernel == nb.Gaussian(gamma=1.0)),
}  # fmt: skip
TESTS = [
    *listed(SINGLE_TESTS),
    *(
        Case(f"mmd_test({name}={value!r})", lambda n=name, v=value: nb.mmd_test(X, X + 1, **{n: v}))
        for name, value in (
            *(("n_permutations", v) for v in (0, -1, 2.5, "a")),
            *(("kernel", "foo"), ("method", "foo"), ("n_components", 0), ("max_memory", "lots")),
        )
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
}
ON_HARD: dict[str, Callable[[Any], Any]] = {
    "a prediction for": lambda t: fitted("regressor").predict(t),
    "regression on": lambda t: regressor().fit(t, Y).predict(t),
    "quantiles of": lambda t: regressor(scale="quantile").fit(t, Y).predict(t),
    "margins on": lambda t: classifier(loss="hinge").fit(t, LABELS).predict_proba(t),
    "a metric that is given on": lambda t: (
        regressor(kernel=nb.Gaussian(metric=nb.Metric(np.full(4, 0.5))), metric=None, scale=None)
        .fit(t, Y)
        .predict(t)
    ),
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
        says="in row 30",
    ),
    *cases(
        "{}: infinity in the second block",
        lambda kind: fitted(kind).predict(iter([X[:30], np.full((2, 4), np.inf)])),
        {kind: kind for kind in ("regressor", "classifier")},
        says="X contains infinity, first at row 30, column 0",
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


LEVELS = [
    *cases(
        "quantiles of levels: {}",
        lambda levels: fitted("regressor").predict_quantiles(X[:3], levels),
        {"a word": ["a"], "a set": {0.1, 0.9}, "complex": [0.5j], "none": []},
        says="levels should be between 0 and 1",
    ),
    Case(
        "an interval of complex coverage",
        lambda: fitted("regressor").predict_interval(X[:3], 0.5j),
        says="coverage should be between 0 and 1",
    ),
]


MORE: dict[str, tuple[Any, str]] = {
    "regressor, too few targets": ((X, Y[:5]), "60 rows, but y has 5"),
    "regressor, two targets for one": ((X, np.c_[Y, Y]), "2 columns"),
    "regressor, another width": ((X[:, :3], Y), "3 features"),
    "regressor, none at all": ((X[:0], Y[:0]), "0 sample"),
    "regressor, NaN among targets": ((X, BAD_TARGETS["NaN"]), "NaN"),
    "regressor, infinity": ((np.where(X > 1, np.inf, X), Y), "infinity"),
    "regressor, targets of 1e300": ((X, 1e300 * Y), "too far from the values"),
    "regressor, one row without its table": ((X[0], Y[:1]), "shape"),
    "classifier, too few labels": ((X, LABELS[:5]), "60 rows, but y has 5"),
    "classifier, new labels": ((X, LABELS + 5), "which the rows of the fit do not have"),
    "classifier, labels of another kind": ((X, ["a"] * 60), "label 'a'"),
    "classifier, NaN labels": ((X, np.where(LABELS, np.nan, 0.0)), "NaN"),
    "regressor that are one": ((X[:1], Y[:1]), ""),
    "regressor that are sparse": ((csr_matrix(X), Y), ""),
    "regressor that are in single precision": ((X.astype("f4"), Y), ""),
    "regressor that are lists": ((X.tolist(), Y.tolist()), ""),
    "regressor that are far from all others": ((1e200 * X, Y), "out of range"),
    "warped that are far from all others": ((1e200 * X, Y), "out of range"),
    "classifier that are labelled by truth values": ((X, LABELS > 0), ""),
}
SCATTERED = np.random.default_rng(5).normal(size=(400, 5)) * [1e-2, 1e2, 1e3, 10.0, 10.0]
SINGLE: dict[str, Any] = {
    "no landmarks for components": (
        lambda: nb.KernelPCA(2, n_landmarks=0).fit(X), "n_landmarks=0"),
    "a process of variance 1e300": (
        lambda: nb.GaussianProcessClassifier(variance=1e300, **SMALL).fit(X, LABELS)
        .predict_proba(X), finite),
    "clusters of rows that are far from all landmarks": (
        lambda: nb.SpectralClustering(3, **SMALL).fit(SCATTERED),
        lambda model: (model.predict(SCATTERED) == model.labels_).mean() > 0.99),
    "more rows for a regressor, one of them with NaN and weight 0": (
        lambda: more("regressor", np.vstack([X, np.full((1, 4), np.nan)]), np.append(Y, 1e9),
                     sample_weight=np.append(np.ones(60), 0.0)),
        lambda found: close_to(more("regressor", X, Y, sample_weight=np.ones(60)))(found)),
}  # fmt: skip
ADDED = [
    *listed(SINGLE),
    *cases(
        "clusters with a kernel's own width, as {}",
        lambda how: nb.SpectralClustering(2, **SMALL, **how).fit(X).features_.approximation_.kernel,
        {
            "an object": {"kernel": nb.Gaussian(gamma=0.3)},
            "a parameter": {"kernel_params": {"gamma": 0.3}},
        },
        lambda _: lambda kernel: kernel == nb.Gaussian(gamma=0.3),
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
    *cases(
        "a first part with the classes {}",
        lambda classes: classifier().partial_fit(X, LABELS, classes=classes),
        {"[0, 1, 2]": [0, 1, 2], "['a']": ["a"]},
        says="classes has the label",
    ),
]

CASES = [*TESTS, *TABLES, *LEVELS, *ADDED]
