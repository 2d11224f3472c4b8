"""Dask's arrays and data frames, on which nothing is known before it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd

from hostile import (
    RNG,
    Case,
    X,
    approximate,
    cases,
    finite,
    gaussian,
    has_error,
    listed,
    refused,
    standard,
)
from hostile.learning import classifier, regressor

ROWS = RNG.normal(size=(90, 4))
TARGETS = ROWS[:, 0]
LABELS = (TARGETS > 0).astype(int)
FRAME = pd.DataFrame(ROWS, columns=list("abcd"))


def lazy(table: Any, size: int = 30) -> Any:
    """Rows in chunks of this size."""
    return da.from_array(table, chunks=(size, *table.shape[1:]))


def frame(**more: Any) -> Any:
    return dd.from_pandas(FRAME.assign(**more), npartitions=3)


def finite_fit(model: Any) -> bool:
    return finite(model.predict(ROWS))


def fewer(block: np.ndarray) -> np.ndarray:
    return block[:5]


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: lazy(np.where(X > 1.5, np.nan, X)), "NaN, first at row"),
    "one axis": (lambda: lazy(X[:, 0]), "shape"),
    "three axes": (lambda: lazy(X[:, :, None]), "shape"),
    "complex numbers": (lambda: lazy(X * 1j), "Complex"),
    "text": (lambda: lazy(np.full((60, 4), "a")), "numbers"),
    "objects": (lambda: lazy(X.astype(object)), "numbers"),
    "no rows": (lambda: lazy(X[:0]), "nothing"),
    "no columns": (lambda: da.empty((60, 0), chunks=(30, 0)), "nothing"),
    "chunks of other sizes than it says": (
        lambda: da.map_blocks(fewer, lazy(X), dtype=float), "fewer than the array says"),
}  # fmt: skip
GOOD: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "whole numbers": (lambda: lazy((3 * X).astype(int)), (3 * X).astype(int)),
    "truth values": (lambda: lazy(X > 0), X > 0),
    "chunks of columns": (lambda: da.from_array(X, chunks=(30, 2)), X),
    "a chunk of no rows": (lambda: da.concatenate([lazy(X[:0]), lazy(X)]), X),
    "a length that nobody knows": (lambda: lazy(X)[lazy(X)[:, 0] > 0], X[X[:, 0] > 0]),
}
BAD_TARGETS: dict[str, tuple[Callable[[], Any], str]] = {
    "too few": (lambda: lazy(TARGETS[:-1]), "90 rows, but y has 89"),
    "NaN": (lambda: lazy(np.where(TARGETS > 1, np.nan, TARGETS)), "NaN"),
    "text": (lambda: lazy(np.full(90, "a")), "to numbers"),
    "three axes": (lambda: lazy(TARGETS[:, None, None]), "dim|shape"),
}
BAD_LABELS: dict[str, tuple[Callable[[], Any], str]] = {
    "one class": (lambda: lazy(np.ones(90)), "have the label 1.0."),
    "NaN": (lambda: lazy(np.where(LABELS, np.nan, 1.0)), "NaN"),
    "numbers that are no labels": (lambda: lazy(TARGETS), "continuous"),
    "two columns": (lambda: lazy(np.c_[LABELS, LABELS]), "shape"),
}
PREDICTIONS: dict[str, Callable[[], Any]] = {
    "targets in memory": lambda: regressor().fit(lazy(ROWS), TARGETS).predict(ROWS),
    "rows in memory": lambda: regressor().fit(ROWS, lazy(TARGETS)).predict(ROWS),
    "chunks that differ": lambda: regressor().fit(lazy(ROWS), lazy(TARGETS, 20)).predict(ROWS),
    "quantiles": lambda: regressor(scale="quantile").fit(lazy(ROWS), lazy(TARGETS)).predict(ROWS),
    "more rows": lambda: (
        regressor().fit(ROWS, TARGETS).partial_fit(lazy(ROWS), lazy(TARGETS)).predict(ROWS)
    ),
    "more rows of a frame": lambda: (
        regressor().fit(FRAME, TARGETS).partial_fit(frame(), lazy(TARGETS)).predict(FRAME)
    ),
    "rows to predict": lambda: regressor().fit(ROWS, TARGETS).predict(lazy(ROWS)).compute(),
}

SINGLE: dict[str, Any] = {
    "Dask: more rows whose targets have NaN": (
        lambda: regressor().fit(ROWS, TARGETS).partial_fit(lazy(ROWS), BAD_TARGETS["NaN"][0]()),
        "NaN"),
    "Dask: labels and margins": (
        lambda: classifier(loss="hinge").fit(lazy(ROWS), lazy(LABELS)).score(ROWS, LABELS),
        lambda score: score > 0.5),
    "Dask: a bag to learn from": (
        lambda: regressor().fit(db.from_sequence([1, 2]), TARGETS), "only arrays and data frames"),
    "Dask: a delayed table to learn from": (
        lambda: regressor().fit(dask.delayed(ROWS), TARGETS), "dask.array.from_delayed"),
    "Dask: delayed weights": (
        lambda: regressor().fit(ROWS, TARGETS, dask.delayed(np.ones)(90)), finite_fit),
    "Dask: an array to write features to": (
        lambda: standard().fit(X).transform(lazy(X), out=np.empty((60, 10))),
        r"transform\(X\)\.to_zarr\(path\)"),
}  # fmt: skip
CASES = [
    *refused("Dask: {}", lambda make: approximate(make()), BAD),
    *cases(
        "Dask: {}",
        lambda given: approximate(given[0](), kernel="rbf", gamma=0.3),
        GOOD,
        lambda given: has_error(gaussian(given[1], 0.3)),
    ),
    *refused("Dask: targets, {}", lambda make: regressor().fit(lazy(ROWS), make()), BAD_TARGETS),
    *refused("Dask: labels, {}", lambda make: classifier().fit(lazy(ROWS), make()), BAD_LABELS),
    *(Case(f"Dask: {name}", call, finite) for name, call in PREDICTIONS.items()),
    *listed(SINGLE),
]
