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
    codes = OneHotEncoder(handle_unknown="ignore", max_categories=100, sparse_output=False)

    rest = make_column_selector(dtype_exclude="category")
    fill = SimpleImputer(strategy="median", add_indicator=True)
    numbers = make_pipeline(fill, StandardScaler())

    columns = make_column_transformer((numbers, rest), (codes, texts))
    return make_pipeline(columns, model)


HELD_OUT = 0.1
"""The share of the training rows on which every peer stops, or chooses among its settings."""

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
        self.library = library
        self.classify = classify
        self.threads = threads

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> EarlyStopped:
        """Fit to nine tenths of the rows."""
        self.texts = list(X.select_dtypes("category"))
        X = self._prepared(X)
        train, held = hold_out(y, self.classify)

        how = {"eval_set": [(X.iloc[held], y[held])]}
        if self.library == "xgboost":
            how["verbose"] = False
        self.model = self._make().fit(X.iloc[train], y[train], **how)
        return self

    def _make(self) -> Any:
        """Return the library's classifier or regressor with its settings."""
        prefix, settings = TREES[self.library]
        if self.library == "catboost":
            settings = settings | {"cat_features": self.texts, "thread_count": self.threads}
        else:
            settings = settings | {"n_jobs": self.threads}
        kind = "Classifier" if self.classify else "Regressor"
        made = getattr(importlib.import_module(self.library), prefix + kind)
        return made(**settings)

    def _prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the table with categories as text for CatBoost, which takes no gaps there."""
        if self.library != "catboost":
            return X
        return _without_gaps(X, self.texts)

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model.predict(self._prepared(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model.predict_proba(self._prepared(X))


class Network:
    """A neural network of pytabkit with its tuned defaults, which stops on held-out rows."""

    def __init__(self, name: str, classify: bool, threads: int) -> None:
        self.name = name
        self.classify = classify
        self.threads = threads

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Network:
        """Fit to nine tenths of the rows."""
        import pytabkit

        self.texts = list(X.select_dtypes("category"))
        self.medians = X.median(numeric_only=True)
        X = self._prepared(X)
        train, held = hold_out(y, self.classify)

        kind = "Classifier" if self.classify else "Regressor"
        made = getattr(pytabkit, f"{self.name}_{kind}")
        self.model = made(device="cpu", n_threads=self.threads, random_state=0)
        self.model.fit(X.iloc[train], y[train], X.iloc[held], y[held], cat_col_names=self.texts)
        return self

    def _prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the table without gaps: medians of numbers, and a category of their own."""
        return _without_gaps(X.fillna(self.medians), self.texts)

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model.predict(self._prepared(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model.predict_proba(self._prepared(X))


def _additive(classify: bool, threads: int) -> Any:
    """Return an explainable boosting machine; each of its bags holds out rows of its own."""
    from interpret import glassbox

    made = glassbox.ExplainableBoostingRegressor
    if classify:
        made = glassbox.ExplainableBoostingClassifier
    return made(validation_size=HELD_OUT, n_jobs=threads, random_state=0)


def _without_gaps(X: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """Return a table with its categories as text, in which a gap is one more category."""
    X = X.copy()
    for column in texts:
        values = X[column].astype(object)
        X[column] = values.where(values.notna(), "gap").map(str).astype(object)
    return X


def hold_out(y: np.ndarray, classify: bool) -> list[np.ndarray]:
    """Return training and held-out rows, a tenth, of every label if each has two rows."""
    stratify = None
    if classify and np.bincount(y).min() >= 2:
        stratify = y
    rows = np.arange(len(y))
    return train_test_split(rows, test_size=HELD_OUT, stratify=stratify, random_state=0)


OURS = (nb.NystroemRegressor, nb.NystroemClassifier)
FOREST = (ensemble.RandomForestRegressor, ensemble.RandomForestClassifier)
EXTRA = (ensemble.ExtraTreesRegressor, ensemble.ExtraTreesClassifier)
LINEAR = (partial(RidgeCV, np.logspace(-4, 4, 9)), partial(LogisticRegression, max_iter=1000))


def learners(threads: int, own: Sequence[str] = ()) -> dict[str, Callable[[bool], Any]]:
    """Return every learner by name: whether to classify ↦ a new one, or None if it cannot."""
    jobs = {"n_jobs": threads, "random_state": 0}
    found: dict[str, Callable[[bool], Any]] = {
        "NysBoost": lambda c: OURS[c](random_state=0),
        REFERENCE: lambda c: _numbers(FOREST[c](300, **jobs)),
        "extra trees": lambda c: _numbers(EXTRA[c](300, **jobs)),
        "linear model": lambda c: _numbers(LINEAR[c]()),
        "exact Gaussian process": _process,
    }
    titles = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
    for library in filter(find_spec, titles):
        found[titles[library]] = partial(EarlyStopped, library, threads=threads)
    if find_spec("xrfm"):
        found["xRFM"] = lambda c: _numbers(XRFM(c))
    if find_spec("pytabkit"):
        found["TabM"] = partial(Network, "TabM_D", threads=threads)
        found["RealMLP"] = partial(Network, "RealMLP_TD", threads=threads)
    if find_spec("interpret"):
        found["EBM"] = partial(_additive, threads=threads)
    for path in own:
        module, name = path.split(":")
        made = getattr(importlib.import_module(module), name)
        found[name] = partial(_unless_of_other_kind, made)
    return found


def _process(classify: bool) -> Any:
    """Return an exact Gaussian process."""
    smooth = Matern(3.0, nu=1.5)
    if classify:
        return _numbers(GaussianProcessClassifier(1.0 * smooth, random_state=0))
    kernel = ConstantKernel(1.0) * smooth + WhiteKernel(0.1)
    return _numbers(GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))


def _unless_of_other_kind(made: Callable[[], Any], classify: bool) -> Any:
    """Return a learner of the user's own, or None if it is not for this kind of target."""
    model = made()
    if classify and is_regressor(model):
        return None
    if not classify and is_classifier(model):
        return None
    return model


@dataclass(eq=False)
class XRFM(BaseEstimator):
    """xRFM behind scikit-learn: two kernels, two bandwidths, the best on held-out rows."""

    classify: bool = False
    device: str = "cpu"
    random_state: int = 0

    def fit(self, X: Floats, y: Any) -> XRFM:
        """Fit every setting, and keep the one that predicts the held-out rows best."""
        self._scale = StandardScaler().fit(X)
        y = np.asarray(y)
        if self.classify:
            self.classes_, y = np.unique(y, return_inverse=True)
        X = self._scaled(X)
        train, held = hold_out(y, self.classify)

        least = np.inf
        for kernel, bandwidth in product(("l2", "l2_high_dim"), (10.0, 3.0)):
            tried = self._make(kernel, bandwidth)
            tried.fit(X[train], y[train], X[held], y[held])
            found = tried.predict(X[held]).reshape(len(held), -1)[:, 0]
            wrong = found != y[held] if self.classify else (found - y[held]) ** 2
            if np.mean(wrong) < least:
                least = float(np.mean(wrong))
                self._model = tried
        return self

    def _make(self, kernel: str, bandwidth: float) -> Any:
        """Return xRFM with a kernel and its bandwidth."""
        from xrfm import xRFM

        model = {
            "kernel": kernel,
            "bandwidth": bandwidth,
            "bandwidth_mode": "constant",
            "exponent": 1.0,
            "diag": False,
        }
        fit = {"reg": 1e-3, "iters": 5, "early_stop_rfm": True, "verbose": False}
        return xRFM(
            {"model": model, "fit": fit},
            device=self.device,
            random_state=self.random_state,
            verbose=False,
        )

    def predict(self, X: Floats) -> Any:
        """Return predictions, or labels, shape (n,)."""
        found = self._model.predict(self._scaled(X)).reshape(len(X), -1)[:, 0]
        if self.classify:
            return self.classes_[found.astype(np.intp)]
        return found.astype(np.float64)

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probability of each class, shape (n, k)."""
        return np.asarray(self._model.predict_proba(self._scaled(X)), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _scaled(self, X: Floats) -> Floats:
        return np.asarray(self._scale.transform(X), dtype=np.float32)
