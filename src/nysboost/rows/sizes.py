"""Numbers of rows, or of bytes, that are examined, read or held together."""

from __future__ import annotations

WAITING = 4  # results for each thread that may wait until they are used in the order of the rows
ENDLESS = 2**30  # rows that are assumed where only the end of a stream tells their number
TILE_ROWS = 512  # rows of a tile of pairs
TILE_COLS = 4096  # columns of it; both together 16 MB: sums over a tile cost nothing
SCAN_BYTES = 64 * 2**20  # a scan holds this much: more than reads cost, less than memory
FEW_ROWS = 4  # so many rows of one chunk, or fewer, are read one by one
PROBE_ROWS = 256  # rows, spread evenly, on which a kernel is looked at before any work is done
MEDIAN_ROWS = 1000  # rows, spread evenly, whose median distance stands for that of all
TAKEN_ROWS = 512  # rows taken together from a memory map: 32 MB, if each is on a page of its own
STORED_ROWS = 1024  # rows that are read together from a store that does not say how it is chunked
SAMPLE_ROWS = 2**17  # rows whose median fills gaps: its standard error is 1/300 of the deviation
