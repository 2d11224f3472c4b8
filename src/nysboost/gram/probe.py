"""A look at a kernel on a few rows, before any work is done."""

from __future__ import annotations

from nysboost.data.rows import PROBED, spread_indices
from nysboost.gram.gram import Gram
from nysboost.gram.sample import Sample
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.tolerances import INDEFINITE

SQUARABLE = 1e140
"""Kernel values below this, and above its inverse, can be squared and summed in float64."""


def probed(gram: Gram) -> Gram:
    """Refuse a kernel that a principal submatrix shows to be no kernel, before any work."""
    W = Sample.of(gram, spread_indices(gram.n, PROBED)).matrix
    gram.tally.count = 0  # every method looks at the same probe first
    xp = namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    refuse_indefinite(xp.linalg.eigvalsh(W))
    largest = float(xp.max(xp.abs(W)))
    if not (largest == 0 or 1 / SQUARABLE < largest < SQUARABLE):
        msg = (
            f"The kernel has values of {largest:.3g}, whose squares leave the range of floating "
            "point: scale the data so that they are nearer to 1."
        )
        raise ValueError(msg)
    if not bool(xp.any(W != 0)) and not bool(xp.any(gram.diag() != 0)):
        raise ValueError(ALL_ZERO)
    return gram


ALL_ZERO = (
    "The kernel matrix is zero, or too small for floating point, where it was looked at, so there "
    "is nothing to approximate. Check the kernel's parameters and the scale of the data."
)


NOT_FINITE = (
    "The kernel matrix contains NaN or infinity, though the data do not. "
    "Scale the data down, or check the kernel's parameters."
)


def refuse_indefinite(eigenvalues: Array) -> None:
    """Raise if a principal submatrix shows that G is not positive semidefinite."""
    smallest, largest = sorted((float(eigenvalues[0]), float(eigenvalues[-1])))
    if smallest < -INDEFINITE * max(largest, 0.0):
        msg = (
            "The kernel is not positive semidefinite: a principal submatrix has eigenvalues from "
            f"{smallest:.3g} to {largest:.3g}. Nyström approximations need a positive "
            "semidefinite kernel, such as rbf, laplacian, matern, linear or polynomial."
        )
        raise ValueError(msg)
