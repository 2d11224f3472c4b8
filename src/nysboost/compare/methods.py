"""Methods of approximation compared on points of the user's: error, time, entries, and a choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import nysboost as nb
from nysboost.compare.charts import Chart, Curve, draw_curves
from nysboost.compare.page import Page, Section, Table, format_number
from nysboost.gram import make_gram
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics.arrays import Floats, floats_on_host
from nysboost.numerics.checks import unknown
from nysboost.numerics.progress import track
from nysboost.user_error import UserError

MIXTURES = tuple(
    m for f in ("ensemble", "boosting", "boosting, joint core") for m in nb.FAMILIES[f]
)
SINGLE = ("nystrom", "nystrom-fixed-rank")
DEFAULT_METHODS = (
    *("joint", "nystrom", "kmeans", "rpcholesky", "ensemble-ridge"),
    *("UUB-mean", "URB-mean", "RRB-mean", "URB-med"),
)
BUDGET = 480
"""Landmarks if none are asked for: 8 learners of 60."""
FEW = 12
"""Up to this many methods are drawn and printed; of more, those of the front."""
FRONT = "★: no other method is at least as good in error, time and entries together."
LIMIT = "optimal"
"""No method to use but the limit for all: it decomposes the whole matrix."""
CLOSE = 1.05
"""Errors within 5 % of each other are tied: other seeds differ by as much."""
NONE = 1e-6
"""Errors below this are none: numbers in float32 have no more digits."""
MUCH_FASTER = 0.5
"""Of tied methods, one in half the time is recommended."""
STRIP = 1024
"""Rows of the approximation that are compared with those of the matrix at a time."""


@dataclass(frozen=True)
class Task:
    """Points X, (n, d), a kernel, a budget of columns; `lenient` leaves out what cannot run."""

    X: Any
    kernel: Kernel
    methods: tuple[str, ...]
    budget: int
    n_learners: int = 8
    rank: int | None = None
    repeats: int = 3
    seed: int = 0
    lenient: bool = False

    def sizes(self, method: str) -> dict[str, Any]:
        """Return the parameters that give a method its budget."""
        if method in MIXTURES:
            n_columns = self.budget // self.n_learners
            sizes: dict[str, Any] = {"n_learners": self.n_learners, "n_columns": n_columns}
            return sizes if self.rank is None else sizes | {"rank": min(self.rank, n_columns)}
        if method in SINGLE:
            return {"n_columns": self.budget, "rank": self.rank}
        return {"n_components": self.budget}


@dataclass(frozen=True)
class Outcome:
    """One method: mean relative Frobenius error, processor time and entries, over repeats."""

    method: str
    error: float
    standard_error: float
    seconds: float
    entries: float

    @property
    def family(self) -> str:
        """The family that the method belongs to."""
        return next(name for name, methods in nb.FAMILIES.items() if self.method in methods)


def choose_methods(names: str) -> tuple[str, ...]:
    """Return the methods asked for: names with commas between, "all", or "" for the usual ones."""
    if not names:
        return DEFAULT_METHODS
    if names == "all":
        return tuple(nb.METHODS)
    found = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in found:
        if name not in nb.METHODS:
            raise UserError(unknown("method", name, nb.METHODS))
    return found


def choose_kernel(name: str, sigma: str | None) -> Kernel:
    """Return a kernel by name; sigma is a number, "median", "scale" or None."""
    if name == "precomputed":
        raise UserError("A precomputed matrix is no table of points: use nysboost.approximate.")
    try:
        width: Any = sigma if sigma in (None, "median", "scale") else float(str(sigma))
    except ValueError as error:
        msg = f"--sigma is a number, median or scale, but {sigma!r} was given."
        raise UserError(msg) from error
    try:
        if hasattr(kernel := make_kernel(name), "sigma"):
            return make_kernel(name, sigma=width or "median")
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error
    if width is not None:
        raise UserError(f"The kernel {name} has no sigma: leave --sigma out.")
    return kernel


def choose_budget(n: int, methods: Sequence[str], n_learners: int) -> int:
    """Return the number of landmarks if none is asked for, a multiple of that of learners."""
    if n < 2 * n_learners and set(methods) & set(MIXTURES):
        raise UserError(
            f"The table has {n} rows, and mixtures of {n_learners} learners need at least "
            f"{2 * n_learners}: give more rows, or fewer learners with --learners."
        )
    return min(n, max(n_learners, min(BUDGET, n // 4) // n_learners * n_learners))


def run(task: Task, note: Callable[[str], None]) -> list[Outcome]:
    """Run every method and return what each cost and gave, smallest error first.

    Every method runs with the first seed before any runs with the second: Ctrl-C keeps what was
    measured. `note` gets a sentence for each method that is left out.
    """
    _refuse_budget(task)
    runs: dict[str, list[tuple[float, ...]]] = {method: [] for method in task.methods}
    jobs = [(seed, m) for seed in range(task.repeats) for m in task.methods]
    try:
        # With one thread, processor time is the time on an idle machine.
        with threadpool_limits(1):
            everything = np.arange(task.X.shape[0])
            G = floats_on_host(make_gram(task.X, task.kernel).block(everything, everything))
            for seed, method in track(jobs):
                try:
                    if method in runs:
                        runs[method].append(_measure(task, method, seed, G))
                except ValueError as error:
                    if not task.lenient:
                        raise
                    del runs[method]
                    note(f"{method} was left out. {error}")
    except ValueError as error:
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        done = sum(map(bool, runs.values()))
        if not done:
            raise
        note(
            f"Stopped by Ctrl-C: {done} of {len(task.methods)} methods were run, with "
            f"{sum(map(len, runs.values()))} of {len(jobs)} seeds."
        )
    outcomes = []
    for method, measured in runs.items():
        if measured:
            mean, seconds, entries = map(float, np.mean(measured, axis=0))
            n, errors = len(measured), [run[0] for run in measured]
            spread = float(np.std(errors, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
            outcomes.append(Outcome(method, mean, spread, seconds, entries))
    return sorted(outcomes, key=lambda o: o.error)


def _refuse_budget(task: Task) -> None:
    if task.budget > task.X.shape[0]:
        raise UserError(
            f"{task.budget} landmarks are asked for, but there are only {task.X.shape[0]} rows: "
            "lower --components or give more rows."
        )
    if task.budget < task.n_learners and set(task.methods) & set(MIXTURES):
        message = f"{task.budget} landmarks cannot be split between {task.n_learners} learners."
        raise UserError(message)


def _measure(task: Task, method: str, seed: int, G: Floats) -> tuple[float, ...]:
    """Return error, seconds and entries of one method with one seed."""
    began = time.process_time()
    found = nb.approximate(
        task.X, method, task.kernel, random_state=task.seed + seed, **task.sizes(method)
    )
    seconds = time.process_time() - began
    squares = 0.0
    for start in range(0, len(G), STRIP):
        at = slice(start, start + STRIP)
        squares += float(np.sum((G[at] - floats_on_host(found.block(at, slice(None)))) ** 2))
    return float(np.sqrt(squares / np.sum(G**2))), seconds, float(found.entries_evaluated)


def find_pareto_front(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the methods to use that no other beats in error, time and entries together."""
    usable = [o for o in outcomes if o.method != LIMIT] or outcomes
    costs = np.array([[o.error, o.seconds, o.entries] for o in usable])
    beaten = [((costs <= c).all(axis=1) & (costs < c).any(axis=1)).any() for c in costs]
    return {o.method for o, worse in zip(usable, beaten, strict=True) if not worse}


def recommend(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return a method, and why: smallest error, or as good as that in at most half the time."""
    outcomes = sorted((o for o in outcomes if o.method != LIMIT), key=lambda o: o.error) or outcomes
    best, *others = outcomes
    if not others:
        return best.method, f"{best.method} alone was compared: its error is {best.error:.3g}."
    tied = [o for o in outcomes if o.error <= max(CLOSE * best.error, NONE)]
    fastest = min(tied, key=lambda o: o.seconds)
    if fastest.seconds <= MUCH_FASTER * best.seconds:
        close = fastest.error <= CLOSE * best.error
        return fastest.method, (
            f"Use {fastest.method}: its error {fastest.error:.3g} is "
            f"{'within 5 % of' if close else 'next to nothing, as is'} the smallest "
            f"({best.error:.3g}, {best.method}), and it takes {fastest.seconds:.2g} s instead of "
            f"{best.seconds:.2g} s."
        )
    text = (
        f"Use {best.method}: its error {best.error:.3g} is the smallest of {len(outcomes)} methods"
    )
    if ties := [o.method for o in others if o.error <= CLOSE * best.error]:
        return best.method, f"{text}; {', '.join(ties)} came within 5 % of it, in no less time."
    second = others[0]
    more = second.seconds < MUCH_FASTER * best.seconds
    speed = f", though in {second.seconds:.2g} s instead of {best.seconds:.2g} s" if more else ""
    ratio = (
        f"{second.error / best.error:.2g} times as large" if best.error else f"{second.error:.3g}"
    )
    return best.method, f"{text}; that of {second.method}, the next, is {ratio}{speed}."


def make_page(outcomes: Sequence[Outcome], about: Mapping[str, Any]) -> Page:
    """Return the report of a comparison; `about` are its notes, commands and settings."""
    front, (best, reason) = find_pareto_front(outcomes), recommend(outcomes)
    few = [o for o in outcomes if len(outcomes) <= FEW or o.method in (*front, best)]
    draw = draw_curves(
        "seconds to fit (processor time, one thread)",
        "relative error (Frobenius norm)",
        [Curve(o.method, [o.seconds], [o.error]) for o in few],
        log_x=True,
    )
    head = ["method", "family", "relative error", "± standard error", "seconds"]
    head += ["entries evaluated", "front"]

    def make_table(title: str, shown: Sequence[Outcome], **how: Any) -> Table:
        rows = [
            [o.method, o.family, *map(format_number, (o.error, o.standard_error, o.seconds)),
             f"{o.entries:,.0f}", "★" if o.method in front else ""]
            for o in shown
        ]  # fmt: skip
        marked = frozenset(i for i, o in enumerate(shown) if o.method == best)
        return Table(title, head, rows, marked=marked, **how)

    tables = [make_table("Methods, smallest error first", few, note=FRONT)]
    if len(few) < len(outcomes):
        tables = [make_table("The methods of the front", few, note=FRONT)]
        tables += [make_table(f"All {len(outcomes)} methods", outcomes, folded=True)]
    return Page(
        title="Nyström methods compared on your data",
        headline=reason,
        sections=[Section("Methods", charts=[Chart("Error against time", draw)], tables=tables)],
        **about,
    )


def list_rows(outcomes: Sequence[Outcome], budget: int) -> list[dict[str, Any]]:
    """Return the rows of ``comparison.csv``."""
    front, rows = find_pareto_front(outcomes), []
    for o in outcomes:
        first = {"method": o.method, "family": o.family, "landmarks": budget}
        rows.append(first | asdict(o) | {"front": o.method in front})
    return rows
