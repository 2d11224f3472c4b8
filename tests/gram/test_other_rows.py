"""The same kernel on other rows."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram, on_other_rows


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


def test_other_columns_and_other_rows_of_a_matrix_are_refused():
    with pytest.raises(ValueError, match="X has 3 columns, but the fit had 2"):
        on_other_rows(make_gram(np.ones((3, 2)), "linear"), np.ones((3, 3)))
    with pytest.raises(ValueError, match="no kernel values between new rows"):
        on_other_rows(make_gram(np.eye(3), "precomputed"), np.eye(3))
