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
    "kmeans": ("cluster centres", "#009988", "D", ""),
    "density-weighted": ("cluster centres", "#009988", "s", "6 3"),
    "meka": ("cluster centres", "#009988", "^", "2 3"),
    "rpcholesky": ("pivoted Cholesky", "#0077BB", "s", ""),
    "greedy": ("pivoted Cholesky", "#0077BB", "^", "6 3"),
    "sparse-greedy": ("pivoted Cholesky", "#0077BB", "o", "2 3"),
    "rls": ("sampling by importance", "#33BBEE", "x", "2 3"),
    "bless": ("sampling by importance", "#33BBEE", "+", "6 3"),
    "dpp": ("sampling by importance", "#33BBEE", "D", ""),
    "adaptive": ("sampling by importance", "#33BBEE", "s", "9 4"),
    "adaptive-partial": ("sampling by importance", "#33BBEE", "^", "2 3"),
    "modified": ("core from all of G", "#CC3311", "o", ""),
    "spectral-shift": ("core from all of G", "#CC3311", "s", "6 3"),
    "cur": ("CUR", "#AA3377", "o", ""),
    "cur-uniform": ("CUR", "#AA3377", "s", "6 3"),
    "cur-cross": ("CUR", "#AA3377", "^", "2 3"),
    "cur-cross-uniform": ("CUR", "#AA3377", "x", "9 4"),
    "robust-cur": ("CUR", "#AA3377", "D", ""),
    "random-fourier": ("random features", "#BBAA22", "o", ""),
    "orthogonal-fourier": ("random features", "#BBAA22", "s", "6 3"),
    "quasi-fourier": ("random features", "#BBAA22", "^", "2 3"),
    "optimal": ("limit", "#000000", "+", "2 3"),
    "NysBoost": ("learners", "#EE7733", "o", ""),
    "NysBoost, uniform landmarks": ("learners", "#777777", "^", "6 3"),
    "as it should be": ("rows that took no part", "#777777", "", "2 3"),
    "tenths of the test rows": ("rows that took no part", "#EE7733", "o", ""),
    "test rows": ("rows that took no part", "#EE7733", "o", ""),
}
OTHER = "#777777"
MARKS = {"mean": "o", "med": "s", "SF": "^"}
DASHES = {"mean": "", "med": "6 3", "SF": "2 3"}
_ENSEMBLE_MARKS = {"uniform": "x", "exponential": "+", "ridge": "D"}


@dataclass(frozen=True)
class Style:
    """How a method is drawn: ``dash`` is an SVG pattern, empty for a solid line; no mark is ""."""

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
