"""A sample: rows taken once, in memory, and where they stand."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.gram import Sample, make_gram, take_sample

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
    np.testing.assert_allclose(
        gram.cross(np.arange(40), lifted),
        problem.G[:, sample.indices[chosen]],
        rtol=0,
        atol=problem.tolerance,
    )


def test_the_matrix_of_a_sample_is_evaluated_once_and_counted_with_the_whole():
    gram = market.problem("Gaussian", n=40).gram
    sample = Sample.of(gram, np.arange(0, 40, 4))
    assert gram.entries_evaluated == 0
    assert sample.matrix is sample.matrix
    assert gram.entries_evaluated == sample.gram.entries_evaluated == 100


@pytest.mark.parametrize("size", [40, 41, 1000])
def test_all_rows_in_memory_are_the_gram_itself(size):
    gram = market.problem("Gaussian", n=40).gram
    rng = np.random.default_rng(0)
    sample = take_sample(gram, size, rng)
    assert sample.gram is gram
    np.testing.assert_array_equal(sample.indices, np.arange(40))
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn for it
    landmarks = gram.landmarks(np.array([7, 2]))
    assert sample.lift_to_rows(landmarks) is landmarks


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


def test_a_sample_is_a_copy_that_later_changes_of_the_data_do_not_reach():
    X = np.random.default_rng(0).normal(size=(30, 2))
    sample = Sample.of(make_gram(X), np.arange(5))
    before = sample.gram.rows.take(slice(None)).copy()
    X[:] = 0
    np.testing.assert_array_equal(sample.gram.rows.take(slice(None)), before)
