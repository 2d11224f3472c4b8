"""Every cut-off of the library, each relative to a scale that the data set."""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)
"""Machine epsilon of float64, in which all small dense algebra is done."""

RESOLVED = 1e-12
"""Eigenvalues of AᵀA above this share of the largest are right to a few digits."""

NEARBY = 0.1
"""A Cholesky factor whose pivots are this alike leaves all but two digits of orthogonality."""

FAR_FROM_THERE = 1e-6
"""Pivots that span more than this have lost a column to rounding: the matrix is not nearby."""

SQUARABLE = 1e-2
"""Digits of CᵀC's smallest eigenvalue, as a share of it, that may be lost to rounding."""

INDEFINITE = 1e-4
"""A negative eigenvalue beyond this share of the largest is no rounding error."""

ROUNDING = 4
"""Epsilons of the largest eigenvalue below which W or A knows nothing; eps·m would cut more."""

SUMMED = 16
"""Epsilons by which two inner products of equal columns may differ."""

DEFINITE = 1e-6
"""By so much alpha must exceed the most negative eigenvalue, as a share of it."""

EXHAUSTED = 16
"""A residual diagonal below 16·c epsilons of the largest entry is what c eliminations round."""

ASYMMETRIC = 1000
"""Entries of a symmetric matrix that differ by more epsilons of the largest were not rounded."""

EXPONENT_LIMIT = {"float32": 2.0**6, "float64": 2.0**15}
"""Up to this ½‖x‖² the exponent ⟨x, y⟩ − ½‖x‖² − ½‖y‖² keeps 5 (float32) or 11 digits."""

CLOSE = 2.0**-20
"""Pairs with ‖x−y‖² below this share of ‖x‖² + ‖y‖² have lost six digits to cancellation."""

CANCELLED = 1e-10
"""Below this loss 1 − ‖PGP‖²/‖G‖² has lost ten digits: the residual itself is formed."""

SHALLOW = 1e-8
"""A loss above which float32 will do for the last two products of its gradient (kin40k: 2e-8)."""

CLEAR = 1e-6
"""A loss above which float32 will do for what a projector misses (MNIST: 1e-5; Covertype: 5e-7)."""

NEAR_ROUNDING = 1e-8
"""A relative error below which a fitted core has lost digits (solar: 1e-11 instead of 4e-15)."""

SINGLE = 1e-5
"""A relative error that products in float32 do not add to."""

NOTHING_LEFT = 1e-20
"""A loss, the square of a relative error, that is little more than rounding."""

SUFFICIENT, NOTHING = 1e-3, 1e-9
"""The share of its promise that a step has to keep; a promise not worth an evaluation."""

SMOOTHED = 1e-6
"""Added to r in the slope e⁻ʳ/r of Matérn 1/2, which is infinite where two points meet."""

JITTER = 1e-6
"""Added to the unit diagonal of k(Z, Z); with 1e-8 the loss was rounding where landmarks met."""

ALIKE = 1e-5
"""Kernel values in float32 that differ by no more of the largest differ by rounding."""

COARSE = 1e-2
"""A residual above this share of G's entries is clear in float32, whose features have 4 digits."""

CROSSING = 1e-4
"""Singular values of G[I, J] below this share have no inverse in CUR: best of 1e-8 to 1e-2."""


UNSOLVED = {"float32": 1e-3, "float64": 1e-6}
"""A residual above this share of the right-hand side is worth a warning."""


def cutoff(size: int, eps: float) -> float:
    """Return the cut-off eps·size, relative to the largest eigen- or singular value."""
    return eps * size
