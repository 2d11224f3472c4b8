"""HDF5 files on a disk that may be full: HDF5 itself can crash the process then."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from nysboost.rows.files import refuse_full

Dataset: TypeAlias = Any
"""A dataset of h5py, which has no types and is not imported here."""


def is_hdf5(store: object) -> bool:
    """Whether a store is a dataset of h5py."""
    return type(store).__module__.startswith("h5py")


def refuse_full_disk(dataset: Dataset, count: int) -> None:
    """Raise an OSError if the next `count` rows of a dataset may not fit on the disk.

    Allowed for are the chunks that they touch, and what HDF5 has allocated but not yet written.
    """
    path = Path(dataset.file.filename)
    if not path.is_file():  # a file in memory
        return

    row_bytes = dataset.dtype.itemsize * dataset.shape[1]
    if dataset.chunks is None:
        # HDF5 allocates all rows with the first write
        needed = dataset.nbytes - dataset.id.get_storage_size()
    else:
        needed = (count + 2 * dataset.chunks[0]) * row_bytes

    not_written = dataset.file.id.get_filesize() - path.stat().st_size
    refuse_full(path, max(0, needed) + max(0, not_written))
