"""L-BFGS against SciPy's, and where it must not go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nysboost.numerics.descent import Curvature, descend


@given(st.integers(0, 1000))
def test_the_descent_is_that_of_scipy_on_a_bent_valley(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(30, 12))

    def objective(x):
        r = A @ x.ravel() - 1
        return float(np.log(1 + r @ r)), (A.T @ r * (2 / (1 + r @ r))).reshape(x.shape)

    x = rng.normal(size=(4, 3))
    ours, _ = objective(descend(objective, x, 60))
    theirs = minimize(lambda flat: tuple(map(np.ravel, objective(flat))), x.ravel(), jac=True)
    assert ours <= float(theirs.fun) + 1e-6


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_descent_without_slope_stays_where_it_is(value):
    x = np.ones((2, 2))
    assert descend(lambda x: (value, x * value), x, 5) is x


def test_a_step_into_the_undefined_is_taken_back():
    def objective(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.log(x[0])) ** 2, 2 * np.log(x) / x

    found = descend(objective, np.array([30.0]), 40)
    np.testing.assert_allclose(found, 1.0, rtol=1e-4)


def test_a_second_descent_goes_on_where_the_first_has_learnt_the_curvature():
    scales = np.geomspace(1, 300, 8)

    def objective(x):
        return float(np.sum(scales * x * x)), 2 * scales * x

    x = np.ones(8)
    known = Curvature()
    half_way = descend(objective, x, 10, known)
    assert len(known) > 5
    again, afresh = (descend(objective, half_way, 6, one) for one in (known, None))
    assert objective(again)[0] < 0.5 * objective(afresh)[0]
