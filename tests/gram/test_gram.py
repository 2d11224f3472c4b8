"""Gram matrices by blocks, of kernels and precomputed, on these rows and others."""

import market
import numpy as np
import pytest
from containers import hdf5
from hypothesis import given
from hypothesis import strategies as st
from market import points
from scipy import sparse

import nysboost as nb
from nysboost.gram import make_gram, on_other_rows
from nysboost.numerics.arrays import to_host
from nysboost.rows.rows import DroppedRows

indices = st.lists(st.integers(0, 29), min_size=1, max_size=9).map(np.array)


@pytest.mark.parametrize("case", market.NAMES)
@given(indices, indices)
def test_a_block_is_that_block_of_the_dense_matrix(case, rows, cols):
    problem = market.problem(case, n=30)
    block = problem.gram.block(rows, cols)
    expected = problem.G[np.ix_(rows, cols)]
    np.testing.assert_allclose(block, expected, rtol=0, atol=problem.tolerance)
    assert block.dtype == problem.X.dtype


@pytest.mark.parametrize("case", market.NAMES)
def test_the_diagonal_is_that_of_the_dense_matrix(case):
    problem = market.problem(case, n=30)
    gram, expected = problem.gram, np.diagonal(problem.G)
    np.testing.assert_allclose(gram.diag(), expected, atol=problem.tolerance)
    rows = np.array([3, 29, 3])
    np.testing.assert_allclose(gram.diag(rows), expected[rows], atol=problem.tolerance)
    np.testing.assert_allclose(gram.diag(slice(2, 5)), expected[2:5], atol=problem.tolerance)


def test_new_rows_of_a_precomputed_kernel_may_hold_all_columns_or_the_landmarks_alone():
    """With as many landmarks as rows n values may be meant for either: the rows come first."""
    gram, order = make_gram(np.eye(12), "precomputed"), np.random.default_rng(0).permutation(12)
    X = points(4, 12)
    for chosen in (order[:2], order):
        landmarks = gram.landmarks(chosen)
        np.testing.assert_array_equal(gram.evaluate(X, landmarks), X[:, chosen])
    alone = gram.evaluate(X[:, [5, 3]], gram.landmarks(np.array([5, 3])))
    np.testing.assert_array_equal(alone, X[:, [5, 3]])


def test_a_gram_that_forgets_its_rows_can_still_evaluate_new_ones():
    gram = make_gram(points(30), "rbf")
    forgotten = gram.forget_rows()
    assert isinstance(forgotten.rows, DroppedRows)
    assert not isinstance(gram.rows, DroppedRows)
    landmarks = gram.landmarks(np.arange(3))
    new = points(5, seed=1)
    np.testing.assert_array_equal(forgotten.evaluate(new, landmarks), gram.evaluate(new, landmarks))
    with pytest.raises(RuntimeError, match="needs the 30 training rows"):
        forgotten.block(np.arange(2), np.arange(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [5, 700])
def test_rounding_is_neither_asymmetry_nor_indefiniteness(dtype, n):
    X = points(n, 3)
    G = ((X @ X.T + 1) ** 2).astype(dtype)
    noise = np.finfo(dtype).eps * np.abs(G).max() * np.random.default_rng(0).uniform(-1, 1, (n, n))
    assert make_gram((G + noise).astype(dtype), "precomputed").n == n


def test_one_wrong_entry_in_the_last_rows_is_found():
    G = np.eye(3000)
    G[2999, 5] = 1e-3
    with pytest.raises(ValueError, match=r"differ by up to 0\.001"):
        make_gram(G, "precomputed")


@pytest.mark.parametrize(("lowest", "refused"), [(-1e-5, False), (-1e-3, True), (-0.09, True)])
def test_a_kernel_is_indefinite_from_a_ten_thousandth_of_its_largest_eigenvalue(lowest, refused):
    spectrum = np.linspace(1.0, 0.5, 20)
    spectrum[-1] = lowest
    G = market.with_spectrum(spectrum, np.random.default_rng(0))
    if not refused:
        assert make_gram(G, "precomputed").n == 20
        return
    with pytest.raises(ValueError, match="not positive semidefinite"):
        make_gram(G, "precomputed")


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_of_another_library_than_the_landmarks_are_a_sentence(kernel):
    strict = pytest.importorskip("array_api_strict")
    gram = make_gram(np.eye(5), kernel)
    landmarks = gram.landmarks(np.arange(2))
    if kernel == "rbf":
        with pytest.raises(ValueError, match="Move X there, or fit where X is"):
            gram.evaluate(strict.asarray(np.eye(5)), landmarks)
    else:  # values alone: they may come from anywhere
        found = gram.evaluate(strict.asarray(np.eye(5)), landmarks)
        np.testing.assert_array_equal(to_host(found), np.eye(5)[:, :2])


def test_a_rounded_gram_is_the_same_in_float32():
    X = np.random.default_rng(0).normal(size=(70, 3))
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    rows = np.arange(5, 60)
    rounded = gram.in_float32()
    assert rounded.dtype == np.float32
    np.testing.assert_allclose(rounded.block(rows, rows), gram.block(rows, rows), atol=1e-5)
    assert rounded.counter is gram.counter
    assert rounded.in_float32() is rounded


STAY = {
    "tiny": (1e-60 * points(70), nb.Gaussian(sigma="median")),
    "huge": (1e60 * points(70), nb.Gaussian(sigma="median")),
    "far": (1e7 + points(70), nb.Gaussian(sigma="median")),
    "precomputed": (points(30) @ points(30).T, "precomputed"),
    "CSR": (sparse.csr_matrix(points(30)), "rbf"),
}


@pytest.mark.parametrize("what", STAY)
def test_a_gram_that_float32_does_not_hold_or_make_cheaper_stays_as_it_is(what):
    gram = make_gram(*STAY[what])
    assert gram.in_float32() is gram


def test_other_rows_have_the_same_kernel_budget_and_count():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    gram = make_gram(X, nb.Gaussian(sigma=2.0))
    other = on_other_rows(gram, Y)
    before = gram.entries_evaluated
    values = other.block(np.arange(20), np.arange(3))
    np.testing.assert_allclose(values, np.exp(-((Y[:, None] - Y[:3]) ** 2).sum(-1) / 8))
    assert gram.entries_evaluated - before == 60
    assert other.budget is gram.budget


def test_other_columns_other_rows_of_a_matrix_and_matrices_in_a_store_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"pass it as an array or as a numpy\.memmap"):
        make_gram(hdf5(np.eye(4), tmp_path), "precomputed")
    with pytest.raises(ValueError, match="X has 3 columns, but the fit had 2"):
        on_other_rows(make_gram(np.ones((3, 2)), "linear"), np.ones((3, 3)))
    with pytest.raises(ValueError, match="no values for new rows"):
        on_other_rows(make_gram(np.eye(3), "precomputed"), np.eye(3))
