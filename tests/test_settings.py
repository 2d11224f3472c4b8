"""Sizes of a run."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
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


def test_the_papers_sizes_and_the_sampled_ones_are_settings_and_can_be_changed():
    simulation, real = (Settings.paper(data).resolve(4000) for data in ("simulation", "real"))
    assert simulation == (20, 10, 10, 100, 20, 20)
    assert real == (20, 120, 50, 600, 20, 20)
    assert Settings.paper("real", n_learners=3).n_learners == 3
    with pytest.raises(ValueError, match="simulation"):
        Settings.paper("mnist")
    fast = Settings.fast(n_columns=30, residual_rows=99)
    assert fast.resolve(4000).n_candidates < Settings(n_columns=30).resolve(4000).n_candidates
    assert fast.residual_rows == 99


def test_v_has_ten_columns_for_each_of_a_learner_unless_it_is_said():
    assert Settings(n_columns=12).resolve(1000).n_candidates == 120
    assert Settings(n_columns=12, candidates_per_column=5).resolve(1000).n_candidates == 60
    assert Settings(n_columns=12, n_candidates=50).resolve(1000).n_candidates == 50


def test_a_letter_of_the_paper_is_answered_with_its_setting_wherever_it_is_given():
    X = np.random.default_rng(0).normal(size=(60, 2))
    ways = (
        lambda: Settings(p=3),
        lambda: Settings.fast(p=3),
        lambda: Settings.paper("real", p=3),
        lambda: nb.approximate(X, "URB-mean", p=3),
    )
    for way in ways:
        with pytest.raises(TypeError, match="the paper's p is 'n_learners' here"):
            way()
    with pytest.raises(TypeError, match="Did you mean 'n_columns'"):
        Settings(n_column=3)
    assert pickle.loads(pickle.dumps(Settings(rank=3))) == Settings(rank=3)


@pytest.mark.parametrize("method", ["joint", "ensemble-ridge", "kmeans"])
def test_only_boosting_finds_the_number_of_learners(method):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match="for boosting only"):
        nb.approximate(X, method, n_learners="auto", n_columns=4, random_state=0)


@pytest.mark.parametrize("name", ["row_cap", "candidates_per_column"])
def test_a_count_with_a_default_of_its_own_is_not_none(name):
    with pytest.raises(
        ValueError, match=f"{name} must be a positive whole number, but {name}=None"
    ):
        nb.Settings(**{name: None})


@given(st.sampled_from([np.uint8, np.int8, np.int16]), st.integers(1, 120), st.integers(1, 120))
def test_small_types_of_whole_numbers_do_not_overflow(kind, m, v):
    small = Settings(n_learners=kind(3), n_columns=kind(m), n_fit=kind(v), n_tune=kind(v))
    large = Settings(n_learners=3, n_columns=m, n_fit=v, n_tune=v)
    assert small == large
    assert small.resolve(4000) == large.resolve(4000)


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: value} for name in ("n_learners", "n_columns", "rank", "n_fit", "row_cap")
          for value in (True, np.True_, 3.0, np.float64(3.0), np.nan, "3", 0, -1, 1j)),
        *({"eta": value} for value in (True, np.nan, np.inf, 0, -1, 10**400, "x", None, [0.1])),
        *({"lambdas": value} for value in ((), (True,), (np.nan,), (10**400,), "abc", 0.1, (1j,))),
        *({"residual_shape": value} for value in (True, None, "x", ["square"], np.ones(2))),
        *({"validation_shape": value} for value in (1, np.array(["square", "columns"]))),
        *({"nonnegative": value} for value in (1, None, "yes", np.nan)),
        *({"min_gain": value} for value in (True, np.nan, "x", None, 0, 1)),
    ],
)  # fmt: skip
def test_a_value_that_is_none_of_a_setting_is_named(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}.* was given|{name} is empty"):
        Settings(**wrong)


@pytest.mark.parametrize("name", ["n_learners", "n_columns", "rank", "n_fit", "n_tune"])
def test_a_size_far_above_the_rows_is_named(name):
    sizes = {"n_learners": 2, "n_columns": 3, name: 10**13}
    with pytest.raises(ValueError, match=str(10**13)):
        Settings(**sizes).resolve(90)


def test_rates_of_exponential_weights_of_any_size_leave_weights_finite():
    X = np.random.default_rng(0).normal(size=(60, 2))
    sizes = {"n_learners": 3, "n_columns": 4, "random_state": 0}
    for eta, expected in ((1e308, [0, 0, 1]), (1e-320, [1 / 3, 1 / 3, 1 / 3])):
        weights = nb.approximate(X, "ensemble-exponential", eta=eta, **sizes).weights
        np.testing.assert_allclose(np.sort(weights), expected)
