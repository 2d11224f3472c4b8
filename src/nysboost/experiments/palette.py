"""One look for every drawing: a colour for each family, a mark for each clustering.

The colours are Paul Tol's "muted" scheme, which people with any colour vision can tell
apart; the drawn families have the strongest of them.
"""

from __future__ import annotations

from dataclasses import dataclass

FAMILIES = {
    "URB": "#CC6677",
    "RRB": "#332288",
    "UUB": "#117733",
    "UEB": "#88CCEE",
    "EEB": "#AA4499",
    "ERB": "#882255",
    "REB": "#44AA99",
    "RUB": "#999933",
    "EUB": "#DDCC77",
    "ensemble": "#222222",
}
SINGLES = {
    "joint": ("joint", "#EE7733", "o", ""),
    "nystrom": ("one Nyström", "#777777", "o", ""),
    "nystrom-fixed-rank": ("one Nyström", "#777777", "s", "6 3"),
    "uniform": ("one Nyström", "#777777", "^", "2 3"),
    "kmeans": ("peers", "#009988", "D", ""),
    "rpcholesky": ("peers", "#0077BB", "s", ""),
    "greedy": ("peers", "#0077BB", "^", "6 3"),
    "rls": ("peers", "#0077BB", "x", "2 3"),
    "optimal": ("limit", "#000000", "+", "2 3"),
}
OTHER = "#777777"
MARKS = {"mean": "o", "med": "s", "SF": "^"}
DASHES = {"mean": "", "med": "6 3", "SF": "2 3"}
_ENSEMBLE_MARKS = {"uniform": "x", "exponential": "+", "ridge": "D"}


@dataclass(frozen=True)
class Style:
    """How a method is drawn; ``dash`` is an SVG pattern and empty for a solid line."""

    family: str
    colour: str
    mark: str
    dash: str


def style(method: str) -> Style:
    """Return the look of a method, by its name alone."""
    if method in SINGLES:
        return Style(*SINGLES[method])
    first, _, second = method.partition("-")
    if first == "ensemble" and second in _ENSEMBLE_MARKS:
        return Style("ensemble", FAMILIES["ensemble"], _ENSEMBLE_MARKS[second], "9 4")
    if first in FAMILIES and second in MARKS:
        return Style(first, FAMILIES[first], MARKS[second], DASHES[second])
    if "J" in first[:2] and second in MARKS:
        return Style("joint", SINGLES["joint"][1], MARKS[second], DASHES[second])
    return Style("other", OTHER, "o", "")
