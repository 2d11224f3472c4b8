"""Compare approximations on the user's points by error, time and entries, and choose one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict, Unpack

import numpy as np
from threadpoolctl import threadpool_limits

from nysboost._approximate import approximate
from nysboost.catalogue import FAMILIES, METHODS
from nysboost.compare.charts import find_family
from nysboost.compare.outcomes import Measures, Outcome, Round, run_rounds
from nysboost.compare.page import (
    CHART_FILES,
    AboutRun,
    Page,
    Record,
    ReportTable,
    Section,
    chart_error_against_time,
)
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.messages import unknown
from nysboost.user_error import UserError, raise_as

MIXTURES = (
    *FAMILIES["ensemble"],
    *FAMILIES["boosting"],
    *FAMILIES["boosting, joint core"],
)
SINGLE = ("nystrom", "nystrom-fixed-rank")
DEFAULT_METHODS = (
    *("joint", "nystrom", "kmeans", "rpcholesky", "ensemble-ridge"),
    *("UUB-mean", "URB-mean", "RRB-mean", "URB-med"),
)
BUDGET = 480
"""Default number of landmarks: 8 learners of 60."""
FEW = 12
"""Up to this many methods are drawn and printed; with more, only the best trade-offs."""
FRONT = "★ a best trade-off: no other method is at least as good in error, time and entries."
LIMIT = "optimal"
"""The limit for all methods: it decomposes the whole matrix, so it is never recommended."""
CLOSE = 1.05
"""Errors within 5 % of each other are tied: different seeds differ as much."""
SMALL_ENOUGH = 1e-6
"""Errors below this are tied: float32 has no more digits."""
ROUNDING = 1e-10
"""Errors below this are rounding errors, and say nothing about a method."""
MUCH_FASTER = 0.5
"""Among tied methods, one that takes at most half the time is recommended."""


class MethodSizes(TypedDict, total=False):
    """Parameters of `approximate` that give a method its number of landmarks."""

    n_components: int
    n_learners: int
    n_columns: int
    rank: int | None


@dataclass(frozen=True)
class Setup:
    """Points X (n, d) or a kernel matrix (n, n), a kernel, and a number of columns.

    `lenient` leaves out methods that cannot run.
    """

    X: Array
    kernel: Kernel | str
    methods: tuple[str, ...]
    budget: int
    n_learners: int = 8
    rank: int | None = None
    repeats: int = 3
    seed: int = 0
    lenient: bool = False

    def sizes(self, method: str) -> MethodSizes:
        """Return the parameters that set a method's number of columns."""
        # mixtures have the paper's p and m; others take all columns at once
        if method in MIXTURES:
            n_columns = self.budget // self.n_learners
            sizes: MethodSizes = {"n_learners": self.n_learners, "n_columns": n_columns}
            if self.rank is not None:
                sizes["rank"] = min(self.rank, n_columns)
            return sizes
        if method in SINGLE:
            return {"n_columns": self.budget, "rank": self.rank}
        return {"n_components": self.budget}


def choose_methods(names: str, kernel: str = "rbf") -> tuple[str, ...]:
    """Return the methods for names separated by commas, for "all", or for "", the default."""
    if names == "all":
        return tuple(METHODS)
    if names:
        chosen = split_names(names, "method", METHODS)
        if not chosen:
            raise UserError(f"--methods {names} names no method: leave it out for the usual ones.")
        return chosen

    # k-means needs points, not kernel values
    if kernel == "precomputed":
        return tuple(name for name in DEFAULT_METHODS if name != "kmeans")
    return DEFAULT_METHODS


def split_names(text: str, kind: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the distinct known names in a text, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    found = dict.fromkeys(name for name in names if name)
    for name in found:
        if name not in known:
            raise UserError(unknown(kind, name, known))
    return tuple(found)


def choose_kernel(name: str, sigma: str | None) -> Kernel:
    """Return a kernel by name; sigma is a number, "median", "scale" or None."""
    with raise_as(UserError):
        kernel = make_kernel(name)
    has_width = hasattr(kernel, "sigma")
    if not has_width and sigma is not None:
        raise UserError(f"The kernel {name} has no sigma: leave --sigma out.")
    if not has_width:
        return kernel

    # use the given width, or the median
    width = _read_sigma(sigma)
    with raise_as(UserError):
        return make_kernel(name, sigma=width)


def _read_sigma(text: str | None) -> float | str:
    """Return a bandwidth: a number, or the name of a rule."""
    if text is None:
        return "median"
    if text in ("median", "scale"):
        return text

    try:
        return float(text)
    except ValueError as error:
        msg = f"--sigma is a number, median or scale, but {text!r} was given."
        raise UserError(msg) from error


def choose_budget(asked: int | None, n: int, methods: Sequence[str], n_learners: int) -> int:
    """Return the number of landmarks; the default is a multiple of the number of learners."""
    mixtures = bool(set(methods) & set(MIXTURES))
    if asked is None and mixtures and n < 2 * n_learners:
        raise UserError(
            f"The table has {n} rows, but mixtures of {n_learners} learners need at least "
            f"{2 * n_learners}: give more rows, or lower --learners."
        )

    # use at most a quarter of the rows unless a number was given
    budget = asked
    if budget is None:
        n_columns = min(BUDGET, n // 4) // n_learners
        budget = min(n, n_learners * max(1, n_columns))

    # refuse more landmarks than rows, and fewer than learners
    if budget > n:
        msg = f"{budget} landmarks were asked for, but the table has only {n} rows: "
        raise UserError(f"{msg}lower --components or give more rows.")
    if mixtures and budget < n_learners:
        raise UserError(
            f"{budget} landmarks are too few for {n_learners} learners: raise --components or "
            "lower --learners."
        )
    return budget


def run(setup: Setup, note: Callable[[str], None]) -> list[Outcome]:
    """Run every method with each seed; return errors and costs, smallest error first."""
    seeds = range(setup.seed, setup.seed + setup.repeats)

    def may_fail(_: str, error: Exception) -> bool:
        return setup.lenient and isinstance(error, ValueError)

    # with one thread, processor time is the time on an idle machine
    with threadpool_limits(1), raise_as(UserError):
        rounds = (_make_round(setup, seed) for seed in seeds)
        return run_rounds(rounds, setup.repeats, may_fail, note)


def _make_round(setup: Setup, seed: int) -> Round:
    """Return a function for each method that measures it with one seed."""
    return {method: partial(_measure, setup, method, seed) for method in setup.methods}


def _measure(setup: Setup, method: str, seed: int) -> Measures:
    """Return error, processor time and evaluated entries of one approximation."""
    sizes = setup.sizes(method)
    began = time.process_time()
    approximation = approximate(setup.X, method, setup.kernel, **sizes, random_state=seed)
    seconds = time.process_time() - began

    # count entries before the error evaluates all of them
    entries = approximation.entries_evaluated
    error = approximation.relative_error()
    return {"error": error, "seconds": seconds, "entries": entries}


def find_pareto_front(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the methods that no other one beats in error, time and entries together."""
    usable = _leave_limit_out(outcomes)
    errors = [outcome.error for outcome in usable]
    seconds = [outcome.seconds for outcome in usable]
    entries = [outcome.mean("entries") for outcome in usable]
    costs = np.column_stack([errors, seconds, entries])

    # a method is beaten if another is as good in all costs and better in one
    front = set()
    for outcome, cost in zip(usable, costs, strict=True):
        as_good = (costs <= cost).all(axis=1)
        better = (costs < cost).any(axis=1)
        if not (as_good & better).any():
            front.add(outcome.name)
    return front


def _leave_limit_out(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of methods to use, or that of the limit alone."""
    return [outcome for outcome in outcomes if outcome.name != LIMIT] or list(outcomes)


def recommend(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return a method, and why: the smallest error, or a tie in at most half the time."""
    usable = _leave_limit_out(outcomes)
    usable.sort(key=lambda outcome: (max(outcome.error, ROUNDING), outcome.seconds))
    best, *others = usable
    if not others:
        return best.name, f"Only {best.name} was measured: its error is {_say(best.error)}."
    if usable[-1].error < ROUNDING:
        return _cannot_compare(usable)

    # prefer a method that is about as good and much faster
    most = max(CLOSE * best.error, SMALL_ENOUGH)
    tied = [outcome for outcome in usable if outcome.error <= most]
    fastest = min(tied, key=_seconds_of)
    if fastest.seconds <= MUCH_FASTER * best.seconds:
        return fastest.name, (
            f"Use {fastest.name}: its error, {_say(fastest.error)}, is about as small as the "
            f"smallest ({_say(best.error)}, {best.name}), and it takes {fastest.seconds:.2g} s "
            f"instead of {best.seconds:.2g} s."
        )

    # otherwise recommend the best, and say which come close
    text = (
        f"Use {best.name}: its error, {_say(best.error)}, is the smallest of {len(usable)} methods"
    )
    most = max(CLOSE * best.error, ROUNDING)
    ties = [outcome.name for outcome in others if outcome.error <= most]
    if ties:
        return best.name, f"{text}. {', '.join(ties)} came within 5 %, but took as long or longer."

    # say how far it is ahead
    second = others[0]
    text += f". The next is {second.name} with {_say(second.error)}"
    if second.seconds < MUCH_FASTER * best.seconds:
        text += f", in {second.seconds:.2g} s instead of {best.seconds:.2g} s"
    return best.name, f"{text}."


def _cannot_compare(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return the fastest method, and a sentence that all errors are rounding."""
    fastest = min(outcomes, key=_seconds_of)
    return fastest.name, (
        "The methods cannot be compared: all errors are at the rounding level, below 1e-10. Use "
        "fewer landmarks (--components) or a narrower kernel. "
        f"{fastest.name} is the fastest."
    )


def _seconds_of(outcome: Outcome) -> float:
    return outcome.seconds


def _say(error: float) -> str:
    """Format an error for a sentence."""
    if error < ROUNDING:
        return "below 1e-10 (rounding)"
    return f"{error:.3g}"


COLUMNS = {
    "method": "method", "family": "family", "relative error": "error",
    "± standard error": "standard_error", "seconds": "seconds", "entries evaluated": "entries",
    "best": "front",
}  # fmt: skip


def make_page(outcomes: Sequence[Outcome], budget: int, **about: Unpack[AboutRun]) -> Page:
    """Return the report of a comparison with this number of landmarks."""
    best, reason = recommend(outcomes)
    front = find_pareto_front(outcomes)

    # draw only the best trade-offs of many methods, and fold the full table
    shown = outcomes
    title = "Methods, smallest error first"
    if len(outcomes) > FEW:
        shown = [outcome for outcome in outcomes if outcome.name in {best, *front}]
        title = "The best trade-offs"
    rows = [_as_record(outcome, budget, outcome.name in front) for outcome in shown]

    # keep the records of all methods with the page
    records = [_as_record(outcome, budget, outcome.name in front) for outcome in outcomes]
    tables = [ReportTable.of(title, COLUMNS, rows, note=FRONT, marked=[best])]
    if len(shown) < len(outcomes):
        title = f"All {len(outcomes)} methods"
        tables.append(ReportTable.of(title, COLUMNS, records, folded=True, marked=[best]))

    chart = chart_error_against_time(
        shown, "seconds to fit (processor time, one thread)", "relative error (Frobenius norm)"
    )
    return Page(
        title="Nyström methods compared on your data",
        headline=reason,
        sections=[Section("Methods", charts=[chart], tables=tables)],
        records=records,
        files=CHART_FILES,
        **about,
    )


def _as_record(outcome: Outcome, budget: int, on_front: bool) -> Record:
    """Return the record of a method for ``comparison.csv``."""
    return {
        "method": outcome.name,
        "family": find_family(outcome.name),
        "landmarks": budget,
        "error": outcome.error,
        "standard_error": outcome.standard_error,
        "seconds": outcome.seconds,
        "entries": round(outcome.mean("entries")),
        "front": on_front,
    }
