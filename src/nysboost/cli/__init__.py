"""The command ``nysboost``: fit, transform, predict; compare; reproduce the paper."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from nysboost.experiments.user_error import UserError, need


def main() -> None:
    """Run the command line; a wrong input is one sentence and exit status 2."""
    try:
        need("typer", "experiments")
        need("rich", "experiments")
        from nysboost.cli.app import app

        with warnings.catch_warnings():
            warnings.showwarning = _say
            app(prog_name="nysboost")
    except UserError as error:
        print(f"nysboost: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"nysboost: {where}{error.strerror or error}.", file=sys.stderr)
        raise SystemExit(2) from None


def _say(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as the sentence that it is."""
    print(f"nysboost: {message}", file=sys.stderr)
