"""What every method that chooses columns keeps to."""

import market
import numpy as np
import pytest

from nysboost.methods.adaptive import adaptive, adaptive_partial
from nysboost.methods.sampling import bless, dpp, rls


@pytest.mark.parametrize("method", [adaptive, adaptive_partial, dpp, rls, bless])
@pytest.mark.parametrize("case", market.NAMES)
def test_columns_are_distinct_on_every_matrix(method, case):
    gram = market.problem(case, n=60).gram
    for c in (1, 7, 60):
        found = method(gram, c, np.random.default_rng(0)).indices
        assert len(set(found)) == len(found) == c
