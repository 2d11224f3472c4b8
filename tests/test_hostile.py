"""No hostile input gets through: a right result, or one sentence of a documented type.

No traceback from inside, no warning of NumPy, no hang, no wrong number.
"""

from __future__ import annotations

import re
import traceback
import warnings
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import hostile
import pytest
from hostile import Case
from peaks import within

DOCUMENTED = (ValueError, TypeError, OSError, IndexError, RuntimeError)
SKLEARN = r"sklearn[/\\]utils[/\\]_?(validation|param_validation|multiclass)"
OURS = re.compile(rf"[/\\](nysboost[/\\]|{SKLEARN})")
SECONDS = 60
TABLES = [import_module(f"hostile.{found.name}") for found in iter_modules(hostile.__path__)]
TABLE = [case for table in TABLES for case in table.CASES]


def is_sentence(text: str) -> bool:
    """Whether a person can read it: not a dump, not a fragment."""
    return 15 < len(text) < 2000 and "array([" not in text and text.rstrip()[-1] in ".?!)'\""


@pytest.fixture(autouse=True)
def _no_hang():
    with within(SECONDS):
        yield


def test_the_table_has_at_least_350_kinds():
    assert len({case.name for case in TABLE}) == len(TABLE) >= 350


def outcome(case: Case) -> tuple[Any, BaseException | None]:
    try:
        return case.call(), None
    except DOCUMENTED as error:
        return None, error


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_hostile_input_gets_a_right_result_or_a_sentence(case: Case):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result, error = outcome(case)
        if error is None:
            assert case.right is not None, f"accepted: {result!r:.200}"
            assert case.right(result), f"wrong: {result!r:.200}"
        else:
            assert case.right is None or case.says, f"refused: {error}"
            text, where = str(error), traceback.extract_tb(error.__traceback__)[-1]
            assert is_sentence(text), f"{type(error).__name__}: {text}"
            assert re.search(case.says, text), text
            assert OURS.search(where.filename), f"raised inside {where.filename}:{where.lineno}"
    for warning in said:
        assert issubclass(warning.category, UserWarning), warning.message
        assert is_sentence(str(warning.message)), warning.message
