"""The residual's columns and its diagonal against the dense residual."""

from dataclasses import replace

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.boosting.algorithm import ensemble
from nysboost.boosting.learner import Mixture, fit_learner, residual_diagonal
from nysboost.boosting.rules import UniformWeights
from nysboost.boosting.validation import FeatureTable, Residual, ValidationSet


def ensemble_of(problem, **sizes):
    """What an ensemble of three learners has found, and its dense residual."""
    settings = nb.Settings(n_learners=3, n_columns=5, n_fit=4, n_tune=4, **sizes)
    run = ensemble(problem.gram, settings, np.random.default_rng(0))
    mixture = run.mixture(UniformWeights())
    F = [learner.rounded_to(problem.gram).features() for learner in mixture.learners]
    return run.found, mixture, problem.G - sum(f @ f.T for f in F) / 3


V, CONSIDERED = np.array([40, 7, 33]), np.arange(0, 60, 1)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("case", ["Gaussian", "narrow Gaussian"])
def test_columns_are_those_of_the_dense_residual_shared_or_not(case, shared):
    found, mixture, dense = ensemble_of(market.problem(case, n=60))
    columns = Residual(found, found.observed)
    columns.consider(CONSIDERED, shared=shared)
    np.testing.assert_allclose(columns(mixture, V), dense[:, V], atol=1e-10)
    np.testing.assert_allclose(Residual(found, None)(mixture, V), dense[np.ix_(V, V)], atol=1e-10)


def glance_at(problem, size):
    """The same, with a few rows to glance at, in float32."""
    found, mixture, dense = ensemble_of(problem)
    table = FeatureTable(found.sample.gram.rounded(), found.table.rows)
    table.learners = found.table.learners
    rows = np.arange(0, 60, 60 // size)
    fit = ValidationSet(table, rows, found.fit.cols)
    return replace(found, table=table, fit=fit, glanced_at=rows), mixture, dense


def test_of_a_sample_of_rows_those_of_the_columns_count_for_nothing():
    found, mixture, dense = glance_at(market.problem("Gaussian", n=60), 30)
    rows = found.glanced_at
    mine = rows[[3, 9, 20]]
    columns = Residual(found, rows)
    columns.consider(CONSIDERED, shared=True)
    expected = np.where(np.isin(rows, mine)[:, None], 0.0, dense[np.ix_(rows, mine)])
    np.testing.assert_allclose(columns(mixture, mine), expected, atol=1e-5)
    assert np.abs(columns(mixture, rows)).max() > 0.01  # or nothing would be left


def test_a_glance_is_in_float32_as_long_as_that_shows_the_residual():
    problem = market.problem("Gaussian", n=60)
    found, mixture, dense = glance_at(problem, 30)
    rows = found.glanced_at
    columns = Residual(found, rows)
    columns.consider(CONSIDERED, shared=True)
    odd = V + (V % 2 == 0)  # none of which is among the rows
    seen, weighed = columns(mixture, odd), found.fit.factor(3)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, dense[np.ix_(rows, odd)], atol=1e-5)
    everything = fit_learner(problem.gram, problem.gram.landmarks(np.arange(0, 60)), 60)
    nothing = columns(Mixture((everything,), np.ones(1)), odd)
    assert nothing.dtype == np.float64
    assert np.abs(nothing).max() < 1e-9
    again = columns(mixture, odd)
    assert again.dtype == np.float64
    np.testing.assert_allclose(again, seen, atol=1e-5)
    exact = ValidationSet(table_like(found), rows, found.fit.cols).factor(3)
    assert not np.allclose(weighed, exact, atol=1e-12)
    np.testing.assert_allclose(found.fit.factor(3), exact, atol=1e-12)  # V1 looks again too


def table_like(found):
    """A table of the same learners that has never seen float32."""
    table = FeatureTable(found.sample.gram, found.table.rows)
    table.learners = found.table.learners
    return table


@pytest.mark.parametrize("case", market.NAMES)
def test_the_diagonal_is_that_of_the_dense_residual(case):
    problem = market.problem(case, n=90)
    gram = problem.gram
    for J in (np.arange(0, 90, 9), np.arange(90)):
        learner = fit_learner(gram, gram.landmarks(J), len(J))
        F = learner.rounded_to(gram).features().astype(np.float64)
        expected = np.abs(np.diag(problem.G - F @ F.T))
        ours = residual_diagonal(gram, learner)
        np.testing.assert_allclose(ours, expected, atol=10 * problem.tolerance)
