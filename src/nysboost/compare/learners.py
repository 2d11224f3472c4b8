"""Compare learners on a user's table by cross-validation, and find the best one."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from threadpoolctl import threadpool_limits

from nysboost.compare import peers
from nysboost.compare.outcomes import Measures, Outcome, run_rounds, standard_error
from nysboost.compare.page import format_number
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.search.data import uses_folds
from nysboost.numerics.arrays import Floats, Indices, spaced_indices
from nysboost.tables.frames import Table
from nysboost.tables.targets import Labels

OURS = "NysBoost"
COMPACT = "NysBoost (compact)"
FEWEST = 50
"""With fewer rows, none are held out: an error on fewer than ten rows means little."""
MOST = 5000
"""Largest number of held-out rows: the standard error of an error rate is then below 0.7 %."""
LINEAR_ROWS = 20_000
"""Largest number of rows to which the linear model is fitted."""
FoldTable: TypeAlias = Table
"""Rows of a table: an Arrow table for our learners, a coded array for others."""
Model: TypeAlias = BaseEstimator
"""A learner: an estimator of this library, of scikit-learn, or of another library."""
Targets: TypeAlias = Labels
"""Numbers or labels to predict, shape (n,)."""

OPTIONS_OF = {peers.LINEAR: ["--linear"], COMPACT: ["--no-local"], OURS: []}
"""Options of ``nysboost fit`` for learners of the comparison, the simplest first."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of one fold, with their targets.

    `groups` are the groups of the training rows.
    """

    X_train: FoldTable
    X_test: FoldTable
    y_train: Targets
    y_test: Targets
    groups: Indices | None = None

    def as_numbers(self) -> tuple[peers.CodedRows, Split]:
        """Return the rows as numbers for learners of other libraries, and the kinds of columns."""
        coded = peers.CodedRows.of(self.X_train, self.X_test)
        numbers = replace(self, X_train=coded.train, X_test=coded.test, groups=None)
        return coded, numbers


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem: predict y, shape (n,), called `target`, from a `frame` of n rows.

    Rows with the same value in `groups` (n,) are never on both sides of a split. With `by_time`,
    rows are in order of time, and later ones are held out.
    """

    frame: FoldTable
    y: Targets
    classify: bool
    target: str = "y"
    components: int | None = None
    folds: int = 5
    seed: int = 0
    groups: Indices | None = None
    by_time: bool = False

    @property
    def measure(self) -> str:
        """The name of the error measure."""
        if self.classify:
            return "share of wrong labels"
        return "root mean squared error"

    @property
    def task(self) -> str:
        """The task, as a word."""
        if self.classify:
            return "classification"
        return "regression"

    def describe_folds(self) -> str:
        """Describe the folds in words."""
        if self.groups is not None:
            return f"{self.folds} folds of whole groups"
        if self.by_time:
            return f"{self.folds} folds, each later than its training rows"
        return f"{self.folds} folds"

    def take(self, train: Indices, test: Indices) -> Split:
        """Return a fold with these training and test rows."""
        groups = None
        if self.groups is not None:
            groups = self.groups[train]
        X_train = self.frame.take(train)
        X_test = self.frame.take(test)
        return Split(X_train, X_test, self.y[train], self.y[test], groups)

    def split(self) -> list[tuple[Indices, Indices]]:
        """Return the numbers of the training and test rows of each fold."""
        how = {"shuffle": True, "random_state": self.seed}
        if self.groups is not None:
            splitter = GroupKFold(self.folds, **how)
        elif self.by_time:
            splitter = TimeSeriesSplit(self.folds)
        elif self.classify:
            splitter = StratifiedKFold(self.folds, **how)
        else:
            splitter = KFold(self.folds, **how)

        # no splitter looks at X
        X = np.empty(len(self.y))
        return list(splitter.split(X, self.y, self.groups))

    def hold_out(self) -> Indices | None:
        """Return test rows in increasing order, or None if there are too few rows or groups."""
        n = len(self.y)
        if n < FEWEST:
            return None
        held = self._choose_held_out(min(n // 5, MOST))

        # two groups have to be among the others, for a fit that holds one out
        if self.groups is not None:
            n_groups = len(np.unique(np.delete(self.groups, held)))
            if n_groups < 2:
                return None

        # all labels have to be among the others
        if self.classify:
            kept = np.delete(self.y, held)
            if len(np.unique(kept)) < len(np.unique(self.y)):
                return None
        return held

    def _choose_held_out(self, count: int) -> Indices:
        """Return about `count` rows: the last ones, those of some groups, or random ones."""
        n = len(self.y)
        if self.by_time:
            return np.arange(n - count, n)

        rng = np.random.default_rng(self.seed)
        if self.groups is None:
            return np.sort(rng.permutation(n)[:count])

        # take groups in random order until they have enough rows
        sizes = np.bincount(self.groups)
        order = rng.permutation(len(sizes))
        n_groups = 1 + np.searchsorted(np.cumsum(sizes[order]), count)
        return np.flatnonzero(np.isin(self.groups, order[:n_groups]))


class LearnerOptions(TypedDict, total=False):
    """Parameters of the regressor and of the classifier that a command sets."""

    n_components: int
    kernel: str
    local: bool | str
    max_memory: int | str
    ids: str
    cv: str | None
    max_time: float | None


def make_learner(
    classify: bool, components: int | None, seed: int, **how: Unpack[LearnerOptions]
) -> Model:
    """Return a learner of ours, with the default number of landmarks if `components` is None."""
    if components is not None:
        how["n_components"] = components
    if classify:
        return NystroemClassifier(random_state=seed, **how)
    return NystroemRegressor(random_state=seed, **how)


class FirstFold(NamedTuple):
    """Our learner fitted to the training rows of the first fold, with test rows and their y."""

    model: Model
    table: FoldTable
    y: Targets


def cross_validate(
    problem: Problem, note: Callable[[str], None]
) -> tuple[list[Outcome], FirstFold | None]:
    """Return the errors of all learners, smallest first, and our learner of the first fold.

    The latter is None if Ctrl-C came earlier. If a learner of another library fails, it is left
    out, and `note` receives a sentence.
    """

    def may_fail(name: str, _: Exception) -> bool:
        return not is_ours(name)

    # the first fold's fits, and those of each of the others when it is their turn
    first, *others = problem.split()
    runs = _make_round(problem, problem.take(*first))
    rest = (_make_round(problem, problem.take(*fold)) for fold in others)
    rounds = itertools.chain([runs], rest)
    outcomes = run_rounds(rounds, problem.folds, may_fail, note)

    # a fit leaves its model fitted
    if all(outcome.name != OURS for outcome in outcomes):
        return outcomes, None
    ours = runs[OURS]
    return outcomes, FirstFold(ours.model, ours.fold.X_test, ours.fold.y_test)


def _make_round(problem: Problem, fold: Split) -> dict[str, FoldRun]:
    """Return the fits of one fold by learner: others first, then ours with the compact one."""
    # learners of other libraries need numbers
    coded, numbers = fold.as_numbers()
    others = peers.make_peers(coded, problem.classify, problem.seed)
    runs = {name: FoldRun(name, model, numbers) for name, model in others.items()}

    # our learners take the table itself
    how: LearnerOptions = {}
    if problem.by_time:
        how["cv"] = "time"
    given = problem.classify, problem.components, problem.seed
    full = make_learner(*given, **how)
    compact = make_learner(*given, **how | {"local": False})
    runs[COMPACT] = FoldRun(COMPACT, compact, fold)
    runs[OURS] = FoldRun(OURS, full, fold)
    return runs


@dataclass(frozen=True)
class FoldRun:
    """A fit of one learner to training rows, measured on test rows."""

    name: str
    model: Model
    fold: Split

    def __call__(self) -> Measures:
        """Fit and measure."""
        return fit_and_measure(self.name, self.model, self.fold).measures


def fit_and_test(
    model: Model, problem: Problem, held: Indices, name: str = OURS
) -> tuple[Model, list[Outcome]]:
    """Fit a learner of ours without the test rows, and test it on them.

    Return the model, and the outcomes of it, of a constant and, unless it is one itself, of a
    linear model; smallest error first.
    """
    # fit our learner
    rows = np.arange(len(problem.y))
    train = np.delete(rows, held)
    ours = fit_and_measure(name, model, problem.take(train, held))
    outcomes = [ours.as_outcome(name)]

    # fit what it should beat; a linear model needs only some of many rows
    few = train[spaced_indices(len(train), LINEAR_ROWS)]
    coded, numbers = problem.take(few, held).as_numbers()
    others = peers.make_simple_peers(coded, problem.classify)
    for other, peer in others.items():
        if other != name:
            measured = fit_and_measure(other, peer, numbers)
            outcomes.append(measured.as_outcome(other))
    return ours.model, sorted(outcomes, key=lambda outcome: outcome.error)


class FittedLearner(NamedTuple):
    """A fitted learner, its error and losses on test rows, and the seconds to fit and predict.

    `losses` has the squared error of each test row, or whether its label is wrong.
    """

    model: Model
    measures: Measures
    losses: Floats

    def as_outcome(self, name: str) -> Outcome:
        """Return the outcome of one round."""
        rounds = {measure: [value] for measure, value in self.measures.items()}
        return Outcome(name, rounds, self.losses)


def fit_and_measure(name: str, model: Model, fold: Split) -> FittedLearner:
    """Fit a learner to the training rows of a fold, and measure it on the test rows."""
    # only our learners take groups
    how = {}
    if fold.groups is not None:
        how["groups"] = fold.groups

    with _undisturbed(name, len(fold.y_train)):
        began = time.perf_counter()
        model = model.fit(fold.X_train, fold.y_train, **how)
        fitted = time.perf_counter()
        predicted = np.ravel(model.predict(fold.X_test))
        ended = time.perf_counter()
        errors, losses = _compare_with_truth(model, fold, predicted)

    times = {"seconds": fitted - began, "predict_seconds": ended - fitted}
    return FittedLearner(model, errors | times, losses)


def _compare_with_truth(model: Model, fold: Split, predicted: Targets) -> tuple[Measures, Floats]:
    """Return the errors on the test rows, and the loss of each row."""
    truth = fold.y_test
    if not hasattr(model, "predict_proba"):
        squares = np.asarray((predicted - truth) ** 2, dtype=np.float64)
        root = float(np.sqrt(squares.mean()))
        return {"error": root, "log_loss": np.nan}, squares

    is_wrong = np.asarray(predicted != truth, dtype=np.float64)
    probabilities = np.clip(model.predict_proba(fold.X_test), 1e-15, 1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    loss = float(log_loss(truth, probabilities, labels=model.classes_))
    return {"error": float(is_wrong.mean()), "log_loss": loss}, is_wrong


@contextmanager
def _undisturbed(name: str, n: int) -> Iterator[None]:
    """Limit threads for small tables, and silence warnings of other libraries.

    If another process is busy, two threads wait for each other: trees on 400 rows took 49 s, and
    .07 s with one thread. Users would take warnings of other libraries for ours.
    """
    with ExitStack() as stack:
        if uses_folds(n):
            stack.enter_context(threadpool_limits(1))
        if not is_ours(name):
            stack.enter_context(warnings.catch_warnings())
            stack.enter_context(np.errstate(all="ignore"))
            warnings.simplefilter("ignore")
        yield


def is_ours(name: str) -> bool:
    """Whether a learner is one of this library."""
    return name in (OURS, COMPACT)


def is_tie(a: Outcome, b: Outcome) -> bool:
    """Whether the errors differ by at most 1 %, or by two standard errors of the difference.

    It is estimated from the rounds, or from the rows if there is a single round. A t-test has a
    limit of 13 standard errors with two folds, so it would call twice the error a tie.
    """
    # after Ctrl-C one of them may have a round less
    errors_a = a.measured["error"]
    errors_b = b.measured["error"]
    rounds = slice(min(len(errors_a), len(errors_b)))
    gaps = np.subtract(errors_a[rounds], errors_b[rounds])

    # twice the error is never a tie
    half = max(a.error, b.error) / 2
    noise = min(_noise_of(gaps, a, b), half)
    return bool(abs(gaps.mean()) <= max(0.01 * b.error, noise))


def _noise_of(gaps: Floats, a: Outcome, b: Outcome) -> float:
    """Return two standard errors of the difference between two errors."""
    if len(gaps) > 1:
        return 2 * standard_error(gaps)

    # with a single round, compare row by row
    if a.losses is None or b.losses is None:
        return 0.0
    by_row = a.losses - b.losses
    if abs(by_row.mean()) > 2 * standard_error(by_row):
        return 0.0
    return np.inf


def name_in_sentence(outcome: Outcome, *, begins: bool = False) -> str:
    """Return the name of a learner within a sentence, or at its beginning."""
    name = outcome.name
    if name in (peers.LINEAR, peers.CONSTANT, peers.PROCESS):
        name = f"the {name}"
    if begins:
        return name[0].upper() + name[1:]
    return name


def is_no_better_than_constant(outcomes: Sequence[Outcome]) -> bool:
    """Whether a constant has the smallest error, or ties with the learner that has it."""
    best = outcomes[0]
    for outcome in outcomes:
        if outcome.name == peers.CONSTANT:
            return outcome is best or is_tie(best, outcome)
    return False


def find_simplest(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the simplest model that can be saved and is the best, or ties with the best."""
    best = outcomes[0]
    good = {outcome.name: outcome for outcome in outcomes if is_tie(outcome, best)}
    good[best.name] = best
    return next((good[name] for name in OPTIONS_OF if name in good), None)


def say_outcome(outcomes: Sequence[Outcome], measure: str, target: str) -> str:
    """Say which learner predicts best, which tie, and whether a simpler model is enough."""
    # say it briefly if there is nothing to compare, or nothing was learned
    best = outcomes[0]
    error = format_number(best.error)
    rival = next((one for one in outcomes if is_ours(one.name) != is_ours(best.name)), None)
    if rival is None:
        return f"{name_in_sentence(best, begins=True)} has the smallest {measure}, {error}."
    if is_no_better_than_constant(outcomes):
        constant = next(outcome for outcome in outcomes if outcome.name == peers.CONSTANT)
        text = f"No learner predicts {target} better than a constant: {measure} {error}"
        if best is constant:
            return f"{text}."
        name = name_in_sentence(best)
        return f"{text} ({name}) and {format_number(constant.error)} differ by chance."

    # compare our better learner with the best of the others
    they = name_in_sentence(rival)
    theirs = format_number(rival.error)

    # a tie with different errors means too few rows
    tied = is_tie(best, rival)
    differ = best.error < 0.99 * rival.error
    if tied and differ and best.losses is not None:
        return (
            f"{len(best.losses):,} rows are too few to decide whether {name_in_sentence(best)} or "
            f"{they} predicts {target} better: {measure} {error} and {theirs}. nysboost learn "
            "compares them on all rows."
        )

    winner = name_in_sentence(best, begins=True)
    if tied:
        text = f"{winner} and {they} predict {target} equally well: {measure} {error} and {theirs}."
    else:
        less = f"{1 - best.error / rival.error:.0%} below that of {they} ({theirs})"
        text = f"{winner} predicts {target} best: its {measure} is {error}, {less}."
    return text + _say_faster(outcomes, best, rival)


def _say_faster(outcomes: Sequence[Outcome], best: Outcome, rival: Outcome) -> str:
    """Return a sentence on the fastest learner that ties with the best; "" if none is faster."""
    others = [outcome for outcome in outcomes if not is_ours(outcome.name)]
    tied = [outcome for outcome in others if is_tie(outcome, best)]
    quick = min(tied, key=lambda outcome: outcome.seconds, default=best)
    times = best.seconds / max(quick.seconds, 1e-6)
    if times < 2:
        return ""

    # the sentence before may have named it
    also = "does as well, and "
    if quick is rival:
        also = ""
    name = name_in_sentence(quick, begins=True)
    return f" {name} {also}fits {times:.0f} times faster than {name_in_sentence(best)}."
