"""The command ``nysboost``: fit, transform, predict; compare; reproduce the paper."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pkgutil import resolve_name

from nysboost._version import SOFTWARE
from nysboost.rows.files import NO_ROOM as DISK_FULL
from nysboost.user_error import NO_FILE, NO_ROOM, STOPPED, WRONG_DATA, UserError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a person can put right is one sentence and an exit code."""
    from nysboost.cli.commands import COMMANDS, make_parser, spell

    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal may know no ★
    as_json = "--json" in given
    with warnings.catch_warnings():
        warnings.showwarning = lambda said, *_, **__: print(f"nysboost: {said}", file=sys.stderr)
        with explain_errors(as_json=as_json):
            _refuse_unknown("command", given, list(COMMANDS))
            options, rest = make_parser().parse_known_args(given or ["--help"])
            known = [word for word in COMMANDS[options.command].options.split() if word[0] == "-"]
            _refuse_unknown(f"{options.command} option", rest, known)
        command, out = COMMANDS[options.command], str(getattr(options, "out", ""))
        elsewhere = {"--out", "--json", "--jobs", "--data-dir", "--device", "--report-only"}
        names = " ".join(name for name in command.options.split() if name not in elsewhere)
        # the command that gives the same numbers, wherever data and results lie
        options.again = shlex.join(["nysboost", options.command, *spell(options, names)])
        silent = as_json and out != "-"  # where the table itself goes to standard output
        with explain_errors(as_json=as_json, kept=command.kept.format(out=out)):
            with redirect_stdout(io.StringIO()) if silent else nullcontext():
                found = resolve_name(command.runs)(options)
            if as_json:
                text = json.dumps(found | {"software": SOFTWARE})
                plain = json.loads(text, parse_constant=lambda _: None)  # JSON has no NaN
                print(json.dumps(plain), file=sys.stderr if out == "-" else sys.stdout)


def _refuse_unknown(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a first word that is none of those known, and name the nearest."""
    if given and given[0] not in (*known, "--help", "-h", "--version"):
        from nysboost.numerics.messages import unknown  # it imports scikit-learn

        raise UserError(unknown(what, given[0], known))


@contextmanager
def explain_errors(*, as_json: bool, kept: str = "Nothing was written.") -> Iterator[None]:
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
