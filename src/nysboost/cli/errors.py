"""Errors that users can fix: one sentence on standard error, and an exit code."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nysboost.cli.streams import discard
from nysboost.numerics.messages import printable
from nysboost.rows.files import KEPT, name_copies
from nysboost.rows.files import NO_ROOM as DISK_FULL
from nysboost.user_error import (
    ExistsError,
    ModelError,
    NoFileError,
    NoTableError,
    TableError,
    UserError,
)

EXIT_CODES = {
    0: "Done.",
    1: "An error in NysBoost itself, with a traceback: please report it.",
    2: "A wrong command: an unknown option, a wrong value, or a column that does not exist.",
    3: "A file that does not exist, cannot be read, or has an unknown format.",
    4: "Data that cannot be used: no rows, or text or missing values where numbers are needed.",
    5: "A model that does not fit the data or the command.",
    6: "An output file that already exists.",
    7: "Not enough memory or disk space.",
    130: "Stopped with Ctrl-C, or by SIGTERM.",
}
WRONG_CALL, NO_FILE, WRONG_DATA, WRONG_MODEL, EXISTS, NO_ROOM, STOPPED = list(EXIT_CODES)[2:]

CODES = {
    NoTableError: NO_FILE,
    NoFileError: NO_FILE,
    TableError: WRONG_DATA,
    ModelError: WRONG_MODEL,
    ExistsError: EXISTS,
    UserError: WRONG_CALL,
}
"""The exit code of each kind of error, special kinds before general ones."""

WRONG_PLACE = (errno.ENAMETOOLONG, errno.ELOOP)
WRONG_PLACES = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors of the operating system about the name of a file, not about the room for it."""


@contextmanager
def explain_errors(*, as_json: bool, kept: str = "Nothing was written.") -> Iterator[None]:
    """Turn foreseeable errors into a sentence, or a JSON object, and an exit code.

    `kept` says what remains after Ctrl-C.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of a table on standard output has seen enough
        discard(sys.stdout)
        raise SystemExit(0) from None
    except (KeyboardInterrupt, MemoryError, OSError, RecursionError, ValueError) as error:
        described, code = describe_error(error, kept)
        sentence = name_copies(described)
        text = f"nysboost: {printable(sentence)}"
        if as_json:
            text = json.dumps({"error": sentence, "code": code})
        print(text, file=sys.stderr)
        raise SystemExit(code) from None


def describe_error(error: BaseException, kept: str) -> tuple[str, int]:
    """Return the sentence for an error, and the exit code."""
    # our own errors are sentences already
    if isinstance(error, UserError):
        codes = [code for kind, code in CODES.items() if isinstance(error, kind)]
        return str(error), codes[0]

    if isinstance(error, KeyboardInterrupt):
        return f"Stopped. {kept}", STOPPED
    if isinstance(error, MemoryError):
        reason = ""
        if str(error):
            reason = f": {error}"
        return f"There is not enough memory{reason}. Try a smaller --max-memory.", NO_ROOM

    # errors of the operating system, special kinds before general ones
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"There is no file {error.filename}.", NO_FILE
    if isinstance(error, PermissionError) and error.filename:
        return f"Permission denied: {error.filename}.", NO_FILE
    if isinstance(error, OSError):
        return _describe_os_error(error)

    # all other errors are about the data
    if isinstance(error, RecursionError):
        return "The file is nested too deeply to be read.", WRONG_DATA
    return str(error), WRONG_DATA


def _describe_os_error(error: OSError) -> tuple[str, int]:
    """Return a sentence about an error of the operating system, and the exit code."""
    said = (error.strerror or str(error)).rstrip(".")
    if error.errno in WRONG_PLACE or isinstance(error, WRONG_PLACES):
        if error.filename:
            said = f"{said}: {error.filename}"
        return f"{said}.", NO_FILE

    # say what to do about a full disk, unless the error says it
    advice = ""
    if error.errno == errno.EFBIG:
        advice = "A limit on file sizes is set"
    elif error.errno in DISK_FULL:
        advice = "Make room or write to another disk"
    if KEPT in said or not advice:
        return f"{said}.", NO_ROOM
    return f"The output could not be written: {said}. {advice}.", NO_ROOM
