"""The joint core against the dense optimum, and J as a rule."""

import market
import numpy as np
import pytest
from learners import Recorder, dense
from oracle import optimal_error

import nysboost as nb
from nysboost.boosting.algorithm import boost
from nysboost.features.feature_map import features_of
from nysboost.gram import Landmarks, Sample, make_gram
from nysboost.joint.core import core_on, fit_core, fit_landmarks, project_sample, select_best
from nysboost.joint.rule import JointCore

each = pytest.mark.parametrize("case", market.NAMES)


def setting(case, n=90, c=12, seed=0):
    problem = market.problem(case, n=n)
    columns = np.random.default_rng(seed).choice(n, size=c, replace=False)
    gram = make_gram(problem.X, problem.kernel)
    return problem, gram, gram.landmarks(columns)


def whole(gram):
    return Sample.of(gram, np.arange(gram.n))


def error_of(G, approximation):
    return np.linalg.norm(G - approximation) / np.linalg.norm(G)


@each
@pytest.mark.parametrize("step", [1, 6])
def test_the_core_is_the_frobenius_optimal_one_on_its_rows(case, step):
    """All of them, or a sixth and the landmarks."""
    problem, gram, landmarks = setting(case)
    rows = np.union1d(np.arange(0, 90, step), landmarks.indices)
    G = problem.G[np.ix_(rows, rows)]
    C = problem.G[np.ix_(rows, landmarks.indices)]
    optimum = optimal_error(G, C, 1e-6) / np.linalg.norm(G)
    ours = error_of(G, dense(gram, fit_core(whole(gram), landmarks, rows), rows))
    assert ours <= optimum * (1 + 1e-6) + 1e-5 * (gram.eps > 1e-10) + 1e-12


def test_with_j_in_the_boosting_step_the_joint_residual_is_clustered():
    problem, recorder = market.problem("Gaussian", n=90), Recorder()
    sizes = {"n_learners": 2, "n_columns": 6, "n_candidates": 500, "n_fit": 5, "n_tune": 5}
    rule, rng = JointCore(), np.random.default_rng(0)
    run = boost(problem.gram, nb.Settings(**sizes), rule, recorder, rule, rng)
    J = run.learners[0].landmarks.indices
    P = problem.G[:, J] @ np.linalg.pinv(problem.G[:, J])
    residual = problem.G - P @ problem.G @ P
    norms = np.sort(np.linalg.norm(recorder.seen[0][0], axis=0))
    used = np.concatenate([J, run.state.V1.cols, run.state.V2.cols])
    expected = np.linalg.norm(np.delete(residual, used, axis=1), axis=0)
    np.testing.assert_allclose(norms, np.sort(expected), atol=1e-8)


SAMPLED = {"n_learners": 3, "n_columns": 6, "n_fit": 5, "n_tune": 5, "row_cap": 25}


def optimal_core(G, rows, columns):
    """M = A⁺ G[S, S] A⁺ᵀ with A = G[S, J], dense."""
    inverse = np.linalg.pinv(G[np.ix_(rows, columns)], rcond=1e-12)
    return inverse @ G[np.ix_(rows, rows)] @ inverse.T


def test_beyond_the_row_cap_the_sample_of_j_holds_the_landmarks_too():
    """A core that is fitted on a sample without the landmarks fails beyond it."""
    problem = market.problem("Gaussian", n=400)
    run = nb.approximate(problem.X, "UJB-mean", problem.kernel, **SAMPLED, random_state=0)
    found, columns = run.trajectory.state, run.landmarks.indices
    observed = found.sample.indices[found.rows]
    assert len(observed) == 25
    assert len(np.setdiff1d(columns, observed)) > 5
    without = optimal_core(problem.G, observed, columns)
    wrong = problem.G[:, columns] @ without @ problem.G[columns]
    assert run.relative_error() < 0.5 * error_of(problem.G, wrong)


@pytest.mark.parametrize("cap", [1, 48, 96])
@pytest.mark.parametrize("points", [False, True], ids=["rows", "points"])
def test_given_landmarks_have_four_rows_each_and_their_own_at_a_tenth_if_points(cap, points):
    problem, gram, landmarks = setting("Gaussian", n=400)
    drawn = np.random.default_rng(3).choice(400, size=max(cap, 4 * 12), replace=False)
    if points:
        landmarks = Landmarks(None, np.random.default_rng(5).normal(size=(12, 3)))
        rows = np.vstack([problem.X[np.sort(drawn)], landmarks.points])
    else:
        rows = problem.X[np.union1d(drawn, landmarks.indices)]
    learner = core_on(gram, landmarks, cap, np.random.default_rng(3))
    weights = np.where(np.arange(len(rows)) < len(drawn), 1.0, 0.1 if points else 1.0)
    A = gram.kernel(rows, landmarks.points) * weights[:, None]
    G = gram.kernel(rows, rows) * np.outer(weights, weights)
    inverse = np.linalg.pinv(A, rcond=1e-12)
    ours = learner.projection @ learner.projection.T
    np.testing.assert_allclose(A @ ours @ A.T, A @ inverse @ G @ inverse.T @ A.T, atol=1e-7)


@pytest.mark.parametrize("points", [True, False])
@pytest.mark.parametrize("c", [3, 20])
@pytest.mark.parametrize("case", ["Gaussian", "wide Gaussian", "doubled rows", "linear"])
def test_the_error_from_small_matrices_is_that_of_the_residual(case, c, points):
    problem, gram, landmarks = setting(case, n=60, c=c)
    fit = fit_landmarks(whole(gram), Landmarks(None, landmarks.points) if points else landmarks)
    F = features_of(gram, fit.learner)
    expected = np.linalg.norm(problem.G - F @ F.T) / np.linalg.norm(problem.G)
    assert fit.error == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_a_core_of_some_landmarks_is_the_one_fitted_on_them():
    _, gram, landmarks = setting("Gaussian", n=60, c=20)
    rows, kept = whole(gram), np.array([1, 4, 5, 11, 19])
    core, some = project_sample(rows, landmarks).restrict(kept), landmarks.take(kept)
    ours, theirs = fit_landmarks(rows, some, core), fit_landmarks(rows, some)
    assert ours.error == pytest.approx(theirs.error, rel=1e-6)
    np.testing.assert_allclose(dense(gram, ours.learner), dense(gram, theirs.learner), atol=1e-6)


def test_near_rounding_plain_nystrom_is_a_candidate():
    X = np.random.default_rng(0).normal(size=(60, 2))
    gram = make_gram(X, nb.Polynomial(degree=2, gamma=1.0))  # of rank six
    rows = Sample.of(gram, np.arange(60))
    learner = select_best(rows, fit_landmarks(rows, Landmarks(None, X[:20])))
    assert error_of(gram.kernel(X, X), dense(gram, learner)) < 1e-13


def test_landmarks_of_very_different_sizes_all_count():
    """Rows of sizes from a thousandth to a thousand under a cubic kernel, whose rank is ten."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * 10 ** rng.uniform(-3, 3, size=(200, 1))
    X, other = X[:100], X[100:]
    kernel = nb.Polynomial(degree=3, gamma=1.0)
    rows = Sample.of(make_gram(X, kernel), np.arange(100))
    learner = select_best(rows, fit_landmarks(rows, Landmarks(None, X[:40])))
    F = kernel(other, learner.landmarks.points) @ learner.projection
    sizes = np.sqrt(kernel.diag(other))
    relative = (kernel(other, other) - F @ F.T) / np.outer(sizes, sizes)
    assert np.abs(relative).max() < 1e-6
