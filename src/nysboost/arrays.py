"""Array namespaces, host and device, blocks of rows, and the one relative cut-off.

Floats live in the array namespace of the user's data (NumPy, PyTorch, CuPy, …);
indices always live on the host, in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_cupy_array,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_array,
    to_device,
)
from numpy.typing import NDArray
from scipy.sparse import issparse

Array: TypeAlias = Any
"""A real array of any namespace, or a SciPy sparse matrix where a docstring says so."""

Indices: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]

CACHE_BYTES = 8 * 2**20
"""A block of kernel values of this size stays in a core's cache between its passes."""

DEVICE_BYTES = 2**30
"""A block of this size keeps a GPU busy for much longer than it takes to start its kernels."""

RESOLVED = 1e-12
"""Eigenvalues of AᵀA above this share of the largest are right to a few digits."""


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace of the dense arrays (NumPy if all are sparse)."""
    dense = [array for array in arrays if not issparse(array)]
    return array_namespace(*(dense or [np.empty(0)]))


SUPPORTED = "NumPy, PyTorch and CuPy"


def is_supported(array: Array) -> bool:
    """Whether the array's namespace is one that every method has been run with."""
    return bool(is_numpy_array(array) or is_torch_array(array) or is_cupy_array(array))


def whereabouts(array: Array) -> str:
    """Return in words what kind of array it is and where it lives."""
    if issparse(array) or is_numpy_array(array):
        return "a NumPy array"
    library = "PyTorch" if is_torch_array(array) else type(array).__module__.partition(".")[0]
    return f"a {library} array on {device(array)}"


def to_host(array: Array) -> NDArray[Any]:
    """Return the array as NumPy, copied from its device where it has one."""
    return np.asarray(to_device(array, "cpu"))


def like(values: Array, reference: Array, dtype: Any = None) -> Array:
    """Return `values` in the namespace, on the device and in the dtype of `reference`."""
    xp = namespace(reference)
    where = None if issparse(reference) else device(reference)
    if isinstance(values, np.ndarray) and not is_numpy_namespace(xp):
        values = np.ascontiguousarray(values)  # PyTorch takes no negative strides
    return xp.asarray(values, dtype=dtype or reference.dtype, device=where)


def empty(shape: tuple[int, ...], reference: Array) -> Array:
    """Return an array to be filled, of the namespace, device and dtype of `reference`."""
    xp, where = namespace(reference), None if issparse(reference) else device(reference)
    return xp.empty(shape, dtype=reference.dtype, device=where)


def dtype_name(array: Array) -> str:
    """Return "float32" or "float64", whatever the namespace calls it."""
    return str(array.dtype).rpartition(".")[2]


def epsilon(array: Array) -> float:
    """Return the machine epsilon of the array's dtype."""
    return float(np.finfo(dtype_name(array)).eps)


def cutoff(size: int, eps: float) -> float:
    """Return the cut-off eps·size, relative to the largest eigen- or singular value.

    Every decision "this eigenvalue is zero" is made against this number.
    """
    return eps * size


def apply_in_place(function: str, array: Array, *args: Any) -> Array:
    """Apply a namespace's elementwise function, into `array` itself where `out=` exists."""
    xp = namespace(array)
    operation = getattr(xp, function)
    try:
        return operation(array, *args, out=array)
    except TypeError:
        return operation(array, *(like(arg, array) for arg in args))


def product_into(A: Array, B: Array, out: Array) -> None:
    """Write A @ B into `out`, without a temporary where the namespace allows it."""
    try:
        namespace(out).matmul(A, B, out=out)
    except TypeError:
        out[...] = A @ B


def block_bytes(array: Array) -> int:
    """Return the size of a block that suits where the array lives."""
    on_host = issparse(array) or str(device(array)) == "cpu"
    return CACHE_BYTES if on_host else DEVICE_BYTES


def row_blocks(n: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut range(n) into slices of which each takes about `budget` bytes."""
    size = max(1, budget // max(1, row_bytes))
    # whole multiples of 64 rows keep matrix products on their fast path
    size = size // 64 * 64 or size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def triangular_factor(blocks: Iterator[Array]) -> Floats:
    """Return R of the QR factorisation of the stacked blocks, one block at a time.

    R is all that Gram-type products need, and it keeps the digits that forming
    ZᵀZ would square away. It is a host array in float64.
    """
    factor: Floats | None = None
    for block in blocks:
        tall = to_host(block).astype(np.float64, copy=False)
        stacked = tall if factor is None else np.vstack([factor, tall])
        factor = np.asarray(np.linalg.qr(stacked, mode="r"))
    if factor is None:
        msg = "A triangular factor needs at least one block of rows."
        raise ValueError(msg)
    return factor


def range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A⁺ = T Qᵀ, both in float64.

    Singular values at the rounding level count as zero: that of A's entries, which does not
    add up with their number, or that of the factorisation, which does.

    Matrix products are all it takes, and they are several times as fast as Householder's
    reflections. AᵀA shows the directions whose singular values lie within six digits of the
    largest. They join the basis, and what they leave is looked at in the same way.
    """
    xp = namespace(A)
    scale = float(xp.max(xp.abs(A))) or 1.0  # so that squares stay in range
    rest = xp.astype(A, xp.float64) / scale
    turn = like(np.eye(A.shape[1]), rest)  # A turn / scale = rest, all the way
    smallest, floor = max(cutoff(4, epsilon(A)), cutoff(A.shape[1], epsilon(rest))), 0.0
    Q, T = rest[:, :0], turn[:, :0]
    while rest.shape[1] > 0:
        squares, V = xp.linalg.eigh(rest.T @ rest)
        largest = float(squares[-1])
        floor = floor or largest * smallest**2
        if not largest > floor:
            break
        unresolved = int(np.sum(to_host(squares) <= max(largest * RESOLVED, floor)))
        side = V[:, unresolved:] / xp.sqrt(squares[unresolved:])
        part, back = _without(Q, T, rest @ side, turn @ side)
        # by now the part is nearly orthonormal, and its own Cholesky factor makes it so
        step = xp.linalg.inv(xp.linalg.cholesky(part.T @ part)).T
        Q, T = xp.concat([Q, part @ step], axis=1), xp.concat([T, back @ step], axis=1)
        V = V[:, :unresolved]
        rest, turn = _without(Q, T, rest @ V, turn @ V)
    # what is left of the columns goes to zero, and a pseudoinverse has no part in it
    return Q, (T - turn @ (turn.T @ T)) / scale


def _without(Q: Array, T: Array, part: Array, back: Array) -> tuple[Array, Array]:
    """Project Q, which is A T, out of a part of A's range, which is A back."""
    if Q.shape[1] == 0:
        return part, back
    overlap = Q.T @ part
    return part - Q @ overlap, back - T @ overlap


__all__ = [
    "CACHE_BYTES",
    "DEVICE_BYTES",
    "SUPPORTED",
    "Array",
    "Floats",
    "Indices",
    "apply_in_place",
    "block_bytes",
    "cutoff",
    "device",
    "dtype_name",
    "empty",
    "epsilon",
    "is_numpy_namespace",
    "is_supported",
    "like",
    "namespace",
    "product_into",
    "range_basis",
    "row_blocks",
    "to_host",
    "triangular_factor",
    "whereabouts",
]
