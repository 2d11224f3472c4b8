"""Every seed that users hold is a generator."""

import numpy as np
import pytest

from nysboost.numerics.seeds import make_rng


def test_a_number_and_its_generator_are_the_same_seed():
    generator = np.random.default_rng(3)
    assert make_rng(generator) is generator
    assert make_rng(3).random() == generator.random()


def test_a_random_state_of_scikit_learn_is_drawn_from():
    first, second = (make_rng(np.random.RandomState(0)).random() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("seed", ["zero", 1.5, -1])
def test_what_is_no_seed_gets_a_sentence(seed):
    with pytest.raises(ValueError, match="random_state is a whole number or a generator"):
        make_rng(seed)
