"""A pytest plugin that writes down which functions of the library each test calls.

`tools/mutate.py` reads it: a change of a function is tried by the tests that call it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

SOURCE = str(Path(__file__).parents[1] / "src" / "nysboost") + os.sep
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
