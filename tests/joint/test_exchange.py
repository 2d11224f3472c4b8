"""The exchange against brute force: what each landmark serves, who leaves, who comes."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import optimal_error

import nysboost as nb
from nysboost.gram import Landmarks, Sample, make_gram
from nysboost.joint import exchange
from nysboost.joint.core import project_sample

POINTS = [name for name in market.NAMES if not isinstance(market.problem(name, n=9).kernel, str)]


def exchanged(sample, landmarks):
    return exchange.exchange_landmarks(sample, landmarks)[0].learner.landmarks


def sample_of(X, sigma=1.5):
    """The Gram matrix of a Gaussian, and a sample of all rows."""
    gram = make_gram(X, nb.Gaussian(sigma=sigma))
    return gram, Sample.of(gram, np.arange(len(X)))


@given(seed=st.integers(0, 1000))
def test_the_landmark_that_leaves_is_the_one_that_is_missed_least(seed):
    rng = np.random.default_rng(seed)
    C, root = rng.normal(size=(20, 7)), rng.normal(size=(20, 20))
    G = root @ root.T
    Q, B = np.linalg.qr(C)
    stay, _ = exchange.remove_landmarks(np.linalg.inv(B), Q.T @ G @ Q, 6)
    errors = [optimal_error(G, np.delete(C, j, axis=1)) for j in range(7)]
    assert set(range(7)) - set(stay) == {int(np.argmin(errors))}


@pytest.mark.parametrize("c", [3, 40, 70])
def test_many_leave_as_they_would_one_by_one(c):
    """In batches, with duplicates among them, and against brute force."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(120, 80)) @ np.diag(0.9 ** np.arange(80))
    C[:, 10:20] = C[:, :10] + 1e-3 * rng.normal(size=(120, 10))
    root = rng.normal(size=(120, 120)) * 0.95 ** np.arange(120)
    G = root @ root.T
    Q, B = np.linalg.qr(C)
    stay, left_out = exchange.remove_landmarks(np.linalg.inv(B), Q.T @ G @ Q, c)
    left = list(range(80))
    while len(left) > c:
        H = np.linalg.qr(C[:, left])[0]
        T = np.linalg.pinv(C[:, left])
        u = T / np.linalg.norm(T, axis=1)[:, None]
        Gu = (H @ (H.T @ G)) @ u.T
        cost = 2 * (Gu**2).sum(0) - np.einsum("ji,ij->j", Gu.T @ np.eye(120), u.T) ** 2
        left.pop(int(np.argmin(cost)))
    assert len(stay) == c
    np.testing.assert_allclose(left_out, exchange.error_outside(B[:, stay], Q.T @ G @ Q), rtol=1e-6)
    assert optimal_error(G, C[:, stay]) <= 1.02 * optimal_error(G, C[:, left])


@pytest.mark.parametrize("case", POINTS)
@pytest.mark.parametrize("c", [2, 10, 25])
def test_an_exchange_never_loses(case, c):
    problem = market.problem(case, n=60)
    gram = problem.gram
    sample = Sample.of(gram, np.arange(60))
    before = gram.landmarks(np.arange(c))
    after = exchanged(sample, Landmarks(None, before.points))
    assert len(after) == c
    values = (gram.cross(slice(None), z).astype(float) for z in (before, after))
    old, new = (optimal_error(problem.G, C) for C in values)
    assert new <= old + 100 * problem.tolerance


def test_a_far_row_takes_the_place_of_a_landmark_that_serves_least():
    X = market.points(60)
    X[7] = 50.0
    gram, sample = sample_of(X)
    landmarks = exchanged(sample, gram.landmarks(np.arange(20, 40)))
    assert landmarks.indices is not None
    assert 7 in landmarks.indices
    assert len(set(landmarks.indices)) == 20


def test_where_nothing_is_missed_no_row_comes():
    problem = market.problem("few distinct rows", n=60)
    gram = problem.gram
    landmarks = gram.landmarks(np.arange(30))
    assert len(exchange.find_missed_rows(gram, landmarks)[0]) == 0
    same = exchanged(Sample.of(gram, np.arange(60)), landmarks)
    np.testing.assert_array_equal(same.indices, landmarks.indices)


def test_where_most_rows_stay_as_many_again_come():
    """Under a narrow kernel points between rows serve nothing, and rows take all their places."""
    X = market.points(120, 8)
    _, sample = sample_of(X, 0.1)
    landmarks = exchanged(sample, Landmarks(None, (X[:20] + X[20:40]) / 2))
    assert {tuple(point) for point in landmarks.points} <= {tuple(row) for row in X}


def test_missed_rows_are_sought_among_four_for_each():
    gram, _ = sample_of(market.points(400))
    landmarks = gram.landmarks(np.arange(16))
    assert len(exchange.find_missed_rows(gram, landmarks)[0]) == 8
    rounds = [(c, 4 * 4) for c in (16, 20)]  # two, of four rows each
    most = sum(c * c + 400 * c + rows * c + rows * rows for c, rows in rounds)
    assert gram.entries_evaluated <= most


def test_landmarks_that_span_too_little_are_completed_where_rows_span_all():
    """Five points of a line under a linear kernel of rank three: three rows are enough."""
    X = 1e-3 * np.random.default_rng(0).normal(size=(60, 3))
    X[:5] = np.outer(np.arange(1, 6), X[0])
    gram = make_gram(X, "linear")
    fit, _ = exchange.exchange_landmarks(
        Sample.of(gram, np.arange(60)), gram.landmarks(np.arange(5))
    )
    assert fit.error < 1e-7


@pytest.mark.parametrize("sigma", [0.3, 1.5, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_another_exchange_follows_where_one_gained_much_or_most_rows_stayed(sigma, seed):
    (gram, sample), c = sample_of(market.points(60, seed=seed), sigma), 12
    core = project_sample(sample, gram.landmarks(np.arange(c + 6)))
    kept, again = exchange.select_landmarks(core, c, float(np.linalg.norm(sample.matrix)))
    before, after = (
        optimal_error(sample.matrix, sample.matrix[:, J]) for J in (np.arange(c), kept)
    )
    assert len(kept) == c
    assert after <= before * (1 + 1e-6)
    if set(kept) != set(range(c)):
        assert again == (
            after**2 <= exchange.MUCH * before**2 or np.sum(kept >= c) >= exchange.MOST * 6
        )
