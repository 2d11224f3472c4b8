"""Landmarks and samples of rows."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from market import points
from scipy import sparse

import nysboost as nb
from nysboost.gram import Landmarks, Sample, given_landmarks, make_gram, take_sample


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_take_the_form_of_the_data(make, kind, dtype):
    Z = points(5, seed=1)
    landmarks = given_landmarks(make_gram(kind(points(30).astype(dtype))), make(Z))
    assert landmarks.indices is None
    assert sparse.issparse(landmarks.points) == (kind is sparse.csr_matrix)
    assert landmarks.points.dtype == dtype
    dense = landmarks.points.toarray() if sparse.issparse(landmarks.points) else landmarks.points
    np.testing.assert_allclose(dense, Z, rtol=1e-6)


def test_a_precomputed_matrix_has_columns_and_no_points():
    gram = make_gram(np.eye(6), "precomputed")
    np.testing.assert_array_equal(given_landmarks(gram, [5, 1]).indices, [5, 1])
    with pytest.raises(ValueError, match="it must hold row numbers"):
        given_landmarks(gram, np.eye(6)[:2])


@pytest.mark.parametrize("landmarks", [np.arange(0, 30, 3), points(10, seed=1)], ids=["rows", "Z"])
def test_plain_nystrom_on_given_landmarks_is_its_equation(landmarks):
    X, kernel = points(30), nb.Gaussian(sigma=1.0)
    Z = X[landmarks] if landmarks.ndim == 1 else landmarks
    approx = nb.approximate(X, "nystrom", kernel, landmarks=landmarks)
    C = kernel(X, Z)
    expected = C @ np.linalg.solve(kernel(Z, Z), C.T)
    np.testing.assert_allclose(approx.to_dense(), expected, atol=1e-8)
    joint = nb.approximate(X, "joint", kernel, landmarks=landmarks)
    np.testing.assert_array_equal(joint.landmarks.points, Z)
    assert joint.relative_error() <= approx.relative_error() * 1.01


def test_some_of_the_landmarks_are_taken_by_their_places():
    X = points(30)
    everything = make_gram(X).landmarks(np.array([4, 8, 2, 9]))
    some = everything.take(np.array([3, 0]))
    np.testing.assert_array_equal(some.indices, [9, 4])
    np.testing.assert_array_equal(some.points, X[[9, 4]])
    free = Landmarks(None, X).take(np.array([3, 0]))
    assert free.indices is None
    assert (repr(some), repr(free)) == ("Landmarks(2 columns)", "Landmarks(2 points)")
    np.testing.assert_array_equal(free.points, X[[3, 0]])
    columns = make_gram(np.eye(6), "precomputed").landmarks(np.array([5, 1, 2]))
    np.testing.assert_array_equal(columns.take(np.array([2, 1])).indices, [2, 1])
    assert columns.take(np.array([2, 1])).points is None


CASES = ("Gaussian", "decaying spectrum", "float32 linear", "few distinct rows")
some_rows = st.lists(st.integers(0, 39), min_size=1, max_size=30).map(np.array)


@pytest.mark.parametrize("case", CASES)
@given(some_rows)
def test_a_sample_has_the_gram_matrix_of_its_rows(case, rows):
    problem = market.problem(case, n=40)
    sample = Sample.of(problem.gram, rows)
    S = np.unique(rows)
    np.testing.assert_array_equal(sample.indices, S)
    assert len(sample) == sample.gram.n == len(S)
    expected = problem.G[np.ix_(S, S)]
    np.testing.assert_allclose(sample.matrix, expected, rtol=0, atol=problem.tolerance)
    np.testing.assert_array_equal(sample.indices[sample.positions(rows)], rows)


@pytest.mark.parametrize("case", CASES)
@given(some_rows, st.integers(0, 20))
def test_landmarks_of_a_sample_are_landmarks_of_the_whole(case, rows, seed):
    problem = market.problem(case, n=40)
    gram, sample = problem.gram, Sample.of(problem.gram, rows)
    chosen = np.random.default_rng(seed).permutation(len(sample))[:5]
    lifted = sample.lift_to_rows(sample.gram.landmarks(chosen))
    np.testing.assert_array_equal(lifted.indices, sample.indices[chosen])
    found, expected = gram.cross(np.arange(40), lifted), problem.G[:, sample.indices[chosen]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=problem.tolerance)


def test_the_matrix_of_a_sample_is_evaluated_once_and_counted_with_the_whole():
    gram = market.problem("Gaussian", n=40).gram
    sample = Sample.of(gram, np.arange(0, 40, 4))
    assert gram.entries_evaluated == 0
    assert sample.matrix is sample.matrix
    assert gram.entries_evaluated == sample.gram.entries_evaluated
    assert 55 <= gram.entries_evaluated < 100  # one of each two equal entries, and a few more
    gram.rows.data[:] = 0  # later changes of the data do not reach it
    assert np.all(sample.gram.rows.take(slice(None)) != 0)


@pytest.mark.parametrize("size", [40, 41, 1000])
def test_all_rows_in_memory_are_the_gram_itself(size):
    gram = market.problem("Gaussian", n=40).gram
    rng = np.random.default_rng(0)
    sample = take_sample(gram, size, rng)
    assert sample.gram is gram
    np.testing.assert_array_equal(sample.indices, np.arange(40))
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn for it
    landmarks = gram.landmarks(np.array([7, 2]))
    lifted = sample.lift_to_rows(landmarks)
    np.testing.assert_array_equal(lifted.indices, landmarks.indices)
    assert lifted.points is landmarks.points


def test_more_rows_than_the_size_are_a_uniform_sample_in_rising_order():
    gram = make_gram(np.random.default_rng(0).normal(size=(50, 2)), nb.Gaussian(sigma=1.0))
    counts = np.zeros(50)
    for seed in range(400):
        sample = take_sample(gram, 10, np.random.default_rng(seed))
        assert len(sample) == 10
        assert (np.diff(sample.indices) > 0).all()
        counts[sample.indices] += 1
    expected, spread = 400 / 5, np.sqrt(400 * 0.2 * 0.8)
    assert np.abs(counts - expected).max() < 5 * spread
