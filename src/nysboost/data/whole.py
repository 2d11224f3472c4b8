"""Files that are whole or not there at all: written under another name, then given their own."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.data.mapping import NO_ROOM, disk_full


@contextmanager
def whole_file(path: Path, what: str = "The file") -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place if all goes well, and else disappears.

    Parameters
    ----------
    path : Path
        Where it goes; a file that is there stays until the whole new one replaces it.
    what : str
        What is written, for the sentence of an error.
    """
    refuse_no_place(path)
    beside = path.with_name(f"{path.name}.{uuid4().hex}.partial")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise disk_full(path, None) from error
        raise not_written(path, what, error) from error
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def whole_text(path: Path, what: str = "The file") -> Iterator[TextIO]:
    """Open a text file in the same way; line ends are written as they come."""
    with whole_file(path, what) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield text
        text.detach()


def whole_npz(path: Path, *, compressed: bool = False, **arrays: NDArray[Any]) -> None:
    """Write arrays as an .npz file, of which the comment says which version made it.

    NumPy's own function has no place for that.
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with whole_file(path, "The array") as file, zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = SOFTWARE.encode()
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def not_written(path: Path, what: str, error: OSError) -> OSError:
    """Return the same kind of error as a sentence that names the file, not the one beside it."""
    msg = f"{what} could not be written to {str(path)!r}: {error.strerror or error}."
    return type(error)(error.errno, msg)


def refuse_no_place(path: Path) -> None:
    """Refuse a folder, and a file in a folder that is not there."""
    if path.is_dir():
        msg = f"{str(path)!r} is a folder: give the name of a file in it."
        raise IsADirectoryError(msg)
    if not path.parent.is_dir():
        msg = f"There is no folder {str(path.parent)!r} to write {path.name!r} to."
        raise FileNotFoundError(msg)
