"""``nysboost transform`` and ``predict``: a model, rows in, a table out."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nysboost.cli import cluster
from nysboost.cli.sinks import (
    Found,
    OutputColumn,
    OutputColumns,
    escape_formulas,
    number_names,
    open_sink,
    print_found,
    refuse_existing,
)
from nysboost.cli.source import Model, Source, TablePart, open_fitted, schema_of
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.checks import as_bytes
from nysboost.numerics.progress import count_rows
from nysboost.rows.lazy import counted_from
from nysboost.tables.schema import Schema
from nysboost.user_error import ModelError, NoFileError, UserError, raise_as

Function: TypeAlias = Callable[[TablePart], Array | OutputColumns]
"""A function of rows that returns an array, or several by name."""


def run(options: Namespace) -> Found:
    """Write predictions or features of all rows of a table, here or on a cluster."""
    # load the model, and limit its memory
    refuse_existing(options.out, options.force, [options.data, options.model])
    with raise_as(UserError):
        as_bytes(options.max_memory)
    model = load_model(options.model)
    if hasattr(model, "max_memory"):
        model.max_memory = options.max_memory

    # choose what to compute, and which columns to keep beside it
    if options.command == "predict":
        what = "prediction"
        function = _predictions_of(model, options)
        beside = [*options.id, *options.keep]
    else:
        what = "feature"
        function = _features_of(model)
        beside = []
    source, kept = open_fitted(options, model, beside)

    # run here, or on the workers of a cluster
    begun = time.perf_counter()
    if options.scheduler is None:
        rows, columns = _write(what, function, source, kept, options)
    elif kept or isinstance(function, Spread | Probabilities):
        raise UserError("On a cluster, only predictions are written: leave other options out.")
    else:
        rows, columns = cluster.write(what, function, source, options)
    seconds = time.perf_counter() - begun

    # report
    found: Found = {"out": str(options.out), "rows": rows, "columns": columns}
    if options.drop_missing:
        found["dropped_rows"] = source.dropped_rows
    found["seconds"] = round(seconds, 3)
    found["rows_per_second"] = round(rows / max(seconds, 1e-9))
    if str(options.out) != "-":
        print_found(found)
    return found


def load_model(path: Path) -> Model:
    """Load a model, or raise an error that says why it cannot be loaded."""
    from sklearn.utils.validation import check_is_fitted

    import nysboost as nb

    if not path.exists():
        raise NoFileError(f"There is no model {path}.")
    if not path.is_file():
        raise NoFileError(f"{path} is a folder or a pipe: give the name of a model file.")
    with raise_as(ModelError):
        model = nb.load(path)
        if hasattr(model, "fit"):
            check_is_fitted(model)
        return model


# What a model makes of rows


def _predictions_of(model: Model, options: Namespace) -> Function:
    """Return rows ↦ predictions, with the other outputs that the options ask for."""
    kind = type(model).__name__
    if not hasattr(model, "predict"):
        has_features = hasattr(model, "transform") or hasattr(model, "feature_map")
        advice = "use it in Python"
        if has_features:
            advice = "fit with --target, or use nysboost transform"
        raise ModelError(f"{kind} cannot predict: {advice}.")

    # refuse options that this model cannot answer
    given = {
        "--std": options.std,
        "--interval": options.interval is not None,
        "--quantiles": options.quantiles is not None,
    }
    asked = [name for name, is_given in given.items() if is_given]
    if asked and not hasattr(model, "predict_interval"):
        verb = "is"
        if len(asked) > 1:
            verb = "are"
        msg = f"{' and '.join(asked)} {verb} for regression, but this is a {kind}."
        raise ModelError(msg)
    if options.proba and not hasattr(model, "predict_proba"):
        raise ModelError(f"--proba is for classification, but this is a {kind}.")

    if asked:
        return Spread(model, options.std, options.interval, options.quantiles or ())
    if options.proba:
        return Probabilities(model)
    predict: Function = model.predict
    return predict


@dataclass(frozen=True)
class Spread:
    """Predictions of a regressor with standard deviations, an interval or quantiles."""

    model: Model
    std: bool
    interval: float | None
    quantiles: Sequence[float]

    def __call__(self, X: TablePart) -> dict[str, Floats]:
        """Return columns by name."""
        columns = {}
        if self.std:
            columns["prediction"], columns["std"] = self.model.predict(X, return_std=True)
        else:
            columns["prediction"] = self.model.predict(X)

        # the ends of an interval, and quantiles at levels
        if self.interval is not None:
            lower, upper = self.model.predict_interval(X, self.interval)
            columns["lower"] = lower
            columns["upper"] = upper
        if self.quantiles:
            quantiles = self.model.predict_quantiles(X, self.quantiles)
            by_level = np.moveaxis(quantiles, -1, 0)
            for level, of_level in zip(self.quantiles, by_level, strict=True):
                columns[f"quantile_{level}"] = of_level
        return columns


@dataclass(frozen=True)
class Probabilities:
    """Predictions of a classifier with the probability of each class."""

    model: Model

    def __call__(self, X: TablePart) -> dict[str, OutputColumn]:
        """Return columns by name."""
        columns = {"prediction": self.model.predict(X)}
        probabilities = np.asarray(self.model.predict_proba(X))
        for label, of_class in zip(self.model.classes_, probabilities.T, strict=True):
            columns[f"probability_{label}"] = of_class
        return columns


def _features_of(model: Model) -> Function:
    """Return rows ↦ features."""
    if hasattr(model, "transform"):
        transform: Function = model.transform
        return transform

    # an approximation has a feature map in place of `transform`
    if not hasattr(model, "feature_map"):
        advice = "it in Python"
        if hasattr(model, "predict"):
            advice = "nysboost predict"
        msg = f"{type(model).__name__} has no features: use {advice}."
        raise ModelError(msg)
    features, _ = model.feature_map()
    return Features(features, schema_of(model))


@dataclass(frozen=True)
class Features:
    """Features of an approximation, for arrays or for tables that match its schema."""

    features: Callable[[TablePart], Array]
    schema: Schema

    def __call__(self, X: TablePart) -> Array:
        """Return the features of rows."""
        if hasattr(X, "column_names") and not self.schema.columns:
            columns = self.schema.read(X, "refuse")
            X = np.stack(columns, axis=1)
        return self.features(X)


# Writing it


def _write(
    what: str, function: Function, source: Source, kept: Sequence[str], options: Namespace
) -> tuple[int, int]:
    """Write the outputs for each part of a table; return the numbers of rows and columns."""
    # the number of rows is unknown if some are left out
    n = source.file.n
    expected = n
    if source.drop_missing:
        expected = None

    verbose = int(str(options.out) != "-")
    width = 0
    written = 0
    with warnings.catch_warnings(), open_sink(options.out, expected, force=options.force) as write:
        # names were checked above, once for all parts
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        for part in count_rows(source.parts(kept), what, n, verbose):
            # the model's columns, then those to keep
            table = part
            beside = []
            if source.named:
                n_used = len(source.columns)
                table = part.select(range(n_used))
                beside = part.columns[n_used:]

            # errors count rows from the beginning of the part
            with counted_from(source.start, str(source.file.path), drops=source.drops):
                made = function(table)
            if not isinstance(made, dict):
                made = {what: made}

            named = dict(zip(kept, beside, strict=True))
            columns: OutputColumns = _columns_to_write(made, named)
            if options.escape_formulas:
                columns = escape_formulas(columns)
            write(columns)
            width = len(columns)
            written += part.shape[0]
    return written, width


def _columns_to_write(
    made: Mapping[str, OutputColumn], kept: OutputColumns
) -> dict[str, OutputColumn]:
    """Return the columns to keep, followed by the model's outputs."""
    columns = dict(kept)
    for name, found in made.items():
        if name in kept:
            raise UserError(
                f"The column {name!r} of --id or --keep has the name of a column of results: "
                "rename it or leave it out."
            )

        # truth values are written as the heads of their columns have them
        values = np.asarray(found)
        if values.dtype == bool:
            values = values.astype(str)

        # a column for each output
        of_outputs = values.reshape(len(values), -1).T
        names = number_names(name, len(of_outputs))
        columns.update(zip(names, of_outputs, strict=True))
    return columns
