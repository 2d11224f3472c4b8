"""Results as CSV: one table, one header, and in each row the version that made it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from nysboost._version import SOFTWARE
from nysboost.data.whole import whole_text


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows under their columns' names; the last column names the version.

    CSV has no place for a comment that every reader skips, so it is a column as any other.

    Parameters
    ----------
    path : Path
        The file; what was there is replaced.
    columns : sequence of str
        Names.
    rows : iterable of sequences
        As many values as there are columns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "errors.csv")
    ...     write_table(path, ["method", "error"], [["joint", 0.01]])
    ...     print(path.read_text().partition(" ")[0])
    method,error,software
    joint,0.01,NysBoost
    """
    with whole_text(path, "The table") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*columns, "software"))
        writer.writerows((*row, SOFTWARE) for row in rows)
