"""Generators from seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from sklearn.utils import check_random_state

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def make_rng(random_state: RandomState) -> np.random.Generator:
    """Turn any seed into a generator; None follows ``np.random.seed``, as in scikit-learn."""
    random_state = check_random_state(None) if random_state is None else random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = f"random_state is a whole number or a generator, but {random_state!r} was given."
        raise ValueError(msg) from error
