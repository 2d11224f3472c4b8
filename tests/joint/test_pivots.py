"""Pivots against the peers' own, novelty by hand, and rows that were not seen."""

import array_api_strict
import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.boosting.judge import Judge
from nysboost.gram import Landmarks, Sample, make_gram
from nysboost.joint import method
from nysboost.joint.pivots import enough, from_pivots, novelty, pivots, rehearsed
from nysboost.methods.cholesky import greedy
from nysboost.numerics.kmeans import centroids


def tails(n, seed, d=4):
    """Rows of a distribution whose far ones are far."""
    return np.random.default_rng(seed).standard_t(2.5, size=(n, d))


def judged(X, kernel, c, seed=0):
    gram = make_gram(X, kernel)
    start = Landmarks(None, centroids(X, c, np.random.default_rng(seed)))
    return Judge.on(Sample.of(gram, np.arange(len(X))), start), start


@pytest.mark.parametrize("case", ["Gaussian", "narrow Gaussian", "doubled rows", "linear"])
def test_greedy_pivots_are_those_of_the_peer(case):
    problem = market.problem(case, n=60)
    expected = greedy(problem.gram, 12, np.random.default_rng(0)).indices
    found = pivots(problem.G, 12)
    assert len(found) == len(expected)
    residuals = [
        np.linalg.norm(
            problem.G
            - problem.G[:, rows] @ np.linalg.pinv(problem.G[np.ix_(rows, rows)]) @ problem.G[rows]
        )
        for rows in (found, expected)
    ]
    np.testing.assert_allclose(*residuals, rtol=1e-6, atol=1e-9)


def test_drawn_pivots_are_different_rows_as_many_as_the_rank():
    X = tails(50, 0, d=3)
    for seed in range(5):
        rows = pivots(X @ X.T, 10, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == len(rows) == 3


def test_a_row_is_drawn_in_proportion_to_what_is_missed_of_it():
    G = np.diag([3.0, 1.0])
    first = [pivots(G, 1, np.random.default_rng(seed))[0] for seed in range(400)]
    assert abs(np.mean(first) - 0.25) < 0.08


def test_novelty_is_what_landmarks_miss_of_each_other_over_what_is_missed():
    X = tails(80, 1)
    kernel = nb.Gaussian(sigma=1.0)
    judge, start = judged(X, kernel, 10)
    learner, error = judge.fit(start)
    alone = 1 / np.diag(np.linalg.inv(kernel(start.points, start.points)))
    expected = np.linalg.norm(alone) / (error * np.linalg.norm(kernel(X, X)))
    np.testing.assert_allclose(novelty(judge, learner, error), expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", [nb.Gaussian(sigma=4.0), nb.Polynomial(gamma=0.25)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_near_the_pivots_the_sample_loses_nothing_to_plain_nystrom(kernel, dtype):
    X = tails(300, 2).astype(dtype)
    judge, start = judged(X, kernel, 20)
    limit = enough(judge, start, np.random.default_rng(0))
    learner = from_pivots(judge, 20, limit)
    assert learner is not None
    assert learner.landmarks.points.dtype == dtype
    assert judge.error(learner) <= limit * (1 + 1e-3)
    assert limit <= judge.fit(start)[1]
    plain = nb.approximate(X, "rpcholesky", kernel, n_components=20, random_state=0)
    assert limit < 1.5 * plain.relative_error()


def test_arrays_of_another_namespace_have_the_same_pivots():
    X, kernel = tails(300, 2), nb.Polynomial(gamma=0.25)
    ours, theirs = (
        nb.approximate(rows, "joint", kernel, n_components=20, random_state=0)
        for rows in (X, array_api_strict.asarray(X))
    )
    assert ours.relative_error() > 0
    np.testing.assert_allclose(theirs.relative_error(), ours.relative_error(), rtol=1e-3)
    strict, start = judged(X, kernel, 20)
    limit = enough(strict, start, np.random.default_rng(0))
    G = strict.sample.matrix
    np.testing.assert_array_equal(pivots(array_api_strict.asarray(G), 20), pivots(G, 20))
    assert from_pivots(strict, 20, limit) is not None


def test_pivots_that_are_good_enough_stay_rows():
    X = tails(200, 3)
    judge, _ = judged(X, nb.Gaussian(sigma=4.0), 15)
    learner = from_pivots(judge, 15, limit=1.0)
    np.testing.assert_array_equal(learner.landmarks.points, X[pivots(judge.sample.matrix, 15)])


def test_what_cannot_be_reached_is_not_claimed():
    judge, _ = judged(tails(200, 3), nb.Gaussian(sigma=4.0), 15)
    assert from_pivots(judge, 15, limit=0.0) is None
    linear, _ = judged(tails(200, 3, d=2), nb.Linear(), 15)
    assert from_pivots(linear, 15, limit=1.0) is None  # of rank two, there are no 15 pivots


def test_the_rehearsal_knows_which_rows_were_kept_from_it():
    """A descent whose result is useless elsewhere loses, one that is exact wins."""
    X = tails(320, 4)
    kernel = nb.Gaussian(sigma=3.0)
    sample = Sample.of(make_gram(X, kernel), np.arange(320))

    def fit(part, c, size):
        judge, start = judged(part.gram.rows.take(slice(None)), kernel, c)
        return judge.fit(Landmarks(None, X[:size]))[0], judge, start

    rng = np.random.default_rng(0)
    assert rehearsed(sample, 20, lambda part, c: fit(part, c, 1), rng)
    assert not rehearsed(sample, 20, lambda part, c: fit(part, c, 320), rng)
    few = Sample.of(sample.gram, np.arange(100))
    assert not rehearsed(sample, 7, lambda part, c: fit(part, c, 1), rng)  # too few to tell
    assert not rehearsed(few, 20, lambda part, c: fit(part, c, 1), rng)


def errors_elsewhere(kernel, c, monkeypatch):
    """Return joint's errors on other rows, with and without pivots, and greedy's."""
    found = {"joint": [], "moved": [], "greedy": []}
    for seed in range(4):
        X, other = tails(400, seed), tails(400, 100 + seed)
        G = kernel(other, other)
        for name in found:
            monkeypatch.setattr(method, "NOVEL", np.inf if name == "moved" else 2.5)
            how = "greedy" if name == "greedy" else "joint"
            fit = nb.approximate(X, how, kernel, n_components=c, random_state=seed)
            F = fit.feature_map()[0](other)
            found[name].append(np.linalg.norm(G - F @ F.T) / np.linalg.norm(G))
    return {name: np.exp(np.mean(np.log(errors))) for name, errors in found.items()}


@pytest.mark.parametrize("kernel", [nb.Gaussian(sigma=3.0), nb.Polynomial(gamma=0.25, degree=3)])
def test_rows_that_were_not_seen_are_served_where_tails_are_heavy(kernel, monkeypatch):
    found = errors_elsewhere(kernel, 30, monkeypatch)
    assert found["joint"] <= 1.02 * found["greedy"]
    assert found["joint"] <= 1.02 * found["moved"]
