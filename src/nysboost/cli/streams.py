"""Standard output and standard error, as terminals, pipes and closed descriptors have them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO, cast


class ForgivingOutput(io.TextIOBase):
    """Standard output whose reader may leave early, as ``head`` does.

    What is printed afterwards is discarded, so that a command whose result is a file ends its
    work.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What the stream does with characters that it cannot encode."""
        return self.stream.errors

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self.stream.isatty()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write text, or discard it if nobody reads any more."""
        try:
            self.stream.write(text)
        except BrokenPipeError:
            discard(self.stream)
        return len(text)

    def flush(self) -> None:
        """Pass on what was written, or discard it if nobody reads any more."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            discard(self.stream)


def discard(stream: TextIO) -> None:
    """Let what is written to a stream from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def standard_streams(*, silent: bool = False, forgiving: bool = True) -> Iterator[None]:
    """Prepare the standard streams for a command.

    A closed stream takes what is written and discards it. Characters that a terminal does not
    have are replaced. With `silent` nothing is printed, with `forgiving` output whose reader has
    left is discarded.
    """
    # both streams take any text
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    # what the command prints
    output: TextIO = sys.stdout
    if silent:
        output = io.StringIO()
    elif forgiving:
        output = cast("TextIO", ForgivingOutput(sys.stdout))
    with redirect_stdout(output):
        yield
        output.flush()
