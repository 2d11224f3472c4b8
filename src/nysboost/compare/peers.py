"""The learners to compare with, near their defaults and with native support for categories."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
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

if TYPE_CHECKING:
    from pyarrow import Table

Learner: TypeAlias = BaseEstimator
"""An estimator of scikit-learn, or of a library with its interface."""

LINEAR = "linear model"
CONSTANT = "constant"
PROCESS = "exact Gaussian process"
PROCESS_ROWS = 1000
"""Largest number of rows for an exact Gaussian process, whose time grows with n³."""
FEW_ROWS = 10_000
"""With fewer rows, LightGBM uses one thread, as its manual recommends."""
MOST_CATEGORIES = 50
"""Largest number of one-hot columns of a category; rarer values share one."""
MOST_VALUES = 255
"""Scikit-learn's trees do not accept categories with this many values."""
LANDMARKS = 256
"""Number of landmarks of scikit-learn's Nystroem."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Training and test rows as numbers: categories are integers, missing ones NaN."""

    train: Floats
    test: Floats
    categories: list[int]

    @classmethod
    def of(cls, train: Table, test: Table) -> CodedRows:
        """Code a training and a test table; the training table decides the kind of each column."""
        schema = Schema.of(train, ids="drop")
        used = [column for column in schema.columns if column.used]
        categories = [i for i, column in enumerate(used) if column.kind == "category"]

        X_train = _code(train, schema, categories)
        X_test = _code(test, schema, categories)
        return cls(X_train, X_test, categories)

    def scaler(self) -> Learner:
        """Return a transformer that one-hot encodes categories and standardises numbers."""
        one_hot = OneHotEncoder(
            sparse_output=False,
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
        )
        fill = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
        return make_column_transformer((one_hot, self.categories), remainder=fill)


def _code(table: Table, schema: Schema, categories: list[int]) -> Floats:
    """Return the used columns of a table as numbers, with NaN for unknown categories."""
    columns = []
    for column, values in zip(schema.columns, schema.read(table), strict=True):
        if column.used:
            columns.append(values * column.scale)
    coded = np.column_stack(columns).astype(np.float64)

    # gaps and unknown values have negative positions
    positions = coded[:, categories]
    coded[:, categories] = np.where(positions < 0, np.nan, positions)
    return coded


def make_simple_peers(rows: CodedRows, classify: bool) -> dict[str, Learner]:
    """Return the baselines: a constant and a linear model."""
    constant: Learner = DummyRegressor()
    if classify:
        constant = DummyClassifier(strategy="prior")
    linear = make_pipeline(rows.scaler(), _make_linear(classify))
    return {CONSTANT: constant, LINEAR: linear}


def make_peers(rows: CodedRows, classify: bool, seed: int) -> dict[str, Learner]:
    """Return learners to compare with; those of other libraries only if they are installed."""
    found = make_simple_peers(rows, classify)

    # learners of scikit-learn
    n = len(rows.train)
    landmarks = Nystroem(n_components=min(LANDMARKS, n), random_state=seed)
    on_landmarks = make_pipeline(rows.scaler(), landmarks, _make_linear(classify))
    found["scikit-learn's Nystroem"] = on_landmarks
    found["gradient boosting"] = _make_trees(rows, classify, seed)

    # learners of other libraries, and an exact process for few rows
    if find_spec("lightgbm"):
        found["LightGBM"] = _make_lightgbm(rows, classify, seed)
    if find_spec("catboost"):
        found["CatBoost"] = _make_catboost(rows, classify, seed)
    if n <= PROCESS_ROWS:
        found[PROCESS] = _make_process(rows, classify)
    return found


def _make_linear(classify: bool) -> Learner:
    if classify:
        return LogisticRegression(max_iter=1000)
    return RidgeCV(np.logspace(-4, 4, 9))


def _make_trees(rows: CodedRows, classify: bool, seed: int) -> Learner:
    """Return scikit-learn's gradient boosting, which accepts categories with up to 254 values."""
    few = []
    for j in rows.categories:
        values = np.unique(rows.train[:, j])
        if len(values) < MOST_VALUES:
            few.append(j)

    kind = HistGradientBoostingRegressor
    if classify:
        kind = HistGradientBoostingClassifier
    return kind(random_state=seed, categorical_features=few)


def _make_lightgbm(rows: CodedRows, classify: bool, seed: int) -> Learner:
    import lightgbm

    threads = None
    if len(rows.train) < FEW_ROWS:
        threads = 1
    kind = lightgbm.LGBMRegressor
    if classify:
        kind = lightgbm.LGBMClassifier
    model = kind(n_estimators=500, verbose=-1, random_state=seed, n_jobs=threads)

    # LightGBM takes the categories when it is fitted
    model.fit = functools.partial(model.fit, categorical_feature=rows.categories)
    return model


def _make_catboost(rows: CodedRows, classify: bool, seed: int) -> Learner:
    import catboost

    kind = catboost.CatBoostRegressor
    if classify:
        kind = catboost.CatBoostClassifier
    model = kind(
        random_seed=seed,
        cat_features=rows.categories,
        verbose=0,
        allow_writing_files=False,
    )

    # CatBoost takes categories as integers
    as_objects = FunctionTransformer(_as_objects, kw_args={"categories": rows.categories})
    return make_pipeline(as_objects, model)


def _make_process(rows: CodedRows, classify: bool) -> Learner:
    """Return an exact Gaussian process; for regression, it has a length scale per feature."""
    if classify:
        process = GaussianProcessClassifier(ConstantKernel() * Matern(nu=1.5))
        return make_pipeline(rows.scaler(), process)

    # learn a length scale for each coded column
    coded = rows.scaler().fit_transform(rows.train)
    scales = np.ones(coded.shape[1])
    kernel = ConstantKernel() * Matern(scales, nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    return make_pipeline(rows.scaler(), process)


def _as_objects(X: Floats, categories: Sequence[int]) -> NDArray[np.object_]:
    """Return an object array in which categories are integers, as CatBoost needs."""
    found = X.astype(object)
    numbers = np.nan_to_num(X[:, categories], nan=-1)
    found[:, categories] = numbers.astype(np.int64)
    return found
