"""A pytest plugin that writes down which functions of the library each test calls, and its reader.

`tools/mutate.py` has a change of a function tried by the tests that call it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "nysboost") + os.sep
_seen: set[CodeType] = set()
_found: dict[str, dict[str, Any]] = {}


def _notice(frame: FrameType, event: str, _: object) -> None:
    if event == "call":
        _seen.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Run a test, and add what it called to what tests of this name have called."""
    _seen.clear()
    begun = time.perf_counter()
    threading.setprofile(_notice)
    sys.setprofile(_notice)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        entry = _found.setdefault(item.nodeid.partition("[")[0], {"seconds": 0.0, "calls": {}})
        entry["seconds"] += time.perf_counter() - begun
        ours = [code for code in _seen if code.co_filename.startswith(SOURCE)]
        entry["calls"] |= {
            f"{code.co_filename.removeprefix(SOURCE)}:{code.co_firstlineno}": 1 for code in ours
        }


def pytest_sessionfinish() -> None:
    """Write down what this process has seen."""
    if _found:
        path = Path(os.environ["NYSBOOST_CALLS"]) / f"{os.getpid()}.json"
        path.write_text(json.dumps(_found), encoding="utf-8")


@dataclass(frozen=True)
class Calls:
    """Which functions each test calls, and how long it takes."""

    seconds: dict[str, float]
    of_test: dict[str, set[str]]

    @classmethod
    def read(cls, folder: Path, tests: Sequence[str]) -> Calls:
        """Read what runs of some tests have written down; run them where there is nothing yet."""
        if not folder.exists():
            folder.mkdir(parents=True)
            plugin = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])}
            words = [sys.executable, "-m", "pytest", "-q", "-p", "record_calls", "-n", "2"]
            subprocess.run(
                [*words, "--dist", "worksteal", *(f"tests/{test}" for test in tests)],
                cwd=ROOT,
                env=os.environ | plugin | {"NYSBOOST_CALLS": str(folder)},
                stdout=subprocess.DEVNULL,
                check=False,
            )
        seconds: defaultdict[str, float] = defaultdict(float)
        of_test: defaultdict[str, set[str]] = defaultdict(set)
        for path in folder.glob("*.json"):
            for test, entry in json.loads(path.read_text(encoding="utf-8")).items():
                seconds[test] += entry["seconds"]
                of_test[test] |= set(entry["calls"])
        return cls(dict(seconds), dict(of_test))

    def meet(self, function: str, mirror: str, longest: float) -> tuple[list[str], list[str]]:
        """Return the tests that call a function: those of the file that mirrors its own, others.

        They are as many as there are seconds for, quick ones first.
        """
        tests = [
            t for t, calls in self.of_test.items() if any(c.startswith(function) for c in calls)
        ]
        tests.sort(key=self.seconds.__getitem__)
        found = []
        for mine in (True, False):
            some = [test for test in tests if test.startswith(mirror) == mine]
            total = accumulate(self.seconds[test] for test in some)
            found.append([t for t, by_then in zip(some, total, strict=True) if by_then <= longest])
        return found[0], found[1]
