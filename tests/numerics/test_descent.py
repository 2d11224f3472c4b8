"""L-BFGS against SciPy's, and where it must not go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from nysboost.numerics.descent import anneal, descend


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


def test_annealing_is_adam_of_pytorch_with_a_cosine():
    torch = pytest.importorskip("torch")
    A = np.random.default_rng(0).normal(size=(6, 4))

    def gradient_at(x, i):
        return A.T @ (A @ x - i)

    x = torch.ones(4, dtype=torch.float64)
    adam = torch.optim.Adam([x], lr=0.1, betas=(0.9, 0.99), eps=1e-12)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 30)
    for i in range(30):
        x.grad = torch.from_numpy(gradient_at(x.numpy(), i))
        adam.step()
        rate.step()
    np.testing.assert_allclose(anneal(gradient_at, np.ones(4), 30, 0.1), x.numpy(), rtol=1e-9)


def test_annealing_moves_as_far_along_a_gentle_slope_as_along_a_steep_one():
    slopes = np.array([1e-9, 1.0, 1e9])
    end = anneal(lambda x, _: slopes, np.zeros(3), 10, 0.1)
    np.testing.assert_allclose(end, end[1], rtol=2e-3)
    assert -1 < end[1] < -0.3


def test_a_step_without_a_gradient_is_left_out():
    end = anneal(lambda x, i: None if i % 2 else 2 * x, np.array([1.0]), 200, 0.1)
    assert abs(end[0]) < 1e-2
    assert anneal(lambda x, i: None, np.ones(2), 5, 0.1).tolist() == [1, 1]
