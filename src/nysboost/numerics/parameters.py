"""Checks of numbers that a user passes as parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from nysboost.numerics.messages import format_value


def require_number(name: str, value: Any) -> None:
    """Raise unless the value is a finite number."""
    _require(name, "must be a number", value, -np.inf, np.inf)


def require_positive(name: str, value: Any) -> None:
    """Raise unless the value is a positive finite number."""
    _require(name, "must be a positive number", value, 0, np.inf)


def require_fraction(name: str, value: Any) -> None:
    """Raise unless the value is a number between 0 and 1."""
    _require(name, "lies between 0 and 1", value, 0, 1)


def require_count(name: str, value: Any) -> None:
    """Raise unless the value is a positive whole number."""
    _require(name, "must be a positive whole number", value, 0, np.inf, Integral)


def _require(name: str, rule: str, value: Any, low: float, high: float, kind: Any = Real) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low < value < high:
        raise ValueError(f"{name} {rule}, but {name}={format_value(value)} was given.")
