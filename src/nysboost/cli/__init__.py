"""The command ``nysboost``: fit, transform, predict; compare; reproduce the paper."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from nysboost._version import SOFTWARE
from nysboost.cli.errors import explain_errors
from nysboost.cli.streams import standard_streams, stop_at_sigterm
from nysboost.numerics.messages import printable
from nysboost.user_error import NoFileError, UserError

if TYPE_CHECKING:
    from nysboost.cli.commands import Command

ELSEWHERE = {
    "--out",
    "--json",
    "--jobs",
    "--data-dir",
    "--device",
    "--records-only",
    "--report-only",
    "--max-minutes",
    "--force",
}
"""Options that change where a command works, but not its numbers."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error that the user can fix is one sentence and an exit code."""
    if arguments is None:
        arguments = sys.argv[1:]
    given = list(arguments)
    as_json = "--json" in given
    is_closed = sys.stdout is None

    # check the call before anything is written
    with warnings.catch_warnings(), standard_streams(forgiving=False), stop_at_sigterm():
        warnings.showwarning = WarningPrinter()
        with explain_errors(as_json=as_json):
            command, options = _parse(given)
            if is_closed and str(getattr(options, "out", "")) == "-":
                msg = "Standard output is closed: give --out the name of a file."
                raise NoFileError(msg)
        _run(command, options, as_json=as_json)


def _parse(given: list[str]) -> tuple[Command, Namespace]:
    """Parse the words of a call into a command and its options."""
    from nysboost.cli.commands import COMMANDS, make_parser, spell

    # an unknown word is a mistake, or an option of another command
    _refuse_unknown("command", given, list(COMMANDS))
    options, rest = make_parser().parse_known_args(given or ["--help"])
    command = COMMANDS[options.command]
    names = command.options.split()
    if rest and rest[0] in command.elsewhere:
        raise UserError(command.elsewhere[rest[0]])
    known = [name for name in names if name.startswith("-")]
    _refuse_unknown(f"{options.command} option", rest, known)

    # the command that gives the same numbers, wherever data and results lie
    same = [name for name in names if name not in ELSEWHERE]
    words = spell(options, " ".join(same))
    options.again = shlex.join(["nysboost", options.command, *words])
    return command, options


def _run(command: Command, options: Namespace, *, as_json: bool) -> None:
    """Run a command; with --json, print only its result."""
    # a table on standard output must not be mixed with messages
    out = str(getattr(options, "out", ""))
    to_standard_output = out == "-"
    silent = as_json and not to_standard_output

    kept = command.kept.format(out=out)
    with explain_errors(as_json=as_json, kept=kept):
        run = resolve_name(command.runs)
        with standard_streams(silent=silent, forgiving=not to_standard_output):
            found = run(options)
        if as_json and to_standard_output:
            print(_as_json(found), file=sys.stderr)
        elif as_json:
            print(_as_json(found))


def _as_json(found: Mapping[str, object]) -> str:
    """Return one JSON object; JSON has no NaN, which becomes null."""
    text = json.dumps({**found, "software": SOFTWARE})
    return json.dumps(json.loads(text, parse_constant=lambda _: None))


@dataclass
class WarningPrinter:
    """Prints each warning once, also if several fits of a command give it."""

    printed: set[str] = field(default_factory=set)

    def __call__(self, message: Warning | str, *_: object, **__: object) -> None:
        """Print a warning on standard error."""
        text = str(message)
        if text not in self.printed:
            self.printed.add(text)
            print(f"nysboost: {printable(text)}", file=sys.stderr)


def _refuse_unknown(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Raise for an unknown command, and name the nearest one."""
    if not given or given[0] in (*known, "--help", "-h", "--version"):
        return

    from nysboost.numerics.messages import unknown  # it imports scikit-learn

    raise UserError(unknown(what, given[0], known))
