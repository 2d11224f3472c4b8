"""Learners compared on a user's table by cross-validation, and who of them predicts best."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from nysboost.compare import peers
from nysboost.compare.outcomes import Measures, Outcome, run_rounds
from nysboost.compare.page import format_number
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.search.data import uses_folds
from nysboost.numerics.indices import spaced_indices

OURS, COMPACT = "NysBoost", "NysBoost (compact)"
FEWEST, MOST = 50, 5000
"""Rows below which none are held out, as errors on fewer than ten rows say little; rows held out
at most: the standard error of their share of errors is then below 0.7 %."""
LINEAR_ROWS = 20_000
"""Rows at most that a linear model is fitted to, to be compared with."""
Pair = tuple[Any, Any]
"""Of training rows and of test rows."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is learned: y of shape (n,), called `target`, from a `frame` of n rows."""

    frame: Any
    y: Any
    classify: bool
    target: str = "y"
    components: int | None = None
    folds: int = 5
    seed: int = 0

    @property
    def measure(self) -> str:
        """What an error is."""
        return "share of wrong labels" if self.classify else "root mean squared error"

    def split(self) -> list[Pair]:
        """Return training and test rows of each fold."""
        kind: Any = StratifiedKFold if self.classify else KFold
        splitter = kind(self.folds, shuffle=True, random_state=self.seed)
        return list(splitter.split(np.empty(len(self.y)), self.y))

    def hold_out(self) -> NDArray[np.intp] | None:
        """Return some rows to test on, in rising order; None where there are too few."""
        n = len(self.y)
        held = np.sort(np.random.default_rng(self.seed).permutation(n)[: min(n // 5, MOST)])
        lost = set(np.unique(self.y)) != set(np.unique(np.delete(self.y, held)))
        return None if n < FEWEST or (self.classify and lost) else held


def make_learner(classify: bool, components: int | None, seed: int, **how: Any) -> Any:
    """Return a learner of ours; where `components` is None, with its usual number of landmarks."""
    kind: Any = NystroemClassifier if classify else NystroemRegressor
    how |= {} if components is None else {"n_components": components}
    return kind(random_state=seed, **how)


def cross_validate(
    problem: Problem, note: Callable[[str], None]
) -> tuple[list[Outcome], tuple[Any, ...]]:
    """Return every learner's errors on the same folds, smallest first, and ours of the first fold.

    That is the fitted model, the test rows and their targets; nothing, if Ctrl-C came before. A
    learner of another library that fails is left out, and `note` gets a sentence.
    """
    first: list[Any] = []
    how = problem.classify, problem.components, problem.seed

    def measure(name: str, model: Any, X: Pair, y: Pair) -> Measures:
        fitted, found, _ = fit_and_measure(name, model, X, y)
        if name == OURS and not first:
            first.extend((fitted, X[1], y[1]))
        return found

    def rounds() -> Iterator[dict[str, Callable[[], Measures]]]:
        for train, test in problem.split():
            tables = problem.frame.take(train), problem.frame.take(test)
            coded, y = peers.CodedRows.of(*tables), (problem.y[train], problem.y[test])
            others = peers.make_peers(coded, problem.classify, problem.seed)
            ours = {COMPACT: make_learner(*how, local=False), OURS: make_learner(*how)}
            yield {
                name: partial(measure, name, m, tables if name in ours else coded.parts, y)
                for name, m in (others | ours).items()
            }

    outcomes = run_rounds(rounds(), problem.folds, lambda name, _: not is_ours(name), note)
    return outcomes, tuple(first)


def fit_and_test(model: Any, problem: Problem, held: NDArray[np.intp]) -> tuple[Any, list[Outcome]]:
    """Fit a learner of ours to all rows but some, and test it on those.

    Return it with its outcome and those of a linear model and a constant, smallest error first.
    """
    y, test = problem.y, problem.frame.take(held)
    rest = np.delete(np.arange(len(y)), held)
    some = rest[spaced_indices(len(rest), LINEAR_ROWS)]
    coded = peers.CodedRows.of(problem.frame.take(some), test)
    tables = problem.frame.take(rest), test
    model, *found = fit_and_measure(OURS, model, tables, (y[rest], y[held]))
    measured: dict[str, Any] = {OURS: found}
    for name, peer in peers.make_simple_peers(coded, problem.classify).items():
        measured[name] = fit_and_measure(name, peer, coded.parts, (y[some], y[held]))[1:]
    outcomes = [
        Outcome(name, {k: [v] for k, v in measures.items()}, losses)
        for name, (measures, losses) in measured.items()
    ]
    return model, sorted(outcomes, key=lambda outcome: outcome.error)


def fit_and_measure(name: str, model: Any, X: Pair, y: Pair) -> tuple[Any, Measures, NDArray[Any]]:
    """Fit a learner; return it with its error and loss on test rows, and the seconds of both.

    Also return what each test row adds to the error: its square, or whether the label is wrong.

    Few rows are fitted on one thread: beside a busy process two wait for each other (trees on 400
    rows: 49 s, on one thread .07 s). What other libraries warn of would be taken for ours.
    """
    with (
        threadpool_limits(1) if uses_folds(len(y[0])) else nullcontext(),
        warnings.catch_warnings(),
        nullcontext() if is_ours(name) else np.errstate(all="ignore"),
    ):
        if not is_ours(name):
            warnings.simplefilter("ignore")
        times = [time.perf_counter()]
        model = model.fit(X[0], y[0])
        times.append(time.perf_counter())
        predicted = np.ravel(model.predict(X[1]))
        times.append(time.perf_counter())
        if classify := hasattr(model, "predict_proba"):
            proba = np.clip(model.predict_proba(X[1]), 1e-15, 1)
            proba /= proba.sum(axis=1, keepdims=True)
    losses = predicted != y[1] if classify else (predicted - y[1]) ** 2
    error = np.mean(losses) if classify else root_mean_squared_error(y[1], predicted)
    loss = log_loss(y[1], proba, labels=model.classes_) if classify else np.nan
    seconds = dict(zip(("seconds", "predict_seconds"), np.diff(times).tolist(), strict=True))
    measures = {"error": float(error), "log_loss": float(loss), **seconds}
    return model, measures, np.asarray(losses, dtype=np.float64)


def is_ours(name: str) -> bool:
    """Whether a learner is one of this library."""
    return name in (OURS, COMPACT)


def is_tie(a: Outcome, b: Outcome) -> bool:
    """Whether the errors differ by at most 1 %, or by two standard errors of the difference.

    The rounds give that, and of one round the rows. A t-test, whose limit is 13 standard errors
    with two folds, would call twice the error a tie, which it never is here.
    """
    n = min(len(o.measured["error"]) for o in (a, b))  # one less after Ctrl-C
    gaps = np.subtract(a.measured["error"][:n], b.measured["error"][:n])
    two_errors = 2 * np.std(gaps, ddof=1) / np.sqrt(n) if n > 1 else 0.0
    if n == 1 and a.losses is not None and b.losses is not None:
        by_row = a.losses - b.losses
        decided = abs(by_row.mean()) > 2 * np.std(by_row, ddof=1) / np.sqrt(len(by_row))
        two_errors = 0.0 if decided else np.inf
    noise = min(float(two_errors), max(a.error, b.error) / 2)
    return bool(abs(gaps.mean()) <= max(0.01 * b.error, noise))


def name_in_sentence(outcome: Outcome, *, begins: bool = False) -> str:
    """Return what a learner is called in a sentence, or where one begins."""
    with_article = (peers.LINEAR, peers.CONSTANT, peers.PROCESS)
    name = f"the {outcome.name}" if outcome.name in with_article else outcome.name
    return name[0].upper() + name[1:] if begins else name


def say_outcome(outcomes: Sequence[Outcome], measure: str, target: str) -> str:
    """Say in plain words who predicts best, who ties, and whether a simpler model would do."""
    best, by_name = outcomes[0], {o.name: o for o in outcomes}
    ours = next((o for o in outcomes if is_ours(o.name)), None)
    other = next((o for o in outcomes if not is_ours(o.name)), None)
    called, error = name_in_sentence(best), format_number(best.error)
    if ours is None or other is None:
        return f"So far {called} has the smallest {measure}, {error}."
    if (constant := by_name.get(peers.CONSTANT)) and (constant is best or is_tie(best, constant)):
        return f"No learner predicts {target} better than a constant ({measure} {error})."
    second = other if best is ours else ours
    they, theirs = name_in_sentence(second), format_number(second.error)
    text = name_in_sentence(best, begins=True)
    if best.losses is not None and is_tie(best, second) and best.error < 0.99 * second.error:
        return (
            f"{len(best.losses):,} rows are too few to say whether {called} or {they} predicts "
            f"{target} better: {measure} {error} and {theirs}. nysboost learn uses all rows."
        )
    if is_tie(best, second):
        text += f" and {they} predict {target} equally well: {measure} {error} and {theirs}."
    else:
        less = f"{1 - best.error / second.error:.0%} below that of {they} ({theirs})"
        text += f" predicts {target} best: its {measure} is {error}, {less}."
    tied = [o for o in outcomes if not is_ours(o.name) and is_tie(o, best)]
    quick = min(tied, key=lambda o: o.seconds, default=best)
    times = best.seconds / max(quick.seconds, 1e-6)
    if times >= 2:
        also = "" if quick is second else "does as well, and "
        name = name_in_sentence(quick, begins=True)
        text += f" {name} {also}fits {times:.0f} times faster than {called}."
    return text
