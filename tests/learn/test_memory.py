"""The memory of a fit to a table with far more columns than rows."""

import numpy as np
import pytest
from peaks import peak_bytes
from scipy import sparse

import nysboost as nb

FAST = {"local": False, "random_state": 0}


def wide(d):
    X = sparse.random(60, d, 1e-4, format="csr", random_state=0)
    return X, np.arange(60.0)


@pytest.mark.parametrize(("c", "copies"), [(5, 16), (60, 45)])
def test_no_fold_keeps_a_metric_and_landmarks_of_all_columns(c, copies):
    """A fit took 32 and 105 times the memory of the rows as an array."""
    X, y = wide(10_000)
    peak = peak_bytes(lambda: nb.NystroemRegressor(c, **FAST).fit(X, y))
    assert peak < copies * 8 * X.shape[0] * X.shape[1]


def test_a_table_too_wide_for_the_memory_is_refused_before_the_work():
    X, y = wide(30_000)
    model = nb.NystroemRegressor(5, max_memory="50MB", **FAST)

    def fit():
        with pytest.raises(ValueError, match=r"30000 columns, but max_memory is .*: allow more"):
            model.fit(X, y)

    assert peak_bytes(fit) < 50e6
