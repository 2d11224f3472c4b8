"""Other methods of the field: each chooses landmarks, or fits a map on them, in its own way.

Most are functions ``(gram, c, rng)`` that return c landmarks, or a feature map on them, to which
`catalogue` gives names.
"""

from __future__ import annotations

from nysboost.gram import Gram, KernelGram


def require_points(gram: Gram) -> KernelGram:
    """Return the Gram matrix of a kernel as such; refuse a precomputed one."""
    if isinstance(gram, KernelGram):
        return gram
    msg = 'A precomputed kernel has no points, which this method needs: try "rpcholesky".'
    raise ValueError(msg)
