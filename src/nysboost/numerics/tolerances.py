"""Every cut-off of the library, each relative to a scale that the data set.

A number here decides when a value counts as zero, as equal to another, or as too inexact
to be used. Each says what it is relative to and what was measured to choose it.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)
"""Machine epsilon of float64, in which all small dense algebra is done."""

RESOLVED = 1e-12
"""Eigenvalues of AᵀA above this share of the largest are right to a few digits."""

NEARBY = 0.1
"""A Cholesky factor whose pivots are this alike leaves all but two digits of orthogonality. With
0.5 a descent makes a tenth more bases, for the same error to six digits (kin40k and Pendigits)."""

FAR_FROM_THERE = 1e-6
"""Pivots that span more than this have lost a column to rounding: the matrix is not nearby."""

INDEFINITE = 1e-4
"""A negative eigenvalue beyond this share of the largest is no rounding error."""

ROUNDING = 4
"""Epsilons of the largest eigenvalue below which W or A knows nothing. Rounding errors of kernel
entries do not add up with their number: eps·m would cut eigenvalues that float32 still knows
(error 4e-4 at m = 999 with doubled rows)."""

SUMMED = 16
"""Epsilons by which two inner products of equal columns may differ: their terms, of either sign in
rounding, hardly add up."""

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
"""A loss above which float32 will do for the last two products of its gradient, at half the time:
landmarks end where they would in float64 to six digits of the error (kin40k, a loss of 2e-8)."""

NEAR_ROUNDING = 1e-8
"""A relative error below which a fitted core has lost digits: 1e-11 where plain Nyström reaches
4e-15 (solar, polynomial kernel, c = 120)."""

NOTHING_LEFT = 1e-20
"""A loss, the square of a relative error, that is little more than rounding."""

SUFFICIENT, NOTHING = 1e-3, 1e-9
"""The share of its promise that a step has to keep; a promise not worth an evaluation."""

SMOOTHED = 1e-6
"""Added to r in the slope e⁻ʳ/r of Matérn 1/2, which is infinite where two points meet."""

JITTER = 1e-6
"""Added to the diagonal of k(Z, Z), which is 1, while landmarks move: with 1e-8 the loss was
rounding error where landmarks met (keggundirected), and no table predicted better."""

ALIKE = 1e-5
"""Kernel values in float32 that are no further than this from those in float64, as a share of the
largest, differ by rounding."""

COARSE = 1e-2
"""A residual that is larger than this, as a share of G's entries, is clear in float32, in which a
learner's features are right to 1e-4."""

CROSSING = 1e-4
"""Singular values of G[I, J] below this share of the largest have no inverse in CUR: of 1e-8 to
1e-2 the smallest error on three of the paper's five data sets, and within a factor of two of it
on the others, where smaller ones lose all digits."""


UNSOLVED = {"float32": 1e-3, "float64": 1e-6}
"""A residual above this share of the right-hand side is worth a warning."""


def cutoff(size: int, eps: float) -> float:
    """Return the cut-off eps·size, relative to the largest eigen- or singular value.

    Every decision "this eigenvalue is zero" is made against this number.
    """
    return eps * size
