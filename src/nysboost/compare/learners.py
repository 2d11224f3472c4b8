"""Learners compared on a user's table by cross-validation, and who of them predicts best."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from nysboost.compare.page import format_number
from nysboost.compare.peers import CONSTANT, LINEAR, CodedRows, make_peers, make_simple_peers
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.numerics.progress import current
from nysboost.search.candidates import in_folds

OURS, COMPACT = "NysBoost", "NysBoost, compact"
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

    def make_ours(self) -> dict[str, Any]:
        """Return our learner, and a compact one: landmarks alone, without local prediction."""
        how = self.classify, self.components, self.seed
        return {COMPACT: make_learner(*how, local=False), OURS: make_learner(*how)}


def make_learner(classify: bool, components: int | None, seed: int, **how: Any) -> Any:
    """Return a learner of ours; where `components` is None, with its usual number of landmarks."""
    kind: Any = NystroemClassifier if classify else NystroemRegressor
    how |= {} if components is None else {"n_components": components}
    return kind(random_state=seed, **how)


@dataclass(frozen=True)
class Outcome:
    """A learner's RMSE, or share of wrong labels and log loss, in each fold; mean seconds."""

    name: str
    errors: Sequence[float]
    losses: Sequence[float]
    seconds: float
    predict_seconds: float = 0.0

    @classmethod
    def of(cls, name: str, folds: Sequence[tuple[float, ...]]) -> Outcome:
        """Put together what `measure_fit` found in each fold."""
        errors, losses, fitting, predicting = zip(*folds, strict=True)
        return cls(name, errors, losses, float(np.mean(fitting)), float(np.mean(predicting)))

    @property
    def error(self) -> float:
        """The mean error over the folds."""
        return float(np.mean(self.errors))

    @property
    def is_ours(self) -> bool:
        """Whether it is one of this library."""
        return self.name in (OURS, COMPACT)

    @property
    def called(self) -> str:
        """What it is called in a sentence."""
        return f"the {self.name}" if self.name in (LINEAR, CONSTANT) else self.name

    def ties_with(self, other: Outcome) -> bool:
        """Whether the errors differ by at most 1 %, or by two standard errors of the difference.

        A t-test, whose limit is 13 standard errors with two folds, would call twice the error a
        tie, which it never is here.
        """
        n = min(len(self.errors), len(other.errors))  # one less after Ctrl-C
        gaps = np.array(self.errors[:n]) - np.array(other.errors[:n])
        two_errors = 2 * np.std(gaps, ddof=1) / np.sqrt(n) if n > 1 else 0.0
        noise = min(float(two_errors), max(self.error, other.error) / 2)
        return bool(abs(gaps.mean()) <= max(0.01 * other.error, noise))


def cross_validate(
    problem: Problem, note: Callable[[str], None]
) -> tuple[list[Outcome], tuple[Any, Any, Any] | None]:
    """Return every learner's errors on the same folds, smallest first, and ours of the first fold.

    That is the fitted model, with the test rows and their targets. All learners have the first
    fold before any has the second: Ctrl-C keeps what was measured. A learner of another library
    that fails is left out, and `note` gets a sentence.
    """
    fits: dict[str, list[tuple[float, ...]]] = {}
    failed: set[str] = set()
    first, work = None, current()
    try:
        for train, test in problem.split():
            tables = problem.frame.take(train), problem.frame.take(test)
            coded, y = CodedRows.of(*tables), (problem.y[train], problem.y[test])
            peers = make_peers(coded, problem.classify, problem.seed)
            learners = {n: m for n, m in (peers | problem.make_ours()).items() if n not in failed}
            if not work.total:
                work.begin(problem.folds * len(learners))
            for name, model in learners.items():
                X = (coded.train, coded.test) if name in peers else tables
                try:
                    with _silence_warnings() if name in peers else nullcontext():
                        fitted, found = measure_fit(model, X, y)
                    fits.setdefault(name, []).append(found)
                    if name == OURS and first is None:
                        first = fitted, tables[1], y[1]
                except Exception as error:  # another library's learner may raise anything
                    if name not in peers:
                        raise
                    failed.add(name)
                    fits.pop(name, None)
                    said = str(error).partition("\n")[0][:150].rstrip(". ")
                    line = f"{type(error).__name__}: {said}"
                    note(f"{name} was left out, because it failed ({line}).")
                work.step()
    except KeyboardInterrupt:
        if not fits:
            raise
        made = sum(map(len, fits.values()))
        note(f"Stopped by Ctrl-C: {made} of {work.total:g} fits were done, and they alone count.")
    outcomes = [Outcome.of(name, folds) for name, folds in fits.items()]
    return sorted(outcomes, key=lambda outcome: outcome.error), first


def fit_and_test(model: Any, problem: Problem, held: NDArray[np.intp]) -> tuple[Any, list[Outcome]]:
    """Fit a learner of ours to all rows but some, and test it on those.

    Return it with its outcome and those of a linear model and a constant, smallest error first.
    """
    y, test = problem.y, problem.frame.take(held)
    rest = np.delete(np.arange(len(y)), held)
    model, found = measure_fit(model, (problem.frame.take(rest), test), (y[rest], y[held]))
    some = rest[np.linspace(0, len(rest) - 1, min(len(rest), LINEAR_ROWS)).astype(np.intp)]
    coded, outcomes = CodedRows.of(problem.frame.take(some), test), [Outcome.of(OURS, [found])]
    for name, peer in make_simple_peers(coded, problem.classify).items():
        with _silence_warnings():
            _, found = measure_fit(peer, (coded.train, coded.test), (y[some], y[held]))
        outcomes.append(Outcome.of(name, [found]))
    return model, sorted(outcomes, key=lambda outcome: outcome.error)


def measure_fit(model: Any, X: Pair, y: Pair) -> tuple[Any, tuple[float, ...]]:
    """Fit a learner; return it with its error and loss on test rows, and the seconds of both.

    Few rows are fitted on one thread: beside a busy process two wait for each other (trees on 400
    rows: 49 s, on one thread .07 s).
    """
    with threadpool_limits(1) if in_folds(len(y[0])) else nullcontext():
        begun = time.perf_counter()
        model = model.fit(X[0], y[0])
        fitted = time.perf_counter()
        predicted = np.ravel(model.predict(X[1]))
        seconds = fitted - begun, time.perf_counter() - fitted
    if not hasattr(model, "predict_proba"):
        return model, (float(root_mean_squared_error(y[1], predicted)), np.nan, *seconds)
    proba = np.clip(model.predict_proba(X[1]), 1e-15, 1)
    loss = log_loss(y[1], proba / proba.sum(axis=1, keepdims=True), labels=model.classes_)
    return model, (float(np.mean(predicted != y[1])), float(loss), *seconds)


@contextmanager
def _silence_warnings() -> Iterator[None]:
    """Silence what other libraries warn of, which would be taken for ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def say_outcome(outcomes: Sequence[Outcome], measure: str, target: str) -> str:
    """Say in plain words who predicts best, who ties, and whether a simpler model would do."""
    best, by_name = outcomes[0], {o.name: o for o in outcomes}
    ours = next((o for o in outcomes if o.is_ours), None)
    other = next((o for o in outcomes if not o.is_ours), None)
    if ours is None or other is None:
        return f"So far {best.called} has the smallest {measure}, {format_number(best.error)}."
    if (constant := by_name.get(CONSTANT)) and (constant is best or best.ties_with(constant)):
        return f"No learner predicts {target} better than a constant ({measure} {best.error:.3g})."
    second = other if best is ours else ours
    numbers = f"{measure} {format_number(best.error)} and {format_number(second.error)}"
    if best.ties_with(second):
        text = f"{best.called} and {second.called} predict {target} equally well: {numbers}."
    else:
        text = (
            f"{best.called} predicts {target} best: its {measure} is {format_number(best.error)}, "
            f"{1 - best.error / second.error:.0%} below that of {second.called} "
            f"({format_number(second.error)})."
        )
    text = text[0].upper() + text[1:]
    tied = [o for o in outcomes if not o.is_ours and o.ties_with(best)]
    quick = min(tied, key=lambda o: o.seconds, default=best)
    times = best.seconds / max(quick.seconds, 1e-6)
    if times < 2:
        return text
    faster = f"fits {times:.0f} times faster than {best.called}"
    if quick is second:
        return f"{text} {second.called[0].upper()}{second.called[1:]} {faster}."
    name = "A linear model" if quick.name == LINEAR else quick.name
    return f"{text} {name} does as well, and {faster}."
