"""Methods of approximation compared on points of the user's: error, time, entries, and a choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import nysboost as nb
from nysboost.compare.charts import Chart, Curve, draw_curves, find_family
from nysboost.compare.outcomes import Measures, Outcome, run_rounds
from nysboost.compare.page import Page, Section, Table, format_number
from nysboost.gram import make_gram
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics.arrays import Floats, floats_on_host
from nysboost.numerics.checks import unknown
from nysboost.user_error import WRONG_CALL, UserError, with_exit_code

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


def choose_methods(names: str) -> tuple[str, ...]:
    """Return the methods asked for: names with commas between, "all", or "" for the usual ones."""
    if names in ("", "all"):
        return tuple(nb.METHODS) if names else DEFAULT_METHODS
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
    with with_exit_code(WRONG_CALL):
        if hasattr(kernel := make_kernel(name), "sigma"):
            return make_kernel(name, sigma=width or "median")
    if width is not None:
        raise UserError(f"The kernel {name} has no sigma: leave --sigma out.")
    return kernel


def choose_budget(asked: int | None, n: int, methods: Sequence[str], n_learners: int) -> int:
    """Return the number of landmarks; if none is asked for, a multiple of that of learners."""
    budget = asked or min(n, max(n_learners, min(BUDGET, n // 4) // n_learners * n_learners))
    mixtures = bool(set(methods) & set(MIXTURES))
    if budget > n:
        msg = f"{budget} landmarks are asked for, but there are only {n} rows: "
        raise UserError(f"{msg}lower --components or give more rows.")
    if asked is None and mixtures and n < 2 * n_learners:
        raise UserError(
            f"The table has {n} rows, and mixtures of {n_learners} learners need at least "
            f"{2 * n_learners}: give more rows, or fewer learners with --learners."
        )
    if mixtures and budget < n_learners:
        raise UserError(f"{budget} landmarks cannot be split between {n_learners} learners.")
    return budget


def run(task: Task, note: Callable[[str], None]) -> list[Outcome]:
    """Run every method with each seed; return what each cost and gave, smallest error first."""

    def may_fail(_: str, error: Exception) -> bool:
        return task.lenient and isinstance(error, ValueError)

    # With one thread, processor time is the time on an idle machine.
    with threadpool_limits(1), with_exit_code(WRONG_CALL):
        G = floats_on_host(make_gram(task.X, task.kernel).whole())
        rounds = (
            {method: partial(_measure, task, method, seed, G) for method in task.methods}
            for seed in range(task.repeats)
        )
        return run_rounds(rounds, task.repeats, may_fail, note)


def _measure(task: Task, method: str, seed: int, G: Floats) -> Measures:
    """Return error, seconds and entries of one method with one seed."""
    began = time.process_time()
    found = nb.approximate(
        task.X, method, task.kernel, random_state=task.seed + seed, **task.sizes(method)
    )
    seconds, squares = time.process_time() - began, 0.0
    for start in range(0, len(G), STRIP):
        at = slice(start, start + STRIP)
        squares += float(np.sum((G[at] - floats_on_host(found.block(at, slice(None)))) ** 2))
    error = float(np.sqrt(squares / np.sum(G**2)))
    return {"error": error, "seconds": seconds, "entries": float(found.entries_evaluated)}


def find_pareto_front(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the methods to use that no other beats in error, time and entries together."""
    usable = [o for o in outcomes if o.name != LIMIT] or outcomes
    costs = np.array([[o.error, o.seconds, o.mean("entries")] for o in usable])
    beaten = [((costs <= c).all(axis=1) & (costs < c).any(axis=1)).any() for c in costs]
    return {o.name for o, worse in zip(usable, beaten, strict=True) if not worse}


def recommend(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return a method, and why: smallest error, or as good as that in at most half the time."""
    outcomes = sorted((o for o in outcomes if o.name != LIMIT), key=lambda o: o.error) or outcomes
    best, *others = outcomes
    if not others:
        return best.name, f"{best.name} alone was compared: its error is {best.error:.3g}."
    tied = [o for o in outcomes if o.error <= max(CLOSE * best.error, NONE)]
    fastest = min(tied, key=lambda o: o.seconds)
    if fastest.seconds <= MUCH_FASTER * best.seconds:
        close = fastest.error <= CLOSE * best.error
        return fastest.name, (
            f"Use {fastest.name}: its error {fastest.error:.3g} is "
            f"{'within 5 % of' if close else 'next to nothing, as is'} the smallest "
            f"({best.error:.3g}, {best.name}), and it takes {fastest.seconds:.2g} s instead of "
            f"{best.seconds:.2g} s."
        )
    text = f"Use {best.name}: its error {best.error:.3g} is the smallest of {len(outcomes)} methods"
    if ties := [o.name for o in others if o.error <= CLOSE * best.error]:
        return best.name, f"{text}; {', '.join(ties)} came within 5 % of it, in no less time."
    second = others[0]
    more = second.seconds < MUCH_FASTER * best.seconds
    speed = f", though in {second.seconds:.2g} s instead of {best.seconds:.2g} s" if more else ""
    ratio = (
        f"{second.error / best.error:.2g} times as large" if best.error else f"{second.error:.3g}"
    )
    return best.name, f"{text}; that of {second.name}, the next, is {ratio}{speed}."


def make_page(
    outcomes: Sequence[Outcome], rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> Page:
    """Return the report of a comparison; `about` are its notes, commands and settings."""
    best, reason = recommend(outcomes)
    shown = [row for row in rows if len(rows) <= FEW or row["front"] or row["method"] == best]
    draw = partial(
        draw_curves,
        x="seconds to fit (processor time, one thread)",
        y="relative error (Frobenius norm)",
        curves=[Curve(row["method"], [row["seconds"]], [row["error"]]) for row in shown],
        log_x=True,
    )
    title = "Methods, smallest error first" if shown == rows else "The methods of the front"
    tables = [_make_table(title, shown, best, note=FRONT)]
    if shown != rows:
        tables += [_make_table(f"All {len(rows)} methods", rows, best, folded=True)]
    charts = [Chart("Error against time", draw)]
    sections = [Section("Methods", charts=charts, tables=tables)]
    return Page("Nyström methods compared on your data", reason, sections, **about)


def _make_table(title: str, rows: Sequence[Mapping[str, Any]], best: str, **how: Any) -> Table:
    head = ["method", "family", "relative error", "± standard error", "seconds"]
    head += ["entries evaluated", "front"]
    cells = []
    for row in rows:
        numbers = (format_number(row[name]) for name in ("error", "standard_error", "seconds"))
        entries, star = f"{row['entries']:,.0f}", "★" if row["front"] else ""
        cells.append([row["method"], row["family"], *numbers, entries, star])
    marked = frozenset(i for i, row in enumerate(rows) if row["method"] == best)
    return Table(title, head, cells, marked=marked, **how)


def list_rows(outcomes: Sequence[Outcome], budget: int) -> list[dict[str, Any]]:
    """Return the rows of ``comparison.csv``."""
    front = find_pareto_front(outcomes)
    return [
        {
            "method": o.name, "family": find_family(o.name), "landmarks": budget, "error": o.error,
            "standard_error": o.standard_error, "seconds": o.seconds,
            "entries": o.mean("entries"), "front": o.name in front,
        }
        for o in outcomes
    ]  # fmt: skip
