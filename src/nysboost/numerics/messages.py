"""Parts of messages: unknown names, values, counts, bytes and durations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from math import ceil

MANY_NAMES = 20
"""With up to this many names, all are listed in addition to the nearest ones."""

MOST_NAMES = 100
"""Largest number of names in a list."""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a sentence about an unknown name, with the nearest names, or all if there are few."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)

    said = f"There is no {what} {name!r}."
    if near:
        alternatives = [repr(folded[candidate]) for candidate in near]
        said += f" Did you mean {' or '.join(alternatives)}?"
    if not near or len(folded) <= MANY_NAMES:  # of many names the nearest are enough
        said += f" Choose one of {list_names(folded.values())}."
    return said


def list_names(names: Iterable[str]) -> str:
    """Return names separated by commas, or only the first ones if there are very many."""
    listed = list(names)
    first = ", ".join(listed[:MOST_NAMES])
    if len(listed) <= MOST_NAMES:
        return first
    return f"{first}, … ({len(listed):,} in all)"


def format_value(value: object) -> str:
    """Format a value for an error message; an array is shown by its shape."""
    shape = getattr(value, "shape", ())
    if not shape:
        return repr(value)
    return f"<array of shape {tuple(shape)}>"


def format_cell(value: object) -> str:
    """Return a value of a table as an error message shows it: the beginning of a long one."""
    shown = repr(value)
    if len(shown) <= 60:
        return shown
    return f"{shown[:59]}…"


def format_count(n: int, what: str) -> str:
    """Format a number of things for a sentence: "1 row", "2 rows"."""
    if n == 1:
        return f"1 {what}"
    return f"{n:,} {what}s"


def format_seconds(seconds: float) -> str:
    """Format a duration in seconds or minutes."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def format_bytes(size: float) -> str:
    """Format a number of bytes for people, rounded up to a tenth."""
    for unit in ("kB", "MB", "GB"):
        size = ceil(size / 100) / 10
        if size < 1000 or unit == "GB":
            break
    return f"{size:.1f} {unit}"


CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    r"\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of text
    r"\u200b\u200e\u200f\u2028\u2029\ufeff]"  # characters without a width
)
"""Characters that a terminal would obey, or not show."""


def printable(text: str) -> str:
    """Return text with control and hidden characters escaped, so that a terminal shows them."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
