"""What can go wrong on the command line: a sentence, and an exit code that stays the same."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nysboost.data.files import NO_ROOM as DISK_FULL
from nysboost.user_error import UserError

EXIT_CODES = {
    0: "Done.",
    1: "An error of the program itself, with a traceback: please report it.",
    2: "A wrong call: an option, or a column that is not there.",
    3: "A file that is not there, cannot be read, or has a form that is not known.",
    4: "Data that nothing can be done with: text, missing values, no rows.",
    5: "A model that does not suit the data or the command.",
    6: "An output that is there already.",
    7: "A disk or a memory that is too small.",
    130: "Stopped with Ctrl-C.",
}
WRONG_CALL, NO_FILE, WRONG_DATA, WRONG_MODEL, EXISTS, NO_ROOM, STOPPED = list(EXIT_CODES)[2:]


@contextmanager
def exits_with(code: int) -> Iterator[None]:
    """Say what is wrong: an option (`WRONG_CALL`), say, and not the data."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(str(error), code) from error


@contextmanager
def sentences(*, as_json: bool, kept: str = "Nothing was written.") -> Iterator[None]:
    """Turn foreseeable errors into a sentence, or a JSON object, on stderr, and an exit code.

    `kept` says what Ctrl-C leaves behind.
    """
    try:
        yield
    except BrokenPipeError:  # who reads our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except (KeyboardInterrupt, MemoryError, OSError, ValueError) as error:
        sentence, code = _explain(error, kept)
        text = json.dumps({"error": sentence, "code": code}) if as_json else f"nysboost: {sentence}"
        print(text, file=sys.stderr)
        raise SystemExit(code) from None


def _explain(error: BaseException, kept: str) -> tuple[str, int]:
    """Return what an error means to a person, and the exit code."""
    if isinstance(error, UserError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return f"Stopped. {kept}", STOPPED
    if isinstance(error, MemoryError):
        return f"The memory is too small: {error}. Try --max-memory.", NO_ROOM
    if isinstance(error, FileNotFoundError):
        return f"There is no file {error.filename or error}.", NO_FILE
    if isinstance(error, PermissionError):
        return f"{error.filename or error} may not be read or written by you.", NO_FILE
    if isinstance(error, OSError):
        said = (error.strerror or str(error)).rstrip(".")
        if error.errno in DISK_FULL and "Make room" not in said:
            said = f"The output could not be written: {said}. Make room or write to another disk"
        return f"{said}.", NO_ROOM
    return str(error), WRONG_DATA
