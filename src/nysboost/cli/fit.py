"""``nysboost fit``: fit a model to a table."""

from __future__ import annotations

import re
import shlex
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import nysboost as nb
from nysboost.catalogue import find_method
from nysboost.cli import cluster
from nysboost.cli.sinks import Found, print_found, refuse_existing
from nysboost.cli.source import FitRows, Model, Source, TablePart, open_source
from nysboost.compare.learners import (
    FEWEST,
    OURS,
    Problem,
    Targets,
    fit_and_test,
    make_learner,
    say_outcome,
)
from nysboost.compare.methods import choose_kernel
from nysboost.compare.page import format_number
from nysboost.compare.peers import LINEAR
from nysboost.learn.input import number_groups
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.checks import as_bytes
from nysboost.numerics.messages import format_count, printable
from nysboost.numerics.progress import count_rows
from nysboost.rows.outputs import NpyOutput
from nysboost.tables.codes import Codes, PositionReader, TrainingCodes
from nysboost.tables.files import join_tables, text_files
from nysboost.tables.rows import note_columns
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import ColumnSummary, summarise_columns
from nysboost.tables.values import first_of
from nysboost.user_error import TableError, UserError, raise_as

if TYPE_CHECKING:
    import pyarrow as pa

COPIES = 6
"""Memory of a fit relative to the table, including its columns, codes and their copies."""

SMALL_SHARE = 0.05
"""If at most this share of the rows is held out, the final model is not fitted again."""

LARGEST = 1e100
"""For larger targets, sums of squares overflow in some learner."""

Block: TypeAlias = Array
"""Rows as numbers, shape (n, d)."""

OF_LEARNERS = {
    "task": "auto",
    "linear": False,
    "cv": "random",
    "groups": None,
    "max_time": None,
    "drop_missing_target": False,
}
OF_APPROXIMATIONS = {"method": "joint", "kernel": "rbf", "sigma": None, "tol": None}
"""Options that only approximations accept, with their defaults."""

OF_LANDMARKS = {"components": None, "local": True}
"""Options that linear models do not accept, with their defaults."""


def run(options: Namespace) -> Found:
    """Fit a model to a table, save it, and return the results for --json."""
    if str(options.out) == "-":
        msg = "A model cannot be written to standard output: give --out the name of a file."
        raise UserError(msg)
    refuse_existing(options.out, options.force, [options.data])
    _refuse_wrong_options(options)

    # open the table and fit the model
    begun = time.perf_counter()
    source = open_source(options)
    with _name_file_in_errors(source):
        model, tested = _fit(source, options)
    _keep_writing(model, source)
    nb.save(model, options.out)

    # report what was fitted
    found: Found = {
        "out": str(options.out),
        "model": type(model).__name__,
        "landmarks": len(model.approximation_.landmarks),
        "rows": int(model.approximation_.shape[0]),
        "columns": len(source.columns),
    }
    if source.drops:
        found["dropped_rows"] = source.dropped_rows
    found["seconds"] = round(time.perf_counter() - begun, 3)

    # suggest the next command
    if options.target is None:
        model_file = shlex.quote(str(options.out))
        found["next"] = f"nysboost transform {model_file} new.csv --out features.npy"
    else:
        found["next"] = spell_predict(str(options.out), hasattr(model, "classes_"))
    print_found(found)
    if tested:
        found["held_out"] = tested
    return found


def spell_predict(model: str, classify: bool) -> str:
    """Return the command that predicts new rows."""
    more = "--interval 0.9"
    if classify:
        more = "--proba"
    return f"nysboost predict {shlex.quote(model)} new.csv {more} --out predictions.csv"


def _fit(source: Source, options: Namespace) -> tuple[Model, Found]:
    """Return a model fitted to a table, and the result of a test on held-out rows."""
    if options.scheduler is not None:
        return _fit_on_cluster(source, options), {}
    if source.named:
        return _fit_table(source, options)
    return _fit_array(source, options), {}


def _keep_writing(model: Model, source: Source) -> None:
    """Store in the model how its text files were written, for later files."""
    files = text_files(source.file)
    if not files:
        return
    for file in files:
        model.schema_ = model.schema_.as_written(file)
    if model._table is not None:
        model._table = replace(model._table, schema=model.schema_)


# Tables


def _fit_table(source: Source, options: Namespace) -> tuple[Model, Found]:
    """Fit to a table in memory if it fits, else to its numbers in a file.

    Also return the result of a test on held-out rows.
    """
    # read the table until it is too large to be copied in memory
    allowed = as_bytes(options.max_memory) // COPIES
    size = 0
    parts: list[pa.Table] = []
    tables: Iterator[pa.Table] = count_rows(source.parts(), "read", source.file.n, 1)
    for part in tables:
        parts.append(part)
        size += part.nbytes
        if size > allowed:
            return _fit_large(source, chain(parts, tables), options), {}

    # the whole table is in memory
    rows = source.join(parts)
    schema = Schema.of(rows.X, "fill", _ids(options))
    _print_columns(schema, rows.X.num_rows, options)
    if rows.y is None:
        return _fit_rows(rows, None, options), {}

    # fit a learner, with or without a test
    target = str(source.target)
    y, classify = choose_task(rows.y, target, options)
    if not options.test:
        return _fit_rows(replace(rows, y=y), classify, options), {}
    problem = Problem(
        rows.X,
        y,
        classify,
        target,
        seed=options.seed,
        groups=rows.groups,
        by_time=options.cv == "time",
    )
    return _fit_and_test(problem, options)


def _fit_and_test(problem: Problem, options: Namespace) -> tuple[Model, Found]:
    """Measure the error on held-out rows, then fit to all rows."""
    classify = problem.classify
    rows = FitRows(problem.frame, problem.y, problem.groups)
    held = problem.hold_out()
    if held is None:
        few = "a label has too few rows"
        if problem.groups is not None:
            few = "there are too few groups, or a label has too few rows"
        if len(problem.y) < FEWEST:
            few = f"the table has fewer than {FEWEST} rows"
        print(f"The error on held-out rows was not measured: {few}.")
        return _fit_rows(rows, classify, options), {}

    # the time limit covers both fits
    fits_again = len(held) > SMALL_SHARE * len(problem.y)
    share = 1.0
    if fits_again:
        share = 0.5

    # compare the error with those of simple models
    name = OURS
    if options.linear:
        name = LINEAR
    untested = make_model(options, classify, share)
    model, outcomes = fit_and_test(untested, problem, held, name)
    sentence = say_outcome(outcomes, problem.measure, problem.target)
    errors = ", ".join(f"{o.name} {format_number(o.error, 4)}" for o in outcomes)
    print(f"{problem.measure.capitalize()} on {len(held):,} held-out rows: {errors}")
    print(printable(sentence))

    # fit again to all rows, unless few were held out
    if fits_again:
        model = _fit_rows(rows, classify, options, share)

    tested: Found = {"rows": len(held), "measure": problem.measure, "sentence": sentence}
    for outcome in outcomes:
        tested[outcome.name] = outcome.error
    return model, tested


def _fit_rows(
    rows: FitRows, classify: bool | None, options: Namespace, share: float = 1.0
) -> Model:
    """Return a fitted learner or, without a target, a fitted transformer.

    A learner has a `share` of the time limit.
    """
    model = make_model(options, classify, share)
    if classify is None:
        return model.fit(rows.X)
    return model.fit(rows.X, rows.y, groups=rows.groups)


def _fit_large(source: Source, tables: Iterable[pa.Table], options: Namespace) -> Model:
    """Survey all rows, then copy them as numbers to a file with random access."""
    # decide from all rows what each column is
    names = list(source.columns)
    beside: list[pa.Table] = []
    missing = "fill"
    if source.target is None:
        missing = "refuse"
    summaries = _summarise(tables, source, beside)
    schema = Schema.from_summaries(summaries, missing, named=True, ids=_ids(options))
    n = sum(part.num_rows for part in beside)
    _print_columns(schema, n, options)

    # keep targets and groups in memory
    together = join_tables(beside)
    groups = source.groups_in(together)
    y = source.target_in(together)
    classify = None
    if y is not None:
        y, classify = choose_task(y, str(source.target), options)

    # write all rows as numbers to a file, and fit to it
    training = _train_codes(schema, source, y, classify)

    def encode(part: pa.Table, start: int) -> Floats:
        return training.encode_table(part.select(names), start)

    with _numbers_in_file(source, encode) as X:
        model = _fit_rows(FitRows(X, y, groups), classify, options)

    # the saved model takes tables, not these numbers
    model._table = training.codes
    model.schema_ = schema
    note_columns(model, names, len(names))
    return model


def _summarise(
    tables: Iterable[pa.Table], source: Source, beside: list[pa.Table]
) -> Iterator[list[ColumnSummary]]:
    """Yield what is seen of the columns in each part; keep target and groups in `beside`."""
    names = list(source.columns)
    for part in tables:
        beside.append(part.select(source.beside))
        yield summarise_columns(part.select(names))


def _train_codes(
    schema: Schema, source: Source, y: Targets | None, classify: bool | None
) -> TrainingCodes:
    """Return the codes of a table, with target means for categories with many values.

    If there are such categories, the rows are read once more.
    """
    codes = Codes.of(schema)
    if y is None or not codes.many_valued:
        return TrainingCodes(codes, {})

    # an indicator for each class, or the target itself
    if classify:
        classes, labels = np.unique(y, return_inverse=True)
        Y = np.eye(len(classes))[labels]
    else:
        Y = np.asarray(y, dtype=np.float64)[:, None]

    names = list(source.columns)
    read = PositionReader(codes)
    parts = [read(part.select(names)) for part in source.parts()]
    return TrainingCodes.of_parts(schema, parts, Y, weights=None)


# Arrays


def _fit_array(source: Source, options: Namespace) -> Model:
    """Fit to an array in place, or to some rows and columns copied to a file."""
    if source.whole:
        return _fit_numbers(source.read(), options)

    width = len(source.columns)
    beside: list[Block] = []

    def split(block: Block, _: int) -> Block:
        beside.append(block[:, width:])
        return block[:, :width]

    with _numbers_in_file(source, split) as X:
        # target and groups, of the rows that were kept
        others = dict(zip(source.beside, np.concatenate(beside).T, strict=True))
        values = source.y
        if source.target is not None:
            values = others[source.target]
        elif values is not None and source.drops:
            values = values[np.concatenate(source.kept)]
        groups = None
        if source.groups is not None:
            groups = number_groups(others[source.groups])
        return _fit_numbers(FitRows(X, values, groups), options)


def _fit_numbers(rows: FitRows, options: Namespace) -> Model:
    """Return a fitted learner or, without a target, a fitted transformer."""
    classify = None
    if rows.y is not None:
        y, classify = choose_task(rows.y, str(options.target), options)
        rows = replace(rows, y=y)
    return _fit_rows(rows, classify, options)


@contextmanager
def _numbers_in_file(source: Source, encode: Callable[[TablePart, int], Block]) -> Iterator[Block]:
    """Give all rows as a memory map of numbers; `encode` takes a part and its first row."""
    with TemporaryDirectory(prefix="nysboost-") as folder:
        parts = count_rows(source.parts(), "read", source.file.n, 1)

        # the first block shows how many columns there are
        block = encode(next(parts), 0)
        file = NpyOutput(Path(folder) / "X.npy", None, block.shape[1], block)
        file.begin()
        file.write(block)
        for part in parts:
            block = encode(part, file.written)
            file.write(block)
        yield file.finish()


def _fit_on_cluster(source: Source, options: Namespace) -> Model:
    """Return a model fitted by the workers of a cluster."""
    with cluster.connect(options.scheduler):
        X = cluster.dask_table(source)
        y = cluster.dask_target(source)
        if y is None:
            return make_model(options, None).fit(X)

        # the target on a cluster is not inspected: numbers mean regression
        classify = options.task == "classification"
        if options.task == "auto":
            classify = y.dtype.kind not in "fiu"
        return make_model(options, classify).fit(X, y)


# What is fitted


def _print_columns(schema: Schema, n: int, options: Namespace) -> None:
    """Print the kind of each column, including what a fit would warn about."""
    warnings.filterwarnings("ignore", message="Column '")
    rows = format_count(n, "row")
    columns = format_count(schema.width, "column")
    lines = [f"{rows}, {columns}", *schema.describe()]
    lines += hints_to_hold_out(schema, options)
    print("\n  ".join(printable(line) for line in lines))


def hints_to_hold_out(schema: Schema, options: Namespace) -> list[str]:
    """Return hints on dates and repeated ids, unless the options say which rows are held out."""
    is_chosen = options.cv != "random" or options.groups is not None
    if options.target is None or is_chosen or not schema.notes:
        return []
    advice = "Use --cv time to hold out the last rows, or --groups COLUMN to hold out whole groups."
    return [*schema.notes, advice]


def _ids(options: Namespace) -> str:
    """Return what to do with columns of ids: a learner may leave them out."""
    if options.target is None:
        return "keep"
    return str(options.ids)


def choose_task(y: Targets, target: str, options: Namespace) -> tuple[Targets, bool]:
    """Return targets, and whether the task is classification; print the task and the reason.

    The task is classification if the target is text or has two different whole numbers.
    """
    numbers = y.dtype.kind in "fiu"
    n_values = len(np.unique(y))
    whole = numbers and _are_whole(y)

    classify = bool(options.task == "classification")
    if options.task == "auto":
        classify = not numbers or (whole and n_values == 2)
        _print_task(classify, target, n_values, numbers)
    if not classify and not numbers:
        msg = f"The target {target!r} is text ({y[0]!r}): choose --task classification."
        raise UserError(msg)
    if classify and numbers:
        _refuse_fractions(y, target)
    elif not classify:
        _refuse_large(y, target)

    # whole labels are 1 and 2, not 1.0 and 2.0
    if classify and whole and y.dtype.kind == "f":
        return y.astype(np.int64), True
    return y, classify


def _refuse_fractions(y: Targets, target: str) -> None:
    """Refuse labels that are numbers with decimals."""
    at = first_of(y != np.round(y))
    if at is not None:
        raise UserError(
            f"The target {target!r} holds numbers such as {y[at]:g}: they can be regressed. If "
            f"they are labels, --category={shlex.quote(target)} says so."
        )


def _refuse_large(y: Targets, target: str) -> None:
    """Refuse numbers whose squares are out of range."""
    row = first_of(np.abs(y.astype(np.float64)) > LARGEST)
    if row is not None:
        raise UserError(
            f"The target {target!r} has the value {y[row]:g} in row {row}, out of range: divide "
            "the column by a constant, or drop such rows."
        )


def _are_whole(y: Targets) -> bool:
    """Whether all numbers are whole, and small enough to be exact."""
    if y.dtype.kind in "iu":
        return True
    exact = np.abs(y.astype(np.float64)) < 2**53
    whole = y == np.round(y)
    return bool(exact.all() and whole.all())


def _print_task(classify: bool, target: str, n_values: int, numbers: bool) -> None:
    """Print which task was chosen, why, and how to choose the other."""
    if classify:
        task = "classification"
        other = "regression"
        why = f"has {format_count(n_values, 'label')}"
    else:
        task = "regression"
        other = "classification"
        why = "holds numbers"
    also = ""
    if numbers:
        also = f" (to change this: --task {other})"
    print(printable(f"  task: {task} of {target!r}, because it {why}{also}"))


def make_model(options: Namespace, classify: bool | None, share: float = 1.0) -> Model:
    """Return a learner with the options of the command, or a transformer if `classify` is None.

    It takes a `share` of the time that the command has.
    """
    if classify is None:
        return nb.Nystroem(
            kernel=choose_kernel(options.kernel, options.sigma),
            method=options.method,
            n_components=options.components,
            tol=options.tol,
            max_memory=options.max_memory,
            random_state=options.seed,
        )

    # limit it to its share of the time
    max_time = options.max_time
    if max_time is not None:
        max_time *= share

    # a linear model has no leaves
    kernel = "auto"
    local: bool | str = "auto"
    if options.linear:
        kernel = "linear"
    if options.linear or not options.local:
        local = False

    # choose how rows are held out
    cv = None
    if options.cv == "time":
        cv = "time"
    return make_learner(
        classify,
        options.components,
        options.seed,
        kernel=kernel,
        local=local,
        max_memory=options.max_memory,
        ids=options.ids,
        cv=cv,
        max_time=max_time,
    )


@contextmanager
def _name_file_in_errors(source: Source) -> Iterator[None]:
    """If a fit raises for missing values, name the file and the options that leave them out."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise

        # its first sentences, in the words of the command
        said = re.split(r"\. (?:Remove|Leave) such", str(error))[0]
        if said.startswith("Column "):
            said = f"c{said[1:]}"
        said = said.removeprefix("X ")
        said = re.sub(r"^y\b", "the target", said)
        advice = "Leave out such rows with --drop-missing, or the column with --drop-column."
        if said.startswith("the target"):
            advice = "Leave out such rows with --drop-missing-target, or with --drop-missing."
        raise TableError(f"{source.file.path}: {said}. {advice}") from error


def _refuse_wrong_options(options: Namespace) -> None:
    """Raise for an unknown method, kernel or size before any file is read."""
    with raise_as(UserError):
        find_method(options.method)
        as_bytes(options.max_memory)
        choose_kernel(options.kernel, options.sigma)

    # refuse options of the other kind of model
    if options.target is None:
        given = _options_given(options, OF_LEARNERS)
        if given:
            raise UserError(f"{given} cannot be given without --target.")
        return
    given = _options_given(options, OF_APPROXIMATIONS)
    if given:
        raise UserError(
            f"{given} cannot be given with --target, because a learner chooses its kernel and "
            "landmarks automatically."
        )
    given = _options_given(options, OF_LANDMARKS)
    if options.linear and given:
        raise UserError(
            f"{given} cannot be given with --linear, because a linear model has neither landmarks "
            "nor leaves: leave one of them out."
        )
    if options.groups is not None and options.scheduler is not None:
        raise UserError("--groups and --scheduler cannot be combined: leave one of them out.")


def _options_given(options: Namespace, usual: Mapping[str, object]) -> str:
    """Return the options that differ from their defaults, as a text."""
    given = []
    for name, usual_value in usual.items():
        value = getattr(options, name)
        option = name.replace("_", "-")
        if value is False and usual_value is True:
            given.append(f"--no-{option}")
        elif value != usual_value:
            given.append(f"--{option}")
    return ", ".join(given)
