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

from nysboost.cli import cluster
from nysboost.cli.sinks import open_sink, print_found, refuse_existing
from nysboost.cli.source import Source, open_fitted, schema_of
from nysboost.data.archive import read_archive
from nysboost.data.lazy import counted_from
from nysboost.numerics.progress import count_rows
from nysboost.numerics.resources import as_bytes
from nysboost.user_error import NO_FILE, WRONG_CALL, WRONG_MODEL, UserError, exits_with


@dataclass(frozen=True)
class Answers:
    """What a model says of rows: arrays (n,) or (n, k) by name, or `lazily` one of Dask's."""

    what: str
    columns: Callable[[Any], dict[str, Any]]
    lazily: Callable[[Any], Any] | None = None

    def __call__(self, rows: Any) -> dict[str, Any]:
        """Return columns by their names, those of a table numbered."""
        found: dict[str, Any] = {}
        for name, values in self.columns(rows).items():
            array = np.asarray(values)
            one = array.ndim == 1 or array.shape[1] == 1
            names = [name] if one else [f"{name}_{i}" for i in range(array.shape[1])]
            found |= dict(zip(names, array.reshape(len(array), -1).T, strict=True))
        return found


def predict(options: Namespace) -> dict[str, Any]:
    """Write predictions, and return what a script wants to know."""
    kept = [*([options.id] if options.id else []), *options.keep]
    return _apply(options, predictions_of, kept)


def transform(options: Namespace) -> dict[str, Any]:
    """Write features, and return what a script wants to know."""
    return _apply(options, features_of)


def predictions_of(model: Any, options: Namespace) -> Answers:
    """Return rows ↦ predictions, with what else was asked for."""
    name = type(model).__name__
    if not hasattr(model, "predict"):
        other = any(hasattr(model, part) for part in ("transform", "feature_map"))
        advice = "fit with --target, or use nysboost transform" if other else "use it in Python"
        msg = f"This {name} predicts nothing: {advice}."
        raise UserError(msg, WRONG_MODEL)
    spread = {"--std": options.std, "--interval": options.interval is not None}
    asked = [option for option, value in spread.items() if value]
    if asked and "return_std" not in signature(model.predict).parameters:
        msg = f"{' and '.join(asked)} is for regression, but this is a {name}."
        raise UserError(msg, WRONG_MODEL)
    if options.proba and not hasattr(model, "predict_proba"):
        raise UserError(f"--proba is for classification, but this is a {name}.", WRONG_MODEL)

    def columns(X: Any) -> dict[str, Any]:
        if asked:
            mean, std = model.predict(X, return_std=True)
            found = {"prediction": mean} | ({"std": std} if options.std else {})
            if options.interval is not None:
                from scipy.stats import norm

                reach = float(norm.ppf((1 + options.interval) / 2)) * std
                found |= {"lower": mean - reach, "upper": mean + reach}
            return found
        found = {"prediction": model.predict(X)}
        if options.proba:
            names = [f"probability_{label}" for label in model.classes_]
            found |= dict(zip(names, np.asarray(model.predict_proba(X)).T, strict=True))
        return found

    return Answers("prediction", columns, None if asked or options.proba else model.predict)


def features_of(model: Any, _options: Namespace | None = None) -> Answers:
    """Return rows ↦ features."""
    if hasattr(model, "transform"):
        return Answers("feature", lambda X: {"feature": model.transform(X)}, model.transform)
    if not hasattr(model, "feature_map"):
        advice = "nysboost predict is" if hasattr(model, "predict") else "Python is"
        msg = f"This {type(model).__name__} has no features: {advice} for it."
        raise UserError(msg, WRONG_MODEL)
    features, _ = model.feature_map()

    def of_rows(X: Any) -> Any:
        apart = hasattr(X, "column_names") and not schema_of(model).columns
        return features(np.stack(schema_of(model).read(X, "refuse"), axis=1) if apart else X)

    return Answers("feature", lambda X: {"feature": of_rows(X)}, of_rows)


def _apply(
    options: Namespace, answers_of: Callable[[Any, Namespace], Answers], kept: Sequence[str] = ()
) -> dict[str, Any]:
    """Apply a model to all rows of a table, here or on a cluster."""
    refuse_existing(options.out, options.force, [options.data, options.model])
    with exits_with(WRONG_CALL):
        as_bytes(options.max_memory)
    model = load_model(options.model)
    if hasattr(model, "max_memory"):
        model.max_memory = options.max_memory
    answers = answers_of(model, options)
    source, kept = open_fitted(options, model, kept)
    begun = time.perf_counter()
    if options.scheduler is None:
        rows, columns = _write(answers, source, kept, options)
    elif kept or answers.lazily is None:
        raise UserError("On a cluster predictions alone are written: leave other options out.")
    else:
        rows, columns = cluster.write(answers.what, answers.lazily, source, options)
    seconds = time.perf_counter() - begun
    found = {"out": str(options.out), "rows": rows, "columns": columns}
    found |= {"dropped_rows": source.dropped_rows} if options.drop_missing else {}
    found |= {"seconds": round(seconds, 3), "rows_per_second": round(rows / max(seconds, 1e-9))}
    if str(options.out) != "-":
        print_found(found)
    return found


def _write(
    answers: Answers, source: Source, kept: Sequence[str], options: Namespace
) -> tuple[int, int]:
    """Write what a model says of each part of a table; return the numbers of rows and columns."""
    n, width, start = source.file.n, 0, 0
    shown = int(str(options.out) != "-")
    with warnings.catch_warnings():
        # names were checked above, once for all parts
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        with open_sink(
            options.out, None if source.drop_missing else n, force=options.force
        ) as sink:
            for part in count_rows(source.parts(kept), answers.what, n, shown):
                with counted_from(start, str(source.file.path)):
                    found = answers(part.select(list(source.columns)) if source.named else part)
                if taken := set(kept) & set(found):
                    said = f"The column {taken.pop()!r} to keep has the name of one that is written"
                    raise UserError(f"{said}.")
                found = {name: part.column(name) for name in kept} | found
                width, start = len(found), start + len(part)
                sink.write(found)
    return sink.rows, width


def load_model(path: Path) -> Any:
    """Load a model, or say why it is none."""
    from sklearn.utils.validation import check_is_fitted

    import nysboost as nb

    if not path.is_file():
        raise UserError(f"There is no model {path}.", NO_FILE)
    with exits_with(WRONG_MODEL):
        model = nb.load(path)
        if hasattr(model, "fit"):
            check_is_fitted(model)
        return model


def describe(options: Namespace) -> dict[str, Any]:
    """Print and return what a model says about itself."""
    model, path = load_model(options.model), options.model
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
