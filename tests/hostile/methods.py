"""Every method on data that is hard for some of them."""

from __future__ import annotations

import re

import numpy as np
from market import LEADING

import nysboost as nb
from hostile import RNG, Case, X, gaussian, has_error

HARD = {
    "rows that repeat": np.repeat(X[:6], 8, axis=0),
    "heavy tails": RNG.standard_cauchy(size=(48, 3)),
    "rows so far apart that G is the identity": 1e3 * RNG.normal(size=(48, 3)),
}
SMALL = {"n_components": 8, "random_state": 0}


CASES = [
    Case(
        f"{method} on {name}",
        lambda t=table, m=method: nb.approximate(t, m, nb.Gaussian(gamma=0.3), **SMALL),
        # random features, CUR and mixtures promise no error below 1, but to say what it is
        has_error(
            gaussian(table, 0.3), np.inf if re.search("fourier|cur|ensemble|B-", method) else 1.05
        ),
    )
    for name, table in HARD.items()
    for method in LEADING
]
