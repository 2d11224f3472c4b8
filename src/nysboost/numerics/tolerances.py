"""Every cut-off of the library, each relative to a scale of the data."""

from __future__ import annotations

import numpy as np

# Rounding

EPS = float(np.finfo(np.float64).eps)  # of float64, in which all small dense algebra is done
TINY = float(np.finfo(np.float64).tiny)  # the divisor instead of 0
ROUNDING = 4  # epsilons of the largest eigenvalue below which those of W or A are rounding
SUMMED = 16  # epsilons by which two inner products of equal columns may differ
EXHAUSTED = 16  # c times so many epsilons of the largest diagonal are what c eliminations round
ASYMMETRIC = 1000  # epsilons of the largest entry beyond which G[i, j] ≠ G[j, i] is not rounding
SINGLE = 1e-5  # a relative error that products in float32 do not add to
ALIKE = 1e-5  # kernel values in float32 differ by rounding up to this share of the largest
UNSOLVED = {"float32": 1e-3, "float64": 1e-6}  # ‖residual‖/‖right-hand side‖ worth a warning

# Bases and eigenvalues

RESOLVED = 1e-12  # eigenvalues of AᵀA above this share of the largest are right to a few digits
NEARBY = 0.1  # Cholesky pivots so alike leave all but two digits of orthogonality
FAR_FROM_THERE = 1e-6  # pivots that span more have lost a column to rounding
SQUARABLE = 1e-2  # share of CᵀC's smallest eigenvalue that may be lost to rounding
INDEFINITE = 1e-4  # a negative eigenvalue beyond this share of the largest is no rounding error
DEFINITE = 1e-6  # share by which alpha must exceed the most negative eigenvalue
CROSSING = 1e-4  # singular values of G[I, J] without an inverse in CUR: best of 1e-8 to 1e-2

# Distances and kernel values

EXPONENT_LIMIT = {"float32": 2.0**6, "float64": 2.0**15}
"""Up to this ½‖x‖² the exponent ⟨x, y⟩ − ½‖x‖² − ½‖y‖² keeps 5 (float32) or 11 digits."""

CLOSE = 2.0**-20  # ‖x−y‖² below this share of ‖x‖² + ‖y‖² has lost six digits to cancellation
SMOOTHED = 1e-6  # added to r in the slope e⁻ʳ/r of Matérn 1/2, infinite where two points meet
JITTER = 1e-6  # added to the unit diagonal of k(Z, Z); with 1e-8 the loss was rounding
COARSE = 1e-2  # a residual above this share of G is clear in float32, whose features have 4 digits

# Losses, squares of relative errors, and errors

CANCELLED = 1e-10  # below it 1 − ‖PGP‖²/‖G‖² has lost ten digits: the residual itself is formed
SHALLOW = 1e-8  # above it float32 will do for the gradient's last two products (kin40k: 2e-8)
CLEAR = 1e-6  # above it float32 will do for what a projector misses (MNIST: 1e-5)
NOTHING_LEFT = 1e-20  # little more than rounding
NEAR_ROUNDING = 1e-8  # an error below which a fitted core has lost digits (solar: 1e-11, not 4e-15)
SUFFICIENT = 1e-3  # share of the predicted decrease that a step has to reach
NOTHING = 1e-9  # a predicted decrease that is not worth an evaluation
