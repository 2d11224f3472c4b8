"""Where rows may be: each container is made of an array and a folder."""

from __future__ import annotations

from collections import Counter
from typing import Any

import h5py
import numpy as np
import zarr
from scipy import sparse


def memory_map(X: np.ndarray, folder: Any) -> Any:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def hdf5(X: np.ndarray, folder: Any, **how: Any) -> Any:
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, **how)


def zarr_array(X: np.ndarray, folder: Any) -> Any:
    stored = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(7, 2), dtype=X.dtype)
    stored[...] = X
    return stored


STORES = {
    "memory map": memory_map,
    "HDF5, contiguous": hdf5,
    "HDF5, chunked": lambda X, folder: hdf5(X, folder, chunks=(7, 2), compression="gzip"),
    "Zarr": zarr_array,
}
CONTAINERS = STORES | {"an array": lambda X, _: X, "CSR": lambda X, _: sparse.csr_matrix(X)}


class CountedChunks:
    """A Dask array whose chunks say how often they have been read, by their first row."""

    def __init__(self, X: np.ndarray, size: int) -> None:
        import dask.array as da

        self.reads: Counter[int] = Counter()

        def read(block_info: Any = None) -> np.ndarray:
            (start, stop), _ = block_info[None]["array-location"]
            self.reads[start] += 1
            return X[start:stop]

        chunks, meta = ((size,) * (len(X) // size), X.shape[1:]), np.empty((0, 0), dtype=X.dtype)
        self.array = da.map_blocks(read, chunks=chunks, dtype=X.dtype, meta=meta)
