"""``nysboost learn``: find the learner that best predicts a target of the user's table."""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nysboost.cli.commands import CHOOSING, spell
from nysboost.cli.fit import choose_task, hints_to_hold_out, spell_predict
from nysboost.cli.sinks import Found
from nysboost.cli.source import Source, open_source
from nysboost.compare import learn_report, learners
from nysboost.compare.outcomes import Outcome
from nysboost.compare.page import WRITTEN as REPORT_FILES
from nysboost.compare.page import make_writable, publish, refuse_missing_packages
from nysboost.numerics.messages import format_count, printable
from nysboost.numerics.progress import report_progress
from nysboost.tables.schema import Schema
from nysboost.user_error import UserError

if TYPE_CHECKING:
    import pyarrow as pa


FEWEST_ROWS = 4
"""Two rows for each of two folds."""


def learn(options: Namespace) -> Found:
    """Compare learners by cross-validation, until done or Ctrl-C; print a table, write a report."""
    # read the table, and choose rows
    source = open_source(options)
    if not source.named:
        msg = f"The columns of {source.file.path} have no names, but learn needs column names."
        raise UserError(msg)
    rows = source.read()
    all_y = np.asarray(rows.y)
    note, kept = choose_rows(len(all_y), options)
    frame: pa.Table = rows.X.take(kept)

    # describe the columns; warnings of a fit would repeat this
    notes = [note]
    if source.drops:
        dropped = format_count(source.dropped_rows, "row")
        notes.append(f"{dropped} with missing values left out")
    schema = Schema.of(frame)
    notes += [*schema.describe(), *hints_to_hold_out(schema, options)]
    print("\n  ".join(printable(line) for line in notes))
    warnings.filterwarnings("ignore", message="Column '")

    # define the task
    target = str(source.target)
    y, classify = choose_task(all_y[kept], target, options)
    if classify:
        y = y.astype(str)
    else:
        y = y.astype(np.float64)
    groups = rows.groups
    if groups is not None:
        groups = groups[kept]
    problem = learners.Problem(
        frame,
        y,
        classify,
        target,
        components=options.components,
        folds=options.folds,
        seed=options.seed,
        groups=groups,
        by_time=options.cv == "time",
    )
    _refuse_what_cannot_be_learned(problem, source)
    notes.append(f"{problem.task} of {target}, {problem.describe_folds()}")

    # compare the learners, and write the report
    refuse_missing_packages()
    make_writable(options.out, REPORT_FILES, [options.data])
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


def choose_rows(n: int, options: Namespace) -> tuple[str, NDArray[np.intp]]:
    """Return a note on the rows that are used, and their numbers in increasing order."""
    if n <= options.max_rows:
        return f"{options.data}: all {n:,} rows are used.", np.arange(n)
    kept = np.random.default_rng(options.seed).permutation(n)[: options.max_rows]
    note = (
        f"{options.data} has {n:,} rows: a random sample of {options.max_rows:,} rows is used "
        "(--max-rows changes this)."
    )
    return note, np.sort(kept)


def _refuse_what_cannot_be_learned(problem: learners.Problem, source: Source) -> None:
    """Raise for too few rows or groups, or labels that are too rare."""
    y = problem.y
    path = source.file.path
    folds = problem.folds
    target = problem.target
    if len(y) < 2 * folds:
        rows = format_count(len(y), "row")
        advice = "lower --folds"
        if len(y) < FEWEST_ROWS:
            advice = f"give at least {FEWEST_ROWS} rows"
        raise UserError(f"{path} has {rows}, too few for {folds} folds: {advice}.")

    # each fold needs a group, and two to fit to
    if problem.groups is not None:
        n_groups = len(np.unique(problem.groups))
        n = format_count(n_groups, "different value")
        if n_groups < 3:
            raise UserError(f"The column of --groups has {n}: give at least three groups.")
        if n_groups < folds:
            raise UserError(
                f"The column of --groups has {n}, fewer than the {folds} folds: lower --folds."
            )
        if n_groups == 3 and folds == 2:
            raise UserError(
                "The column of --groups has 3 different values. With 2 folds, learners would be "
                "fitted to a single group: use --folds 3."
            )

    # each fold needs every label
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        msg = f"The target {target} is {values[0]} in every row: there is nothing to learn."
        raise UserError(msg)
    rarest = counts.argmin()
    if problem.classify and counts[rarest] < folds:
        n = format_count(counts[rarest], "row")
        advice = "remove such rows"
        if folds > 2:
            advice += " or lower --folds"
        raise UserError(
            f"The label {values[rarest]} of {target} has {n}, fewer than the {folds} folds: "
            f"{advice}."
        )


def _commands_to_fit(
    outcomes: Sequence[Outcome], problem: learners.Problem, options: Namespace
) -> dict[str, str]:
    """Return the commands that fit a model to all rows, save it, and predict with it.

    The model is the simplest one that ties with the best learner, or else the better of ours. If a
    constant predicts as well, there is no command.
    """
    best = outcomes[0]
    ours = next((outcome for outcome in outcomes if learners.is_ours(outcome.name)), None)
    if ours is None or learners.is_no_better_than_constant(outcomes):
        return {}

    # prefer the simplest model that ties with the best, or else the better of ours
    chosen = learners.find_simplest(outcomes)
    if chosen is None:
        winner = learners.name_in_sentence(best, begins=True)
        chosen = ours
        why = f"{winner} is better here. To fit {ours.name} to all rows anyway:"
    elif chosen is best:
        why = f"To fit {learners.name_in_sentence(best)} to all rows and save it:"
    else:
        name = learners.name_in_sentence(chosen, begins=True)
        why = f"{name} is simpler and predicts as well. To fit it to all rows and save it:"

    # repeat the options that `fit` shares with this command; a linear model has no landmarks
    own = learners.OPTIONS_OF[chosen.name]
    names = f"--target --task --seed --cv --groups --drop-missing-target {CHOOSING}"
    if "--linear" not in own:
        names += " --components"
    words = ["nysboost", "fit", str(options.data), "--out", "model.nysboost"]
    words += spell(options, names) + own
    predict = spell_predict("model.nysboost", problem.classify)
    return {why: shlex.join(words), "Predict new rows:": predict}
