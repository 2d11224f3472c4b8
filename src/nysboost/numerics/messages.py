"""How messages name what is unknown, and write values, counts, bytes and durations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from math import ceil
from typing import Any


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a sentence that there is no such name, with the nearest ones, or all of a few."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(folded[one]) for one in near)}?" if near else ""
    # of many names the nearest are enough
    all_ = "" if near and len(folded) > 20 else f" Known are {', '.join(folded.values())}."
    return f"There is no {what} {name!r}.{hint}{all_}"


def format_value(value: Any) -> str:
    """Return a value as an error message shows it: an array by its shape alone."""
    shape = getattr(value, "shape", ())
    return f"<array of shape {tuple(shape)}>" if shape else repr(value)


def format_count(n: int, what: str) -> str:
    """Return a number of things as a sentence has it: "1 row", "2 rows"."""
    return f"{n} {what}{'s' if n != 1 else ''}"


def format_seconds(seconds: float) -> str:
    """Return a duration in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def format_bytes(size: float) -> str:
    """Return a number of bytes as a person would write it, rounded up to a tenth."""
    for unit in ("kB", "MB", "GB"):
        size = ceil(size / 100) / 10
        if size < 1000 or unit == "GB":
            break
    return f"{size:.1f} {unit}"


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed: a terminal would obey them."""


def printable(text: str) -> str:
    """Return text with its control characters escaped, so that a terminal shows them."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
