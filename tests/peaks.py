"""The most memory that a piece of work holds at a time, and the most time that it may take."""

import signal
import tracemalloc
from contextlib import contextmanager

import pytest


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@contextmanager
def within(seconds, what="it"):
    """Fail where the work inside takes longer: nothing may hang."""
    late = lambda *_: pytest.fail(f"{what} took more than {seconds} seconds")  # noqa: E731
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
