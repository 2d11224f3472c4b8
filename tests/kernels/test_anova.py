import numpy as np
import pytest
from scipy.optimize import approx_fprime

import nysboost as nb

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))
METRICS = {
    "one scale": 0.7,
    "a scale for each feature": [0.5, 2.0, 0.0],
    "a matrix": RNG.normal(size=(3, 2)),
}


def dense(X, Z, gamma, degree):
    gaps = X[:, None, :] - Z[None, :, :]
    return np.exp(-gamma * gaps**2).sum(axis=2) ** degree


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_comes_before_the_sum_over_features(metric):
    A = np.asarray(metric)
    mapped = [P @ A if A.ndim == 2 else P * A for P in (X, Z)]
    kernel = nb.Anova(gamma=0.6, degree=3, metric=nb.Metric(metric))
    np.testing.assert_allclose(kernel(X, Z), dense(*mapped, 0.6, 3))
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X, X)))


@pytest.mark.parametrize("metric", [None, *METRICS.values()], ids=["none", *METRICS])
def test_the_derivative_is_that_of_differences(metric):
    kernel = nb.Anova(0.6, 2, None if metric is None else nb.Metric(metric))
    weights = RNG.normal(size=(7, 4))

    def total(flat):
        return float((weights * kernel(X, flat.reshape(4, 3))).sum())

    expected = approx_fprime(Z.ravel(), total, 1e-7).reshape(4, 3)
    found = kernel.pullback(X, Z, kernel(X, Z), weights)
    np.testing.assert_allclose(found, expected, atol=1e-4)
