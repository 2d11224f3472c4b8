"""Sizes of a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.settings import Settings


@given(st.integers(1, 5000), st.integers(1, 12))
def test_the_defaults_fit_every_n_or_say_what_is_needed(n, p):
    if n < p + 2 * max(1, n // 20):
        with pytest.raises(ValueError, match=f"n_samples = {n}"):
            Settings(n_learners=p).resolve(n)
        return
    sizes = Settings(n_learners=p).resolve(n)
    assert p * sizes.n_columns + sizes.n_fit + sizes.n_tune <= n
    assert sizes.rank == sizes.n_columns <= 120
    assert sizes.n_candidates >= sizes.n_columns


@given(st.integers(1, 50), st.integers(1, 10), st.integers(1, 9), st.integers(1, 9))
def test_the_number_needed_is_exactly_what_is_needed(m, p, v1, v2):
    settings = Settings(n_learners=p, n_columns=m, n_fit=v1, n_tune=v2)
    needed = p * m + v1 + v2
    assert settings.resolve(np.int32(needed)).n_columns == m
    with pytest.raises(ValueError, match=f"need at least {needed} rows"):
        settings.resolve(needed - 1)


def test_methods_without_validation_need_no_rows_for_it_and_without_boosting_no_candidates():
    assert Settings(n_learners=1, n_columns=10).resolve(10, validated=False).n_columns == 10
    with pytest.raises(ValueError, match="cannot be clustered"):
        Settings(n_columns=10, n_candidates=5).resolve(1000)
    assert Settings(n_columns=10, n_candidates=5).resolve(1000, boosted=False).n_columns == 10
