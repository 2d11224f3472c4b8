"""ANOVA kernel ridge regression (Saunders et al. 1998) through an approximation."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
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
