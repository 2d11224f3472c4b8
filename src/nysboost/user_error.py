"""Errors that a person can put right, each of them one sentence."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class UserError(ValueError):
    """A wrong input; its message says what was given, what is wrong and what to do.

    The command line has an exit code for each kind; this one is a wrong call.
    """


class NoFileError(UserError):
    """A file that is not there, or cannot be read or written."""


class TableError(UserError):
    """Data that cannot be used."""


class NoTableError(TableError):
    """A file that is not there, or is no table of a form that is known."""


class ModelError(UserError):
    """A model that does not fit the data or the command."""


class ExistsError(UserError):
    """An output that is there already."""


@contextmanager
def raise_as(kind: type[UserError]) -> Iterator[None]:
    """Turn errors inside into a kind of error with the same message.

    Errors of the operating system that name a file are left as they are.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        if getattr(error, "filename", None) is not None:
            raise
        raise kind(str(error)) from error


def import_optional(module: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UserError(
            f"This needs the package {package}, which is not installed: "
            "install it with pip install 'nysboost[all]'."
        ) from error
