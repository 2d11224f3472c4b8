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
from nysboost.learn.search.data import FOLDS, Data, uses_folds
from nysboost.learn.search.leaves import rows_per_leaf
from nysboost.learn.search.loss import TrainingRows
from nysboost.learn.search.model import Member, mixture_weights
from nysboost.learn.search.regimes import Groups
from nysboost.learn.search.trial import SMALLEST, CandidateTrial, Prepared
from nysboost.numerics.arrays import Array, Floats, Indices, to_host
from nysboost.numerics.checks import Budget, keep_freed_memory
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.progress import Progress
from nysboost.rows.rows import Rows
from nysboost.tables.codes import count_numeric

Notes: TypeAlias = list[tuple[str, float]]
"""Names of candidates with their held-out errors."""


@dataclass(frozen=True, eq=False)
class WeighedTrial:
    """A trial, and the shares of its predictions in the mixture.

    Its member has c landmarks, and is fitted to all rows when it is first asked for, by so many
    steps after folds.
    """

    trial: CandidateTrial
    shares: Floats
    c: int
    steps: int
    work: Progress

    @property
    def weight(self) -> float:
        """Its weight in the mixture."""
        return float(self.shares.sum())

    def fit_to_all(self) -> Member:
        """Return its member of the mixture, fitted once."""
        return self._member

    @cached_property
    def _member(self) -> Member:
        return self.trial.fit_to_all(self.shares, self.c, self.steps, self.work)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A mixture of members fitted to all rows, and its evaluation on h held-out rows.

    `truth` and `mean` (h, t) are targets, and predictions by members that had not seen these rows.
    `weights` (h,) or None say how often each row counts. X (h, d) are the rows, and `variance`
    returns their predictive variances, shape (h, t). `notes` lists all candidates with their
    held-out errors, and `trials` those that were selected.
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
    """The variance of a mixture's predictions for held-out rows X (h, d), as if they were new.

    `seen` says whether the members are fitted to these rows too: not if they are for validation.
    """

    members: Sequence[Member]
    X: Array
    seen: bool

    def __call__(self) -> Floats:
        """Return the variances, shape (h, t)."""
        parts = []
        for member in self.members:
            variance, _ = member.variance(self.X, seen=self.seen)
            parts.append(to_host(variance))
        return np.asarray(sum(parts))


@dataclass(frozen=True)
class Sizes:
    """The sizes of the parts of a search.

    `c` is the number of untrained landmarks. There are `n_first` trained landmarks in first steps,
    `n_in_folds` in fits without the held-out rows, and `n_in_all` in the fit to all rows.
    `leaf_rows` is the largest number of rows of a leaf, or 0 for no leaves.
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
            trained = c
            if leaf_rows:
                trained = min(c, few)
            in_folds = min(trained, 2 * few)
            return cls(c, in_folds, in_folds, trained, leaf_rows)

        # one held-out part: first steps with few landmarks
        c = min(c, len(data.order))
        trained = c
        if leaf_rows:
            enough = data.rows.n // tuning.ROWS_WITH_LEAVES
            trained = min(c, max(few, enough))
        first = min(trained, few)
        return cls(c, first, trained, trained, leaf_rows)

    @property
    def last_steps(self) -> int:
        """Steps of descents to all rows, after folds: more if landmarks alone will predict."""
        if self.leaf_rows:
            return tuning.FIRST_STEPS
        return tuning.LAST_STEPS

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
    validation: TrainingRows | None = None,
    max_time: float | None = None,
) -> SearchResult:
    """Return the mixture of candidates with the smallest error on held-out rows.

    1. First steps, with few landmarks and rows, select one candidate of each group. Selected
       candidates that can hardly win are left out.
    2. The landmarks and the metric of each remaining candidate descend the loss, without the rows
       of each fold, or without the single held-out part.
    3. The weights of the landmarks, and kernel ridge regressions in leaves, are fitted to all rows
       except the held-out ones. The held-out rows choose the penalties and the mixture weights.
    4. The members of the mixture are fitted to all rows.

    Y (n, t) are targets on the host. Only the ratios of weights (n,) matter. c is the number of
    landmarks. `local` says whether there are leaves, or gives the largest number of rows of a leaf;
    "auto" uses leaves if they fit in memory. Held-out rows are chosen at random, or by `row_groups`
    and `cv`, or are those for `validation`, as in `Data.draw`. After about `max_time` seconds, the
    best model so far is finished.
    """
    keep_freed_memory()
    _require_memory(c, rows, budget)
    work = work or Progress()
    work.limit = max_time

    # leaves hold a row's mapped coordinates and residuals
    n_mapped = min(rows.n_features, tuning.WIDE)
    width = n_mapped + Y.shape[1]
    leaf_rows = rows_per_leaf(local, rows, width, budget)

    # which rows are held out, and how many landmarks there are
    data = Data.draw(rows, Y, weights, rng, budget, groups=row_groups, cv=cv, validation=validation)
    sizes = Sizes.of(data, c, leaf_rows)
    search = Search(data, sizes, [], work)
    groups = _that_fit(groups, data, c)
    search.announce(groups)

    # 1. first steps
    pilots = [search.select(group) for group in groups]
    promising = _can_win(pilots)

    # 2. descents, 3. leaves
    trials = search.go_on(promising)
    trials = search.score_leaves(trials)

    # 4. the mixture
    result = search.mix(trials)
    _warn_of_linear(result, rows)
    return result


def _require_memory(c: int, rows: Rows, budget: Budget) -> None:
    """Raise if the matrices of c landmarks do not fit in memory."""
    needed = _bytes_of_landmarks(c, rows)
    if needed > budget.bytes:
        raise ValueError(
            f"{c} landmarks need about {format_bytes(needed)} of working memory, but max_memory is "
            f"{format_bytes(budget.bytes)}: ask for fewer landmarks, or allow more memory."
        )


def _bytes_of_landmarks(c: int, rows: Rows) -> int:
    """Return the bytes of matrices (c, c), and of the landmarks (c, d), raw, scaled, of folds."""
    copies = 2
    if uses_folds(rows.n):
        copies += FOLDS

    pairs = 6 * c * c
    landmarks = copies * c * rows.n_features
    return 8 * (pairs + landmarks)


def _that_fit(groups: Groups, data: Data, c: int) -> Groups:
    """Leave out codes of too many columns, and linear models with too many landmarks.

    Linear models are also left out if the user asks for few landmarks, because they need many.
    Labels have no candidates after a linear model: logistic regressions are fitted to the features
    of each candidate, so these must predict the labels without another model.
    """
    if len(groups) == 1:  # the user asked for it
        return groups

    # reasons to leave out codes, linear models, or candidates after a linear model
    many = count_numeric(data.X) > tuning.WIDE
    fewer = c < min(tuning.LANDMARKS, data.rows.n)
    are_labels = np.isin(data.Y, (0, 1)).all()

    fitting = []
    for group in groups:
        first = group[0]
        needed = _bytes_of_landmarks(first.n_landmarks or 0, data.rows)
        too_large = fewer or needed > data.budget.bytes
        if first.codes and many:
            continue
        if first.linear and too_large:
            continue
        if first.after_linear and are_labels:
            continue
        fitting.append(group)

    return fitting or groups


class Pilot(NamedTuple):
    """A candidate after first steps, and the number of these steps."""

    prepared: Prepared
    trial: CandidateTrial
    steps: int
    error: float


def _can_win(pilots: Sequence[Pilot]) -> list[Pilot]:
    """Return the pilots whose error is near the least one; the best pilot is the first.

    With folds, first steps are the only descent, so pilots that are worse by more than chance are
    also left out.
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
        _, most = tuning.STEPS
        after = most / tuning.FIRST_STEPS
        if self.data.uses_folds:
            after = len(self.data.folds)
        of_group = after + 1
        self.work.begin(2 * n_candidates + len(groups) * of_group)

    def select(self, group: Sequence[Candidate]) -> Pilot:
        """Return the candidate of a group with the smallest held-out error after first steps.

        If the model will have leaves, the errors are those with leaves. Otherwise, bike and kin40k
        would select the rougher kernel, although the smoother one is better.
        """
        pilots = []
        for candidate in group:
            # landmarks and metric, from few rows
            c = self.sizes.landmarks(candidate, self.sizes.n_first)
            prepared = Prepared.of(candidate, self.data)
            most = sample_rows(c)
            steps = tuning.FIRST_STEPS
            trial = CandidateTrial.first_steps(prepared, most, c, steps, self.work)

            # with folds these are the only steps, and more of them pay if y has little noise
            is_precise = self._bits(trial.error) > tuning.PRECISE
            if self.data.uses_folds and candidate.trained and is_precise:
                steps = tuning.PRECISE_STEPS
                trial = CandidateTrial.first_steps(prepared, most, c, steps, self.work)

            # leaves of these rows
            has_leaves = self.sizes.leaf_rows > 0 and candidate.trained
            if has_leaves and not self.data.uses_folds:
                leaves = trial.score_leaves(self.sizes.leaf_rows)
                trial = replace(trial, leaves=leaves)

            error = trial.error
            pilots.append(Pilot(prepared, trial, steps, error))

            # reports
            name = f"{candidate.name}, first steps"
            if candidate.trained:
                self.notes.append((name, error))
            self.work.step(1, f"{name}: held-out error {error:.4g}")
            if not self.work.has_time(tuning.TIME_FOR_PILOTS):
                break
        return min(pilots, key=lambda pilot: pilot.error)

    def go_on(self, pilots: Sequence[Pilot]) -> list[CandidateTrial]:
        """Continue the pilots as trials while there is time, and at least the first one."""
        long_steps = self._long_steps(pilots[0])
        trials: list[CandidateTrial] = []
        for pilot in pilots:
            if trials and not self.work.has_time(tuning.TIME_FOR_TRIALS):
                break
            prepared = pilot.prepared
            c = self.sizes.landmarks(prepared.candidate, self.sizes.n_in_folds)
            first = pilot.trial.folds[0].solution
            steps = long_steps
            if self.data.uses_folds:
                steps = pilot.steps
            trial = CandidateTrial.after(first, prepared, c, steps, self.work)
            trials.append(trial)
        return trials

    def _long_steps(self, best: Pilot) -> int:
        """Return the number of steps of a long descent: more of them pay if y has little noise."""
        least, most = tuning.STEPS
        steps = np.clip(tuning.STEPS_OF_BIT * self._bits(best.error), least, most)
        return round(float(steps))

    def _bits(self, error: float) -> float:
        """Return b, the known bits of y: the error is 2⁻ᵇ times the standard deviation of y."""
        data = self.data
        mean = np.average(data.truth, axis=0, weights=data.held_mass)
        deviation = data.error(mean)
        return float(np.log2((deviation + SMALLEST) / (error + SMALLEST)))

    def score_leaves(self, trials: Sequence[CandidateTrial]) -> list[CandidateTrial]:
        """Score leaves of the trained candidates, as far as memory holds their mapped rows."""
        scored = []
        width = 0
        for trial in trials:
            # as many rows in a leaf as memory allows beside the leaves of earlier trials
            wider = width + trial.n_mapped + self.data.n_outputs
            fitting = rows_per_leaf("auto", self.data.rows, wider, self.data.budget)
            most = min(self.sizes.leaf_rows, fitting)
            has_leaves = most > 0 and trial.candidate.trained
            if has_leaves and self.work.has_time(tuning.TIME_FOR_LEAVES):
                leaves = trial.score_leaves(most)
                trial = replace(trial, leaves=leaves)
                if leaves is not None:
                    width = wider

            # errors for reports
            for prediction in trial.predictions:
                name = prediction.name
                error = trial.data.error(prediction.mean)
                self.notes.append((name, error))
            self.work.step(1, f"{name}: held-out error {error:.4g}")
            scored.append(trial)
        return scored

    def mix(self, trials: Sequence[CandidateTrial]) -> SearchResult:
        """Return the mixture with the smallest held-out error, fitted to all rows."""
        data = self.data
        held = data.held
        truth = data.truth
        mass = data.held_mass
        weights = None
        if held.weights is not None:
            weights = mass

        # shares of all predictions
        means: list[Floats] = []
        for trial in trials:
            of_base = truth - trial.data.truth
            means += [of_base + prediction.mean for prediction in trial.predictions]
        shares = mixture_weights(means, truth, mass)

        # each trial has the shares of its own
        weighed = []
        start = 0
        for trial in trials:
            stop = start + len(trial.predictions)
            c = self.sizes.landmarks(trial.candidate, self.sizes.n_in_all)
            of_trial = shares[start:stop]
            weighed.append(WeighedTrial(trial, of_trial, c, self.sizes.last_steps, self.work))
            start = stop

        # members of the mixture are fitted to all rows
        members = [one.fit_to_all() for one in weighed if one.weight > 0]
        return SearchResult(
            members=members,
            truth=truth,
            mean=np.tensordot(shares, means, 1),
            weights=weights,
            notes=self.notes,
            X=held.X,
            variance=HeldOutVariance(members, held.X, seen=data.validation is None),
            trials=weighed,
        )


def _warn_of_linear(result: SearchResult, rows: Rows) -> None:
    """Warn if a linear model predicts best and there are far more columns than rows."""
    of_linear = [one.weight for one in result.trials if one.trial.candidate.linear]
    weight = sum(of_linear)
    many = tuning.FAR_MORE * rows.n
    if weight > 0.5 and rows.n_features > many:
        warnings.warn(
            f"X has {rows.n_features:,} columns and only {rows.n:,} rows, and a linear model "
            "predicts held-out rows best: scikit-learn's RidgeCV or LogisticRegression may do as "
            "well in less time.",
            stacklevel=2,
        )
