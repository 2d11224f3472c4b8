"""What a person can put right: one sentence and an exit code, never a traceback."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

EXIT_CODES = {
    0: "Done.",
    1: "An error of the program itself, with a traceback: please report it.",
    2: "A wrong call: an option, or a column that is not there.",
    3: "A file that is not there, cannot be read, or has a form that is not known.",
    4: "Data that cannot be used: no rows, or text or missing values where numbers are needed.",
    5: "A model that does not fit the data or the command.",
    6: "An output that is there already.",
    7: "A disk or a memory that is too small.",
    130: "Stopped with Ctrl-C.",
}
WRONG_CALL, NO_FILE, WRONG_DATA, WRONG_MODEL, EXISTS, NO_ROOM, STOPPED = list(EXIT_CODES)[2:]


class UserError(ValueError):
    """A wrong input; its message says what was given, what is wrong and what to do.

    `code` is the exit code of a command that ends with it.
    """

    code = WRONG_CALL

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = self.code if code is None else code


class TableError(UserError):
    """A file of a table with something in it that is wrong."""

    code = WRONG_DATA


class NoTableError(TableError):
    """A file that is not there, or is no table of a form that is known."""

    code = NO_FILE


@contextmanager
def with_exit_code(code: int) -> Iterator[None]:
    """Give errors inside an exit code: that of a wrong option (`WRONG_CALL`), for example."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise UserError(str(error), code) from error


def import_optional(module: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UserError(
            f"This needs the package {package}, which is not installed: "
            "pip install 'nysboost[all]' brings it."
        ) from error
