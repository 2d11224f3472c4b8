"""JSON objects, one in each line of a file or in a list, as Arrow tables."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nysboost.user_error import NoTableError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

DEEPEST = 100
"""Brackets within brackets that are read: Arrow's reader ends the process at some 20,000."""

_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')


def read_json(path: Path) -> pa.Table:
    """Return JSON objects as an Arrow table with columns for the names of all."""
    import pyarrow as pa
    import pyarrow.json as arrow

    text = path.read_bytes()
    _refuse_deep(path, text)
    is_list = text[:100].lstrip().startswith(b"[")
    data = None
    try:
        if not is_list:
            try:
                data = arrow.read_json(str(path))
            except pa.ArrowInvalid as error:
                if "changed from" not in str(error):  # the type of a column's values
                    raise
        if data is None:
            data = _read_objects(text, is_list=is_list)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        msg = f"{path} is not a file of JSON objects, one in each line or in a list: {error}."
        raise NoTableError(msg) from error
    if not data.num_rows or not data.column_names:
        raise TableError(f"{path} has no rows.")
    return data


def _refuse_deep(path: Path, text: bytes) -> None:
    """Refuse brackets within many brackets, which end the process or Python's stack."""
    marks = np.frombuffer(_STRING.sub(b"", text), dtype=np.uint8)
    if len(marks) == 0:
        return
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
    steps = opens.astype(np.int64) - closes
    depth = np.cumsum(steps)

    # above the least depth so far: brackets that close nothing hide no others
    least_so_far = np.minimum.accumulate(np.minimum(depth, 0))
    deepest = int((depth - least_so_far).max())
    if deepest > DEEPEST:
        raise TableError(
            f"{path} has brackets {deepest:,} deep: a table needs objects whose values are "
            "numbers or text."
        )


def _read_objects(text: bytes, *, is_list: bool) -> pa.Table:
    """Return objects whose values may be of several types."""
    import pyarrow as pa

    if is_list:
        found = json.loads(text)
    else:
        found = [json.loads(line) for line in text.splitlines() if line]
    other = [each for each in found if not isinstance(each, dict)]
    if other:
        raise ValueError(f"{other[0]!r:.60} is none")
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(chain.from_iterable(found)):
        columns[name] = one_type([each.get(name) for each in found])
    return pa.table(columns)


def one_type(cells: Sequence[Any]) -> pa.Array:
    """Return cells as an Arrow array: of their own type, or as text where they have several."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2 and kinds != {int}:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(cells)
    to_type = float if kinds <= {int, float} else str
    return pa.array([None if cell is None else to_type(cell) for cell in cells])
