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
from nysboost.boosting.validation import FeatureTable, ResidualColumns, ValidationSet
from nysboost.features.feature_map import features_of
from nysboost.features.nystrom import Mixture, fit_learner


@pytest.mark.parametrize("case", market.NAMES)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=4), st.booleans())
def test_the_factor_gives_the_error_of_every_combination(case, w, square):
    problem, w = market.problem(case, n=40), np.array(w)
    table, cols = to_table(problem), np.arange(30, 36)
    rows = cols if square else np.arange(40)
    factor = ValidationSet(table, rows, cols).factor(len(w))
    A, b = dense_system(table, rows, cols, len(w))
    exact = np.linalg.norm(A @ w - b)
    scale = np.linalg.norm(b) + np.linalg.norm(A)
    loose = 1e-5 if table.gram.dtype == np.float32 else 1e-12
    assert abs(np.linalg.norm(factor[:, 1:] @ w - factor[:, 0]) - exact) <= loose * scale


@given(st.lists(st.lists(st.integers(0, 39), min_size=1), max_size=5))
def test_a_learner_is_evaluated_once_on_the_rows_held_and_only_when_asked_for(questions):
    table = to_table(market.problem("Gaussian", n=40))
    before = table.gram.entries_evaluated
    gram = market.problem("Gaussian", n=40).gram
    for rows in map(np.array, questions):
        F = table.features(rows, table.learners[1])[0]
        np.testing.assert_allclose(F, features_of(gram, table.learners[1], rows), atol=1e-12)
    assert table.gram.entries_evaluated == before + (6 * 40 if questions else 0)


def test_a_validation_set_travels_light_and_answers_the_same_on_arrival():
    table = to_table(market.problem("Gaussian", n=40), p=20, m=2)
    validation = ValidationSet(table, np.arange(40), np.arange(30, 40))
    there, suitcase = validation.factor(20), pickle.dumps(validation)
    assert len(suitcase) < 8 * 40 * 10 * 20
    np.testing.assert_allclose(pickle.loads(suitcase).factor(20), there, atol=1e-12)


def ensemble_of(problem, **sizes):
    """What an ensemble of three learners has found, and its dense residual."""
    settings = nb.Settings(n_learners=3, n_columns=5, n_fit=4, n_tune=4, **sizes)
    run = ensemble(problem.gram, settings, np.random.default_rng(0))
    mixture = run.mixture(UniformWeights())
    mean = sum(dense(problem.gram, learner) for learner in mixture.learners) / 3
    return run.found, mixture, problem.G - mean


V = np.array([40, 7, 33])


@pytest.mark.parametrize("case", ["Gaussian", "narrow Gaussian"])
def test_columns_are_those_of_the_dense_residual(case):
    found, mixture, residual = ensemble_of(market.problem(case, n=60))
    columns = ResidualColumns(found, found.observed)
    square = ResidualColumns(found, None)(mixture, V)
    np.testing.assert_allclose(columns(mixture, V), residual[:, V], atol=1e-10)
    np.testing.assert_allclose(square, residual[np.ix_(V, V)], atol=1e-10)


def table_like(found, gram):
    """A table of the same learners on another Gram matrix, that has seen nothing yet."""
    table = FeatureTable(gram, found.table.rows)
    for learner in found.learners:
        table.append(learner)
    return table


def on_few_rows(problem, size):
    """The same, on a few rows, in float32, and the residual's columns there."""
    found, mixture, residual = ensemble_of(problem)
    table = table_like(found, found.sample.gram.in_float32())
    rows = np.arange(0, 60, 60 // size)
    fit = ValidationSet(table, rows, found.fit.cols)
    found = replace(found, table=table, fit=fit, residual_rows=rows)
    columns = ResidualColumns(found, rows)
    return found, mixture, residual, columns


def test_of_a_sample_of_rows_those_of_the_columns_count_for_nothing():
    found, mixture, residual, columns = on_few_rows(market.problem("Gaussian", n=60), 30)
    rows = found.residual_rows
    mine = rows[[3, 9, 20]]
    expected = np.where(np.isin(rows, mine)[:, None], 0.0, residual[np.ix_(rows, mine)])
    np.testing.assert_allclose(columns(mixture, mine), expected, atol=1e-5)
    assert np.abs(columns(mixture, rows)).max() > 0.01  # or nothing would be left


def test_few_rows_are_in_float32_as_long_as_that_shows_the_residual():
    problem = market.problem("Gaussian", n=60)
    found, mixture, residual, columns = on_few_rows(problem, 30)
    rows = found.residual_rows
    odd = V + (V % 2 == 0)  # none of which is among the rows
    seen, weighed = columns(mixture, odd), found.fit.factor(3)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, residual[np.ix_(rows, odd)], atol=1e-5)
    everything = fit_learner(problem.gram, problem.gram.landmarks(np.arange(0, 60)), 60)
    nothing = columns(Mixture((everything,), np.ones(1)), odd)
    assert nothing.dtype == np.float64
    assert np.abs(nothing).max() < 1e-9
    again = columns(mixture, odd)
    assert again.dtype == np.float64
    np.testing.assert_allclose(again, seen, atol=1e-5)
    fresh = table_like(found, found.sample.gram)
    exact = ValidationSet(fresh, rows, found.fit.cols).factor(3)
    assert not np.allclose(weighed, exact, atol=1e-12)
    np.testing.assert_allclose(found.fit.factor(3), exact, atol=1e-12)  # V1 looks again too
