"""The joint core against the dense optimum, and J as a rule."""

from itertools import pairwise

import market
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import nysboost as nb
from nysboost.boosting.core import core_on, fit_core, square_root
from nysboost.boosting.learner import fit_learner
from nysboost.gram import Landmarks, Sample, make_gram

each = pytest.mark.parametrize("case", market.NAMES)


def setting(case, n=90, c=12, seed=0):
    problem = market.problem(case, n=n)
    columns = np.random.default_rng(seed).choice(n, size=c, replace=False)
    gram = make_gram(problem.X, problem.kernel)
    return problem, gram, gram.landmarks(columns)


def whole(gram):
    return Sample.of(gram, np.arange(gram.n))


def dense(gram, learner, rows=None):
    F = learner.features(gram, rows).astype(np.float64)
    return F @ F.T


def error_of(G, approximation):
    return np.linalg.norm(G - approximation) / np.linalg.norm(G)


@each
@pytest.mark.parametrize("step", [1, 6])
def test_the_core_is_the_frobenius_optimal_one_on_its_rows(case, step):
    """All of them, or a sixth and the landmarks."""
    problem, gram, landmarks = setting(case)
    rows = np.union1d(np.arange(0, 90, step), landmarks.indices)
    G = problem.G[np.ix_(rows, rows)]
    U, s, _ = np.linalg.svd(problem.G[np.ix_(rows, landmarks.indices)], full_matrices=False)
    Q = U[:, s > 1e-6 * s[0]]
    optimum = error_of(G, Q @ (Q.T @ G @ Q) @ Q.T)
    ours = error_of(G, dense(gram, fit_core(whole(gram), landmarks, rows), rows))
    assert ours <= optimum * (1 + 1e-6) + 1e-5 * (gram.eps > 1e-10) + 1e-12


@each
def test_the_core_is_never_worse_than_plain_nystrom_on_its_own_sample(case):
    problem, gram, landmarks = setting(case)
    sample = np.union1d(np.arange(0, 90, 2), landmarks.indices)
    G = problem.G[np.ix_(sample, sample)]
    joint = error_of(G, dense(gram, fit_core(whole(gram), landmarks, sample), sample))
    plain = error_of(G, dense(gram, fit_learner(gram, landmarks, 12), sample))
    assert joint <= plain * (1 + 1e-6) + 1e3 * gram.eps


@each
def test_more_landmarks_never_raise_the_optimal_cores_error(case):
    problem, gram, landmarks = setting(case, c=16)
    errors = [
        error_of(
            problem.G,
            dense(gram, fit_core(whole(gram), gram.landmarks(landmarks.indices[:c]))),
        )
        for c in (2, 4, 8, 16)
    ]
    for fewer, more in pairwise(errors):
        assert more <= fewer * (1 + 1e-6) + 1e3 * gram.eps


@each
@pytest.mark.parametrize("anchor", [0.0, 0.3])
def test_the_joint_approximation_is_positive_semidefinite(case, anchor):
    _, gram, landmarks = setting(case)
    eigenvalues = np.linalg.eigvalsh(dense(gram, fit_core(whole(gram), landmarks, anchor=anchor)))
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_an_anchored_core_solves_its_weighted_least_squares_problem():
    problem, gram, landmarks = setting("Gaussian")
    others = np.setdiff1d(np.arange(90), landmarks.indices)
    learner = fit_core(whole(gram), landmarks, others, anchor=0.3)
    M = learner.projection @ learner.projection.T
    order = np.concatenate([others, landmarks.indices])
    weights = np.where(np.arange(90) < len(others), 1.0, 0.3)
    A = problem.G[np.ix_(order, landmarks.indices)] * weights[:, None]
    G = problem.G[np.ix_(order, order)] * np.outer(weights, weights)
    expected = np.linalg.pinv(A) @ G @ np.linalg.pinv(A).T
    np.testing.assert_allclose(A @ M @ A.T, A @ expected @ A.T, atol=1e-9)


def test_with_j_in_the_boosting_step_the_joint_residual_is_clustered():
    problem = market.problem("Gaussian", n=90)
    sizes = {"n_learners": 2, "n_columns": 6, "n_candidates": 500, "n_fit": 5, "n_tune": 5}
    seen = []

    class Recorder:
        def __call__(self, residual, m, rng):
            seen.append(residual)
            return np.arange(m)

    from nysboost.boosting.algorithm import boost
    from nysboost.boosting.joint_rule import JointCore

    gram = make_gram(problem.X, problem.kernel)
    run = boost(gram, nb.Settings(**sizes), JointCore(), Recorder(), np.random.default_rng(0))
    C = problem.G[:, run.learners[0].landmarks.indices]
    P = C @ np.linalg.pinv(C)
    residual = problem.G - P @ problem.G @ P
    norms = np.sort(np.linalg.norm(seen[0], axis=0))
    free = np.setdiff1d(np.arange(90), run.learners[0].landmarks.indices)
    validation = np.concatenate([run.found.fit.cols, run.found.tune.cols])
    expected = np.linalg.norm(residual[:, np.setdiff1d(free, validation)], axis=0)
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
    found, columns = run.trajectory.found, run.landmarks.indices
    observed = found.sample.indices[found.observed]
    assert len(observed) == 25
    assert len(np.setdiff1d(columns, observed)) > 5
    without = optimal_core(problem.G, observed, columns)
    wrong = problem.G[:, columns] @ without @ problem.G[columns]
    assert run.relative_error() < 0.5 * error_of(problem.G, wrong)


@pytest.mark.parametrize("cap", [1, 48, 96])
def test_landmarks_that_were_given_have_four_rows_each_and_their_own(cap):
    problem, gram, landmarks = setting("Gaussian", n=400)
    learner = core_on(gram, landmarks, cap, np.random.default_rng(3))
    size = max(cap, 4 * 12)
    drawn = np.random.default_rng(3).choice(400, size=size, replace=False)
    columns = landmarks.indices
    M = optimal_core(problem.G, np.union1d(drawn, columns), columns)
    ours = learner.projection @ learner.projection.T
    C = problem.G[:, columns]
    np.testing.assert_allclose(C @ ours @ C.T, C @ M @ C.T, atol=1e-7)


def test_the_rows_of_a_core_may_come_in_any_order():
    _, gram, landmarks = setting("Gaussian")
    order = np.random.default_rng(0).permutation(90)
    straight, shuffled = (
        dense(gram, fit_core(whole(gram), landmarks, rows)) for rows in (None, order)
    )
    np.testing.assert_allclose(straight, shuffled, atol=1e-9)


@pytest.mark.parametrize("cap", [1, 70])
def test_landmarks_that_are_points_join_the_sample_at_a_tenth_of_the_weight(cap):
    problem, gram, _ = setting("Gaussian", n=400)
    Z = np.random.default_rng(5).normal(size=(12, 3))
    points = Landmarks(None, Z)
    learner = core_on(gram, points, cap, np.random.default_rng(3))
    drawn = np.random.default_rng(3).choice(400, size=max(cap, 4 * 12), replace=False)
    stacked = np.vstack([problem.X[np.sort(drawn)], Z])
    G = np.exp(-cdist(stacked, stacked, "sqeuclidean") / 2)
    weights = np.where(np.arange(len(stacked)) < len(drawn), 1.0, 0.1)
    A, G = G[:, -12:] * weights[:, None], G * np.outer(weights, weights)
    inverse = np.linalg.pinv(A, rcond=1e-12)
    M = inverse @ G @ inverse.T
    ours = learner.projection @ learner.projection.T
    np.testing.assert_allclose(A @ ours @ A.T, A @ M @ A.T, atol=1e-8)


def test_the_square_root_leaves_what_rounding_made_negative():
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    Y = square_root((V * [2.0, 0.5, 0.0, -1e-9]) @ V.T)
    np.testing.assert_allclose(Y @ Y.T, (V * [2.0, 0.5, 0.0, 0.0]) @ V.T, atol=1e-8)
    assert np.isfinite(Y).all()
