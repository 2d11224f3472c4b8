"""The learners that ours are compared with, each near its defaults and with its own categories."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from nysboost.numerics.arrays import Floats
from nysboost.tables.schema import Schema

LINEAR, CONSTANT, PROCESS = "linear model", "constant", "exact Gaussian process"
PROCESS_ROWS = 1000
"""Rows up to which an exact Gaussian process is compared: its time grows with n³."""
FEW_ROWS = 10_000
"""Rows below which LightGBM has one thread, as its manual advises: several wait for each other."""
MOST_CATEGORIES = 50
"""Columns that one category becomes; rarer values share one of them."""
LANDMARKS = 256
"""Of scikit-learn's Nystroem."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Training and test rows as numbers, with categories as integers, NaN where one is missing."""

    parts: tuple[Floats, Floats]
    categories: list[int]

    @classmethod
    def of(cls, *tables: Any) -> CodedRows:
        """Code a table to train on and one to test on; the first decides what each column is."""
        schema = Schema.of(tables[0], ids="drop")
        kinds = [column.kind for column in schema.columns if column.used]
        categories = [i for i, kind in enumerate(kinds) if kind == "category"]
        parts = []
        for table in tables:
            columns = [column for column in schema.read(table) if column is not None]
            part = np.column_stack(columns).astype(np.float64)
            places = part[:, categories]
            part[:, categories] = np.where(places < 0, np.nan, places)
            parts.append(part)
        return cls((parts[0], parts[1]), categories)

    def scaler(self) -> Any:
        """Return what makes one-hot codes of categories, and fills and standardises numbers."""
        rare: Any = {"handle_unknown": "infrequent_if_exist", "max_categories": MOST_CATEGORIES}
        one_hot = OneHotEncoder(sparse_output=False, **rare)
        fill = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
        return make_column_transformer((one_hot, self.categories), remainder=fill)


def make_simple_peers(rows: CodedRows, classify: bool) -> dict[str, Any]:
    """Return what every learner should be better than: a constant and a linear model."""
    constant = DummyClassifier(strategy="prior") if classify else DummyRegressor()
    return {CONSTANT: constant, LINEAR: make_pipeline(rows.scaler(), _make_linear(classify))}


def _make_linear(classify: bool) -> Any:
    return LogisticRegression(max_iter=1000) if classify else RidgeCV(np.logspace(-4, 4, 9))


def make_peers(rows: CodedRows, classify: bool, seed: int) -> dict[str, Any]:
    """Return learners to compare with; those of other libraries only where they are installed."""
    train = rows.parts[0]
    n = len(train)
    trees: Any = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    few = [j for j in rows.categories if len(np.unique(train[:, j])) < 255]
    landmarks = Nystroem(n_components=min(LANDMARKS, n), random_state=seed)
    found = make_simple_peers(rows, classify) | {
        "scikit-learn's Nystroem": make_pipeline(rows.scaler(), landmarks, _make_linear(classify)),
        "gradient boosting": trees(random_state=seed, categorical_features=few),
    }
    if find_spec("lightgbm"):
        import lightgbm as lgb

        boosted: Any = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
        threads = 1 if n < FEW_ROWS else None
        model = boosted(n_estimators=500, verbose=-1, random_state=seed, n_jobs=threads)
        model.fit = functools.partial(model.fit, categorical_feature=rows.categories)
        found["LightGBM"] = model
    if find_spec("catboost"):
        import catboost

        kind: Any = catboost.CatBoostClassifier if classify else catboost.CatBoostRegressor
        quiet = {"verbose": 0, "allow_writing_files": False}
        model = kind(random_seed=seed, cat_features=rows.categories, **quiet)
        as_objects = FunctionTransformer(_as_objects, kw_args={"categories": rows.categories})
        found["CatBoost"] = make_pipeline(as_objects, model)
    if n <= PROCESS_ROWS and classify:
        process = GaussianProcessClassifier(ConstantKernel() * Matern(nu=1.5))
        found[PROCESS] = make_pipeline(rows.scaler(), process)
    elif n <= PROCESS_ROWS:  # with a scale for each feature
        width = rows.scaler().fit_transform(train).shape[1]
        kernel = ConstantKernel() * Matern(np.ones(width), nu=1.5) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, normalize_y=True)
        found[PROCESS] = make_pipeline(rows.scaler(), process)
    return found


def _as_objects(X: Floats, categories: Sequence[int]) -> Any:
    """Return an array in which categories are integers, as CatBoost asks for."""
    found = X.astype(object)
    found[:, categories] = np.nan_to_num(X[:, categories], nan=-1).astype(np.int64)
    return found
