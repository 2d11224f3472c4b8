"""Weight rules against the equations of Section 2.4, and J."""

from functools import cache

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import dense_system, to_table
from oracle import optimal_error
from scipy.optimize import lsq_linear

import nysboost as nb
from nysboost.boosting.rules import GRID, ExponentialWeights, RidgeWeights, UniformWeights
from nysboost.boosting.state import ValidationSet

V1, V2 = np.arange(26, 32), np.arange(32, 37)
cases = pytest.mark.parametrize("case", market.NAMES)
rows_seen = pytest.mark.parametrize("rows", [40, 5], ids=["whole", "sampled"])
prefixes = st.integers(1, 4)


@cache
def sets(case, rows=40):
    """V1, V2 and their dense systems, of whole columns or of their first rows."""
    table, rows = to_table(market.problem(case, n=40)), np.arange(rows)
    validation = [ValidationSet(table, rows, v) for v in (V1, V2)]
    return *validation, lambda p: [dense_system(table, rows, v, p) for v in (V1, V2)]


@cases
@rows_seen
@given(prefixes, st.floats(1e-3, 10))
def test_exponential_weights_fall_with_the_error_on_v1(case, rows, p, eta):
    fit, tune, systems = sets(case, rows)
    (A, b), _ = systems(p)
    errors = np.linalg.norm(A - b[:, None], axis=0)
    expected = np.exp(-eta * (errors - errors.min()))
    w = ExponentialWeights(eta)(fit, tune, p)
    np.testing.assert_allclose(w, expected / expected.sum(), rtol=1e-4, atol=1e-12)


def test_uniform_weights_are_equal_and_sum_to_one():
    np.testing.assert_allclose(UniformWeights()(None, None, 4), [0.25] * 4)


@cases
@rows_seen
@given(prefixes)
def test_a_tuned_eta_is_no_worse_on_v2_than_uniform_weights(case, rows, p):
    fit, tune, systems = sets(case, rows)
    _, (A, b) = systems(p)
    tuned = ExponentialWeights("tune")(fit, tune, p)
    uniform, rounding = np.linalg.norm(A.mean(axis=1) - b), 1e-14 * np.linalg.norm(b)
    assert np.linalg.norm(A @ tuned - b) <= uniform * (1 + 1e-6) + rounding


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("case", market.FLOAT64)
@rows_seen
@given(prefixes)
def test_ridge_weights_are_optimal_for_the_lambda_that_is_best_on_v2(case, rows, nonnegative, p):
    fit, tune, systems = sets(case, rows)
    (A, b), (A2, b2) = systems(p)
    w = RidgeWeights(nonnegative=nonnegative)(fit, tune, p)
    largest = np.linalg.norm(A, 2)
    if largest <= fit.rounding:
        np.testing.assert_array_equal(w, 0)
        return
    assert not nonnegative or w.min() >= 0
    A, b = A / largest, b / largest

    def violated(lam):
        """By how much the conditions of an optimum are."""
        gradient = A.T @ (A @ w - b) + lam * w
        free = np.where((w == 0) & nonnegative, np.minimum(gradient, 0), gradient)
        return np.linalg.norm(free)

    def best(lam):
        system = np.vstack([A, np.sqrt(lam) * np.eye(p)]), np.concatenate([b, np.zeros(p)])
        bounds = (0 if nonnegative else -np.inf, np.inf)
        return lsq_linear(*system, bounds, method="bvls" if nonnegative else "trf").x

    assert min(map(violated, GRID)) <= 1e-12 * (np.linalg.norm(b) + np.linalg.norm(w))
    others = min(np.linalg.norm(A2 @ best(lam) - b2) for lam in GRID)
    assert np.linalg.norm(A2 @ w - b2) <= others + 1e-9 * np.linalg.norm(b2)


def test_where_v2_tells_nothing_the_strongest_penalty_wins():
    """Columns of V2 at which the kernel is zero: no weights are better there than others."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[V2] = 0
    table = to_table(market.Problem(X, "linear", X @ X.T))
    fit, tune = (ValidationSet(table, np.arange(40), v) for v in (V1, V2))
    A, b = dense_system(table, np.arange(40), V1, 4)
    expected = np.linalg.solve(A.T @ A + GRID[-1] * np.linalg.norm(A, 2) ** 2 * np.eye(4), A.T @ b)
    np.testing.assert_allclose(RidgeWeights()(fit, tune, 4), expected, rtol=1e-9)


class Factored:
    """A validation set that is given by its system A w = b."""

    def __init__(self, A, b, rounding=0.0):
        self.A, self.b, self.rounding = A, b, rounding

    def system(self, p):
        return self.b, self.A[:, :p]


@pytest.mark.parametrize("rule", [RidgeWeights(), RidgeWeights(nonnegative=True)], ids=str)
def test_learners_that_are_rounding_errors_on_v1_have_no_weight(rule):
    """Values of 1e-20 would be blown up to the kernel's, here by 1e10; zeros stay what they are."""
    X = np.arange(40.0)[:, None]  # so far apart that every value off the diagonal underflows
    table = to_table(market.Problem(X, nb.Gaussian(sigma=1e-3), np.eye(40)))
    vanishing = (ValidationSet(table, np.arange(40), v) for v in (V1, V2))
    np.testing.assert_array_equal(rule(*vanishing, 4), 0)
    A, b = np.array([[3e-20, 1e-20], [4e-20, 0.0]]), np.array([1e-10, 1e-10])
    weights = [rule(Factored(A, b, size), Factored(A, b), 2) for size in (1e-19, 1e-21)]
    np.testing.assert_array_equal(rule(Factored(0 * A, b), Factored(A, b), 2), 0.0)
    np.testing.assert_array_equal(weights[0], 0.0)
    assert np.abs(weights[1]).max() > 1e7


def test_the_grid_of_eta_begins_with_uniform_weights():
    """On V2 the mean of the learners is exact, though on V1 one of them is far better."""
    fit = Factored(np.array([[1.0, 5.0], [1.0, -3.0]]), np.array([1.0, 1.0]))
    tune = Factored(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(ExponentialWeights("tune")(fit, tune, 2), [0.5, 0.5])


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
def test_a_tuned_eta_is_relative_to_the_errors(scale):
    """Whatever the unit of the kernel, the grid finds the same weights, far from uniform ones."""
    A, b = np.array([[1.5, 4.0], [0.5, -3.0]]), np.array([1.0, 1.0])
    V2_system = np.array([[0.9, 3.0], [1.1, 0.0]]), np.array([1.1, 1.0])
    sets = ([Factored(c * A, c * b) for A, b in ((A, b), V2_system)] for c in (1.0, scale))
    plain, scaled = (ExponentialWeights("tune")(*each, 2) for each in sets)
    np.testing.assert_allclose(plain, scaled, rtol=1e-12)
    assert 1e-3 < plain[1] < 0.3


def test_exponential_weights_outside_the_presets_are_those_of_a_few_rows_that_stand_for_all():
    how = {"n_learners": 4, "n_columns": 20, "residual_rows": 300, "random_state": 0}
    few, whole = (
        nb.approximate(market.points(900), method, nb.Gaussian(sigma=1.0), **how)
        for method in ("UEB-mean", "ensemble-exponential")
    )
    found = few.trajectory.state
    assert len(found.V1.rows) == 300
    assert found.V1.weight == found.V2.weight == pytest.approx(3**0.5)
    assert len(whole.trajectory.state.V1.rows) == 900
    assert whole.trajectory.state.V1.weight == 1.0
    exact = ValidationSet(found.table, np.arange(900), found.V1.cols)
    errors, wanted = (
        np.linalg.norm(A - b[:, None], axis=0) for b, A in (found.V1.system(4), exact.system(4))
    )
    np.testing.assert_allclose(errors, wanted, rtol=0.25)
    expected = np.exp(-0.01 * errors)
    np.testing.assert_allclose(few.weights, expected / expected.sum())


@pytest.mark.parametrize("clustering", ["mean", "med", "SF"])
@pytest.mark.parametrize("x", "UERJ")
def test_j_as_the_final_rule_is_no_worse_than_the_columns_that_x_found(x, clustering):
    problem = market.problem("Gaussian", n=90)
    sizes = {"n_learners": 3, "n_columns": 6, "n_candidates": 20, "n_fit": 5, "n_tune": 5}
    run = nb.approximate(problem.X, f"{x}JB-{clustering}", problem.kernel, **sizes, random_state=1)
    found = np.concatenate([learner.landmarks.indices for learner in run.trajectory.learners])
    for p in (2, 3):
        (learner,) = run.prefix(p).learners
        columns = learner.landmarks.indices
        assert len(set(columns)) == 6 * p
        ours = np.linalg.norm(problem.G - run.prefix(p).to_dense())
        optimum, before = (
            optimal_error(problem.G, problem.G[:, J]) for J in (columns, found[: 6 * p])
        )
        np.testing.assert_allclose(ours, optimum, rtol=1e-5)
        assert ours <= before * (1 + 1e-6)


def test_an_outlying_column_is_among_the_candidates_wherever_it_is():
    X = np.random.default_rng(0).normal(size=(600, 2))
    X[345] = 40.0
    sizes = {"n_learners": 2, "n_columns": 30, "n_candidates": 60}
    for seed in range(3):
        run = nb.approximate(X, "JJB-mean", nb.Gaussian(sigma=1.0), **sizes, random_state=seed)
        boosted = run.trajectory.learners[1].landmarks.indices
        assert 345 in boosted


@pytest.mark.parametrize("rule", [ExponentialWeights(0.5), RidgeWeights(lambdas=[1e-3])])
def test_v2_is_not_looked_at_where_there_is_nothing_to_choose(rule):
    fit, tune, _ = sets("Gaussian")
    np.testing.assert_array_equal(rule(fit, None, 3), rule(fit, tune, 3))
