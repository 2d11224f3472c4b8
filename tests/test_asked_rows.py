"""Rows asked for in any way that NumPy knows: right or a sentence, the same on every backend."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.numerics.arrays import to_host

N = 40
METHODS = ("URB-mean", "ensemble-ridge", "joint", "spectral-shift")
SIZES = {"n_learners": 3, "n_columns": 5, "random_state": 0}

MASK = np.arange(N) % 3 == 0
ASKED = {
    "repeated and negative numbers": [7, 7, -33, -1],
    "a mask": MASK,
    "no numbers": [],
    "a slice backwards": slice(None, None, -1),
}
WRONG = {
    "out of range": ([0, N], IndexError, "contains 40, but there are 40 rows"),
    "a short mask": ([True, False], ValueError, "a mask of length 2, but there are 40 rows"),
    "fractions": ([0.5, 1.0], ValueError, "a slice, a mask or a sequence of row numbers"),
    "nothing": (None, ValueError, "a sequence of row numbers"),
}


@pytest.fixture(scope="module", params=["numpy", "array_api_strict", "torch"])
def xp(request):
    return pytest.importorskip(request.param, reason="PyTorch is not installed: make test-full")


def as_positions(rows):
    """Return what NumPy picks from a vector; a list that is empty has no dtype of its own."""
    if isinstance(rows, slice):
        return np.arange(N)[rows]
    return np.arange(N)[np.array(rows)] if len(rows) else np.arange(0)


@pytest.fixture(scope="module", params=METHODS)
def approx(request, xp):
    X = np.random.default_rng(0).normal(size=(N, 3))
    return nb.approximate(xp.asarray(X), request.param, nb.Gaussian(sigma=2.0), **SIZES)


def test_blocks_are_those_of_the_dense_matrix(approx):
    dense = to_host(approx.to_dense())
    for how, rows in ASKED.items():
        positions = as_positions(rows)
        for one, other in ((rows, slice(None)), ([2, -2], rows), (rows, rows)):
            left, right = (
                positions if which is rows else np.arange(N)[which] for which in (one, other)
            )
            block = to_host(approx.block(one, other))
            assert block.shape == (len(left), len(right)), how
            np.testing.assert_allclose(block, dense[np.ix_(left, right)], atol=1e-10, err_msg=how)


NORMS = {
    "frobenius": (np.linalg.norm, list(ASKED)),
    "trace": (lambda A: abs(np.trace(A)), list(ASKED)),
    "spectral": (lambda A: np.linalg.norm(A, 2), list(ASKED)[:3]),
}


@pytest.mark.parametrize("norm", NORMS)
def test_errors_are_those_of_the_dense_matrices(approx, norm):
    of, kinds = NORMS[norm]
    dense = to_host(approx.to_dense())
    for how in kinds:
        positions = as_positions(ASKED[how])
        if len(positions) == 0:
            with pytest.raises(ValueError, match=r"No rows were given.*: give at least one row\."):
                approx.relative_error(ASKED[how], norm)
            continue
        G = to_host(approx.gram.block(positions, positions))
        error = of(dense[np.ix_(positions, positions)] - G) / of(G)
        assert approx.relative_error(ASKED[how], norm) == pytest.approx(error, rel=1e-3), how


def test_what_are_no_rows_is_the_same_sentence_on_every_backend(approx):
    for rows, error, says in WRONG.values():
        calls = [lambda r=rows: approx.block(r, [0]), lambda r=rows: approx.block([0], r)]
        if rows is not None:  # None is all of them there
            calls.append(lambda r=rows: approx.relative_error(r))
        for call in calls:
            with pytest.raises(error, match=says):
                call()


def test_rows_may_be_asked_for_with_arrays_of_the_backend_itself(approx, xp):
    dense = to_host(approx.to_dense())
    for rows in (np.array([3, -1, 3]), MASK):
        block = to_host(approx.block(xp.asarray(rows), xp.asarray(rows)))
        np.testing.assert_allclose(block, dense[rows][:, rows], atol=1e-10)
        assert approx.relative_error(xp.asarray(rows)) == approx.relative_error(rows)


def test_a_prefix_is_the_mixture_of_the_first_learners_or_a_sentence(xp):
    X = np.random.default_rng(0).normal(size=(N, 3))
    there, here = (nb.approximate(data, "URB-mean", **SIZES) for data in (xp.asarray(X), X))
    for p in (1, np.int64(2), 3):
        assert len(there.prefix(p).learners) == p
        dense = to_host(there.prefix(p).to_dense())
        np.testing.assert_allclose(dense, here.prefix(p).to_dense(), atol=1e-9)
    says = "p must be a positive whole number|has 3 learners; a prefix of .* was asked for"
    for p in (0, -1, 4, 10**9, True, 1.5, "2", None, np.nan):
        with pytest.raises(ValueError, match=says):
            there.prefix(p)
