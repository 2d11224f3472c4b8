"""L-BFGS against SciPy's, and where it must not go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nysboost.joint.refinement import descend
from nysboost.numerics.tolerances import NOTHING, SUFFICIENT


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


def test_rows_of_different_curvature_have_scales_of_their_own():
    """A landmark where the loss is flat goes as far as one where it is steep."""
    curvature = np.logspace(0, 4, 6)[:, None]

    def objective(x):
        gap = x.reshape(6, 5) - 1
        return float((curvature * gap**2).sum()), (2 * curvature * gap).reshape(x.shape)

    start = np.random.default_rng(0).normal(size=(6, 5))
    in_rows, as_one = (objective(descend(objective, x, 20))[0] for x in (start, start.ravel()))
    assert in_rows < 1e-2 * as_one


class Told:
    """An objective that answers what it is told, and remembers where it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, x):
        self.asked.append(x.copy())
        value, gradient = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return value, np.array(gradient)


def test_the_first_step_has_length_one_and_each_refusal_quarters_it():
    told = Told((1.0, [3.0, 4.0]), (2.0, [0.0, 0.0]))
    start = np.array([5.0, 5.0])
    found = descend(told, start, 3)
    expected = [start - length * np.array([0.6, 0.8]) for length in (0, 1, 1 / 4, 1 / 16)]
    np.testing.assert_allclose(told.asked, expected, rtol=1e-15)
    assert found is start


@pytest.mark.parametrize(("kept", "accepted"), [(1.1, True), (0.9, False), (-1.0, False)])
def test_a_step_counts_that_keeps_enough_of_its_promise(kept, accepted):
    """The slope along the unit step is −5, so that the least gain is 5 SUFFICIENT."""
    told = Told((1.0, [3.0, 4.0]), (1.0 - kept * 5 * SUFFICIENT, [0.0, 0.0]))
    found = descend(told, np.zeros(2), 1)
    np.testing.assert_allclose(found, [-0.6, -0.8] if accepted else [0.0, 0.0])


@pytest.mark.parametrize(("slope", "calls"), [(2 * NOTHING, 2), (0.5 * NOTHING, 1)])
def test_a_promise_that_is_not_worth_an_evaluation_ends_the_descent(slope, calls):
    told = Told((1.0, [slope]), (0.0, [0.0]))
    descend(told, np.zeros(1), 1)
    assert len(told.asked) == calls


def test_on_a_bowl_the_second_step_is_newtons():
    """One pair knows the curvature of a one-dimensional bowl exactly: the step is whole again."""
    asked = []

    def bowl(x):
        asked.append(float(x[0]))
        return float(50 * x[0] ** 2), 100 * x

    np.testing.assert_allclose(descend(bowl, np.array([0.7]), 5), 0.0, atol=1e-12)
    np.testing.assert_allclose(asked[:3], [0.7, -0.3, 0.0], atol=1e-12)


def test_the_second_step_in_a_row_that_is_not_worth_it_is_the_last():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12)) * np.logspace(0, -3, 12)
    b, values = rng.normal(size=30), []

    def objective(x):
        missed = A @ x - b
        values.append(float(missed @ missed))
        return values[-1], 2 * A.T @ missed

    full = descend(objective, np.zeros(12), 30)
    assert len(values) == 31
    values.clear()
    last = descend(objective, np.zeros(12), 30, worth=1e-2)
    lowest = np.minimum.accumulate(values)
    gains = -np.diff(lowest)[np.diff(lowest) < 0]  # the others were tried again
    weak = gains < 1e-2
    np.testing.assert_array_equal(np.flatnonzero(weak[1:] & weak[:-1]), [len(gains) - 2])
    assert objective(full)[0] <= objective(last)[0]
