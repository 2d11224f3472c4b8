"""``nysboost transform``, ``predict`` and ``info``: a model, rows in, a table out."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from nysboost.cli import cluster
from nysboost.cli.sinks import (
    escape_formulas,
    name_columns,
    open_sink,
    print_found,
    refuse_existing,
)
from nysboost.cli.source import Source, open_fitted, schema_of
from nysboost.model_files.archive import read_archive
from nysboost.numerics.budget import as_bytes
from nysboost.numerics.progress import count_rows
from nysboost.rows.lazy import counted_from
from nysboost.tables.schema import Schema
from nysboost.user_error import NO_FILE, WRONG_CALL, WRONG_MODEL, UserError, with_exit_code

Function = Callable[[Any], Any]
"""What a model makes of rows: an array, or several by name."""


def run(options: Namespace) -> dict[str, Any]:
    """Write predictions or features of all rows of a table, here or on a cluster."""
    refuse_existing(options.out, options.force, [options.data, options.model])
    with with_exit_code(WRONG_CALL):
        as_bytes(options.max_memory)
    model = _load_model(options.model)
    if hasattr(model, "max_memory"):
        model.max_memory = options.max_memory

    if options.command == "predict":
        what = "prediction"
        function = _predictions_of(model, options)
        beside = [name for name in (options.id, *options.keep) if name]
    else:
        what = "feature"
        function = _features_of(model)
        beside = []
    source, kept = open_fitted(options, model, beside)

    begun = time.perf_counter()
    if options.scheduler is None:
        rows, columns = _write(what, function, source, kept, options)
    elif kept or isinstance(function, (Spread, Probabilities)):
        raise UserError("On a cluster predictions alone are written: leave other options out.")
    else:
        rows, columns = cluster.write(what, function, source, options)
    seconds = time.perf_counter() - begun

    found: dict[str, Any] = {"out": str(options.out), "rows": rows, "columns": columns}
    if options.drop_missing:
        found["dropped_rows"] = source.dropped_rows
    found["seconds"] = round(seconds, 3)
    found["rows_per_second"] = round(rows / max(seconds, 1e-9))
    if str(options.out) != "-":
        print_found(found)
    return found


def _predictions_of(model: Any, options: Namespace) -> Function:
    """Return rows ↦ predictions, with what else was asked for."""
    kind = type(model).__name__
    if not hasattr(model, "predict"):
        has_features = hasattr(model, "transform") or hasattr(model, "feature_map")
        advice = "use it in Python"
        if has_features:
            advice = "fit with --target, or use nysboost transform"
        raise UserError(f"{kind} cannot predict: {advice}.", WRONG_MODEL)

    asked = []
    if options.std:
        asked.append("--std")
    if options.interval is not None:
        asked.append("--interval")
    if asked and "return_std" not in signature(model.predict).parameters:
        msg = f"{' and '.join(asked)} is for regression, but this is a {kind}."
        raise UserError(msg, WRONG_MODEL)
    if options.proba and not hasattr(model, "predict_proba"):
        raise UserError(f"--proba is for classification, but this is a {kind}.", WRONG_MODEL)

    if asked:
        return Spread(model, options.std, options.interval)
    if options.proba:
        return Probabilities(model)
    predict: Function = model.predict
    return predict


@dataclass(frozen=True)
class Spread:
    """Predictions of a regressor with their standard deviations, an interval, or both."""

    model: Any
    std: bool
    interval: float | None

    def __call__(self, X: Any) -> dict[str, Any]:
        """Return columns by name."""
        mean, std = self.model.predict(X, return_std=True)
        columns = {"prediction": mean}
        if self.std:
            columns["std"] = std
        if self.interval is not None:
            half_width = float(norm.ppf((1 + self.interval) / 2)) * std
            columns["lower"] = mean - half_width
            columns["upper"] = mean + half_width
        return columns


@dataclass(frozen=True)
class Probabilities:
    """Predictions of a classifier with the probability of each class."""

    model: Any

    def __call__(self, X: Any) -> dict[str, Any]:
        """Return columns by name."""
        columns = {"prediction": self.model.predict(X)}
        probabilities = np.asarray(self.model.predict_proba(X))
        for label, of_class in zip(self.model.classes_, probabilities.T, strict=True):
            columns[f"probability_{label}"] = of_class
        return columns


def _features_of(model: Any) -> Function:
    """Return rows ↦ features."""
    if hasattr(model, "transform"):
        transform: Function = model.transform
        return transform
    if not hasattr(model, "feature_map"):
        advice = "nysboost predict" if hasattr(model, "predict") else "it in Python"
        msg = f"{type(model).__name__} has no features: use {advice}."
        raise UserError(msg, WRONG_MODEL)
    features, _ = model.feature_map()
    return Features(features, schema_of(model))


@dataclass(frozen=True)
class Features:
    """Features of an approximation, which takes arrays or the tables of its schema."""

    features: Function
    schema: Schema

    def __call__(self, X: Any) -> Any:
        """Return the features of rows."""
        if hasattr(X, "column_names") and not self.schema.columns:
            X = np.stack(self.schema.read(X, "refuse"), axis=1)
        return self.features(X)


def _write(
    what: str, function: Function, source: Source, kept: Sequence[str], options: Namespace
) -> tuple[int, int]:
    """Write what a model says of each part of a table; return the numbers of rows and columns."""
    n = source.file.n
    expected = None if source.drop_missing else n
    shown = int(str(options.out) != "-")
    width = 0
    start = 0
    with warnings.catch_warnings(), open_sink(options.out, expected, force=options.force) as write:
        # names were checked above, once for all parts
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        for part in count_rows(source.parts(kept), what, n, shown):
            table = part.select(list(source.columns)) if source.named else part
            with counted_from(start, str(source.file.path)):
                made = function(table)
            columns = _columns_to_write(what, made, part, kept)
            if options.escape_formulas:
                columns = escape_formulas(columns)
            write(columns)
            width = len(columns)
            start += part.shape[0]
    return start, width


def _columns_to_write(what: str, made: Any, part: Any, kept: Sequence[str]) -> dict[str, Any]:
    """Return the columns to keep of a part, and beside them what the model has made of it."""
    columns = {name: part.column(name) for name in kept}
    by_name = made if isinstance(made, dict) else {what: made}
    for name, values in by_name.items():
        if name in kept:
            raise UserError(f"The column {name!r} to keep has the name of one that is written.")
        values = np.asarray(values)
        if values.dtype == bool:  # labels are written as the heads of their columns have them
            values = values.astype(str)
        of_outputs = values.reshape(len(values), -1).T
        names = name_columns(name, len(of_outputs))
        columns.update(zip(names, of_outputs, strict=True))
    return columns


def _load_model(path: Path) -> Any:
    """Load a model, or say why it is none."""
    from sklearn.utils.validation import check_is_fitted

    import nysboost as nb

    if not path.is_file():
        raise UserError(f"There is no model {path}.", NO_FILE)
    with with_exit_code(WRONG_MODEL):
        model = nb.load(path)
        if hasattr(model, "fit"):
            check_is_fitted(model)
        return model


def describe(options: Namespace) -> dict[str, Any]:
    """Print and return what a model says about itself."""
    path = options.model
    model = _load_model(path)
    schema = schema_of(model)

    said: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "written_by": f"nysboost {read_archive(path)[2]}",
        "model": type(model).__name__,
        "columns_in": schema.width,
    }
    if schema.named:
        said["names_in"] = [column.name for column in schema.columns]
        said["schema"] = schema.describe()
    if hasattr(model, "get_feature_names_out"):
        said["features_out"] = len(model.get_feature_names_out())
    if hasattr(model, "classes_"):
        said["classes"] = [str(label) for label in model.classes_]

    approximation = getattr(model, "approximation_", model)
    for name in ("method", "kernel", "rank", "entries_evaluated"):
        value = getattr(approximation, name, None)
        if value in (None, 0, "unnamed"):  # a learner's landmarks come from no one method
            continue
        said[name] = value if isinstance(value, int) else str(value)
    if hasattr(approximation, "landmarks"):
        said["landmarks"] = len(approximation.landmarks)
        said["fitted_on_rows"] = int(approximation.shape[0])

    print_found(said)
    return said
