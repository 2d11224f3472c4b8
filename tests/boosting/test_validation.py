"""Validation sets keep the norm of every combination, to the last digits."""

import pickle

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import dense_system, table_of

from nysboost.boosting.validation import ValidationSet


@pytest.mark.parametrize("case", market.NAMES)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=4), st.booleans())
def test_the_factor_gives_the_error_of_every_combination(case, w, square):
    problem, w = market.problem(case, n=40), np.array(w)
    table, cols = table_of(problem), np.arange(30, 36)
    rows = cols if square else np.arange(40)
    factor = ValidationSet(table, rows, cols).factor(len(w))
    A, b = dense_system(table, rows, cols, len(w))
    exact = np.linalg.norm(A @ w - b)
    scale = np.linalg.norm(b) + np.linalg.norm(A)
    loose = 1e-5 if table.gram.dtype == np.float32 else 1e-12
    assert abs(np.linalg.norm(factor[:, 1:] @ w - factor[:, 0]) - exact) <= loose * scale


@pytest.mark.parametrize("case", market.FLOAT64)
def test_the_factor_of_a_prefix_is_the_leading_block(case):
    problem = market.problem(case, n=40)
    validation = ValidationSet(table_of(problem), np.arange(40), np.arange(30, 36))
    short, long = validation.factor(2).copy(), validation.factor(4)
    np.testing.assert_allclose(short, long[:3, :3], atol=1e-14 * np.abs(long).max())
    fresh = ValidationSet(table_of(problem), np.arange(40), np.arange(30, 36)).factor(4)
    np.testing.assert_array_equal(long, fresh)
    assert np.array_equal(long, np.triu(long))


@given(st.lists(st.lists(st.integers(0, 39), min_size=1), max_size=5))
def test_a_learner_is_evaluated_once_on_the_rows_held_and_only_when_asked_for(questions):
    table = table_of(market.problem("Gaussian", n=40))
    before = table.gram.entries_evaluated
    for rows in questions:
        F = table.features(np.array(rows), table.learners[1])[0]
        exact = (
            table.learners[1]
            .rounded_to(market.problem("Gaussian", n=40).gram)
            .features(np.array(rows))
        )
        np.testing.assert_allclose(F, exact, atol=1e-12)
    assert table.gram.entries_evaluated == before + (6 * 40 if questions else 0)


def test_a_validation_set_travels_light_and_answers_the_same_on_arrival():
    table = table_of(market.problem("Gaussian", n=40), p=20, m=2)
    validation = ValidationSet(table, np.arange(40), np.arange(30, 40))
    there, suitcase = validation.factor(20), pickle.dumps(validation)
    assert len(suitcase) < 8 * 40 * 10 * 20
    np.testing.assert_allclose(pickle.loads(suitcase).factor(20), there, atol=1e-12)
