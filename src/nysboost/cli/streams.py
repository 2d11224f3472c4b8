"""Standard output and standard error, for terminals, pipes and closed descriptors; SIGTERM."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from threading import current_thread, main_thread
from typing import TextIO, cast


class ForgivingOutput:
    """Standard output whose reader may stop early, as ``head`` does.

    Later output is discarded, so that a command that writes a file can finish; so it is after
    another error, which is raised. In all else it behaves like the stream itself.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the stream."""
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text, or discard it if the reader has stopped."""
        with self._discarding():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, or discard its text if the reader has stopped."""
        with self._discarding():
            self.stream.flush()

    @contextmanager
    def _discarding(self) -> Iterator[None]:
        """Discard all later output after an error, and say so unless the reader has stopped."""
        try:
            yield
        except BrokenPipeError:
            discard(self.stream)
        except OSError as error:
            discard(self.stream)
            said = error.strerror or str(error)
            raise OSError(f"Standard output could not be written: {said}.") from error


def discard(stream: TextIO) -> None:
    """Discard all later output of a stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def stop_at_sigterm() -> Iterator[None]:
    """Stop at SIGTERM as at Ctrl-C, so that temporary files are removed."""
    if current_thread() is not main_thread():  # others may not change what signals do
        yield
        return
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)


@contextmanager
def standard_streams(*, silent: bool = False, forgiving: bool = True) -> Iterator[None]:
    """Prepare the standard streams for a command.

    Output to a closed stream is discarded. Characters that a terminal cannot show are replaced.
    With `silent`, nothing is printed. With `forgiving`, output is discarded if the reader has
    stopped.
    """
    # let both streams accept any text
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    # choose where the command prints
    output: TextIO = sys.stdout
    if silent:
        output = io.StringIO()
    elif forgiving:
        output = cast("TextIO", ForgivingOutput(sys.stdout))
    with redirect_stdout(output):
        yield
        output.flush()
