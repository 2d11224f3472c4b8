"""The judge: errors from small matrices are those of the residual, and the best wins."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.boosting.judge import Judge
from nysboost.gram import Landmarks, Sample, make_gram


def judged(case, c, points):
    problem = market.problem(case, n=80)
    gram = problem.gram
    landmarks = gram.landmarks(np.arange(0, 80, 80 // c)[:c])
    if points:
        landmarks = Landmarks(None, landmarks.points)
    return problem, Judge.on(Sample.of(gram, np.arange(80)), landmarks), landmarks


@pytest.mark.parametrize("case", ["Gaussian", "wide Gaussian", "doubled rows", "linear"])
@pytest.mark.parametrize("points", [True, False])
@pytest.mark.parametrize("c", [4, 20])
def test_the_error_it_tells_is_that_of_the_dense_residual(case, points, c):
    problem, judge, landmarks = judged(case, c, points)
    learner, error = judge.fit(landmarks)
    F = learner.features(problem.gram)
    expected = np.linalg.norm(problem.G - F @ F.T) / np.linalg.norm(problem.G)
    np.testing.assert_allclose(error, expected, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(judge.error(learner), expected, rtol=1e-4, atol=1e-9)


def test_the_best_of_several_is_the_one_with_the_smallest_error():
    _, judge, landmarks = judged("Gaussian", 20, points=True)
    worse = Landmarks(None, landmarks.points[:5])
    for order in ((landmarks, worse), (worse, landmarks)):
        assert judge.best(*map(judge.fit, order)).landmarks is landmarks


def test_near_rounding_plain_nystrom_is_a_candidate():
    X = np.random.default_rng(0).normal(size=(60, 2))
    gram = make_gram(X, nb.Polynomial(degree=2, gamma=1.0))  # of rank six
    landmarks = Landmarks(None, X[:20])
    judge = Judge.on(Sample.of(gram, np.arange(60)), landmarks)
    assert judge.error(judge.best(judge.fit(landmarks))) < 1e-13


@pytest.mark.parametrize("case", ["Gaussian", "doubled rows"])
def test_what_is_seen_from_the_landmarks_spans_their_columns(case):
    problem, judge, landmarks = judged(case, 10, points=False)
    B, H = judge.seen_from(landmarks)
    C = problem.gram.cross(slice(None), landmarks)
    Q = np.linalg.svd(C, full_matrices=False)[0][:, : len(B)]
    np.testing.assert_allclose(B.T @ B, C.T @ C, atol=1e-8 * np.abs(C.T @ C).max())
    np.testing.assert_allclose(
        np.linalg.eigvalsh(H), np.linalg.eigvalsh(Q.T @ problem.G @ Q), atol=1e-6
    )


def test_landmarks_of_very_different_sizes_all_count():
    """Rows of sizes from a thousandth to a thousand under a cubic kernel, whose rank is ten."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * 10 ** rng.uniform(-3, 3, size=(200, 1))
    X, other = X[:100], X[100:]
    kernel = nb.Polynomial(degree=3, gamma=1.0)
    landmarks = Landmarks(None, X[:40])
    judge = Judge.on(Sample.of(make_gram(X, kernel), np.arange(100)), landmarks)
    learner = judge.best(judge.fit(landmarks))
    F = kernel(other, learner.landmarks.points) @ learner.projection
    sizes = np.sqrt(kernel.diag(other))
    relative = (kernel(other, other) - F @ F.T) / np.outer(sizes, sizes)
    assert np.abs(relative).max() < 1e-6
