"""The search: candidates are fitted to training rows, scored on held-out rows, and mixed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import Candidate, sample_rows
from nysboost.learn.search.data import Data
from nysboost.learn.search.leaves import rows_per_leaf
from nysboost.learn.search.model import Member, mixture_weights
from nysboost.learn.search.regimes import Groups
from nysboost.learn.search.trial import CandidateTrial, Prepared
from nysboost.numerics.arrays import Array, Floats, Indices, to_host
from nysboost.numerics.checks import Budget, keep_freed_memory
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.progress import Progress
from nysboost.rows.rows import Rows
from nysboost.tables.piecewise import count_numeric

Notes: TypeAlias = list[tuple[str, float]]
"""Names of candidates with their held-out errors."""


class WeighedTrial(NamedTuple):
    """A trial, its weight in the mixture, and a function that returns its member, fitted once."""

    trial: CandidateTrial
    weight: float
    fit_to_all: Callable[[], Member]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A mixture of members fitted to all rows, and its evaluation on h held-out rows.

    truth and mean, of shape (h, t), are targets and predictions by members that had not seen these
    rows; weights (h,) or None say how often each row counts; X (h, d) are the rows, and `variance`
    returns their predictive variances, shape (h, t). `notes` are what was tried, with held-out
    errors, and `trials` what was selected.
    """

    members: Sequence[Member]
    truth: Floats
    mean: Floats
    weights: Floats | None
    notes: Notes
    X: Array | None = None
    variance: Callable[[], Floats] = lambda: np.ones((0, 1))
    trials: Sequence[WeighedTrial] = ()


@dataclass(frozen=True, eq=False)
class HeldOutVariance:
    """The variance of a mixture's predictions for held-out rows X (h, d), as if they were new."""

    members: Sequence[Member]
    X: Array

    def __call__(self) -> Floats:
        """Return the variances, shape (h, t)."""
        parts = []
        for member in self.members:
            variance, _ = member.variance(self.X, seen=True)
            parts.append(to_host(variance))
        return np.asarray(sum(parts))


@dataclass(frozen=True)
class Sizes:
    """The sizes of the parts of a search.

    `c` is the number of untrained landmarks. Trained landmarks number `n_first` in first steps,
    `n_in_folds` without the held-out rows, and `n_in_all` in the end. The rows of a leaf are 0
    without leaves.
    """

    c: int
    n_first: int
    n_in_folds: int
    n_in_all: int
    leaf_rows: int

    @classmethod
    def of(cls, data: Data, c: int, leaf_rows: int) -> Sizes:
        """Return the sizes for at most c landmarks; with leaves, fewer are enough."""
        few = tuning.PILOT_LANDMARKS

        # folds: as many landmarks in first steps as in the end
        if data.uses_folds:
            distinct = np.unique(to_host(data.X), axis=0)
            c = min(c, len(distinct))
            trained = min(c, few) if leaf_rows else c
            in_folds = min(trained, 2 * few)
            return cls(c, in_folds, in_folds, trained, leaf_rows)

        # one held-out part: first steps with few landmarks
        c = min(c, len(data.order))
        trained = c
        if leaf_rows:
            enough = data.rows.n // tuning.ROWS_WITH_LEAVES
            trained = min(c, max(few, enough))
        return cls(c, min(trained, few), trained, trained, leaf_rows)

    def landmarks(self, candidate: Candidate, trained: int) -> int:
        """Return the number of landmarks of a candidate: as given if they are trained."""
        if candidate.trained:
            return trained
        return candidate.n_landmarks or self.c


def run_search(
    rows: Rows,
    Y: Floats,
    weights: Floats | None,
    groups: Groups,
    c: int,
    rng: np.random.Generator,
    *,
    local: bool | int | str = False,
    budget: Budget,
    work: Progress | None = None,
    row_groups: Indices | None = None,
    cv: str | None = None,
    max_time: float | None = None,
) -> SearchResult:
    """Return the mixture of candidates with the smallest error on held-out rows.

    1. Of each group of candidates first steps, with few landmarks and rows, select one; those that
       can hardly win are left out.
    2. Landmarks and metric of the others descend the loss without the rows of each fold, or without
       the one part that is held out.
    3. Weights of the landmarks, and kernel ridge regressions in leaves, come from all rows but
       the held-out ones; these choose penalties and mix.
    4. What is in the mixture is fitted to all rows.

    Y (n, t) are targets on the host, of weights (n,) only ratios matter, and c is the number of
    landmarks. `local` says whether all rows predict in leaves, or with how many rows at most;
    "auto" does where memory holds them. Held-out rows are chosen at random, or by `row_groups`
    and `cv`, as in `Data.draw`. After `max_time` seconds, about, the best model so far is finished.
    """
    keep_freed_memory()
    _require_memory(c, rows.n_features, budget)
    work = work or Progress()
    work.limit = max_time

    # how many rows are in memory and in leaves, and how many landmarks there are
    width = min(rows.n_features, tuning.WIDE) + Y.shape[1]
    leaf_rows = rows_per_leaf(local, rows, width, budget)
    data = Data.draw(rows, Y, weights, rng, budget, groups=row_groups, cv=cv)
    sizes = Sizes.of(data, c, leaf_rows)
    search = Search(data, sizes, [], work)
    groups = _that_fit(groups, data, c)
    search.announce(groups)

    # the four steps
    pilots = [search.select(group) for group in groups]
    trials = search.go_on(_can_win(pilots))
    trials = search.score_leaves(trials)
    result = search.mix(trials)
    _warn_of_linear(result, rows)
    return result


def _require_memory(c: int, n_features: int, budget: Budget) -> None:
    """Raise if the matrices of c landmarks do not fit in memory."""
    needed = _bytes_of_landmarks(c, n_features)
    if needed > budget.bytes:
        raise ValueError(
            f"{c} landmarks need about {format_bytes(needed)} of working memory, but max_memory is "
            f"{format_bytes(budget.bytes)}: ask for fewer landmarks, or allow more memory."
        )


def _bytes_of_landmarks(c: int, n_features: int) -> int:
    return 8 * (6 * c * c + 2 * c * n_features)


def _that_fit(groups: Groups, data: Data, c: int) -> Groups:
    """Leave out codes of too many columns, and linear models with too many landmarks.

    Those have more landmarks than others, unless the user asks for fewer.
    """
    if len(groups) == 1:  # it was asked for
        return groups
    # which of the two there may be
    many = count_numeric(data.X) > tuning.WIDE
    fewer = c < min(tuning.LANDMARKS, data.rows.n)

    fitting = []
    for group in groups:
        one = group[0]
        needed = _bytes_of_landmarks(one.n_landmarks or 0, data.rows.n_features)
        too_large = fewer or needed > data.budget.bytes
        if (one.codes and many) or (one.linear and too_large):
            continue
        fitting.append(group)
    return fitting or groups


class Pilot(NamedTuple):
    """A candidate after first steps."""

    prepared: Prepared
    trial: CandidateTrial
    error: float


def _can_win(pilots: Sequence[Pilot]) -> list[Pilot]:
    """Return the pilots whose error is near the least one, which is the first of them.

    Of few rows also what is worse by more than chance is left out: first steps are all there are.
    """
    best, *others = sorted(pilots, key=lambda pilot: pilot.error)
    found = [best]
    for pilot in others:
        is_near = pilot.error <= tuning.CAN_WIN * best.error
        if is_near and best.prepared.data.uses_folds:
            is_near = pilot.trial.deviations_behind(best.trial) <= tuning.WORSE
        if is_near:
            found.append(pilot)
    return found


@dataclass(frozen=True, eq=False)
class Search:
    """The state of a search: data, sizes, candidates tried so far, and progress."""

    data: Data
    sizes: Sizes
    notes: Notes
    work: Progress

    def announce(self, groups: Groups) -> None:
        """Report the amount of work, in units of first steps."""
        n_candidates = sum(len(group) for group in groups)

        # the long descent, or the other folds and all rows
        after = tuning.STEPS / tuning.FIRST_STEPS
        if self.data.uses_folds:
            after = len(self.data.folds)
        self.work.begin(2 * n_candidates + len(groups) * (after + 1))

    def select(self, group: Sequence[Candidate]) -> Pilot:
        """Return the candidate of a group with the smallest held-out error after first steps.

        With leaves if the model will have leaves: without, bike and kin40k select the rougher
        kernel, although the smoother one is better.
        """
        pilots = []
        for candidate in group:
            # landmarks and metric, from few rows
            c = self.sizes.landmarks(candidate, self.sizes.n_first)
            prepared = Prepared.of(candidate, self.data)
            trial = CandidateTrial.first_steps(prepared, sample_rows(c), c, self.work)

            # leaves of these rows
            has_leaves = self.sizes.leaf_rows > 0 and candidate.trained
            if has_leaves and not self.data.uses_folds:
                leaves = trial.score_leaves(self.sizes.leaf_rows)
                trial = replace(trial, leaves=leaves)

            pilot = Pilot(prepared, trial, trial.error)
            name = f"{candidate.name}, first steps"
            if candidate.trained:
                self.notes.append((name, pilot.error))
            pilots.append(pilot)
            self.work.step(1, f"{name}: held-out error {pilot.error:.4g}")
            if not self.work.has_time(tuning.TIME_FOR_PILOTS):
                break
        return min(pilots, key=lambda pilot: pilot.error)

    def go_on(self, pilots: Sequence[Pilot]) -> list[CandidateTrial]:
        """Continue the pilots as trials while there is time; at least one."""
        trials: list[CandidateTrial] = []
        for pilot in pilots:
            if trials and not self.work.has_time(tuning.TIME_FOR_TRIALS):
                break
            c = self.sizes.landmarks(pilot.prepared.candidate, self.sizes.n_in_folds)
            first = pilot.trial.folds[0].solution
            trials.append(CandidateTrial.after(first, pilot.prepared, c, self.work))
        return trials

    def score_leaves(self, trials: Sequence[CandidateTrial]) -> list[CandidateTrial]:
        """Score leaves of the trained candidates, as far as memory holds their mapped rows."""
        scored = []
        width = 0
        for trial in trials:
            # as many rows in a leaf as memory allows beside the leaves before
            wider = width + trial.n_mapped + self.data.n_outputs
            fitting = rows_per_leaf("auto", self.data.rows, wider, self.data.budget)
            most = min(self.sizes.leaf_rows, fitting)
            if most and trial.candidate.trained and self.work.has_time(tuning.TIME_FOR_LEAVES):
                leaves = trial.score_leaves(most)
                trial = replace(trial, leaves=leaves)
                if leaves is not None:
                    width = wider

            # errors for reports
            for prediction in trial.predictions:
                self.notes.append((prediction.name, trial.data.error(prediction.mean)))
            name, error = self.notes[-1]
            self.work.step(1, f"{name}: held-out error {error:.4g}")
            scored.append(trial)
        return scored

    def mix(self, trials: Sequence[CandidateTrial]) -> SearchResult:
        """Return the mixture with the smallest held-out error, fitted to all rows."""
        data = self.data
        truth = data.Y[data.held]
        mass = data.mass[data.held]
        means: list[Floats] = []
        for trial in trials:
            means += [prediction.mean for prediction in trial.predictions]
        shares = mixture_weights(means, truth, mass)

        # each trial has the shares of its predictions
        weighed = []
        rest = shares
        for trial in trials:
            n_predictions = len(trial.predictions)
            of_trial = rest[:n_predictions]
            rest = rest[n_predictions:]
            c = self.sizes.landmarks(trial.candidate, self.sizes.n_in_all)
            fit = FinalFit(trial, of_trial, c, self.work)
            weighed.append(WeighedTrial(trial, float(of_trial.sum()), fit))

        # what is in the mixture is fitted to all rows
        members = [one.fit_to_all() for one in weighed if one.weight > 0]
        return SearchResult(
            members=members,
            truth=truth,
            mean=np.tensordot(shares, means, 1),
            weights=mass if data.weights is not None else None,
            notes=self.notes,
            X=data.held_rows,
            variance=HeldOutVariance(members, data.held_rows),
            trials=weighed,
        )


@dataclass(frozen=True, eq=False)
class FinalFit:
    """A trial's member, fitted to all rows when it is first asked for."""

    trial: CandidateTrial
    shares: Floats
    c: int
    work: Progress

    @cached_property
    def member(self) -> Member:
        """The member."""
        return self.trial.fit_to_all(self.shares, self.c, self.work)

    def __call__(self) -> Member:
        """Return the member."""
        return self.member


def _warn_of_linear(result: SearchResult, rows: Rows) -> None:
    """Warn if a linear model predicts best and there are far more columns than rows."""
    of_linear = [one.weight for one in result.trials if one.trial.candidate.linear]
    weight = sum(of_linear)
    if weight > 0.5 and rows.n_features > tuning.FAR_MORE * rows.n:
        warnings.warn(
            f"X has {rows.n_features:,} columns and only {rows.n:,} rows, and a linear model "
            "predicts held-out rows best: scikit-learn's RidgeCV or LogisticRegression may do as "
            "well in less time.",
            stacklevel=2,
        )
