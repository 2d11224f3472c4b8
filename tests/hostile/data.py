"""Tables that are none, and tables that are hard."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix, csr_matrix

import nysboost as nb
from hostile import RNG, X, approximate, cases, close_to, gaussian, has_error, listed, standard


def at(value: float, row: int = 30) -> np.ndarray:
    changed = X.copy()
    changed[row, 2] = value
    return changed


NO_TABLES = {
    "a vector": X[:, 0],
    "three axes": X[:, :, None],
    "a number": 3.0,
    "nothing": None,
    "no rows": np.empty((0, 4)),
    "no columns": np.empty((5, 0)),
    "text": [["a", "b"], ["c", "d"]],
    "rows of different lengths": [[1.0], [1.0, 2.0]],
    "complex numbers": X + 1j,
    "complex sparse": csr_matrix(X * 1j),
    "a number too large for a float": [[10**400], [1]],
    "NaN": at(np.nan),
    "infinity": at(np.inf),
    "NaN in a sparse table": csr_matrix(at(np.nan)),
    "minus infinity in the last row": at(-np.inf, 59),
    "a masked array": np.ma.masked_array(X, X > 1),
    "dates": np.arange(60).astype("M8[D]").reshape(-1, 2),
    "objects": np.array([[object()], [object()]]),
    "a dictionary": {"a": [1, 2]},
    "an iterator": iter([X]),
    "a file name": "data.csv",
    "records": np.zeros(5, dtype=[("a", float), ("b", float)]),
    "None among numbers": [[1.0, None], [2.0, 3.0]],
}

SAYS = {
    "a vector": r"shape \(60,\).*Reshape your data",
    "three axes": r"shape \(60, 4, 1\)",
    "a number": r"shape \(\)",
    "no rows": "nothing to approximate",
    "no columns": "nothing to approximate",
    "text": "does not convert to numbers",
    "a dictionary": "X is a dict .*, not a table",
    "a file name": r"X is a str \('data.csv'\), not a table",
    "complex numbers": "Complex data not supported",
    "complex sparse": "Complex data not supported",
}

HARD_TABLES = {
    "integers": np.arange(120).reshape(60, 2) % 7,
    "small integers that wrap": (RNG.integers(0, 255, size=(60, 3))).astype(np.uint8),
    "truth values": X > 0,
    "half precision": X.astype(np.float16),
    "long double": X.astype(np.longdouble),
    "big-endian": X.astype(">f8"),
    "Fortran order": np.asfortranarray(X),
    "negative strides": X[::-1, ::-1],
    "read-only": np.frombuffer(X.tobytes()).reshape(60, 4),
    "lists": X.tolist(),
    "a mask that hides nothing": np.ma.masked_array(X, False),
    "numbers as text": X.round(2).astype(str),
    "constant": np.full((60, 3), 7.0),
    "all zero": np.zeros((60, 3)),
    "one column constant": np.column_stack([X, np.ones(60)]),
    "every row twice": np.repeat(X[:30], 2, axis=0),
    "far from the origin": X + 1e6,
    "one row at 1e300": at(1e300),
    "denormal": X * 1e-310,
    "huge, 1e300": X * 1e300,
    "heavy tails": RNG.standard_cauchy(size=(60, 4)),
    "signed zeros": np.where(X > 0, 0.0, -0.0),
    "more columns than rows": RNG.normal(size=(25, 300)),
}

SMALL = {"one row": X[:1], "two rows": X[:2], "three rows": X[:3]}
SMALL_METHODS = ("joint", "nystrom", "kmeans", "rpcholesky", "greedy", "rls", "uniform")
NO_ROWS = {name: table for name, table in NO_TABLES.items() if name != "an iterator"}


def with_gaussian(table: Any, method: str = "uniform", **how: Any) -> Any:
    return approximate(table, method, nb.Gaussian(gamma=0.3), **how)


def has_error_of_gaussian(table: Any) -> Any:
    return has_error(gaussian(np.asarray(table, dtype=np.float64), 0.3))


NAMED = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
SINGLE: dict[str, Any] = {
    "an iterator is transformed": (
        lambda: standard().fit(X).transform(iter([X[:30], X[30:]])),
        close_to(standard().fit(X).transform(X))),
    "transform of other columns": lambda: standard().fit(X).transform(X[:, :3]),
    "transform before fit": lambda: standard().transform(X),
    "a sparse table in coordinate form": (
        lambda: with_gaussian(coo_matrix(X)), has_error_of_gaussian(X)),
    "a sparse table that is empty": (
        lambda: with_gaussian(csr_matrix((60, 9))), has_error(np.ones((60, 60)))),
    "zeros under a linear kernel": lambda: approximate(np.zeros((60, 3)), kernel="linear"),
    "a frame with text": (
        lambda: approximate(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), gamma=1.0),
        has_error(gaussian([[1, 1, 0], [2, 0, 1]], 1.0))),
    "a frame with a date": (
        lambda: approximate(
            pd.DataFrame({"a": np.arange(30).astype("M8[s]"), "b": np.arange(30)}), gamma=1.0),
        has_error(gaussian(np.c_[np.arange(30), np.arange(30)], 1.0))),
    "a frame with a missing value": lambda: standard().fit(pd.DataFrame({"a": [1.0, None, 3.0]})),
    "a frame with missing integers":
        lambda: standard().fit(pd.DataFrame({"a": [1, None, 3]}).astype("Int64")),
    "another order of named columns": (
        lambda: standard().fit(NAMED).transform(NAMED[["b", "a"]]),
        close_to(standard().fit(X[:, :2]).transform(X[:, :2]))),
    "many rows of which one is NaN beyond the first block":
        lambda: approximate(np.vstack([np.ones((700, 4)), [[np.nan] * 4]])),
}  # fmt: skip
CASES = [
    *listed(
        {f"fit on {n}": (partial(approximate, t), SAYS.get(n, "")) for n, t in NO_TABLES.items()}
    ),
    *cases("a transformer fitted on {}", lambda t: standard().fit(t), NO_ROWS),
    *cases("transform of {}", lambda t: standard().fit(X).transform(t), NO_ROWS),
    *cases("a Gaussian on {}", with_gaussian, HARD_TABLES, has_error_of_gaussian),
    *(
        case
        for method in SMALL_METHODS
        for on in [partial(with_gaussian, method=method, n_components=1)]
        for case in cases(f"{method} on {{}}", on, SMALL, has_error_of_gaussian)
    ),
    *listed(SINGLE),
]
