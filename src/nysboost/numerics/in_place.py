"""Elementwise functions and products that are written into an array that exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Array, like, namespace


def apply_in_place(function: str, array: Array, *args: Any) -> Array:
    """Apply a namespace's elementwise function, into `array` itself where `out=` exists."""
    operation: Callable[..., Array] = getattr(namespace(array), function)
    try:
        with np.errstate(under="ignore"):  # a kernel value that is 0 is no error
            return operation(array, *args, out=array)
    except TypeError:
        return operation(array, *(like(arg, array) for arg in args))


def product_into(A: Array, B: Array, out: Array | None) -> Array:
    """Return A @ B, in `out` if it is given, without a temporary where the namespace allows it."""
    if out is None:
        return A @ B
    try:
        namespace(out).matmul(A, B, out=out)
    except TypeError:
        out[...] = A @ B
    return out
