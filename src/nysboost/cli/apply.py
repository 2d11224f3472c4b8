"""``nysboost transform``, ``predict`` and ``info``: a model, rows in, a table out."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from nysboost.cli import cluster
from nysboost.cli.sinks import name_columns, open_sink, print_found, refuse_existing
from nysboost.cli.source import Source, open_fitted, schema_of
from nysboost.model_files.archive import read_archive
from nysboost.numerics.budget import as_bytes
from nysboost.numerics.progress import count_rows
from nysboost.rows.lazy import counted_from
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
    predicts = options.command == "predict"
    what, more = ("prediction", [options.id, *options.keep]) if predicts else ("feature", [])
    function = _predictions_of(model, options) if predicts else _features_of(model)
    source, kept = open_fitted(options, model, [name for name in more if name])
    begun = time.perf_counter()
    if options.scheduler is None:
        rows, columns = _write(what, function, source, kept, options)
    elif kept or (predicts and function != model.predict):
        raise UserError("On a cluster predictions alone are written: leave other options out.")
    else:
        rows, columns = cluster.write(what, function, source, options)
    seconds = time.perf_counter() - begun
    found = {"out": str(options.out), "rows": rows, "columns": columns}
    found |= {"dropped_rows": source.dropped_rows} if options.drop_missing else {}
    found |= {"seconds": round(seconds, 3), "rows_per_second": round(rows / max(seconds, 1e-9))}
    if str(options.out) != "-":
        print_found(found)
    return found


def _predictions_of(model: Any, options: Namespace) -> Function:
    """Return rows ↦ predictions, with what else was asked for."""
    name = type(model).__name__
    if not hasattr(model, "predict"):
        other = any(hasattr(model, part) for part in ("transform", "feature_map"))
        advice = "fit with --target, or use nysboost transform" if other else "use it in Python"
        raise UserError(f"This {name} predicts nothing: {advice}.", WRONG_MODEL)
    spread = {"--std": options.std, "--interval": options.interval is not None}
    asked = [option for option, value in spread.items() if value]
    if asked and "return_std" not in signature(model.predict).parameters:
        msg = f"{' and '.join(asked)} is for regression, but this is a {name}."
        raise UserError(msg, WRONG_MODEL)
    if options.proba and not hasattr(model, "predict_proba"):
        raise UserError(f"--proba is for classification, but this is a {name}.", WRONG_MODEL)

    def with_spread(X: Any) -> dict[str, Any]:
        mean, std = model.predict(X, return_std=True)
        found = {"prediction": mean} | ({"std": std} if options.std else {})
        if options.interval is not None:
            reach = float(norm.ppf((1 + options.interval) / 2)) * std
            found |= {"lower": mean - reach, "upper": mean + reach}
        return found

    def with_probabilities(X: Any) -> dict[str, Any]:
        names = [f"probability_{label}" for label in model.classes_]
        shares = dict(zip(names, np.asarray(model.predict_proba(X)).T, strict=True))
        return {"prediction": model.predict(X)} | shares

    return with_spread if asked else with_probabilities if options.proba else model.predict


def _features_of(model: Any) -> Function:
    """Return rows ↦ features."""
    if hasattr(model, "transform"):
        return model.transform  # type: ignore[no-any-return]
    if not hasattr(model, "feature_map"):
        advice = "nysboost predict is" if hasattr(model, "predict") else "Python is"
        msg = f"This {type(model).__name__} has no features: {advice} for it."
        raise UserError(msg, WRONG_MODEL)
    (features, _), schema = model.feature_map(), schema_of(model)

    def of_rows(X: Any) -> Any:
        apart = hasattr(X, "column_names") and not schema.columns
        return features(np.stack(schema.read(X, "refuse"), axis=1) if apart else X)

    return of_rows


def _write(
    what: str, function: Function, source: Source, kept: Sequence[str], options: Namespace
) -> tuple[int, int]:
    """Write what a model says of each part of a table; return the numbers of rows and columns."""
    n, width, start = source.file.n, 0, 0
    shown, expected = int(str(options.out) != "-"), None if source.drop_missing else n
    with warnings.catch_warnings(), open_sink(options.out, expected, force=options.force) as write:
        # names were checked above, once for all parts
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        for part in count_rows(source.parts(kept), what, n, shown):
            with counted_from(start, str(source.file.path)):
                made = function(part.select(list(source.columns)) if source.named else part)
            found = {name: part.column(name) for name in kept}
            for name, values in (made if isinstance(made, dict) else {what: made}).items():
                columns = np.asarray(values).reshape(len(values), -1).T
                found |= dict(zip(name_columns(name, len(columns)), columns, strict=True))
                if name in kept:
                    said = f"The column {name!r} to keep has the name of one that is written."
                    raise UserError(said)
            write(found)
            width, start = len(found), start + part.shape[0]
    return start, width


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
    model, path = _load_model(options.model), options.model
    schema, found = schema_of(model), getattr(model, "approximation_", model)
    said: dict[str, Any] = {"file": str(path), "bytes": path.stat().st_size}
    said["written_by"] = f"nysboost {read_archive(path)[2]}"
    said |= {"model": type(model).__name__, "columns_in": schema.width}
    if schema.named:
        said["names_in"] = [column.name for column in schema.columns]
        said["schema"] = schema.describe()
    if hasattr(model, "get_feature_names_out"):
        said["features_out"] = len(model.get_feature_names_out())
    if hasattr(model, "classes_"):
        said["classes"] = [str(label) for label in model.classes_]
    for name in ("method", "kernel", "rank", "entries_evaluated"):
        value = getattr(found, name, None)
        if value not in (None, 0, "unnamed"):  # a learner's landmarks come from no one method
            said[name] = value if isinstance(value, int) else str(value)
    if hasattr(found, "landmarks"):
        said |= {"landmarks": len(found.landmarks), "fitted_on_rows": int(found.shape[0])}
    print_found(said)
    return said
