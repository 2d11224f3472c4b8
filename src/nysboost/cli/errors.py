"""What can go wrong on the command line: a sentence, and an exit code that stays the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nysboost.data.mapping import NO_ROOM as DISK_FULL
from nysboost.experiments.user_error import UserError

WRONG_CALL, NO_FILE, WRONG_DATA, WRONG_MODEL, EXISTS, NO_ROOM, STOPPED = 2, 3, 4, 5, 6, 7, 130
"""Exit codes. 0 is success; 1 is an error of the program itself, and has a traceback."""


class CommandError(UserError):
    """An error that ends a command; its message says what was given, what is wrong, what to do."""

    code = WRONG_CALL


class NoFileError(CommandError):
    """A file that is not there, cannot be read, or has a form that is not known."""

    code = NO_FILE


class DataError(CommandError):
    """Data that nothing can be done with: text, missing values, no rows."""

    code = WRONG_DATA


class ModelError(CommandError):
    """A model that does not fit the data or the command."""

    code = WRONG_MODEL


class ExistsError(CommandError):
    """An output that is there already."""

    code = EXISTS


class StoppedError(CommandError):
    """Ctrl-C, where something was kept that a sentence has to name."""

    code = STOPPED


class NoRoomError(CommandError):
    """A disk or a memory that is too small."""

    code = NO_ROOM


@contextmanager
def wrong_call() -> Iterator[None]:
    """Say that an option is what is wrong, not the data."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error)) from error


@contextmanager
def sentences(*, as_json: bool) -> Iterator[None]:
    """Turn every foreseeable error into a sentence on standard error and an exit code.

    With `as_json` the sentence is a JSON object, ``{"error": …, "code": …}``.
    """
    try:
        yield
    except KeyboardInterrupt:
        _end("Stopped. Nothing was written.", STOPPED, as_json)
    except CommandError as error:
        _end(str(error), error.code, as_json)
    except FileNotFoundError as error:
        _end(f"There is no file {error.filename or error}.", NO_FILE, as_json)
    except PermissionError as error:
        _end(f"{error.filename or error} may not be read or written by you.", NO_FILE, as_json)
    except MemoryError as error:
        _end(f"The memory is too small: {error}. Try --max-memory.", NO_ROOM, as_json)
    except OSError as error:
        _end(_of_disk(error), NO_ROOM, as_json)
    except ValueError as error:
        _end(str(error), WRONG_DATA, as_json)


def _of_disk(error: OSError) -> str:
    """Return what the system says as a sentence, with what to do where the disk is full."""
    said = (error.strerror or str(error)).rstrip(".")
    if error.errno in DISK_FULL and "Make room" not in said:
        said = f"The output could not be written: {said}. Make room or write to another disk"
    return f"{said}."


def _end(sentence: str, code: int, as_json: bool) -> None:
    text = json.dumps({"error": sentence, "code": code}) if as_json else f"nysboost: {sentence}"
    print(text, file=sys.stderr)
    raise SystemExit(code) from None
