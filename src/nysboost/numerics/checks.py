"""Checks of arguments, and the sentences that say what is wrong with one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, cast

import numpy as np


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a sentence that there is no such name, with the nearest ones and all of them."""
    folded = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)
    hint = (
        f" Did you mean {' or '.join(repr(folded[near]) for near in nearest)}?" if nearest else ""
    )
    return f"There is no {what} {name!r}.{hint} Known are {', '.join(folded.values())}."


def require_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        msg = f"{name} must be a number, but {name}={value!r} was given."
        raise ValueError(msg)


def require_positive(name: str, value: float) -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf:
        msg = f"{name} must be a positive number, but {name}={value!r} was given."
        raise ValueError(msg)


def require_count(name: str, value: Any) -> None:
    """Raise unless the value is a positive whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool) or cast(int, value) < 1:
        msg = f"{name} must be a positive whole number, but {name}={value!r} was given."
        raise ValueError(msg)
