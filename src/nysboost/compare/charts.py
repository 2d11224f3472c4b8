"""Charts for a report's page and as pictures in files, drawn by matplotlib in one look."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import nysboost as nb
from nysboost._version import SOFTWARE
from nysboost.rows.files import atomic_file
from nysboost.user_error import import_optional

BLACK = "#000000"
COLOURS = {
    "joint": "#EE7733", "standard": "#777777", "ensemble": BLACK, "limit": BLACK,
    "boosting, joint core": "#EE3377", "cluster centres": "#009988", "pivoted Cholesky": "#0077BB",
    "sampling by importance": "#33BBEE", "core from all of G": "#CC3311", "CUR": "#AA3377",
    "random features": "#BBAA22",
    "URB": "#CC6677", "RRB": "#332288", "UUB": "#117733", "UEB": "#88CCEE", "EEB": "#AA4499",
    "ERB": "#882255", "REB": "#44AA99", "RUB": "#999933", "EUB": "#DDCC77",
    "NysBoost": "#EE7733", "linear model": "#777777", "LightGBM": "#117733",
    "CatBoost": "#DDAA33", "gradient boosting": "#999933", "exact Gaussian process": "#0077BB",
    "scikit-learn's Nystroem": "#33BBEE",
}  # fmt: skip
"""Paul Tol's colours: of families, of the paper's choices of weights, of learners."""
MARKS = "os^Dxv+<>"
STYLE = {
    "axes.axisbelow": True, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False,
    "axes.spines.right": False, "text.parse_math": False,
}  # fmt: skip
DASHES = ("solid", (0, (3, 1.5)), (0, (1, 1.5)), (0, (4.5, 2)))


def find_family(name: str) -> str:
    """Return the family that a method belongs to; "" for a learner."""
    return next((family for family, names in nb.FAMILIES.items() if name in names), "")


def find_style(name: str) -> dict[str, Any]:
    """Return how matplotlib draws a method or learner, by its name alone.

    A family shares a colour, and each of its members has a mark.
    """
    family = find_family(name)
    group = family or name.partition(" (")[0]
    members = list(nb.FAMILIES.get(family, (group, name)))
    if family == "boosting":  # one colour for each choice of weights
        group = name.partition("-")[0]
        members = [member for member in members if member.startswith(group)]
    i = members.index(name)
    mark, dash = MARKS[i % len(MARKS)], DASHES[i % len(DASHES)]
    return {"color": COLOURS.get(group, "#777777"), "marker": mark, "linestyle": dash}


@dataclass(frozen=True)
class Chart:
    """A title, and a function that draws into axes; `file` is its picture beside a page."""

    title: str
    draw: Callable[[Any], Any]
    file: str = ""
    height: float = 3.1


class Curve(NamedTuple):
    """Points to draw under one name; `error` is a standard error for each of them."""

    name: str
    x: Any
    y: Any
    error: Any = None


def chart_curves(
    title: str, x: str, y: str, curves: Sequence[Curve], *, log: str = "y", file: str = ""
) -> Chart:
    """Chart curves; the axes in `log` are logarithmic if their values spread by over 8×."""

    def draw(axes: Any) -> None:
        axes.set(xlabel=x, ylabel=y.replace(" (", "\n("))  # in two lines it is not cut off
        for curve in curves:
            look = find_style(curve.name) | ({"linestyle": "none"} if len(curve.x) == 1 else {})
            axes.plot(curve.x, curve.y, label=curve.name, markersize=4, **look)
            mean, error = np.asarray(curve.y), np.asarray(curve.error, dtype=float)
            if np.isfinite(error).all():
                band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
                axes.fill_between(curve.x, mean - error, mean + error, **band)
        _set_scale(axes, "x", "x" in log, [v for curve in curves for v in curve.x])
        _set_scale(axes, "y", "y" in log, [v for curve in curves for v in curve.y])

    return Chart(title, draw, file)


def chart_bars(title: str, label: str, values: Mapping[Any, float]) -> Chart:
    """Chart a bar for each name, the first on top."""

    def draw(axes: Any) -> None:
        axes.barh(list(map(str, values)), values.values(), height=0.6, color=COLOURS["NysBoost"])
        axes.set(xlabel=label)
        axes.invert_yaxis()

    return Chart(title, draw, height=0.8 + 0.26 * len(values))


def _set_scale(axes: Any, name: str, logarithmic: bool, values: Sequence[Any]) -> None:
    """Choose ticks that are plain numbers: whole, where all values are, or on a logarithm."""
    ticker, axis = import_optional("matplotlib.ticker"), getattr(axes, f"{name}axis")
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if logarithmic and found.size and 0 < 8 * found.min() < found.max():
        axes.set(**{f"{name}scale": "log"})
        steps = (1.0,) if found.max() > 100 * found.min() else (1.0, 2.0, 5.0)
        axis.set_major_locator(ticker.LogLocator(subs=steps))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    else:  # long numbers would touch on a phone
        whole = bool((found == found.round()).all())
        axis.set_major_locator(ticker.MaxNLocator(5 + whole, integer=whole))


@contextmanager
def _make_figure(chart: Chart, width: float, height: float, **style: Any) -> Iterator[Any]:
    """Give a chart as a figure of matplotlib, inside its style: $ in a name begins no formula."""
    figures = import_optional("matplotlib.figure")
    with (
        import_optional("matplotlib").rc_context(STYLE | style),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph")  # a font may lack any letter
        figure = figures.Figure((width, height), layout="constrained")
        axes = figure.add_subplot()
        chart.draw(axes)
        if (own := axes.get_legend()) is not None:
            own.remove()
        handles, names = axes.get_legend_handles_labels()
        if len(names) > 1:
            columns = 3 if max(map(len, names)) < 16 else 2
            figure.legend(handles, names, loc="outside lower left", ncols=columns, frameon=False)
        yield figure


def render(chart: Chart) -> str:
    """Return a chart as SVG; what is black is drawn in the colour of the page's text."""
    how = {"svg.fonttype": "none", "svg.hashsalt": chart.title, "font.size": 9}
    text = io.StringIO()
    # letters stay readable at a phone's width
    with _make_figure(chart, 4.6, chart.height, **how, **{"legend.fontsize": 8}) as figure:
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = re.sub(r"<metadata>.*?</metadata>", "", text.getvalue(), flags=re.S)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg).replace(BLACK, "currentColor")  # ids are not unique
    opening = rf'<svg \1 role="img" aria-label="{html.escape(chart.title)}">'
    return re.sub(r'^.*?<svg [^>]*?(viewBox="[^"]*")[^>]*>', opening, svg, count=1, flags=re.S)


def save(chart: Chart, path: Path) -> None:
    """Draw a chart with its title into a PNG file, and an SVG file beside it."""
    # a fixed salt and no date: the same results give the same bytes
    with _make_figure(chart, 6.4, 5.0, **{"svg.hashsalt": "nysboost", "font.size": 10}) as figure:
        figure.axes[0].set_title(chart.title, fontsize=9, loc="left")
        with atomic_file(path, "The figure") as file:
            figure.savefig(file, format="png", dpi=110, metadata={"Software": SOFTWARE})
        with atomic_file(path.with_suffix(".svg"), "The figure") as file:
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": SOFTWARE})
