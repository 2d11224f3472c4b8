"""The scan of a Dask collection: one pass over the chunks, on the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    as_float,
    describe_location,
    spaced_indices,
    stack_tables,
)
from nysboost.numerics.checks import refuse_non_finite
from nysboost.numerics.linalg import column_sizes
from nysboost.rows.dask_rows import NO_VALUES, DaskRows, merge_on_workers, rows_of_chunk
from nysboost.rows.lazy import as_node, delayed_parts

HELD_BYTES = 2**27  # so few bytes come here with the scan: some methods take few rows often


@dataclass(frozen=True)
class Scan:
    """The result of a scan: largest values, the first bad chunk, and sampled rows.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        The largest absolute value of each column, NaN if there is a NaN.
    bad_chunk : float
        The first chunk with NaN or infinity; infinity if there is none.
    found : array of shape (s, d)
        The sampled rows.
    """

    sizes: Floats
    bad_chunk: float
    found: Array


def survey_rows(rows: DaskRows, samples: Sequence[int]) -> DaskRows:
    """Read every chunk once, and keep the rows of evenly spaced samples of these sizes."""
    rows = rows.count()
    held = _rows_to_hold(rows, samples)

    # one task for each chunk finds sizes, bad values and the rows to hold
    positions = as_node(rows.positions(held), "positions")
    scans = rows.send(_scan_chunk, "survey-rows", None, NO_VALUES, local=positions)
    scan: Scan = merge_on_workers(delayed_parts(scans), _merge_scans)

    # a bad chunk comes here, so that the error can say where
    if scan.bad_chunk < inf:
        bad = int(scan.bad_chunk)
        values = as_float(rows.data.blocks[bad].compute())
        refuse_non_finite(values, int(rows.starts[bad]), rows.name)

    # what Dask says of its chunks may be wrong
    said = describe_location(rows.template)
    real = describe_location(scan.found)
    if real != said:
        raise ValueError(
            f"Dask says that {rows.name} has chunks like {said}, but one is {real}. Pass meta= "
            f"when the array is made, or make NumPy arrays: {rows.name}.map_blocks(numpy.asarray). "
            "Dask arrays of PyTorch tensors are not supported."
        )
    return replace(rows, sizes=scan.sizes, held=(held, scan.found))


def _rows_to_hold(rows: DaskRows, samples: Sequence[int]) -> Indices:
    """Return the numbers of the rows that a scan keeps; for a small table, all rows."""
    size = rows.n * rows.n_features * rows.template.dtype.itemsize
    if size <= HELD_BYTES:
        return np.arange(rows.n)

    # the first row, and those of the samples
    counts = (1, *samples)
    spread = [spaced_indices(rows.n, count) for count in counts]
    return reduce(np.union1d, spread)


def _scan_chunk(chunk: Array, local: list[Indices], block_id: tuple[int, ...]) -> Scan:
    """Scan a chunk in a single task, so that no chunk is sent to another worker."""
    sizes = np.zeros(chunk.shape[1])
    if chunk.shape[0]:
        sizes = column_sizes(as_float(chunk))

    bad_chunk: float = block_id[0]
    if np.isfinite(sizes).all():
        bad_chunk = inf
    return Scan(sizes, bad_chunk, rows_of_chunk(chunk, local, block_id))


def _merge_scans(upper: Scan, lower: Scan) -> Scan:
    """Merge two scans."""
    return Scan(
        np.maximum(upper.sizes, lower.sizes),
        min(upper.bad_chunk, lower.bad_chunk),
        stack_tables([upper.found, lower.found]),
    )
