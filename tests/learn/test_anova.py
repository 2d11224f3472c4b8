"""ANOVA kernel ridge regression (Saunders et al. 1998) through an approximation."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import nysboost as nb

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + 0.05 * RNG.normal(size=300)
KERNEL = nb.Anova(gamma=1.0, degree=2)


def dense_ridge(alpha):
    K = KERNEL(X[:200], X[:200])
    return KERNEL(X[200:], X[:200]) @ np.linalg.solve(K + alpha * np.eye(200), Y[:200])


def test_with_every_row_as_landmark_it_is_the_dense_one():
    theirs = KernelRidge(alpha=0.1, kernel="precomputed").fit(KERNEL(X[:200], X[:200]), Y[:200])
    np.testing.assert_allclose(dense_ridge(0.1), theirs.predict(KERNEL(X[200:], X[:200])))
    features = nb.Nystroem(KERNEL, method="uniform", n_components=200, random_state=0)
    model = make_pipeline(features, Ridge(0.1, fit_intercept=False)).fit(X[:200], Y[:200])
    np.testing.assert_allclose(model.predict(X[200:]), dense_ridge(0.1), atol=1e-4)


def test_few_landmarks_that_move_by_its_derivative_are_nearly_as_good():
    features = nb.Nystroem(KERNEL, n_components=100, random_state=0)
    model = make_pipeline(features, Ridge(0.1, fit_intercept=False)).fit(X[:200], Y[:200])
    errors = [np.std(found - Y[200:]) for found in (model.predict(X[200:]), dense_ridge(0.1))]
    assert errors[0] < 1.2 * errors[1]
    still = nb.approximate(X, "uniform", KERNEL, n_components=40, random_state=0)
    moved = nb.approximate(X, "joint", KERNEL, n_components=40, random_state=0)
    assert moved.relative_error() < 0.5 * still.relative_error()


def cross_validated_dense_ridge(kernel, train, targets, test):
    """Kernel ridge regression with all rows, its penalty by cross-validation."""
    search = GridSearchCV(
        KernelRidge(kernel="precomputed"), {"alpha": 10.0 ** np.arange(-4, 2)}, cv=5
    )
    mean = targets.mean()
    return search.fit(kernel(train, train), targets - mean).predict(kernel(test, train)) + mean


@pytest.mark.parametrize("landmarks", ["target", "uniform", "joint"])
def test_the_regressor_is_as_good_as_the_dense_one_on_its_kernel(landmarks):
    model = nb.NystroemRegressor(60, kernel=KERNEL, landmarks=landmarks, random_state=0)
    model.fit(X[:200], Y[:200])
    assert model.kernel_.degree == 2
    dense = cross_validated_dense_ridge(KERNEL, X[:200], Y[:200], X[200:])
    errors = [np.std(found - Y[200:]) for found in (model.predict(X[200:]), dense)]
    assert errors[0] < 1.1 * errors[1]


def test_many_rows_go_through_the_same_kernel():
    rng = np.random.default_rng(1)
    many = rng.uniform(-1, 1, size=(4000, 4))
    y = np.sin(3 * many[:, 0]) + many[:, 1] ** 2 + many[:, 2] * many[:, 3]
    y += 0.05 * rng.normal(size=4000)
    model = nb.NystroemRegressor(80, kernel=KERNEL, random_state=0).fit(many[:3500], y[:3500])
    mean, std = model.predict(many[3500:], return_std=True)
    assert np.std(mean - y[3500:]) < 0.06
    assert 0.9 < np.mean(np.abs(mean - y[3500:]) < 1.96 * std) < 0.99


def test_far_from_all_rows_the_deviation_is_that_of_the_kernels_height():
    model = nb.NystroemRegressor(50, kernel=KERNEL, random_state=0).fit(X[:200], Y[:200])
    basis = model._models[0].basis
    far = np.full((1, 4), 1e6)
    assert basis.height == pytest.approx(float(model.kernel_.diag(far)[0]))
    spread = model._models[0].spread(basis(far))
    assert float(spread[0]) == pytest.approx(1 + basis.height / model._models[0].doubt)


def test_a_sum_of_single_features_is_found_by_degree_one_and_not_by_a_gaussian():
    """Of 12 features with 150 rows: what an additive kernel is for."""
    rng = np.random.default_rng(2)
    wide = rng.uniform(-2, 2, size=(400, 12))
    y = np.sin(2 * wide).sum(axis=1)
    error = {}
    for name, kernel in (("anova", nb.Anova()), ("gaussian", "gaussian")):
        model = nb.NystroemRegressor(100, kernel=kernel, landmarks="uniform", random_state=0)
        error[name] = np.std(model.fit(wide[:150], y[:150]).predict(wide[150:]) - y[150:])
    assert error["anova"] < 0.5 * error["gaussian"]
