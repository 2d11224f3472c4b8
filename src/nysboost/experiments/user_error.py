"""What a person can put right: one sentence, never a traceback."""

from __future__ import annotations

import importlib
from types import ModuleType


class UserError(ValueError):
    """A wrong input; its message says what was given, what is wrong and what to do."""


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    Parameters
    ----------
    module : str
        The module to import.
    extra : str
        The extra of nysboost that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = (
            f"This needs the package {package}, which is not installed: "
            f"pip install 'nysboost[{extra}]' brings it."
        )
        raise UserError(message) from error
