"""What the methods that look at all of G share: a limit on n, and products in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nysboost.gram import Gram
from nysboost.numerics.arrays import Array, namespace, row_blocks

WHOLE_ROWS = 30_000
"""Above this, evaluating all n² entries takes minutes on one core, and again in each pass."""

BLOCK_BYTES = 2**26
"""What is held of G at a time, where a quarter of the budget allows it."""


def refuse_large(gram: Gram, name: str) -> None:
    """Raise if a method that evaluates all n² entries is asked for too many rows."""
    if gram.n > WHOLE_ROWS:
        msg = (
            f'"{name}" evaluates all n² entries of the kernel matrix, which is meant for '
            f"n ≤ {WHOLE_ROWS}, but n_samples = {gram.n} were given. Pass a sample of the rows, "
            'or a method that does not need them all, such as "joint" or "rpcholesky".'
        )
        raise ValueError(msg)


def times_gram(gram: Gram, V: Array) -> Array:
    """Return G V, shape (n, q), in float64, holding a block of rows of G at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from nysboost.gram import make_gram
    >>> G = np.diag([1.0, 2.0])
    >>> times_gram(make_gram(G, "precomputed"), np.ones((2, 1)))
    array([[1.],
           [2.]])
    """
    xp = namespace(V)
    products = [xp.astype(strip, V.dtype) @ V for strip in strips(gram)]
    return xp.concat(products)


def strips(gram: Gram) -> Iterator[Array]:
    """Yield all rows of G, in order, as blocks of shape (b, n)."""
    everything = gram.landmarks(np.arange(gram.n))
    for block in row_blocks(gram.n, 8 * gram.n, min(BLOCK_BYTES, gram.budget.bytes // 4)):
        yield gram.cross(block, everything)
