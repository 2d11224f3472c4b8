"""``nysboost learn``, ``compare`` and ``list``: what suits a table, and what there is."""

from __future__ import annotations

import shlex
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import nysboost as nb
from nysboost.cli.commands import CHOOSING, spell
from nysboost.cli.fit import choose_task, spell_predict
from nysboost.cli.source import Source, open_source
from nysboost.compare import learn_report, learners, methods
from nysboost.compare.outcomes import Outcome
from nysboost.compare.page import Table, make_writable, print_table, publish
from nysboost.kernels import KERNELS
from nysboost.numerics.arrays import is_sparse
from nysboost.numerics.messages import format_count, printable, unknown
from nysboost.numerics.progress import report_progress
from nysboost.paper import datasets, presets
from nysboost.rows.recognise import scan_rows
from nysboost.tables.codes import Codes
from nysboost.tables.schema import Schema
from nysboost.user_error import UserError

LARGEST = 1e100
"""Numbers beyond this have squares that some learner cannot add up."""
MOST_ROWS = 20_000
"""Most rows whose exact error can be afforded: it takes all n² entries."""


def learn(options: Namespace) -> dict[str, Any]:
    """Compare learners by cross-validation, until Ctrl-C; print a table, write a report."""
    # The table and its target
    source = open_source(options)
    if not source.named:
        msg = f"The columns of {source.file.path} have no names: learn takes a file that has them."
        raise UserError(msg)
    frame, y = source.read()
    note, kept = _choose_rows(len(y), options)
    frame = frame.take(kept)
    y = y[kept]
    notes = [note]
    if source.drops:
        dropped = format_count(source.dropped_rows, "row")
        notes.append(f"{dropped} with gaps left out before")
    notes += Schema.of(frame).describe()
    print("\n  ".join(printable(line) for line in notes))

    # What is learned
    target = str(source.target)
    y, classify = choose_task(y, target, options)
    y = y.astype(str) if classify else y.astype(np.float64)
    problem = learners.Problem(
        frame,
        y,
        bool(classify),
        target,
        components=options.components,
        folds=options.folds,
        seed=options.seed,
        groups=_read_groups(frame, options.groups),
        by_time=options.cv == "time",
    )
    _refuse_what_cannot_be_learned(problem, source)
    notes.append(f"{problem.task} of {target}, {problem.describe_folds()}")

    # The comparison and its report
    make_writable(options.out, [options.data])
    with report_progress("fits", verbose=1):
        outcomes, first = learners.cross_validate(problem, notes.append)
    page = learn_report.make_page(
        outcomes,
        first,
        problem,
        notes=[*source.file.notes, *notes],
        commands=_commands_to_fit(outcomes, problem, options),
        settings={"command": options.again, "landmarks": options.components or "auto"},
    )
    publish(page, options.out)
    return {
        "headline": page.headline,
        "next": list(page.commands.values()),
        "learners": page.records,
    }


def _choose_rows(n: int, options: Namespace) -> tuple[str, Any]:
    """Return a note on the rows that are used, and which they are."""
    if n <= options.max_rows:
        return f"{options.data}: {n:,} rows, all of them used.", np.arange(n)
    kept = np.random.default_rng(options.seed).permutation(n)[: options.max_rows]
    note = (
        f"{options.data} has {n:,} rows: {options.max_rows:,} of them, drawn at random, are used "
        "(--max-rows changes that)."
    )
    return note, np.sort(kept)


def _read_groups(frame: Any, name: str | None) -> Any:
    """Return the values of the column whose rows belong together, as integers; None without."""
    if name is None:
        return None
    if name not in frame.column_names:
        raise UserError(unknown("column", name, frame.column_names))
    return np.unique(frame.column(name).to_pandas().astype(str), return_inverse=True)[1]


def _refuse_what_cannot_be_learned(problem: learners.Problem, source: Source) -> None:
    """Refuse too few rows, numbers that no learner could square, and labels that are too rare."""
    y = problem.y
    path = source.file.path
    folds = problem.folds
    target = problem.target
    if len(y) < 2 * folds:
        raise UserError(f"{path} has {len(y)} rows: too few for {folds} folds.")
    if not problem.classify and (np.abs(y) > LARGEST).any():
        row = int(np.argmax(np.abs(y) > LARGEST))
        raise UserError(
            f"Column {target} of {path} has the value {y[row]:g} in row {row + 1}, out of range: "
            "divide the column by a constant, or drop such rows."
        )
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        msg = f"The target {target} is {values[0]} in every row: there is nothing to learn."
        raise UserError(msg)
    if problem.classify and counts.min() < folds:
        n = format_count(counts.min(), "row")
        raise UserError(
            f"The label {values[counts.argmin()]} of {target} has {n}, fewer than the {folds} "
            "folds: drop such rows, or take fewer folds with --folds."
        )


def _commands_to_fit(
    outcomes: Sequence[Outcome], problem: learners.Problem, options: Namespace
) -> dict[str, str]:
    """Return what fits the better of ours to all rows and saves it, and what predicts."""
    ours = next((outcome for outcome in outcomes if learners.is_ours(outcome.name)), None)
    if ours is None:
        return {}

    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost"]
    words += spell(options, f"--target --task --components --seed --drop-missing-target {CHOOSING}")
    if ours.name == learners.COMPACT:
        words.append("--no-local")

    why = f"Fit {ours.name} to all rows and save it:"
    if not learners.is_tie(ours, outcomes[0]):
        best = learners.name_in_sentence(outcomes[0], begins=True)
        why = f"{best} is better here. To fit {ours.name} to all rows nevertheless:"
    predict = spell_predict("model.nysboost", problem.classify)
    return {why: shlex.join(words), "Predict new rows:": predict}


def compare(options: Namespace) -> dict[str, Any]:
    """Compare methods, until Ctrl-C; print a table, recommend one, write a report."""
    chosen = methods.choose_methods(options.methods, options.kernel)
    precomputed = options.kernel == "precomputed"
    kernel: Any = options.kernel
    if not precomputed:
        kernel = methods.choose_kernel(options.kernel, options.sigma)
    points = _read_points(options)
    budget = methods.choose_budget(options.components, len(points), chosen, options.learners)
    make_writable(options.out, [options.data])

    seeds = format_count(options.repeats, "seed")
    notes = [
        *points.notes,
        f"Kernel: {options.kernel}; {budget} landmarks; mixtures have {options.learners} learners "
        f"of {budget // options.learners} columns; {seeds} each, timed with one thread.",
    ]
    print("\n".join(printable(note) for note in notes))

    task = methods.Task(
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
        outcomes = methods.run(task, notes.append)
    method, reason = methods.recommend(outcomes)
    about = {
        "notes": [*points.said, *notes],
        "commands": _command_to_approximate(method, task, points, options),
        "settings": {"command": options.again},
    }
    page = methods.make_page(outcomes, budget, about)
    publish(page, options.out)
    return {"recommended": method, "reason": reason, "methods": page.records}


@dataclass
class Points:
    """Rows to compare methods on: points X (n, d), or kernel values X (n, n).

    `said` is what was noticed of their file, `notes` what was done to them.
    """

    X: Any
    notes: list[str]
    said: Sequence[str] = ()
    scaled: bool = False
    left_out: bool = False

    def __len__(self) -> int:
        return int(self.X.shape[0])


def _read_points(options: Namespace) -> Points:
    """Return the rows to compare on, scaled if they are a table of several columns."""
    if options.max_rows > MOST_ROWS:
        msg = f"The exact error takes all n² entries: at most {MOST_ROWS} rows, not "
        raise UserError(f"{msg}{options.max_rows}.")
    if not options.data.exists() and str(options.data) in datasets.DATASETS:
        return _read_data_set(options)

    source = open_source(options)
    points = _read_numbers(source, options)
    note, kept = _choose_rows(len(points), options)
    if len(kept) < len(points):
        points.X = points.X[kept]
        if options.kernel == "precomputed":
            points.X = points.X[:, kept]
    width = points.X.shape[1]
    points.notes.insert(0, f"{note} They make {width:,} columns of numbers.")
    return points


def _read_data_set(options: Namespace) -> Points:
    """Return rows of one of the paper's data sets."""
    name = str(options.data)
    if options.drop_column:
        raise UserError(f"The data set {name} has no other columns: leave --drop-column out.")
    X, n = datasets.draw(name, options.max_rows, options.seed, options.data_dir)
    note, _ = _choose_rows(n, options)
    points = Points(X, [f"{note} They make {X.shape[1]:,} columns of numbers."])
    if options.standardise:
        _standardise(points)
    return points


def _read_numbers(source: Source, options: Namespace) -> Points:
    """Return the rows of a table as numbers, and what its columns are.

    Gaps are filled here; a fit without a target has to leave such rows out.
    """
    table, _ = source.read()
    if options.kernel == "precomputed":
        return Points(table, [], source.file.notes)
    if not source.named:
        scan_rows(table, name=str(source.file.path))  # or it says which number is none
        points = Points(table, [], source.file.notes)
        if options.standardise:
            _standardise(points)
        return points

    schema = Schema.of(table)
    codes = Codes.of(schema)
    gaps = any(column.gaps for column in schema.columns)
    points = Points(codes(table), schema.describe(), source.file.notes)
    points.left_out = source.drop_missing or gaps
    several = len(schema.columns) > 1
    if options.standardise or (options.standardise is None and several):
        _standardise(points)
    return points


def _standardise(points: Points) -> None:
    """Scale each column to mean 0 and standard deviation 1, so that the kernel sees all alike."""
    X = points.X
    if is_sparse(X):
        raise UserError("A sparse table this wide cannot be standardised: it would fill up.")
    scale = X.std(axis=0)
    points.X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    points.scaled = True
    points.notes.append(
        "Each column was scaled to mean 0 and standard deviation 1 (--no-standardise leaves them)."
    )


def _command_to_approximate(
    method: str, task: methods.Task, points: Points, options: Namespace
) -> dict[str, str]:
    """Return what approximates with the recommended method on all rows."""
    if method in methods.MIXTURES or points.scaled or not options.data.exists():
        return _python_to_approximate(method, task, points)
    if options.kernel == "precomputed":
        return _python_to_approximate(method, task, points)
    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost", "--method", method]
    words += ["--components", str(task.budget), *spell(options, f"--kernel --sigma {CHOOSING}")]
    rows = "all rows"
    if points.left_out:
        rows = "all rows without gaps"
        if not options.drop_missing:
            words.append("--drop-missing")
    return {f"Fit it to {rows} and save it:": shlex.join(words)}


def _python_to_approximate(method: str, task: methods.Task, points: Points) -> dict[str, str]:
    """Return a line of Python that does what the comparison did."""
    if isinstance(task.kernel, str):
        kernel = repr(task.kernel)
        what = "G, the kernel matrix"
        rows = "G"
    else:
        kernel = f"nb.{task.kernel!r}"
        what = "X, the numbers of the table"
        rows = "X"
    if points.scaled:
        rows = "sklearn.preprocessing.scale(X)"
    given = {name: value for name, value in task.sizes(method).items() if value is not None}
    sizes = "".join(f", {name}={value}" for name, value in given.items())
    code = f'nb.approximate({rows}, "{method}", {kernel}{sizes}, random_state={task.seed})'
    return {f"Approximate with it, in Python, with {what}:": code}


def list_all(options: Namespace) -> dict[str, Any]:
    """Print methods, kernels, presets and data sets, and where each data set was found."""
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"The data folder {options.data_dir} does not exist.")
    found: dict[str, Any] = {
        "methods": list(nb.METHODS),
        "kernels": list(KERNELS),
        "presets": list(presets.ORDER),
        "data": datasets.list_all(options.data_dir),
    }
    if options.what in ("all", "methods"):
        print("methods, by family:")
        for family, names in nb.FAMILIES.items():
            print(_wrap(f"  {family}: {', '.join(names)}"))
    if options.what in ("all", "kernels"):
        print(_wrap(f"kernels: {', '.join(KERNELS)}"))
    if options.what in ("all", "presets"):
        loaded = [presets.load(name) for name in presets.ORDER]
        rows = [[preset.name, preset.title, "; ".join(preset.figures)] for preset in loaded]
        print_table(Table("presets", ["name", "experiment", "figures of the paper"], rows))
    if options.what in ("all", "data"):
        head = list(found["data"][0])
        rows = [list(data_set.values()) for data_set in found["data"]]
        print_table(Table("data sets", head, rows))
    return found


def _wrap(text: str) -> str:
    return textwrap.fill(text, width=100, subsequent_indent="    ", break_on_hyphens=False)
