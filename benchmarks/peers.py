"""The learners that ours is compared with on tables with text and gaps, each near its defaults."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import nysboost as nb
from nysboost.numerics.arrays import Floats

REFERENCE = "random forest"
"""Its Elo is 1000, and its results stand in for those that are missing."""


def _numbers(model: Any) -> Any:
    """Return a pipeline: categories as indicators, gaps as medians, unit spread, the model."""
    texts = make_column_selector(dtype_include="category")
    rest = make_column_selector(dtype_exclude="category")
    codes = OneHotEncoder(handle_unknown="ignore", max_categories=100, sparse_output=False)
    fill = SimpleImputer(strategy="median", add_indicator=True)
    numbers = make_pipeline(fill, StandardScaler())
    return make_pipeline(make_column_transformer((numbers, rest), (codes, texts)), model)


MANY = {"n_estimators": 5000, "learning_rate": 0.05}
TREES = {
    "lightgbm": ("LGBM", MANY | {"early_stopping_round": 100, "verbose": -1}),
    "xgboost": ("XGB", MANY | {"early_stopping_rounds": 100, "enable_categorical": True}),
    "catboost": ("CatBoost", {"early_stopping_rounds": 100, "verbose": False,
                              "allow_writing_files": False}),
}  # fmt: skip
"""How the classes of a library begin, and settings; CatBoost has a learning rate of its own."""


class EarlyStopped:
    """A library of boosted trees that stops when a held-out tenth of the rows says so."""

    def __init__(self, library: str, classify: bool, threads: int) -> None:
        self.library, self.classify, self.threads = library, classify, threads

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> EarlyStopped:
        stratify = y if self.classify and np.bincount(y).min() > 9 else None
        a, b = train_test_split(np.arange(len(y)), test_size=0.1, stratify=stratify, random_state=0)
        self.texts = list(X.select_dtypes("category"))
        kind, X = "Classifier" if self.classify else "Regressor", self._named(X)
        held = [(X.iloc[b], y[b])]
        prefix, settings = TREES[self.library]
        if self.library == "catboost":
            settings = settings | {"cat_features": self.texts, "thread_count": self.threads}
        else:
            settings = settings | {"n_jobs": self.threads}
        quiet = {"verbose": False} if self.library == "xgboost" else {}
        made = getattr(importlib.import_module(self.library), prefix + kind)
        self.model = made(**settings).fit(X.iloc[a], y[a], eval_set=held, **quiet)
        return self

    def _named(self, X: pd.DataFrame) -> pd.DataFrame:
        if self.library != "catboost":
            return X
        texts = {c: X[c].astype(object).where(X[c].notna(), "gap").map(str) for c in self.texts}
        return X.assign(**{c: values.astype(object) for c, values in texts.items()})

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model.predict(self._named(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model.predict_proba(self._named(X))


OURS = (nb.NystroemRegressor, nb.NystroemClassifier)
FOREST = (ensemble.RandomForestRegressor, ensemble.RandomForestClassifier)
EXTRA = (ensemble.ExtraTreesRegressor, ensemble.ExtraTreesClassifier)
LINEAR = (partial(RidgeCV, np.logspace(-4, 4, 9)), partial(LogisticRegression, max_iter=1000))


def learners(threads: int, own: Sequence[str] = ()) -> dict[str, Callable[[bool], Any]]:
    """Return every learner by name: whether to classify ↦ a new one, or None if it cannot."""
    jobs = {"n_jobs": threads, "random_state": 0}

    def process(classify: bool) -> Any:
        if classify:
            return _numbers(GaussianProcessClassifier(1.0 * Matern(3.0, nu=1.5), random_state=0))
        kernel = ConstantKernel(1.0) * Matern(3.0, nu=1.5) + WhiteKernel(0.1)
        return _numbers(GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))

    found: dict[str, Callable[[bool], Any]] = {
        "NysBoost": lambda c: OURS[c](random_state=0),
        REFERENCE: lambda c: _numbers(FOREST[c](300, **jobs)),
        "extra trees": lambda c: _numbers(EXTRA[c](300, **jobs)),
        "linear model": lambda c: _numbers(LINEAR[c]()),
        "exact Gaussian process": process,
    }
    titles = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
    for library in filter(find_spec, titles):
        found[titles[library]] = partial(EarlyStopped, library, threads=threads)
    if find_spec("xrfm"):
        found["xRFM"] = lambda c: _numbers(XRFM(c))
    for path in own:
        module, name = path.split(":")
        made = getattr(importlib.import_module(module), name)
        found[name] = lambda c, made=made: (
            None if (is_regressor if c else is_classifier)(made()) else made()
        )
    return found


@dataclass(eq=False)
class XRFM(BaseEstimator):
    """xRFM behind scikit-learn: two kernels, two bandwidths, the best on a fifth of the rows."""

    classify: bool = False
    device: str = "cpu"
    random_state: int = 0

    def fit(self, X: Floats, y: Any) -> XRFM:
        """Fit every setting, and keep the one that predicts the held-out rows best."""
        from xrfm import xRFM

        self._scale, y = StandardScaler().fit(X), np.asarray(y)
        if self.classify:
            self.classes_, y = np.unique(y, return_inverse=True)
        several = self.classify and np.bincount(y).min() > 1
        X, held, y, truth = train_test_split(
            self._scaled(X), y, test_size=0.2, random_state=self.random_state,
            stratify=y if several else None,
        )  # fmt: skip
        best = np.inf
        for kernel, bandwidth in product(("l2", "l2_high_dim"), (10.0, 3.0)):
            model = {"kernel": kernel, "bandwidth": bandwidth, "exponent": 1.0, "diag": False}
            fit = {"reg": 1e-3, "iters": 5, "early_stop_rfm": True, "verbose": False}
            settings = {"model": model | {"bandwidth_mode": "constant"}, "fit": fit}
            tried = xRFM(
                settings, device=self.device, random_state=self.random_state, verbose=False
            )
            tried.fit(X, y, held, truth)
            found = tried.predict(held).reshape(len(truth), -1)[:, 0]
            loss = np.mean(found != truth) if self.classify else np.mean((found - truth) ** 2)
            if loss < best:
                best, self._model = float(loss), tried
        return self

    def predict(self, X: Floats) -> Any:
        """Return predictions, or labels, shape (n,)."""
        found = self._model.predict(self._scaled(X)).reshape(len(X), -1)[:, 0]
        return self.classes_[found.astype(np.intp)] if self.classify else found.astype(np.float64)

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probability of each class, shape (n, k)."""
        return np.asarray(self._model.predict_proba(self._scaled(X)), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _scaled(self, X: Floats) -> Floats:
        return np.asarray(self._scale.transform(X), dtype=np.float32)
