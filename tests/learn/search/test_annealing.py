"""Adam against a literal one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nysboost.learn.search.candidates import anneal


def test_a_step_without_a_gradient_is_left_out():
    end = anneal(lambda x, i: None if i % 2 else 2 * x, np.array([1.0]), 200, 0.1)
    assert abs(end[0]) < 1e-2
    assert anneal(lambda x, i: None, np.ones(2), 5, 0.1).tolist() == [1, 1]


def literal_adam(gradients, x, rate):
    """Algorithm 1 of Kingma and Ba, each mean over its own weights, with a cosine of the rate."""
    steps = len(gradients)
    for i in range(steps):
        ages = np.arange(i, -1, -1)
        weights, square_weights = 0.9**ages, 0.99**ages
        seen = np.array(gradients[: i + 1])
        mean = weights @ seen / weights.sum()
        square = square_weights @ seen**2 / square_weights.sum()
        length = rate * np.cos(np.pi * i / (2 * steps)) ** 2
        x = x - length * mean / (np.sqrt(square) + 1e-12)
    return x


@given(st.integers(1, 12), st.integers(0, 1000))
def test_annealing_is_a_literal_adam_along_a_cosine(steps, seed):
    rng = np.random.default_rng(seed)
    gradients, x = rng.normal(size=(steps, 3)), rng.normal(size=3)
    found = anneal(lambda _, i: gradients[i], x, steps, 0.3)
    np.testing.assert_allclose(found, literal_adam(gradients, x, 0.3), rtol=1e-9, atol=1e-12)
