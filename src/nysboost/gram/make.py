"""From data and a kernel to a Gram matrix, checked on a few rows before any work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nysboost.gram.gram import Gram, KernelGram, PrecomputedGram
from nysboost.gram.landmarks import Sample
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, epsilon, namespace, row_blocks, spaced_indices
from nysboost.numerics.checks import Budget
from nysboost.numerics.linalg import max_abs
from nysboost.numerics.tolerances import ASYMMETRIC, INDEFINITE
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.recognise import scan_rows
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import PROBE_ROWS
from nysboost.rows.stored_rows import StoredRows

SQUARABLE = 1e140  # values below it and above its inverse can be squared and summed in float64

ALL_ZERO = (
    "The kernel matrix is zero, or too small for floating point, where it was looked at, so there "
    "is nothing to approximate. Check the kernel's parameters and the scale of the data."
)

NOT_FINITE = (
    "The kernel matrix contains NaN or infinity, though the data do not. "
    "Scale the data down, or check the kernel's parameters."
)


def make_gram(
    X: Any,
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    budget: Budget | None = None,
    corrupted: bool = False,
    **params: Any,
) -> Gram:
    """Turn data X, (n, d), or (n, n) if "precomputed", and a kernel into a Gram matrix.

    `params` are those of a named kernel; a `corrupted` matrix may be indefinite.
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        return _make_precomputed(X, budget, params, corrupted=corrupted)

    rows = scan_rows(X)
    resolved = make_kernel(kernel, **params).resolve(rows)
    return probe(KernelGram(rows, resolved, budget))


def _make_precomputed(
    G: Any, budget: Budget | None, params: dict[str, Any], *, corrupted: bool
) -> Gram:
    """Return a matrix of kernel values as a Gram matrix, checked unless it is corrupted."""
    given = [name for name, value in params.items() if value is not None]
    if given:
        msg = f"A precomputed kernel has no parameter {', '.join(given)}: leave it out."
        raise ValueError(msg)

    # a corrupted matrix may be indefinite, which the probe would refuse
    rows = scan_rows(G, name="The precomputed kernel matrix")
    check_precomputed(rows, corrupted=corrupted)
    gram = PrecomputedGram(rows, budget)
    if corrupted:
        return gram
    return probe(gram)


def on_other_rows(gram: Gram, X: Any) -> Gram:
    """Return the Gram matrix of the rows of X under the kernel of `gram`, if it has one."""
    if not isinstance(gram, KernelGram):
        raise ValueError(
            "A precomputed kernel matrix has no kernel values between new rows. Leave X out for "
            "the rows of the fit, or fit on points with a kernel."
        )

    rows = scan_rows(X)
    if rows.n_features != gram.rows.n_features:
        msg = f"X has {rows.n_features} columns, but the fit had {gram.rows.n_features}."
        raise ValueError(msg)
    return gram.with_rows(rows)


def probe(gram: Gram) -> Gram:
    """Refuse a kernel that a principal submatrix shows to be no kernel, before any work."""
    spread = spaced_indices(gram.n, PROBE_ROWS)
    W = Sample.of(gram, spread).matrix
    gram.counter.count = 0  # the probe is the same for every method

    xp = namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    refuse_indefinite(xp.linalg.eigvalsh(W))

    # zero on a few rows: zero on all of them, if the diagonal is
    largest = max_abs(W)
    if largest != 0 and not 1 / SQUARABLE < largest < SQUARABLE:
        raise ValueError(
            f"The kernel has values of {largest:.3g}, whose squares leave the range of floating "
            "point: scale the data so that they are nearer to 1."
        )
    if largest == 0 and max_abs(gram.diag()) == 0:
        raise ValueError(ALL_ZERO)
    return gram


def refuse_indefinite(eigenvalues: Array) -> None:
    """Raise if a principal submatrix shows that G is not positive semidefinite."""
    ends = float(eigenvalues[0]), float(eigenvalues[-1])
    smallest, largest = sorted(ends)

    if smallest < -INDEFINITE * max(largest, 0.0):
        raise ValueError(
            "The kernel is not positive semidefinite: a principal submatrix has eigenvalues from "
            f"{smallest:.3g} to {largest:.3g}. Nyström approximations need a positive "
            "semidefinite kernel, such as rbf, laplacian, matern, linear or polynomial."
        )


def check_precomputed(rows: Rows, *, corrupted: bool = False) -> None:
    """Refuse what is not square, not symmetric or, unless corrupted, clearly indefinite."""
    if rows.lazy or not isinstance(rows, ArrayRows):
        raise ValueError("A precomputed kernel matrix must be in memory or memory-mapped.")
    if isinstance(rows, StoredRows):
        raise TypeError(
            "A precomputed kernel matrix is asked for columns, which an HDF5 or Zarr array reads "
            "slowly: pass it as an array or as a numpy.memmap."
        )

    G = rows.data

    if rows.n != rows.n_features:
        raise ValueError(
            f"A precomputed kernel matrix is square, but shape {tuple(G.shape)} was given. "
            "To approximate the kernel of data points, pass the points and name the kernel."
        )

    # one pass over G, whose largest entry is then known
    largest = _check_symmetry(rows)
    if not corrupted:
        _check_diagonal(G, largest)


def _check_symmetry(rows: ArrayRows) -> float:
    """Refuse a matrix that is not symmetric, and return its largest entry in size."""
    largest = 0.0
    row_bytes = 16 * rows.n
    for block in row_blocks(rows.n, row_bytes, 2**26):
        upper = rows.take(block)
        largest = max(largest, max_abs(upper))

        # G[i, j] − G[j, i] beyond rounding
        lower = rows.data[:, block]
        gap = max_abs(upper - lower.T)
        if gap > ASYMMETRIC * epsilon(upper) * largest:
            raise ValueError(
                "A precomputed kernel matrix is symmetric, but G[i, j] and G[j, i] differ by up to "
                f"{gap:.3g}. Pass (G + G.T) / 2 if that is what you mean."
            )
    return largest


def _check_diagonal(G: Array, largest: float) -> None:
    """Refuse a matrix with a negative diagonal entry, or with a larger entry beside the diagonal.

    A positive semidefinite matrix has neither.
    """
    diagonal = arrays.diagonal(G)
    xp = namespace(diagonal)
    lowest = float(xp.min(diagonal))
    highest = float(xp.max(diagonal))

    is_negative = lowest < -INDEFINITE * largest
    is_exceeded = largest > (1 + INDEFINITE) * highest
    if is_negative or is_exceeded:
        raise ValueError(
            f"The kernel is not positive semidefinite: its values are up to {largest:.3g} in size, "
            f"and those of points with themselves from {lowest:.3g} to {highest:.3g}. No diagonal "
            "entry can be negative, and the largest entry must lie on the diagonal."
        )
