"""``nysboost compare``: find the method that best approximates the kernel matrix of a table."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nysboost.cli.commands import CHOOSING, spell
from nysboost.cli.learn_command import choose_rows
from nysboost.cli.sinks import Found
from nysboost.cli.source import Source, open_source
from nysboost.compare import methods
from nysboost.compare.page import WRITTEN as REPORT_FILES
from nysboost.compare.page import make_writable, publish, refuse_missing_packages
from nysboost.gram.precomputed import check_precomputed
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, is_sparse
from nysboost.numerics.messages import format_count, printable
from nysboost.numerics.progress import report_progress
from nysboost.paper import datasets
from nysboost.rows.recognise import scan_rows
from nysboost.tables.codes import Codes
from nysboost.tables.schema import Schema
from nysboost.user_error import TableError, UserError, raise_as

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 20_000
"""Largest number of rows for an exact error, which takes all n² entries."""


def compare(options: Namespace) -> Found:
    """Compare methods until Ctrl-C or the end; print a table, recommend one, write a report."""
    # refuse wrong options before anything is measured
    chosen = methods.choose_methods(options.methods, options.kernel)
    kernel = _choose_kernel(options)
    points = _read_points(options)
    budget = methods.choose_budget(options.components, len(points), chosen, options.learners)
    refuse_missing_packages()
    make_writable(options.out, REPORT_FILES, [options.data])

    # say what is compared
    seeds = format_count(options.repeats, "seed")
    mixtures = ""
    if any(name in methods.MIXTURES for name in chosen):
        columns = budget // options.learners
        mixtures = f" mixtures have {options.learners} learners of {columns} columns;"
    notes = [
        *points.notes,
        f"Kernel: {options.kernel}; {budget} landmarks;{mixtures} {seeds} each, timed with one "
        "thread.",
    ]
    print("\n".join(printable(note) for note in notes))

    # run the comparison
    setup = methods.Setup(
        points.X,
        kernel,
        chosen,
        budget,
        n_learners=options.learners,
        rank=options.rank,
        repeats=options.repeats,
        seed=options.seed,
        lenient=options.methods == "all",
    )
    with report_progress("methods", verbose=1):
        outcomes = methods.run(setup, notes.append)

    # write the report
    method, reason = methods.recommend(outcomes)
    page = methods.make_page(
        outcomes,
        budget,
        notes=[*points.said, *notes],
        commands=_command_to_approximate(method, setup, points, options),
        settings={"command": options.again},
    )
    publish(page, options.out)
    return {"recommended": method, "reason": reason, "methods": page.records}


def _choose_kernel(options: Namespace) -> Kernel | str:
    """Return the kernel, or "precomputed" if the table holds kernel values."""
    if options.kernel != "precomputed":
        return methods.choose_kernel(options.kernel, options.sigma)

    given = {"--sigma": options.sigma, "--standardise": options.standardise}
    ignored = [name for name, value in given.items() if value]
    if ignored:
        raise UserError(
            f"{' and '.join(ignored)} would have no effect, because --kernel precomputed uses the "
            "kernel values unchanged: leave one of them out."
        )
    return "precomputed"


# The rows to compare on


@dataclass
class ComparedRows:
    """Rows to compare methods on: points X (n, d), or kernel values X (n, n).

    `said` has notes on how the file was read, and `notes` on how the rows were processed.
    """

    X: Array
    notes: list[str]
    said: Sequence[str] = ()
    scaled: bool = False
    left_out: bool = False

    def __len__(self) -> int:
        return int(self.X.shape[0])


def _read_points(options: Namespace) -> ComparedRows:
    """Return the rows to compare on, scaled if they are a table of several columns."""
    if options.max_rows > MOST_ROWS:
        raise UserError(
            "The exact error needs all n² entries of the matrix, so --max-rows can be at most "
            f"{MOST_ROWS}, not {options.max_rows}."
        )
    is_data_set = str(options.data) in datasets.DATASETS
    if is_data_set and not options.data.exists():
        return _read_data_set(options)

    # read kernel values, or some rows of a table
    source = open_source(options)
    if options.kernel == "precomputed":
        return _read_kernel_values(source, options)

    points = _read_numbers(source, options)
    note, kept = choose_rows(len(points), options)
    if len(kept) < len(points):
        points.X = points.X[kept]
    points.notes.insert(0, _count_columns(note, points.X))
    return points


def _count_columns(note: str, X: Array) -> str:
    return f"{note} They have {X.shape[1]:,} columns of numbers."


def _read_data_set(options: Namespace) -> ComparedRows:
    """Return rows of one of the paper's data sets."""
    name = str(options.data)
    if options.drop_column:
        raise UserError(f"The data set {name} has no other columns: leave --drop-column out.")
    X, n = datasets.draw(name, options.max_rows, options.seed, options.data_dir)
    note, _ = choose_rows(n, options)
    points = ComparedRows(X, [_count_columns(note, X)])
    if options.standardise:
        _standardise(points)
    return points


def _read_kernel_values(source: Source, options: Namespace) -> ComparedRows:
    """Return the kernel values between some of the rows; raise if it is not a kernel matrix."""
    # kernel values form a square matrix
    G = source.read().X
    if source.named:
        G = _as_matrix(G, source)
    n, width = G.shape
    if n != width:
        raise TableError(
            f"{source.file.path} is not a kernel matrix, which would be square: it has {n:,} rows "
            f"and {width:,} columns. To use its rows as points, leave --kernel precomputed out."
        )
    with raise_as(TableError):
        check_precomputed(scan_rows(G, name=str(source.file.path)))

    # keep some rows, and the same columns
    note, kept = choose_rows(n, options)
    if len(kept) < n:
        G = G[kept][:, kept]
    return ComparedRows(G, [note], source.file.notes)


def _as_matrix(table: pa.Table, source: Source) -> NDArray[np.float64]:
    """Return a table of numbers as an array."""
    for column in Schema.of(table).columns:
        if column.kind != "number":
            raise TableError(
                f"{source.file.path} is not a kernel matrix: its column {column.name!r} does not "
                "hold numbers. To use its rows as points, leave --kernel precomputed out."
            )
    matrix = np.column_stack([column.to_numpy() for column in table.columns])
    return matrix.astype(np.float64)


def _read_numbers(source: Source, options: Namespace) -> ComparedRows:
    """Return the rows of a table as numbers, and the kinds of its columns.

    Missing values are filled here, but a fit without a target has to leave such rows out.
    """
    # an array, of which a scan says which number is none
    table = source.read().X
    if not source.named:
        scan_rows(table, name=str(source.file.path))
        points = ComparedRows(table, [], source.file.notes)
        if options.standardise:
            _standardise(points)
        return points

    # a table of several columns is scaled by default
    schema = Schema.of(table)
    gaps = any(column.gaps for column in schema.columns)
    points = ComparedRows(
        Codes.of(schema)(table),
        schema.describe(),
        source.file.notes,
        left_out=source.drop_missing or gaps,
    )
    several = len(schema.columns) > 1
    if options.standardise or (options.standardise is None and several):
        _standardise(points)
    return points


def _standardise(points: ComparedRows) -> None:
    """Scale each column to mean 0 and standard deviation 1, so that all have equal influence."""
    X = points.X
    if is_sparse(X):
        raise UserError(
            "A sparse table this wide cannot be standardised, because it would become dense: leave "
            "--standardise out."
        )

    # constant columns become 0
    mean = X.mean(axis=0)
    std = X.std(axis=0)
    scale = np.where(std > 0, std, 1.0)
    points.X = (X - mean) / scale
    points.scaled = True
    points.notes.append(
        "Each column was scaled to mean 0 and standard deviation 1 (not with --no-standardise)."
    )


# What comes next


def _command_to_approximate(
    method: str, setup: methods.Setup, points: ComparedRows, options: Namespace
) -> dict[str, str]:
    """Return the command, or Python code, that uses the recommended method on all rows."""
    # the command line has no mixtures and does not scale columns
    needs_python = method in methods.MIXTURES or points.scaled or not options.data.exists()
    if needs_python or options.kernel == "precomputed":
        return _python_to_approximate(method, setup, points)

    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost", "--method", method]
    words += ["--components", str(setup.budget), *spell(options, f"--kernel --sigma {CHOOSING}")]
    rows = "all rows"
    if points.left_out:
        rows = "all rows without gaps"
        if not options.drop_missing:
            words.append("--drop-missing")
    return {f"To fit it to {rows} and save it:": shlex.join(words)}


def _python_to_approximate(
    method: str, setup: methods.Setup, points: ComparedRows
) -> dict[str, str]:
    """Return a line of Python that repeats the approximation of the comparison."""
    # points, or the matrix itself
    if isinstance(setup.kernel, str):
        kernel = repr(setup.kernel)
        what = "G, the kernel matrix"
        rows = "G"
    else:
        kernel = f"nb.{setup.kernel!r}"
        what = "X, the numbers of the table"
        rows = "X"
    if points.scaled:
        rows = "sklearn.preprocessing.scale(X)"

    # use as many landmarks as the comparison
    sizes = ""
    for name, value in setup.sizes(method).items():
        if value is not None:
            sizes += f", {name}={value}"
    code = f'nb.approximate({rows}, "{method}", {kernel}{sizes}, random_state={setup.seed})'
    return {f"To use it in Python, with {what}:": code}
