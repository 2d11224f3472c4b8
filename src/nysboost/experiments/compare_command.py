"""``nysboost compare``: from a file to a table, a recommendation and a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import numpy as np

from nysboost.experiments import compare, console, datasets, report, user_data
from nysboost.experiments.csv_table import write_table
from nysboost.experiments.families import leading
from nysboost.experiments.report import comparison as pages
from nysboost.experiments.store import make_writable
from nysboost.experiments.user_data import Matrix
from nysboost.experiments.user_error import UserError

_USUAL_BUDGET = 480
"""Columns if none are asked for: 8 learners of 60."""


@dataclass(frozen=True)
class Request:
    """The options of the command, as given."""

    data: str
    kernel: str = "gaussian"
    sigma: str | None = None
    columns: int | None = None
    methods: tuple[str, ...] = ()
    n_learners: int = 8
    rank: int | None = None
    label: tuple[str, ...] = ()
    standardise: bool = False
    max_rows: int = 4000
    repeats: int = 3
    seed: int = 0


def run(request: Request, out: Path, data_dir: Path | None = None) -> list[compare.Outcome]:
    """Compare the methods, print the table and the recommendation, write the report."""
    methods = compare.choose_methods(request.methods)
    kernel = compare.choose_kernel(request.kernel, request.sigma)
    X, notes = _points(request, data_dir)
    _refuse_few(X.shape[0], request)
    usual = min(_USUAL_BUDGET, X.shape[0] // 4) // request.n_learners * request.n_learners
    budget = request.columns or min(X.shape[0], max(request.n_learners, usual))
    make_writable(out)
    notes.append(
        f"Kernel: {request.kernel}; budget: {budget} columns; mixtures have {request.n_learners} "
        f"learners of {budget // request.n_learners} columns; {request.repeats} seeds each, timed "
        "with one thread."
    )
    for note in notes:
        console.say(note)
    task = compare.Task(
        X,
        kernel,
        methods,
        budget,
        request.n_learners,
        request.rank,
        request.repeats,
        request.seed,
        lenient=request.methods == ("all",),
    )
    with console.progress("methods") as progress:
        done, steps = count(), len(methods) * request.repeats

        def step(_: str) -> None:
            number = next(done)
            # methods take very different times: only a whole round of them says how long
            progress(number, steps, number >= len(methods))

        outcomes = compare.run(task, step, notes.append)
        progress(steps, steps)
    console.keep_earlier(out / "report.html")
    _show(outcomes)
    console.say("★: no other method is at least as good in error, time and entries together.")
    console.say(compare.recommend(outcomes)[1])
    report.write(pages.page(outcomes, notes, asdict(request)), out / "report.html")
    _write_csv(outcomes, out / "comparison.csv")
    console.say(f"The report is {out / 'report.html'}.")
    if any(note.startswith("Stopped") for note in notes):
        raise KeyboardInterrupt
    return outcomes


def _refuse_few(n: int, request: Request) -> None:
    """Say that there are too few rows before anything is said about columns."""
    mixtures = set(compare.choose_methods(request.methods)) & set(compare.MIXTURES)
    least = 2 * request.n_learners
    if request.columns is None and n < least and mixtures:
        raise UserError(
            f"{request.data} has {n} rows, and mixtures of {request.n_learners} learners need at "
            f"least {least}: give more rows, or fewer learners with --learners."
        )


def _show(outcomes: Sequence[compare.Outcome]) -> None:
    """Print the best of each family, and all others too where they are few."""
    shown = leading(outcomes)
    title = "By family, smallest error first"
    if len(shown) < len(outcomes):
        title = "The best of each family, smallest error first"
    console.table(title, pages.HEAD, pages.rows(shown, compare.pareto_front(outcomes)))
    if len(shown) < len(outcomes):
        rest = len(outcomes) - len(shown)
        console.say(f"The other {rest} methods are in the report, family by family.")


def _points(request: Request, data_dir: Path | None) -> tuple[Matrix, list[str]]:
    """Return the points to compare on, and a sentence for each thing done to them."""
    path = Path(request.data)
    notes: list[str] = []
    if not path.exists() and request.data in datasets.DATASETS:
        X, whole = _known(request, data_dir)
    else:
        table = user_data.read(path, request.label)
        X = table.X
        notes += table.notes
        whole = X.shape[0]
        X = compare.subsample(X, request.max_rows, request.seed)
    if X.shape[0] < whole:
        notes.append(
            f"{request.data} has {whole:,} rows: {X.shape[0]:,} of them, drawn at random with "
            f"seed {request.seed}, are compared (--max-rows changes that)."
        )
    else:
        notes.append(f"{request.data}: {whole:,} rows, {X.shape[1]:,} columns, all of them used.")
    if request.standardise:
        X = compare.standardise(X)
        notes.append("Each column was scaled to mean 0 and standard deviation 1.")
    return X, notes


def _known(request: Request, data_dir: Path | None) -> tuple[Matrix, int]:
    """Return points of one of the known data sets, and how many it has."""
    if request.label:
        raise UserError(f"The data set {request.data} has no label column: leave --label out.")
    stored = datasets.load(request.data, data_dir, console.say)
    whole = datasets.get(request.data).points if stored.values is None else len(stored.values)
    rng = np.random.default_rng(request.seed)
    return stored.draw(min(whole, request.max_rows), rng), whole


COLUMNS = ("method", "columns", "error", "standard_error", "seconds", "entries", "front")


def _write_csv(outcomes: Sequence[compare.Outcome], path: Path) -> None:
    front = compare.pareto_front(outcomes)
    rows = (
        (
            o.method,
            o.curve[-1][0],
            o.error,
            o.standard_error,
            o.seconds,
            o.entries,
            o.method in front,
        )
        for o in outcomes
    )
    write_table(path, COLUMNS, rows)
