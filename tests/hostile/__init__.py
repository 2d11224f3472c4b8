"""The table of bad and hard inputs: each gets a right result or one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import nysboost as nb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = RNG.normal(size=60)


@dataclass(frozen=True)
class Case:
    """Something a user might do.

    Parameters
    ----------
    name : str
        What it is.
    call : callable
        Does it.
    right : callable or None
        Result → whether it is right; None where only a sentence is right.
    says : str
        A pattern that the sentence has; beside `right` a sentence is as good where it has one.
    """

    name: str
    call: Callable[[], Any]
    right: Callable[[Any], bool] | None = None
    says: str = ""


def cases(
    name: str,
    call: Callable[[Any], Any],
    inputs: dict[str, Any],
    right: Callable[[Any], Callable[[Any], bool]] | None = None,
    says: str = "",
) -> list[Case]:
    """Return a case for each input: its name, the call on it, and the check that `right` gives."""
    return [
        Case(name.format(what), partial(call, given), right and right(given), says)
        for what, given in inputs.items()
    ]


def refused(
    name: str, call: Callable[[Any], Any], inputs: dict[str, tuple[Any, str]]
) -> list[Case]:
    """Return a case for each input that comes with the pattern of its sentence."""
    return [
        Case(name.format(what), partial(call, given), says=says)
        for what, (given, says) in inputs.items()
    ]


def listed(calls: dict[str, Any]) -> list[Case]:
    """Return a case for each call, which may come with a check or with its sentence's pattern."""
    made = []
    for name, given in calls.items():
        call, expected = given if isinstance(given, tuple) else (given, "")
        says = expected if isinstance(expected, str) else ""
        made.append(Case(name, call, None if isinstance(expected, str) else expected, says))
    return made


def approximate(data: Any = X, method: str = "uniform", kernel: Any = "rbf", **how: Any) -> Any:
    how = {"n_components": 20, "random_state": 0} | how
    return nb.approximate(data, method, kernel, **how)


def standard(**how: Any) -> Any:
    return nb.StandardNystroem(**({"n_components": 10, "random_state": 0} | how))


def gaussian(data: Any, gamma: float) -> np.ndarray:
    """G by its definition, whatever the scale: differences in float64."""
    points = np.asarray(data, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.exp(-gamma * cdist(points, points, "sqeuclidean"))


def has_error(G: np.ndarray, at_most: float = 1.05) -> Callable[[Any], bool]:
    """Return a check that K̂ is what its own error says, measured against a dense G."""

    def right(approximation: Any) -> bool:
        dense = np.asarray(approximation.to_dense(), dtype=np.float64)
        error = np.linalg.norm(dense - G) / np.linalg.norm(G)
        same = abs(approximation.relative_error() - error) <= 1e-5 + 1e-3 * error
        return bool(same and error <= at_most)

    return right


def finite(result: Any) -> bool:
    return bool(np.isfinite(np.asarray(result, dtype=np.float64)).all())


def close_to(expected: Any, digits: float = 1e-9) -> Callable[[Any], bool]:
    """Return a check that a result is this array."""
    return lambda result: bool(np.allclose(np.asarray(result), expected, rtol=digits, atol=digits))
