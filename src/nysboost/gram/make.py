"""From data and a kernel to a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nysboost.data.recognise import as_rows
from nysboost.gram.gram import Gram, KernelGram
from nysboost.gram.precomputed import PrecomputedGram, check_precomputed
from nysboost.gram.probe import probed
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.memory import Budget


def make_gram(
    X: Any,
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    budget: Budget | None = None,
    corrupted: bool = False,
    **params: Any,
) -> Gram:
    """Turn data and a kernel into a Gram matrix, in the one place that does.

    Parameters
    ----------
    X : array-like of shape (n, d), or (n, n) if `kernel` is "precomputed"
        Data points, or kernel values. Never copied, never changed.
    kernel : str, Kernel or callable
        See `nysboost.kernels.make_kernel`; or "precomputed".
    budget : Budget or None
        Memory and cores of a pass over the rows.
    corrupted : bool
        Whether a precomputed matrix may have wrong entries, and so be indefinite.
    **params
        Parameters of a named kernel.
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        given = [name for name, value in params.items() if value is not None]
        if given:
            msg = f"A precomputed kernel has no parameter {', '.join(given)}: leave it out."
            raise ValueError(msg)
        rows = as_rows(X, name="The precomputed kernel matrix")
        check_precomputed(rows, corrupted=corrupted)
        gram: Gram = PrecomputedGram(rows, budget)
        if corrupted:
            return gram
    else:
        rows = as_rows(X)
        gram = KernelGram(rows, make_kernel(kernel, **params).resolve(rows), budget)
    return probed(gram)
