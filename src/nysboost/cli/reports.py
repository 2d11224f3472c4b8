"""``nysboost learn``, ``compare`` and ``list``: what suits a table, and what there is."""

from __future__ import annotations

import shlex
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
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
from nysboost.numerics.messages import format_count
from nysboost.numerics.progress import report_progress
from nysboost.paper import datasets, presets
from nysboost.rows.recognise import scan_rows
from nysboost.tables.codes import Codes
from nysboost.tables.schema import Schema
from nysboost.user_error import UserError

LARGEST = 1e100
"""Numbers beyond this have squares that some learner cannot add up."""
ONE_ALONE = 0.99
"""Share of the variance that a column has beside which others do not count."""
MOST_ROWS = 20_000
"""Most rows whose exact error can be afforded: it takes all n² entries."""


def learn(options: Namespace) -> dict[str, Any]:
    """Compare learners by cross-validation, until Ctrl-C; print a table, write a report."""
    source = open_source(options)
    if not source.named:
        msg = f"The columns of {source.file.path} have no names: learn takes a file that has them."
        raise UserError(msg)
    frame, y = source.read()
    note, kept = _choose_rows(len(y), options)
    frame, y = frame.take(kept), y[kept]
    notes = [note, *Schema.of(frame).describe()]
    if source.drops:
        notes.insert(1, f"{format_count(source.dropped_rows, 'row')} with gaps left out before")
    print("\n  ".join(notes))
    target, folds = str(source.target), options.folds
    y, classify = choose_task(y, target, options)
    y = y.astype(str) if classify else y.astype(np.float64)
    sizes = (options.components, folds, options.seed)
    problem = learners.Problem(frame, y, bool(classify), target, *sizes)
    _refuse_what_cannot_be_learned(problem, source)
    task = "classification" if classify else "regression"
    notes.append(f"{task} of {target}, {folds} folds")
    make_writable(options.out)
    with report_progress("fits", verbose=1):
        outcomes, first = learners.cross_validate(problem, notes.append)
    about = {
        "notes": [*source.file.notes, *notes],
        "commands": _commands_to_fit(outcomes, problem, options),
        "settings": {"command": options.again, "landmarks": options.components or "auto"},
    }
    page = learn_report.make_page(outcomes, first, problem, about)
    publish(page, options.out)
    done = {"headline": page.headline, "next": list(page.commands.values())}
    return done | {"learners": page.records}


def _choose_rows(n: int, options: Namespace) -> tuple[str, Any]:
    """Return a note on the rows that are used, and which they are."""
    if n <= options.max_rows:
        return f"{options.data}: {n:,} rows, all of them used.", np.arange(n)
    some = f"{options.max_rows:,} of them, drawn at random, are used (--max-rows changes that)."
    kept = np.random.default_rng(options.seed).permutation(n)[: options.max_rows]
    return f"{options.data} has {n:,} rows: {some}", np.sort(kept)


def _refuse_what_cannot_be_learned(problem: learners.Problem, source: Source) -> None:
    """Refuse too few rows, numbers that no learner could square, and labels that are too rare."""
    y, path, folds, target = problem.y, source.file.path, problem.folds, problem.target
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
    ours = next((o for o in outcomes if learners.is_ours(o.name)), None)
    if ours is None:
        return {}
    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost"]
    words += spell(options, f"--target --task --components --seed --drop-missing-target {CHOOSING}")
    words += ["--no-local"] if ours.name == learners.COMPACT else []
    why = f"Fit {ours.name} to all rows and save it:"
    if not learners.is_tie(ours, outcomes[0]):
        best = learners.name_in_sentence(outcomes[0], begins=True)
        why = f"{best} is better here. To fit {ours.name} to all rows nevertheless:"
    predict = spell_predict("model.nysboost", problem.classify)
    return {why: shlex.join(words), "Predict new rows:": predict}


def compare(options: Namespace) -> dict[str, Any]:
    """Compare methods, until Ctrl-C; print a table, recommend one, write a report."""
    chosen = methods.choose_methods(options.methods)
    kernel = methods.choose_kernel(options.kernel, options.sigma)
    X, said, notes = _read_points(options)
    budget = methods.choose_budget(options.components, X.shape[0], chosen, options.learners)
    make_writable(options.out)
    seeds = format_count(options.repeats, "seed")
    notes.append(
        f"Kernel: {options.kernel}; {budget} landmarks; mixtures have {options.learners} learners "
        f"of {budget // options.learners} columns; {seeds} each, timed with one thread."
    )
    print("\n".join(notes))
    sizes = (budget, options.learners, options.rank, options.repeats, options.seed)
    task = methods.Task(X, kernel, chosen, *sizes, lenient=options.methods == "all")
    with report_progress("methods", verbose=1):
        outcomes = methods.run(task, notes.append)
    method, reason = methods.recommend(outcomes)
    about = {
        "notes": [*said, *notes],
        "commands": _command_to_approximate(method, task, options),
        "settings": {"command": options.again},
    }
    page = methods.make_page(outcomes, budget, about)
    publish(page, options.out)
    return {"recommended": method, "reason": reason, "methods": page.records}


def _read_points(options: Namespace) -> tuple[Any, list[str], list[str]]:
    """Return the points to compare on, (n, d), what was said of their file, and what was done."""
    if options.max_rows > MOST_ROWS:
        msg = f"The exact error takes all n² entries: at most {MOST_ROWS} rows, not "
        raise UserError(f"{msg}{options.max_rows}.")
    name, details, said = str(options.data), list[str](), list[str]()
    if not options.data.exists() and name in datasets.DATASETS:
        if options.drop_column:
            raise UserError(f"The data set {name} has no other columns: leave --drop-column out.")
        X, n = datasets.draw(name, options.max_rows, options.seed, options.data_dir)
        note, _ = _choose_rows(n, options)
    else:
        source = open_source(options)
        (X, details), said = _read_numbers(source, options.standardise), source.file.notes
        options.drop_missing = source.drop_missing
        note, kept = _choose_rows(X.shape[0], options)
        X = X if len(kept) == X.shape[0] else X[kept]
    if options.standardise:
        if is_sparse(X):
            raise UserError("A sparse table this wide cannot be standardised: it would fill up.")
        scale = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        details.append("Each column was scaled to mean 0 and standard deviation 1.")
    return X, said, [f"{note} They make {X.shape[1]:,} columns of numbers.", *details]


def _read_numbers(source: Source, standardise: bool) -> tuple[Any, list[str]]:
    """Return the rows of a table as numbers, and what its columns are.

    Gaps are filled here; a fit without a target has to leave such rows out.
    """
    table, _ = source.read()
    if not source.named:
        scan_rows(table, name=str(source.file.path))  # or it says which number is none
        return table, []
    schema = Schema.of(table)
    source.drop_missing |= any(column.gaps for column in schema.columns)
    codes = Codes.of(schema)
    X, details = codes(table), schema.describe()
    spread = np.bincount(codes.origins, (X - X.mean(axis=0)).var(axis=0), minlength=schema.width)
    widest, total = int(np.argmax(spread)), float(spread.sum())
    if not standardise and len(schema.columns) > 1 and spread[widest] > ONE_ALONE * total > 0:
        details.append(
            f"Column {schema.columns[widest].name!r} has nearly all of the variance, so that the "
            "kernel hardly sees the others: --standardise scales all columns alike."
        )
    return X, details


def _command_to_approximate(method: str, task: methods.Task, options: Namespace) -> dict[str, str]:
    """Return what fits the recommended method to all rows."""
    if method in methods.MIXTURES or options.standardise or not options.data.exists():
        sizes = "".join(f", {k}={v}" for k, v in task.sizes(method).items())
        code = f'nb.approximate(X, "{method}", nb.{task.kernel!r}{sizes}, random_state={task.seed})'
        return {"Approximate with it, in Python:": code}
    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost", "--method", method]
    words += ["--components", str(task.budget), *spell(options, f"--kernel --sigma {CHOOSING}")]
    rows = "all rows without gaps" if options.drop_missing else "all rows"
    return {f"Fit it to {rows} and save it:": shlex.join(words)}


def list_all(options: Namespace) -> dict[str, Any]:
    """Print methods, kernels, presets and data sets, and where each data set was found."""
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"The data folder {options.data_dir} does not exist.")
    found: dict[str, Any] = {"methods": list(nb.METHODS), "kernels": list(KERNELS)}
    found |= {"presets": list(presets.ORDER), "data": datasets.list_all(options.data_dir)}
    fill = partial(textwrap.fill, width=100, subsequent_indent="    ", break_on_hyphens=False)
    if options.what in ("all", "methods"):
        families = [f"  {family}: {', '.join(names)}" for family, names in nb.FAMILIES.items()]
        print("methods, by family:", *map(fill, families), sep="\n")
    if options.what in ("all", "kernels"):
        print(fill(f"kernels: {', '.join(KERNELS)}"))
    if options.what in ("all", "presets"):
        loaded = [presets.load(name) for name in presets.ORDER]
        rows = [[p.name, p.title, "; ".join(p.figures)] for p in loaded]
        print_table(Table("presets", ["name", "experiment", "figures of the paper"], rows))
    if options.what in ("all", "data"):
        head, rows = list(found["data"][0]), [list(row.values()) for row in found["data"]]
        print_table(Table("data sets", head, rows))
    return found
