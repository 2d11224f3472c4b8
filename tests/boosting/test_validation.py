"""Validation sets keep the norm of every combination, to the last digits."""

import pickle

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import dense_system, table_of

from nysboost.boosting.learner import Mixture
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
    np.testing.assert_array_equal(short, long[:3, :3])
    fresh = ValidationSet(table_of(problem), np.arange(40), np.arange(30, 36)).factor(4)
    np.testing.assert_array_equal(long, fresh)
    assert np.array_equal(long, np.triu(long))


@pytest.mark.parametrize("case", ["linear", "huge", "float32 linear"])
def test_what_is_rounding_is_relative_to_the_kernels_own_size_there(case):
    problem = market.problem(case, n=40)
    validation = ValidationSet(table_of(problem), np.arange(9), np.arange(30, 34))
    eps = np.finfo(problem.X.dtype).eps
    expected = eps * problem.G.diagonal()[30:34].max() * np.sqrt(9 * 4)
    assert validation.rounding == pytest.approx(expected, rel=1e-5)


def test_more_learners_than_values_do_no_harm():
    table = table_of(market.problem("Gaussian", n=40), p=6)
    factor = ValidationSet(table, np.array([38, 39]), np.array([38])).factor(6)
    A, b = dense_system(table, np.array([38, 39]), np.array([38]), 6)
    w = np.arange(6.0)
    assert np.linalg.norm(factor[:, 1:] @ w - factor[:, 0]) == pytest.approx(
        np.linalg.norm(A @ w - b)
    )


def test_a_learner_that_repeats_another_adds_nothing():
    table = table_of(market.problem("Gaussian", n=40), p=2)
    table.append(table.learners[0])
    factor = ValidationSet(table, np.arange(40), np.arange(30, 36)).factor(3)
    assert abs(factor[3, 3]) <= 1e-14 * np.linalg.norm(factor)
    w = np.array([1.0, 0.0, -1.0])
    np.testing.assert_allclose(factor[:, 1:] @ w, 0, atol=1e-13)


@given(st.lists(st.integers(0, 39), min_size=1, max_size=12), st.booleans())
def test_features_looked_up_are_features_evaluated(rows, held):
    table = table_of(market.problem("Gaussian", n=40), rows=None if held else np.arange(5, 20))
    rows = np.array(rows)
    for i in (0, 3):
        np.testing.assert_allclose(
            table.features(rows, i), table.learners[i].features(table.gram, rows), atol=1e-12
        )


@given(st.lists(st.lists(st.integers(0, 39), min_size=1), max_size=5))
def test_each_row_held_is_evaluated_once_and_only_when_asked_for(questions):
    table = table_of(market.problem("Gaussian", n=40))
    before = table.gram.entries_evaluated
    for rows in questions:
        F = table.features(np.array(rows), 1)
        exact = table.learners[1].features(market.problem("Gaussian", n=40).gram, np.array(rows))
        np.testing.assert_allclose(F, exact, atol=1e-12)
    asked = {row for rows in questions for row in rows}
    assert table.gram.entries_evaluated == before + 6 * len(asked)


def test_a_validation_set_travels_light_and_answers_the_same_on_arrival():
    table = table_of(market.problem("Gaussian", n=40), p=20, m=2)
    validation = ValidationSet(table, np.arange(40), np.arange(30, 40))
    there, suitcase = validation.factor(20), pickle.dumps(validation)
    assert len(suitcase) < 8 * 40 * 10 * 20
    np.testing.assert_allclose(pickle.loads(suitcase).factor(20), there, atol=1e-12)


def test_features_come_back_after_a_journey():
    table = table_of(market.problem("Gaussian", n=40))
    rows = np.arange(3, 9)
    there = table.features(rows, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(table)).features(rows, 2), there)


def test_the_block_of_a_mixture_is_the_weighted_sum_of_the_learners():
    table = table_of(market.problem("Gaussian", n=40))
    w, rows, cols = np.array([0.5, -1.0, 2.0]), np.arange(10), np.array([39, 4])
    A, _ = dense_system(table, rows, cols, 3)
    mixture = Mixture(tuple(table.learners[:3]), w)
    np.testing.assert_allclose(table.block(mixture, rows, cols).ravel(), A @ w, atol=1e-12)


def test_a_shorter_prefix_is_still_there_after_a_longer_one():
    table, rows, cols = table_of(market.problem("Gaussian", n=40)), np.arange(40), np.arange(30, 36)
    validation = ValidationSet(table, rows, cols)
    long = validation.factor(4)
    for p in range(5):
        np.testing.assert_array_equal(validation.factor(p), long[: p + 1, : p + 1])


def test_a_mixture_may_hold_a_learner_that_is_not_in_the_table():
    problem = market.problem("Gaussian", n=40)
    table, more = table_of(problem, p=2), table_of(problem, p=4)
    rows, cols, w = np.arange(10), np.array([39, 4]), np.array([0.5, -1.0])
    A, _ = dense_system(more, rows, cols, 4)
    mixture = Mixture((table.learners[1], more.learners[3]), w)
    found = table.block(mixture, rows, cols).ravel()
    np.testing.assert_allclose(found, A[:, [1, 3]] @ w, atol=1e-12)


def test_learners_in_the_table_are_looked_up_and_not_evaluated_again():
    table, everything = table_of(market.problem("Gaussian", n=40)), np.arange(40)
    mixture = Mixture(tuple(table.learners), np.ones(4))
    first = table.block(mixture, everything, everything)
    before = table.gram.entries_evaluated
    np.testing.assert_array_equal(table.block(mixture, everything, everything), first)
    assert table.gram.entries_evaluated == before


@given(st.integers(17, 40))
def test_the_factor_grows_beyond_its_first_room(p):
    table = table_of(market.problem("Gaussian", n=40), p=p, m=1)
    rows, cols = np.arange(40), np.arange(30, 40)
    factor = ValidationSet(table, rows, cols).factor(p)
    A, b = dense_system(table, rows, cols, p)
    whole = np.column_stack([b, A])
    np.testing.assert_allclose(factor.T @ factor, whole.T @ whole, atol=1e-11)


def test_a_table_holds_other_rows_beside_its_first_ones():
    table = table_of(market.problem("Gaussian", n=40), rows=np.arange(5))
    for more in ([30, 7], [12]):
        table.hold(np.array(more))
        np.testing.assert_array_equal(table.rows, np.union1d(np.arange(5), more))
        before = table.gram.entries_evaluated
        for rows in (np.array(more), np.arange(5)):
            exact = table.learners[1].features(market.problem("Gaussian", n=40).gram, rows)
            np.testing.assert_allclose(table.features(rows, 1), exact, atol=1e-12)
        assert table.gram.entries_evaluated == before + 6 * len(table.rows)
