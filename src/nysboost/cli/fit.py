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
from nysboost.numerics.messages import format_count
from nysboost.numerics.progress import count_rows
from nysboost.rows.outputs import NpyOutput
from nysboost.tables.codes import Codes
from nysboost.tables.columns import summarise_columns
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import join_tables
from nysboost.tables.rows import name_columns
from nysboost.tables.schema import Schema
from nysboost.user_error import WRONG_CALL, WRONG_DATA, UserError, with_exit_code

COPIES = 6
"""A table in memory, and what is made of it: its columns, its codes and their parts."""

SMALL_SHARE = 0.05
"""A share of the rows that the final model may do without."""


def run(options: Namespace) -> dict[str, Any]:
    """Fit a model to a table, save it, and return what a script wants to know."""
    refuse_existing(options.out, options.force, [options.data])
    _refuse_wrong_options(options)
    begun = time.perf_counter()
    tested: dict[str, Any] = {}
    source = open_source(options)
    with _name_file_in_errors(source):
        if options.scheduler is not None:
            model = _fit_on_cluster(source, options)
        elif source.named:
            model, tested = _fit_table(source, options)
        else:
            model = _fit_array(source, options)
    if isinstance(source.file, CsvFile):
        model.schema_ = model.schema_.as_written(source.file)
        if model._table is not None:
            model._table = replace(model._table, schema=model.schema_)
    nb.save(model, options.out)
    found = {
        "out": str(options.out),
        "model": type(model).__name__,
        "landmarks": len(model.approximation_.landmarks),
        "rows": int(model.approximation_.shape[0]),
        "columns": len(source.columns),
        **({"dropped_rows": source.dropped_rows} if source.drops else {}),
        "seconds": round(time.perf_counter() - begun, 3),
        "next": f"nysboost transform {options.out} new.csv --out features.npy",
    }
    if options.target is not None:
        found["next"] = spell_predict(str(options.out), hasattr(model, "classes_"))
    print_found(found)
    return found | ({"held_out": tested} if tested else {})


def spell_predict(model: str, classify: bool) -> str:
    """Return the command that predicts new rows, with what people ask for next."""
    more = "--proba" if classify else "--interval 0.9"
    return f"nysboost predict {shlex.quote(model)} new.csv {more} --out predictions.csv"


def _fit_table(source: Source, options: Namespace) -> tuple[Any, dict[str, Any]]:
    """Fit to a table in memory where it has room there, else to its numbers in a file.

    Also return what a test on held-out rows has shown.
    """
    allowed, size, parts = as_bytes(options.max_memory) // COPIES, 0, list[Any]()
    tables: Iterator[Any] = count_rows(source.parts(), "read", source.file.n, 1)
    for part in tables:
        parts.append(part)
        size += part.nbytes
        if size > allowed:
            return _fit_large(source, chain(parts, tables), options), {}
    X, y = source.join(parts)
    _say_columns(Schema.of(X, "fill"), X.num_rows)
    y, classify = choose_task(y, str(source.target), options)
    problem = Problem(X, y, bool(classify), str(source.target), seed=options.seed)
    held = problem.hold_out() if options.test and classify is not None else None
    if held is None:
        if options.test and classify is not None:
            few = f"that takes {FEWEST} rows" if len(y) < FEWEST else "a label is in too few rows"
            print(f"The error on held-out rows was not measured: {few}.")
        return make_model(options, classify).fit(X, y), {}
    model, outcomes = fit_and_test(make_model(options, classify), problem, held)
    sentence = say_outcome(outcomes, problem.measure, problem.target)
    errors = ", ".join(f"{o.name} {format_number(o.error, 4)}" for o in outcomes)
    print(f"{problem.measure.capitalize()} on {len(held):,} rows held out: {errors}\n{sentence}")
    tested = {"rows": len(held), "measure": problem.measure, "sentence": sentence}
    if len(held) > SMALL_SHARE * len(y):
        model = make_model(options, classify).fit(X, y)
    return model, tested | {o.name: o.error for o in outcomes}


def _fit_large(source: Source, tables: Iterable[Any], options: Namespace) -> Any:
    """Look at all rows, then copy them as numbers to a file, from which any row can be taken."""
    names, ys = list(source.columns), list[Any]()

    def summarise() -> Iterator[Any]:
        for part in tables:
            ys.append(part.select([] if source.target is None else [source.target]))
            yield summarise_columns(part.select(names))

    missing = "refuse" if source.target is None else "fill"
    schema = Schema.from_summaries(summarise(), missing, named=True)
    _say_columns(schema, sum(part.num_rows for part in ys))
    codes, y = Codes.of(schema), source.target_in(join_tables(ys))
    with _numbers_in_file(source, lambda part, at: codes(part.select(names), start=at)) as X:
        model = _fit_numbers(X, y, str(source.target), options)
    model._table, model.schema_ = codes, schema
    name_columns(model, names, len(names))
    return model


def _fit_array(source: Source, options: Namespace) -> Any:
    """Fit to an array where it is, or, to some rows and columns, in a file of their own."""
    target = str(source.target if source.y is None else options.target)
    if source.whole:
        return _fit_numbers(source.file.data, source.y, target, options)
    width, ys = len(source.columns), list[Any]()

    def split(block: Any, _: int) -> Any:
        ys.append(block[:, width:])
        return block[:, :width]

    with _numbers_in_file(source, split) as X:
        y = source.y if source.target is None else np.concatenate(ys)[:, 0]
        if source.y is not None and source.drops:
            y = y[np.concatenate(source.kept)]
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
        X, y = cluster.dask_table(source), cluster.dask_target(source)
        classify: bool | None = None
        if y is not None:
            text = y.dtype.kind not in "fiu"
            classify = text if options.task == "auto" else options.task == "classification"
        return make_model(options, classify).fit(X, y)


def _say_columns(schema: Schema, n: int) -> None:
    warnings.filterwarnings("ignore", message="Column '")  # was said once, when they were looked at
    print("\n  ".join([f"{n:,} rows, {schema.width} columns", *schema.describe()]))


def choose_task(y: Any, target: str, options: Namespace) -> tuple[Any, bool | None]:
    """Return targets for the task, and whether that is classification; say which and why.

    Text is classified, as are whole numbers of which there are two. Without targets: None, None.
    """
    if y is None:
        return None, None
    numbers, values = y.dtype.kind in "fiu", len(np.unique(y))
    whole = numbers and bool((np.abs(y) < 2**53).all() and (y == np.round(y)).all())
    classify = options.task == "classification"
    if options.task == "auto":
        classify = not numbers or (whole and values == 2)
        task, other = ("classification", "regression")[:: 1 if classify else -1]
        why = f"it has {format_count(values, 'label')}" if classify else "it holds numbers"
        also = f" (--task {other} otherwise)" if numbers else ""
        print(f"  task: {task} of {target!r}, because {why}{also}")
    if not (classify or numbers):
        msg = f"The target {target!r} is text ({y[0]!r}): it can be classified, not regressed."
        raise UserError(msg)
    # labels 1, 2 and not 1.0, 2.0
    return y.astype(np.int64) if classify and whole else y, classify


def make_model(options: Namespace, classify: bool | None) -> Any:
    """Return a learner with the options of the command, or a transformer, if that is None."""
    if classify is not None:
        how = {"local": "auto" if options.local else False, "max_memory": options.max_memory}
        return make_learner(classify, options.components, options.seed, **how)
    return nb.Nystroem(
        kernel=choose_kernel(options.kernel, options.sigma),
        method=options.method,
        n_components=options.components,
        max_memory=options.max_memory,
        random_state=options.seed,
        **({} if options.tol is None else {"tol": options.tol}),
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
