"""Validation sets keep the norm of every combination; the residual against the dense one."""

import pickle
from dataclasses import replace

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import dense, dense_system, to_table

import nysboost as nb
from nysboost.boosting.algorithm import ensemble
from nysboost.boosting.rules import UniformWeights
from nysboost.boosting.state import ValidationSet
from nysboost.features.feature_map import features_of


@pytest.mark.parametrize("case", market.NAMES)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=4), st.booleans())
def test_the_small_system_gives_the_error_of_every_combination(case, w, square):
    problem, w = market.problem(case, n=40), np.array(w)
    table, cols = to_table(problem), np.arange(30, 36)
    rows = cols if square else np.arange(40)
    small_b, small_A = ValidationSet(table, rows, cols).system(len(w))
    A, b = dense_system(table, rows, cols, len(w))
    exact = np.linalg.norm(A @ w - b)
    scale = np.linalg.norm(b) + np.linalg.norm(A)
    loose = 1e-5 if table.gram.dtype == np.float32 else 1e-12
    assert abs(np.linalg.norm(small_A @ w - small_b) - exact) <= loose * scale


@given(st.lists(st.lists(st.integers(0, 39), min_size=1), max_size=5))
def test_a_learner_is_evaluated_once_on_the_rows_held_and_only_when_asked_for(questions):
    table = to_table(market.problem("Gaussian", n=40))
    before = table.gram.entries_evaluated
    gram = market.problem("Gaussian", n=40).gram
    for rows in map(np.array, questions):
        F = table.features(table.learners[1:2], rows)
        np.testing.assert_allclose(F, features_of(gram, table.learners[1], rows), atol=1e-12)
    assert table.gram.entries_evaluated == before + (6 * 40 if questions else 0)


def test_a_validation_set_travels_light_and_answers_the_same_on_arrival():
    table = to_table(market.problem("Gaussian", n=40), p=20, m=2)
    validation = ValidationSet(table, np.arange(40), np.arange(30, 40))
    there, suitcase = validation.system(20), pickle.dumps(validation)
    assert len(suitcase) < 8 * 40 * 10 * 20
    for arrived, left in zip(pickle.loads(suitcase).system(20), there, strict=True):
        np.testing.assert_allclose(arrived, left, atol=1e-12)


def ensemble_of(problem, **sizes):
    """What an ensemble of three learners has found, and its dense residual."""
    settings = nb.Settings(n_learners=3, n_columns=5, n_fit=4, n_tune=4, **sizes)
    run = ensemble(problem.gram, settings, np.random.default_rng(0))
    mixture = run.mixture(UniformWeights())
    mean = sum(dense(problem.gram, learner) for learner in mixture.learners) / 3
    return run.state, mixture, problem.G - mean


V = np.array([40, 7, 33])


@pytest.mark.parametrize("case", ["Gaussian", "narrow Gaussian"])
@pytest.mark.parametrize("shape", ["columns", "square"])
def test_columns_are_those_of_the_dense_residual(case, shape):
    state, mixture, residual = ensemble_of(market.problem(case, n=60), residual_shape=shape)
    expected = residual[np.ix_(V, V)] if shape == "square" else residual[:, V]
    np.testing.assert_allclose(state.residual(mixture, V), expected, atol=1e-10)
    exact = np.linalg.norm(residual[:, state.V2.cols])
    assert state.error_on_V2(mixture) == pytest.approx(exact, rel=1e-9)


def test_of_a_sample_of_rows_those_of_the_columns_count_for_nothing():
    state, mixture, residual = ensemble_of(market.problem("Gaussian", n=60))
    rows = np.arange(0, 60, 2)
    state = replace(state, rows=rows)
    mine = rows[[3, 9, 20]]
    expected = np.where(np.isin(rows, mine)[:, None], 0.0, residual[np.ix_(rows, mine)])
    np.testing.assert_allclose(state.residual(mixture, mine), expected, atol=1e-10)
    assert np.abs(state.residual(mixture, rows)).max() > 0.01  # or nothing would be left
