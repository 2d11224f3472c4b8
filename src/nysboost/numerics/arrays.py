"""Arrays of any namespace, on the host or a device; indices are always NumPy arrays on the host."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from os import PathLike
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import array_api_compat as compat
import array_api_compat.numpy as numpy_api
import numpy as np
from array_api_compat import device as device
from numpy.lib.array_utils import byte_bounds
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack

Array: TypeAlias = NDArray[np.floating[Any]]
"""A real array of any namespace, or a SciPy sparse matrix where a docstring says so."""


T = TypeVar("T")


class Shaped(Protocol):
    """A table that is not an array: a sparse matrix, a data frame, a store, a Dask collection."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""


TableLike: TypeAlias = ArrayLike | Shaped
"""What users give as rows, targets or right-hand sides: anything that `rows.recognise` knows."""

OutputLike: TypeAlias = Shaped | str | PathLike[str]
"""A place to write features: an array, an HDF5 or Zarr array, or the path of a .npy file."""

Indices: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]
Selection: TypeAlias = Indices | slice
"""Row numbers, or a slice of them."""


class Namespace(Protocol):
    """An array library: the functions of the array API standard, by name."""

    @property
    def linalg(self) -> Namespace:
        """Linear algebra."""

    def __getattr__(self, name: str) -> Callable[..., Array]: ...


def namespace(*arrays: Array) -> Namespace:
    """Return the array API namespace of the dense arrays (NumPy if all are sparse)."""
    dense = [array for array in arrays if not is_sparse(array)]
    found: Namespace = numpy_api

    # to ask takes ten times as long
    if not all(type(array) is np.ndarray for array in dense):
        found = compat.array_namespace(*dense)
    return found


def is_sparse(array: object) -> TypeGuard[Any]:
    """Whether it is a sparse matrix or array of SciPy."""
    return type(array) is not np.ndarray and bool(issparse(array))  # five times faster


SUPPORTED = "NumPy, PyTorch and CuPy"

Numbers: TypeAlias = NDArray[Any]
"""A NumPy array of any dtype."""

DType: TypeAlias = Any
"""A dtype of any namespace."""


def library(values: object) -> str:
    """Return the name of the library of an array or another object."""
    return type(values).__module__.partition(".")[0]


def is_supported(array: Array) -> bool:
    """Whether every method supports such arrays; array-api-strict is for the tests."""
    return library(array) in ("numpy", "torch", "cupy", "array_api_strict")


def is_array(values: object) -> TypeGuard[Any]:
    """Whether it is an array of any namespace."""
    return bool(compat.is_array_api_obj(values))


def to_host(array: Array) -> Numbers:
    """Return the array as a NumPy array, copied from its device if necessary."""
    if library(array) != "array_api_strict":
        array = compat.to_device(array, "cpu")
    return np.asarray(array)


def floats_on_host(array: Array) -> Floats:
    """Return the array as a NumPy array in float64."""
    return to_host(array).astype(np.float64, copy=False)


def like(values: Numbers, reference: Array, dtype: DType = None) -> Array:
    """Return `values` in the namespace, on the device and in the dtype of `reference`."""
    if type(values) is np.ndarray is type(reference):  # ten times faster
        return values.astype(dtype or reference.dtype, copy=False)

    # PyTorch takes no negative strides; a number would become a vector of one
    if isinstance(values, np.ndarray) and not is_numpy(reference):
        values = np.ascontiguousarray(values).reshape(values.shape)
    return namespace(reference).asarray(values, **_kind(reference, dtype))


def _kind(reference: Array, dtype: DType = None) -> dict[str, object]:
    """Return dtype and device of new arrays like the reference."""
    kind = {"dtype": dtype or reference.dtype, "device": None}
    if not is_sparse(reference):
        kind["device"] = device(reference)
    return kind


def in_float64(array: Array) -> Array:
    """Return the array, or the sparse matrix, in float64, without a copy if it is float64."""
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def in_dtype_of(array: Array, reference: Array) -> Array:
    """Return the array in the dtype of another one, without a copy if it has this dtype."""
    return namespace(array).astype(array, reference.dtype, copy=False)


def as_float(array: Array) -> Array:
    """Return float32 and float64 arrays unchanged, and other numbers as float64."""
    if dtype_name(array) in ("float32", "float64"):
        return array
    return in_float64(array)


def convert_like(X: Array, Y: Array) -> Array:
    """Return Y dense if X is dense, and sparse if X is sparse, in the dtype of X."""
    # in the form of X
    if not is_sparse(X):
        Y = dense(Y)
    elif not is_sparse(Y):
        Y = type(X)(Y)
    return in_dtype_of(Y, X)


def diagonal(matrix: Array) -> Array:
    """Return the diagonal of a matrix, dense or CSR."""
    found: Array
    if is_sparse(matrix):
        found = matrix.diagonal()
    else:
        found = namespace(matrix).linalg.diagonal(matrix)
    return found


def empty(shape: tuple[int, ...], reference: Array) -> Array:
    """Return an uninitialised array in the namespace, device and dtype of `reference`."""
    return namespace(reference).empty(shape, **_kind(reference))


def identity(size: int, reference: Array) -> Array:
    """Return the identity matrix on the device of `reference`."""
    return namespace(reference).eye(size, **_kind(reference))


def take(array: Array, indices: Selection | Array, axis: int = 0) -> Array:
    """Return the rows, or columns, at `indices`, which are on the host or where the array is."""
    if not is_numpy(array) and not isinstance(indices, slice):
        return namespace(array).take(array, place(indices, array), axis=axis)

    # NumPy's indexing, which others have for slices
    if axis == 1:
        return array[:, indices]
    if is_numpy(array):
        return array[indices]
    return array[indices, ...]


def place(indices: Indices | Array, reference: Array) -> Indices:
    """Return indices on the device of an array, for repeated use."""
    if is_numpy(reference) or not isinstance(indices, np.ndarray):
        return cast(Indices, indices)
    at = np.ascontiguousarray(indices)  # PyTorch takes no negative strides
    there = namespace(reference).asarray(at, device=device(reference))
    return cast(Indices, there)


def dense(array: Array) -> Array:
    """Return a sparse matrix as a dense array, and an array unchanged."""
    if not is_sparse(array):
        return array
    found: Array = array.toarray()
    return found


def sum_duplicates(array: Array) -> Array:
    """Return a CSR matrix with each entry stored once, copied if necessary; others unchanged.

    Norms and distances use the stored entries, so they would treat duplicates as separate entries.
    """
    if not is_sparse(array) or array.has_canonical_format:
        return array
    summed = array.copy()
    summed.sum_duplicates()
    found: Array = summed
    return found


def entries(array: Array) -> Array:
    """Return all entries of an array, or those that a sparse matrix stores."""
    if not is_sparse(array):
        return array
    stored: Array = array.data
    return stored


def stack_tables(parts: Sequence[Array]) -> Array:
    """Stack tables vertically, dense or CSR."""
    if is_sparse(parts[0]):
        stacked: Array = vstack(parts, format="csr")
        return stacked
    return namespace(*parts).concat(parts)


def dtype_name(array: Array) -> str:
    """Return "float32" or "float64", whatever the namespace calls it."""
    dtype: DType = array.dtype
    if isinstance(dtype, np.dtype):
        return _numpy_name(dtype)
    return str(dtype).rpartition(".")[2]


@cache
def _numpy_name(dtype: np.dtype[np.generic]) -> str:
    return dtype.name  # which NumPy makes anew each time


def epsilon(array: Array) -> float:
    """Return the machine epsilon of the array's dtype."""
    return float(np.finfo(dtype_name(array)).eps)


def is_numpy(array: Array) -> bool:
    """Whether NumPy, or SciPy, computes with the array."""
    return is_sparse(array) or isinstance(array, np.ndarray)


# Where an array lives


DEVICE_BYTES = 2**30  # a block that keeps a GPU busy for longer than its kernels take to start


def describe_location(array: Array) -> str:
    """Describe the kind of an array and its device in words."""
    if is_numpy(array):
        return "a NumPy array"
    name = library(array).replace("torch", "PyTorch")
    return f"a {name} array on {device(array)}"


def on_device(array: Array) -> bool:
    """Whether the array is in the memory of a device, such as a GPU."""
    if is_numpy(array):
        return False
    return "cpu" not in str(device(array)).lower()


def block_bytes(array: Array) -> int:
    """Return the size of a block that suits the device of the array."""
    if on_device(array):
        return DEVICE_BYTES
    return CACHE_BYTES


def free_bytes(array: Array) -> int:
    """Return the free memory of the device of a PyTorch or CuPy array."""
    if compat.is_torch_array(array):
        import torch

        free, _ = torch.cuda.mem_get_info(array.device)
        return int(free)

    import cupy  # type: ignore[import-not-found]

    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free)


# Values that are computed when they are asked for


def is_lazy(values: object) -> TypeGuard[Any]:
    """Whether values are lazy, that is, of Dask, which is not imported here."""
    return library(values) in ("dask", "dask_expr")


def gather(values: T, like: object = None) -> T:
    """Compute lazy values, unless `like` is also lazy."""
    if not is_lazy(values) or is_lazy(like):
        return values
    computed: T = values.compute()
    return computed


# Values in a file


MemoryMap: TypeAlias = np.memmap[tuple[int, ...], np.dtype[np.generic]]


def find_map(array: object) -> MemoryMap | None:
    """Return the memory map of which the array is a view; None if it is not in a file."""
    owner = array
    while isinstance(owner, np.ndarray):
        in_file = isinstance(owner.base, mmap.mmap)
        if in_file and isinstance(owner, np.memmap):
            return owner
        owner = owner.base
    return None


def release_pages(array: NDArray[np.generic]) -> None:
    """Release the pages of a memory map; their contents stay in the file."""
    # the pages of a copy on write have no other copy
    owner = find_map(array)
    if owner is None or owner.mode == "c" or array.size == 0:
        return

    # not every system can do it
    file = owner.base
    if not isinstance(file, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return

    # the array's bytes, counted from the start of the map
    origin, _ = byte_bounds(np.frombuffer(file, dtype=np.uint8))
    low, high = byte_bounds(array)
    first = low - origin
    end = high - origin

    # from the start of a page
    page = first // mmap.PAGESIZE * mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, page, end - page)


# Blocks of rows


CACHE_BYTES = 8 * 2**20  # kernel values that stay in a core's cache between passes over them


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Cut range(start, stop) into slices of `size`."""
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def row_blocks(n: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut range(n) into slices of about `budget` bytes each."""
    rows = budget // max(1, row_bytes)
    size = max(1, rows)

    # whole multiples of 64 rows keep matrix products on their fast path
    whole = size // 64 * 64
    return slices(0, n, whole or size)


def spaced_indices(n: int, at_most: int) -> Indices:
    """Return evenly spaced positions in range(n), a sample without random numbers."""
    count = min(n, at_most)
    last = n - 1
    return np.linspace(0, last, count).astype(np.intp)


def sample_step(n: int, size: int) -> int:
    """Return the power of two s for which every s-th of n rows gives at most `size` rows."""
    parts = max(1, -(-n // size))
    exponent = np.ceil(np.log2(parts))
    return int(2**exponent)


# Results that are written into an array that exists


def apply_in_place(function: str, array: Array, *args: float) -> Array:
    """Apply an elementwise function in place, if the namespace has `out=`."""
    operation: Callable[..., Array] = getattr(namespace(array), function)
    try:
        with np.errstate(under="ignore"):  # a kernel value that is 0 is no error
            return operation(array, *args, out=array)
    except TypeError:
        # the standard has neither out= nor numbers in the place of arrays
        others = [namespace(array).asarray(arg, **_kind(array)) for arg in args]
        return operation(array, *others)


def product_into(A: Array, B: Array, out: Array | None) -> Array:
    """Return A @ B, in `out` if given, without a temporary if the namespace allows it."""
    if out is None:
        return A @ B
    try:
        namespace(out).matmul(A, B, out=out)
    except TypeError:
        out[...] = A @ B
    return out
