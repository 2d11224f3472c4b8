"""Learners compared on a user's table: cross-validated errors, and what ours has learned."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nysboost.experiments.peers import XRFM
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.table import Table
from nysboost.numerics.arrays import Floats

OURS, UNIFORM = "NysBoost", "NysBoost, uniform landmarks"
XRFM_ROWS = 5000
"""Rows up to which xRFM is compared too: its time grows with their cube, to minutes a fit."""

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Shares that intervals claim to cover, for the picture of those that they do cover."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns with names: numbers, with NaN where one is missing, or text."""

    columns: tuple[str, ...]
    values: Mapping[str, Any]

    @property
    def dtypes(self) -> list[Any]:
        """The columns' types."""
        return [self.values[name].dtype for name in self.columns]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self.values[self.columns[0]]), len(self.columns)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def rows(self, at: Any) -> Frame:
        """Return some of the rows."""
        return Frame(self.columns, {name: self.values[name][at] for name in self.columns})


@dataclass(frozen=True)
class Outcome:
    """A learner with its error in each fold: RMSE, or the share of wrong labels."""

    name: str
    errors: list[float]
    losses: list[float]
    seconds: float

    @property
    def error(self) -> float:
        """The mean error over the folds."""
        return float(np.mean(self.errors))


@dataclass(frozen=True, eq=False)
class Insight:
    """What our learner has learned, on the rows of the first fold.

    Parameters
    ----------
    curve : dict of str to list of (landmarks, error)
        Error against the number of landmarks.
    predicted : list of (predicted, true)
        Means over tenths of the rows, in the order of the prediction.
    reliability : list of (claimed, found)
        Intervals that claim to cover a share of the rows, or probabilities, and what came true.
    relevance : list of (column, share)
        How much each column matters, largest first.
    """

    curve: dict[str, list[tuple[int, float]]]
    predicted: list[tuple[float, float]]
    reliability: list[tuple[float, float]]
    relevance: list[tuple[str, float]]


def contestants(classify: bool, n: int, c: int, seed: int) -> dict[str, Callable[[], Any]]:
    """Return what is compared on n rows; other libraries only where these are installed."""
    ours: Any = NystroemClassifier if classify else NystroemRegressor
    linear: Any = LogisticRegression(max_iter=1000) if classify else RidgeCV(np.logspace(-4, 4, 9))
    trees: Any = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    found: dict[str, Callable[[], Any]] = {
        "linear model": lambda: make_pipeline(StandardScaler(), linear),
        "scikit-learn's Nystroem": lambda: make_pipeline(
            StandardScaler(), Nystroem(n_components=c, random_state=seed), linear
        ),
        "gradient-boosted trees": lambda: trees(random_state=seed, early_stopping=True),
        UNIFORM: lambda: ours(c, landmarks="uniform", random_state=seed),
        OURS: lambda: ours(c, random_state=seed),
    }
    if find_spec("lightgbm"):
        import lightgbm as lgb

        kind = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
        found["LightGBM"] = lambda: kind(n_estimators=500, verbose=-1, random_state=seed)
    if find_spec("xrfm") and n <= XRFM_ROWS:
        found["xRFM"] = lambda: XRFM(classify, random_state=seed)
    return found


def cross_validate(
    frame: Frame,
    y: Any,
    classify: bool,
    c: int,
    folds: int,
    seed: int,
    said: Callable[[int, int], None] = lambda _i, _n: None,
    stopped: Callable[[str], None] = lambda _: None,
    left_out: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Return every learner's errors on the same folds, smallest first.

    All learners have the first fold before any has the second: Ctrl-C then leaves those that
    have been measured, on as many folds give or take one, and `stopped` is told. A learner of
    another library that fails is left out, and `left_out` is told.
    """
    splits, made = _splits(y, classify, folds, seed), contestants(classify, len(y), c, seed)
    fits: dict[str, list[tuple[float, float, float]]] = {name: [] for name in made}
    total = len(splits) * len(made)
    try:
        for fold, (train, test) in enumerate(splits):
            X, fresh = _numbers(frame, train, test)
            for number, name in enumerate(made):
                said(fold * len(made) + number, total)
                if name not in fits:
                    continue
                try:
                    found = _measured(made[name], X, y[train], fresh, y[test], name, classify)
                    fits[name].append(found)
                except Exception as error:  # another library's learner may raise anything
                    if name in (OURS, UNIFORM):
                        raise
                    del fits[name]
                    left_out(f"{name} was left out, because it failed: {_first_line(error)}")
    except KeyboardInterrupt:
        done = sum(map(len, fits.values()))
        if not done:
            raise
        stopped(f"Stopped by Ctrl-C: {done} of {total} fits were done, and they alone are shown.")
    outcomes = [_outcome(name, found) for name, found in fits.items() if found]
    return sorted(outcomes, key=lambda outcome: outcome.error)


def _measured(
    make: Callable[[], Any], X: Floats, y: Any, fresh: Floats, truth: Any, name: str, classify: bool
) -> tuple[float, float, float]:
    """Fit a learner; return its error and loss on fresh rows, and the seconds of the fit."""
    with nullcontext() if name in (OURS, UNIFORM) else _unheard():
        start = time.perf_counter()
        model = make().fit(X, y)
        seconds = time.perf_counter() - start
        return *_errors(model, fresh, truth, classify), seconds


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep to itself what other libraries warn of, which would be taken for ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}, {str(error).partition(chr(10))[0]}".rstrip(",. ") + "."


def _outcome(name: str, fits: Sequence[tuple[float, float, float]]) -> Outcome:
    errors, losses, seconds = map(list, zip(*fits, strict=True))
    return Outcome(name, errors, losses, float(np.mean(seconds)))


def look_closer(frame: Frame, y: Any, classify: bool, c: int, folds: int, seed: int) -> Insight:
    """Return what our learner makes of the first fold."""
    kind: Any = StratifiedKFold if classify else KFold
    train, test = next(
        iter(kind(folds, shuffle=True, random_state=seed).split(np.empty(len(y)), y))
    )
    X, fresh = _numbers(frame, train, test)
    curve: dict[str, list[tuple[int, float]]] = {UNIFORM: [], OURS: []}
    ours: Any = NystroemClassifier if classify else NystroemRegressor
    for size in sorted({max(2, c // 16), max(2, c // 4), c}):
        for name, landmarks in ((UNIFORM, "uniform"), (OURS, "target")):
            model = ours(size, landmarks=landmarks, random_state=seed).fit(X, y[train])
            curve[name].append((size, _errors(model, fresh, y[test], classify)[0]))
    shares = np.bincount(Table.of(frame.rows(train), "fill").origins, model.feature_importances_)
    relevance = sorted(zip(frame.columns, shares.tolist(), strict=True), key=lambda pair: -pair[1])
    if classify:
        claimed, right = _called(model.predict_proba(fresh), model.classes_, y[test])
        return Insight(curve, [], _tenths(claimed, right), relevance)
    mean, std = model.predict(fresh, return_std=True)
    return Insight(curve, _tenths(mean, y[test]), _coverage(mean, std, y[test]), relevance)


def _splits(y: Any, classify: bool, folds: int, seed: int) -> list[tuple[Any, Any]]:
    kind: Any = StratifiedKFold if classify else KFold
    return list(kind(folds, shuffle=True, random_state=seed).split(np.empty(len(y)), y))


def _numbers(frame: Frame, train: Any, test: Any) -> tuple[Floats, Floats]:
    """Return both parts as numbers, by what the training rows alone say."""
    table = Table.of(frame.rows(train), "fill")
    return table(frame.rows(train)), table(frame.rows(test))


def _errors(model: Any, X: Floats, y: Any, classify: bool) -> tuple[float, float]:
    """Return the error, and for classes the log loss too."""
    if not classify:
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2))), float("nan")
    proba = np.clip(model.predict_proba(X), 1e-15, 1)
    loss = log_loss(y, proba / proba.sum(axis=1, keepdims=True), labels=model.classes_)
    return float(np.mean(model.predict(X) != y)), float(loss)


def _called(proba: Floats, classes: Any, y: Any) -> tuple[Floats, Floats]:
    best = proba.argmax(axis=1)
    return proba.max(axis=1), (classes[best] == y).astype(np.float64)


def _tenths(claimed: Floats, true: Floats) -> list[tuple[float, float]]:
    """Return the means of both over tenths of the rows, in the order of the first."""
    parts = np.array_split(np.argsort(claimed, kind="stable"), min(10, len(claimed)))
    return [(float(claimed[part].mean()), float(true[part].mean())) for part in parts]


def _coverage(mean: Floats, std: Floats, y: Floats) -> list[tuple[float, float]]:
    from scipy.stats import norm

    gap = np.abs(y - mean) / std
    return [(level, float(np.mean(gap <= norm.ppf((1 + level) / 2)))) for level in LEVELS]


def best_other(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the best learner that is not ours, if any was measured."""
    others = (o for o in outcomes if o.name not in (OURS, UNIFORM))
    return min(others, key=lambda o: o.error, default=None)
