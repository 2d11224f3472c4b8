"""What a person can put right: one sentence, never a traceback."""

from __future__ import annotations

import importlib
from types import ModuleType


class UserError(ValueError):
    """A wrong input; its message says what was given, what is wrong and what to do.

    `code` is the exit code of a command that ends with it.
    """

    code = 2

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = self.code if code is None else code


class TableError(UserError):
    """A file of a table with something in it that is wrong."""

    code = 4


class NoTableError(TableError):
    """A file that is not there, or is no table of a form that is known."""

    code = 3


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra of nysboost brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = (
            f"This needs the package {package}, which is not installed: "
            f"pip install 'nysboost[{extra}]' brings it."
        )
        raise UserError(message) from error
