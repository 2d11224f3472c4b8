"""``nysboost fit``: a table in, a model out."""

from __future__ import annotations

import shlex
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import nysboost as nb
from nysboost.catalogue import find_method
from nysboost.cli import cluster
from nysboost.cli.sinks import print_found, refuse_existing
from nysboost.cli.source import Source, open_source
from nysboost.compare.learners import FEWEST, Problem, fit_and_test, make_learner, say_outcome
from nysboost.compare.methods import choose_kernel
from nysboost.compare.page import format_number
from nysboost.numerics.budget import as_bytes
from nysboost.numerics.messages import format_count, printable
from nysboost.numerics.progress import count_rows
from nysboost.rows.outputs import NpyOutput
from nysboost.tables.codes import Codes, PositionReader, TrainingCodes
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import join_tables
from nysboost.tables.rows import name_columns
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import summarise_columns
from nysboost.user_error import WRONG_CALL, WRONG_DATA, UserError, with_exit_code

COPIES = 6
"""A table in memory, and what is made of it: its columns, its codes and their parts."""

SMALL_SHARE = 0.05
"""A share of the rows that the final model may do without."""


def run(options: Namespace) -> dict[str, Any]:
    """Fit a model to a table, save it, and return what a script wants to know."""
    if str(options.out) == "-":
        raise UserError("A model does not go to standard output: --out takes the name of a file.")
    refuse_existing(options.out, options.force, [options.data])
    _refuse_wrong_options(options)

    begun = time.perf_counter()
    source = open_source(options)
    with _name_file_in_errors(source):
        model, tested = _fit(source, options)
    _keep_writing(model, source)
    nb.save(model, options.out)

    found: dict[str, Any] = {
        "out": str(options.out),
        "model": type(model).__name__,
        "landmarks": len(model.approximation_.landmarks),
        "rows": int(model.approximation_.shape[0]),
        "columns": len(source.columns),
    }
    if source.drops:
        found["dropped_rows"] = source.dropped_rows
    found["seconds"] = round(time.perf_counter() - begun, 3)
    if options.target is None:
        found["next"] = f"nysboost transform {options.out} new.csv --out features.npy"
    else:
        found["next"] = spell_predict(str(options.out), hasattr(model, "classes_"))
    print_found(found)
    if tested:
        found["held_out"] = tested
    return found


def spell_predict(model: str, classify: bool) -> str:
    """Return the command that predicts new rows, with what people ask for next."""
    more = "--proba" if classify else "--interval 0.9"
    return f"nysboost predict {shlex.quote(model)} new.csv {more} --out predictions.csv"


def _fit(source: Source, options: Namespace) -> tuple[Any, dict[str, Any]]:
    """Return a model fitted to a table, and what a test on held-out rows has shown."""
    if options.scheduler is not None:
        return _fit_on_cluster(source, options), {}
    if source.named:
        return _fit_table(source, options)
    return _fit_array(source, options), {}


def _keep_writing(model: Any, source: Source) -> None:
    """Keep with the model how a text file writes its columns, for later files."""
    if not isinstance(source.file, CsvFile):
        return
    model.schema_ = model.schema_.as_written(source.file)
    if model._table is not None:
        model._table = replace(model._table, schema=model.schema_)


def _fit_table(source: Source, options: Namespace) -> tuple[Any, dict[str, Any]]:
    """Fit to a table in memory where it has room there, else to its numbers in a file.

    Also return what a test on held-out rows has shown.
    """
    allowed = as_bytes(options.max_memory) // COPIES
    size = 0
    parts: list[Any] = []
    tables: Iterator[Any] = count_rows(source.parts(), "read", source.file.n, 1)
    for part in tables:
        parts.append(part)
        size += part.nbytes
        if size > allowed:
            return _fit_large(source, chain(parts, tables), options), {}

    X, y = source.join(parts)
    _print_columns(Schema.of(X, "fill", _ids(options)), X.num_rows)
    y, classify = choose_task(y, str(source.target), options)
    if classify is None:
        return make_model(options, classify).fit(X), {}

    problem = Problem(X, y, classify, str(source.target), seed=options.seed)
    if not options.test:
        return make_model(options, classify).fit(X, y), {}
    return _fit_and_test(problem, options)


def _fit_and_test(problem: Problem, options: Namespace) -> tuple[Any, dict[str, Any]]:
    """Measure the error on held-out rows, then fit to all rows."""
    X, y, classify = problem.frame, problem.y, problem.classify
    held = problem.hold_out()
    if held is None:
        few = f"that takes {FEWEST} rows" if len(y) < FEWEST else "a label is in too few rows"
        print(f"The error on held-out rows was not measured: {few}.")
        return make_model(options, classify).fit(X, y), {}

    model, outcomes = fit_and_test(make_model(options, classify), problem, held)
    sentence = say_outcome(outcomes, problem.measure, problem.target)
    errors = ", ".join(f"{o.name} {format_number(o.error, 4)}" for o in outcomes)
    print(f"{problem.measure.capitalize()} on {len(held):,} rows held out: {errors}")
    print(printable(sentence))
    if len(held) > SMALL_SHARE * len(y):
        model = make_model(options, classify).fit(X, y)

    tested = {"rows": len(held), "measure": problem.measure, "sentence": sentence}
    for outcome in outcomes:
        tested[outcome.name] = outcome.error
    return model, tested


def _fit_large(source: Source, tables: Iterable[Any], options: Namespace) -> Any:
    """Look at all rows, then copy them as numbers to a file, from which any row can be taken."""
    names = list(source.columns)
    targets: list[Any] = []

    def summarise() -> Iterator[Any]:
        for part in tables:
            targets.append(part.select([] if source.target is None else [source.target]))
            yield summarise_columns(part.select(names))

    missing = "refuse" if source.target is None else "fill"
    schema = Schema.from_summaries(summarise(), missing, named=True, ids=_ids(options))
    _print_columns(schema, sum(part.num_rows for part in targets))
    y = source.target_in(join_tables(targets))
    y, classify = choose_task(y, str(source.target), options)
    training = _train_codes(schema, source, y, classify)

    def encode(part: Any, start: int) -> Any:
        return training.encode_table(part.select(names), start)

    with _numbers_in_file(source, encode) as X:
        model = make_model(options, classify).fit(X, y)
    model._table = training.codes
    model.schema_ = schema
    name_columns(model, names, len(names))
    return model


def _train_codes(schema: Schema, source: Source, y: Any, classify: bool | None) -> TrainingCodes:
    """Return the codes of a table, with means of the target for categories of many values.

    The rows are read once more where there are such categories.
    """
    codes = Codes.of(schema)
    if classify is None or not codes.many_valued:
        return TrainingCodes(codes, {})

    names = list(source.columns)
    read = PositionReader(codes)
    parts = [read(part.select(names)) for part in source.parts()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    positions = dict(zip(codes.many_valued, columns, strict=True))

    if classify:
        classes, labels = np.unique(y, return_inverse=True)
        Y = np.eye(len(classes))[labels]
    else:
        Y = np.asarray(y, dtype=np.float64)[:, None]
    return TrainingCodes.of(schema, positions, Y, None)


def _fit_array(source: Source, options: Namespace) -> Any:
    """Fit to an array where it is, or, to some rows and columns, in a file of their own."""
    target = str(source.target if source.y is None else options.target)
    if source.whole:
        return _fit_numbers(source.file.data, source.y, target, options)

    width = len(source.columns)
    targets: list[Any] = []

    def split(block: Any, _: int) -> Any:
        targets.append(block[:, width:])
        return block[:, :width]

    with _numbers_in_file(source, split) as X:
        if source.target is not None:
            y = np.concatenate(targets)[:, 0]
        elif source.y is not None and source.drops:
            y = source.y[np.concatenate(source.kept)]
        else:
            y = source.y
        return _fit_numbers(X, y, target, options)


@contextmanager
def _numbers_in_file(source: Source, encode: Callable[[Any, int], Any]) -> Iterator[Any]:
    """Give all rows as a memory map of numbers; `encode` takes a part and its first row."""
    with TemporaryDirectory(prefix="nysboost-") as folder:
        parts = count_rows(source.parts(), "read", source.file.n, 1)
        block = encode(next(parts), 0)
        file = NpyOutput(Path(folder) / "X.npy", None, block.shape[1], block)
        file.begin()
        file.write(np.ascontiguousarray(block))
        for part in parts:
            file.write(np.ascontiguousarray(encode(part, file.written)))
        yield file.finish()


def _fit_numbers(X: Any, y: Any, target: str, options: Namespace) -> Any:
    y, classify = choose_task(y, target, options)
    return make_model(options, classify).fit(X, y)


def _fit_on_cluster(source: Source, options: Namespace) -> Any:
    with cluster.connect(options.scheduler):
        X = cluster.dask_table(source)
        y = cluster.dask_target(source)
        classify: bool | None = None
        if y is not None and options.task == "auto":
            classify = y.dtype.kind not in "fiu"
        elif y is not None:
            classify = options.task == "classification"
        return make_model(options, classify).fit(X, y)


def _print_columns(schema: Schema, n: int) -> None:
    """Print what each column is; what a fit would warn about has then been said."""
    warnings.filterwarnings("ignore", message="Column '")
    lines = [f"{n:,} rows, {schema.width} columns", *schema.describe(), *schema.notes]
    print("\n  ".join(printable(line) for line in lines))


def _ids(options: Namespace) -> str:
    """Return what is done with columns that number the rows: a learner may leave them out."""
    return "keep" if options.target is None else str(options.ids)


def choose_task(y: Any, target: str, options: Namespace) -> tuple[Any, bool | None]:
    """Return targets for the task, and whether that is classification; print which and why.

    Text is classified, as are whole numbers of which there are two. Without targets: None, None.
    """
    if y is None:
        return None, None

    numbers = y.dtype.kind in "fiu"
    n_values = len(np.unique(y))
    whole = numbers and _are_whole(y)
    classify = bool(options.task == "classification")
    if options.task == "auto":
        classify = not numbers or (whole and n_values == 2)
        _print_task(classify, target, n_values, numbers)
    if not classify and not numbers:
        msg = f"The target {target!r} is text ({y[0]!r}): it can be classified, not regressed."
        raise UserError(msg)
    if classify and whole:  # labels 1, 2 and not 1.0, 2.0
        return y.astype(np.int64), True
    return y, classify


def _are_whole(y: Any) -> bool:
    """Whether all numbers are whole, and small enough to be exact."""
    if y.dtype.kind in "iu":
        return True
    return bool((np.abs(y) < 2**53).all() and (y == np.round(y)).all())


def _print_task(classify: bool, target: str, n_values: int, numbers: bool) -> None:
    """Print which task was chosen, why, and how to choose the other."""
    if classify:
        task, other, why = "classification", "regression", f"has {format_count(n_values, 'label')}"
    else:
        task, other, why = "regression", "classification", "holds numbers"
    also = f" (--task {other} otherwise)" if numbers else ""
    print(printable(f"  task: {task} of {target!r}, because it {why}{also}"))


def make_model(options: Namespace, classify: bool | None) -> Any:
    """Return a learner with the options of the command, or a transformer, if that is None."""
    if classify is not None:
        return make_learner(
            classify,
            options.components,
            options.seed,
            local="auto" if options.local else False,
            max_memory=options.max_memory,
            ids=options.ids,
        )
    return nb.Nystroem(
        kernel=choose_kernel(options.kernel, options.sigma),
        method=options.method,
        n_components=options.components,
        tol=options.tol,
        max_memory=options.max_memory,
        random_state=options.seed,
    )


@contextmanager
def _name_file_in_errors(source: Source) -> Iterator[None]:
    """Where a fit refuses gaps, name the file and the options that leave them out."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        said = str(error).partition(". Remove")[0].removeprefix("X ").removeprefix("Column ")
        said = said.replace("Input y", "the target").rstrip(".")
        column = "column " if said.startswith("'") else ""
        advice = "--drop-missing leaves such rows out, --drop-column a column."
        raise UserError(f"{source.file.path}: {column}{said}. {advice}", WRONG_DATA) from error


def _refuse_wrong_options(options: Namespace) -> None:
    """Say at once what is no method, no kernel or no size, before any file is read."""
    with with_exit_code(WRONG_CALL):
        find_method(options.method)
        as_bytes(options.max_memory)
        choose_kernel(options.kernel, options.sigma)
    usual = {"method": "joint", "kernel": "rbf", "sigma": None, "tol": None}
    given = [f"--{name}" for name, value in usual.items() if getattr(options, name) != value]
    if options.target is not None and given:
        raise UserError(
            f"{', '.join(given)} cannot be given with --target: a learner finds its kernel and "
            "its landmarks itself."
        )
