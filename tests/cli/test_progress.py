"""How far a pass has come, for people and for log files."""

import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nysboost.cli import progress
from nysboost.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def passed(count, total, shown, stream, seconds, monkeypatch):
    """Return what a pass over blocks of ten rows says, with a clock that jumps at each look."""
    clock = iter(np.arange(1000) * seconds)
    stopwatch = SimpleNamespace(perf_counter=lambda: float(next(clock)))
    monkeypatch.setattr(progress, "time", stopwatch)
    monkeypatch.setattr(sys, "stderr", stream)
    counted = Progress("read", total, shown=shown)
    assert len(list(counted.of(np.zeros((10, 2)) for _ in range(count)))) == count
    assert counted.rows == 10 * count
    return stream.getvalue()


def test_a_log_file_gets_a_line_now_and_then(monkeypatch):
    said = passed(9, 90, True, io.StringIO(), 4.0, monkeypatch)
    lines = said.splitlines()
    assert 1 < len(lines) < 9
    form = re.compile(r"read: \d+ of 90 rows, \d+ rows/s, about \d+ s left")
    assert all(form.fullmatch(line) for line in lines)


def test_a_terminal_gets_one_line_that_is_written_over(monkeypatch):
    said = passed(5, None, True, Terminal(), 1.0, monkeypatch)
    assert said.count("\r") == 5
    assert said.endswith("\n")
    assert "left" not in said  # nobody knows how many there are


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_nothing_is_said_where_nothing_is_asked_for(stream, monkeypatch):
    said = passed(5, 50, False, stream, 99.0, monkeypatch)
    assert said == ""
