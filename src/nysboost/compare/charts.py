"""Charts in reports and in files, drawn by matplotlib in one style."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.catalogue import FAMILIES
from nysboost.numerics.arrays import Floats
from nysboost.rows.files import atomic_file
from nysboost.user_error import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLACK = "#000000"
COLOURS = {
    "joint": "#EE7733", "standard": "#777777", "ensemble": BLACK, "limit": BLACK,
    "boosting, joint core": "#EE3377", "cluster centres": "#009988", "pivoted Cholesky": "#0077BB",
    "sampling by importance": "#33BBEE", "core from all of G": "#CC3311", "CUR": "#AA3377",
    "random features": "#BBAA22", "nystrom": "#777777", "adaptive": "#33BBEE",
    "URB": "#CC6677", "RRB": "#332288", "UUB": "#117733", "UEB": "#88CCEE", "EEB": "#AA4499",
    "ERB": "#882255", "REB": "#44AA99", "RUB": "#999933", "EUB": "#DDCC77",
    "NysBoost": "#EE7733", "linear model": "#777777", "LightGBM": "#117733",
    "CatBoost": "#DDAA33", "gradient boosting": "#999933", "exact Gaussian process": "#0077BB",
    "scikit-learn's Nystroem": "#33BBEE",
}  # fmt: skip
"""Paul Tol's colours, for families, for the paper's weights and for learners."""
GREY = "#777777"
OTHERS = ("#777777", "#0077BB", "#EE7733", "#117733", "#AA4499", "#33BBEE")
"""Colours of names of the user's, such as labels, in their order."""

LONGEST_NAME = 32
"""Characters of a name in a chart: beside longer ones, no room would be left for the axes."""

MARKS = "os^Dxv+<>"
STYLE = {
    "axes.axisbelow": True, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False,
    "axes.spines.right": False, "text.parse_math": False,
}  # fmt: skip
Dashes: TypeAlias = str | tuple[float, tuple[float, ...]]
"""How matplotlib names a line's dashes: by a word, or where they begin and how long they are."""

DASHES: tuple[Dashes, ...] = ("solid", (0, (3, 1.5)), (0, (1, 1.5)), (0, (4.5, 2)))


class Look(TypedDict, total=False):
    """How matplotlib draws a line with marks."""

    color: str
    linestyle: Dashes
    linewidth: float
    marker: str
    markersize: float


def find_family(name: str) -> str:
    """Return the family that a method belongs to; "" for a learner."""
    for family, names in FAMILIES.items():
        if name in names:
            return family
    return ""


def find_style(name: str, number: int = 0) -> Look:
    """Return the matplotlib style of a method or learner, or of another name by its number.

    The methods of a family share a colour, and each has its own marker.
    """
    family = find_family(name)
    if not family:  # a learner, perhaps a variant that is named in brackets
        group = name.partition(" (")[0]
        members = [group, name]
    elif family == "boosting":  # one colour for each choice of weights
        group = name.partition("-")[0]
        members = [member for member in FAMILIES[family] if member.startswith(group)]
    else:
        group = family
        members = list(FAMILIES[family])

    # its place in the family gives the mark and the dashes
    place = members.index(name)
    colour = COLOURS.get(group, GREY)
    if not family and group not in COLOURS:
        place = number
        colour = OTHERS[number % len(OTHERS)]
    return {
        "color": colour,
        "marker": MARKS[place % len(MARKS)],
        "linestyle": DASHES[place % len(DASHES)],
    }


@dataclass(frozen=True)
class Chart:
    """A title, and a function that draws into axes; `file` is the name of the picture file."""

    title: str
    draw: Callable[[Axes], object]
    file: str = ""
    height: float = 3.1


Coordinates: TypeAlias = Sequence[float] | Floats


class Curve(NamedTuple):
    """A named set of points to draw."""

    name: str
    x: Coordinates
    y: Coordinates


@dataclass(frozen=True)
class CurvePlot:
    """Draw curves; an axis in `log` is logarithmic if its values span a factor above 8."""

    x: str
    y: str
    curves: Sequence[Curve]
    log: str

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        # in two lines nothing is cut; fonts of a browser may be higher than those of the layout
        label = self.y.replace(" (", "\n(")
        axes.set_xlabel(_cut(self.x))
        axes.set_ylabel(label, linespacing=1.4)

        # a line for each curve, or a mark for a point
        for number, curve in enumerate(self.curves):
            style = find_style(curve.name, number)
            if len(curve.x) == 1:
                style["linestyle"] = "none"
            axes.plot(curve.x, curve.y, label=_cut(curve.name), markersize=4, **style)

        # choose scales that fit all curves
        if self.curves:
            x = np.concatenate([curve.x for curve in self.curves])
            y = np.concatenate([curve.y for curve in self.curves])
            _set_scale(axes, "x", "x" in self.log, x)
            _set_scale(axes, "y", "y" in self.log, y)


def chart_curves(
    title: str,
    x: str,
    y: str,
    curves: Sequence[Curve],
    *,
    log: str = "y",
    file: str = "",
) -> Chart:
    """Chart curves; an axis in `log` is logarithmic if its values span a factor above 8."""
    return Chart(title, CurvePlot(x, y, curves, log), file)


@dataclass(frozen=True)
class BarPlot:
    """Draw a bar for each name, the first on top."""

    label: str
    values: Mapping[str | float, float]

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        names = [_cut(str(name)) for name in self.values]
        lengths = list(self.values.values())
        places = range(len(names))
        axes.barh(places, lengths, height=0.6, color=COLOURS["NysBoost"], tick_label=names)
        axes.set(xlabel=self.label)
        axes.invert_yaxis()


def _cut(name: str) -> str:
    """Return a name, or the beginning of a long one."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 1]}…"


def chart_bars(title: str, label: str, values: Mapping[str | float, float]) -> Chart:
    """Chart a bar for each name, the first on top."""
    height = 0.8 + 0.26 * len(values)
    return Chart(title, BarPlot(label, values), height=height)


def _set_scale(axes: Axes, name: str, logarithmic: bool, values: Coordinates) -> None:
    """Choose ticks that are plain numbers, whole if all values are."""
    ticker = import_optional("matplotlib.ticker")
    axis = getattr(axes, f"{name}axis")
    shown = np.asarray(values, dtype=np.float64)
    shown = shown[np.isfinite(shown)]

    # a logarithmic axis, for values that differ much
    least = shown.min(initial=np.inf)
    largest = shown.max(initial=0.0)
    if logarithmic and 0 < 8 * least < largest:
        axes.set(**{f"{name}scale": "log"})
        label_powers(axis, least, largest)
        return

    # long numbers would touch on a phone
    if (shown == shown.round()).all():
        axis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    else:
        axis.set_major_locator(ticker.MaxNLocator(5))


def label_powers(axis: Axis, least: float, largest: float) -> None:
    """Label a logarithmic axis with plain numbers: the wider it is, the fewer in a power of ten."""
    ticker = import_optional("matplotlib.ticker")
    steps = [1.0]
    if largest <= 100 * least:
        steps = [1.0, 2.0, 5.0]
    if largest <= 8 * least:
        steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


@contextmanager
def _make_figure(chart: Chart, width: float, height: float, **style: object) -> Iterator[Figure]:
    """Yield a chart as a matplotlib figure; a $ in a name does not begin a formula."""
    # draw in the style that all charts share
    figures = import_optional("matplotlib.figure")
    with (
        import_optional("matplotlib").rc_context(STYLE | style),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph")  # a font may lack any letter
        figure = figures.Figure((width, height), layout="constrained")
        axes = figure.add_subplot()
        chart.draw(axes)

        # one legend below, in place of that of the axes
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
        handles, names = axes.get_legend_handles_labels()
        longest = max(map(len, names), default=0)
        columns = 2
        if longest < 16:
            columns = 3
        if len(names) > 1:
            figure.legend(handles, names, loc="outside lower left", ncols=columns, frameon=False)
        yield figure


METADATA = re.compile(r"<metadata>.*?</metadata>", re.S)
GROUP_ID = re.compile(r'<g id="[^"]*"')
HEAD = re.compile(r'^.*?<svg [^>]*?(?P<box>viewBox="[^"]*")[^>]*>', re.S)


def render(chart: Chart) -> str:
    """Return a chart as SVG, with black replaced by the text colour of the page."""
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": chart.title,
        "font.size": 9,  # letters stay readable at a phone's width
        "legend.fontsize": 8,
    }
    text = io.StringIO()
    with _make_figure(chart, 4.6, chart.height, **style) as figure:
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})

    # remove metadata and ids, which several charts on a page would share; use the page's text
    # colour
    svg = METADATA.sub("", text.getvalue())
    svg = GROUP_ID.sub("<g", svg)
    svg = svg.replace(BLACK, "currentColor")

    # replace the beginning, so that the page sets the size
    head = HEAD.match(svg)
    if head is None:
        raise ValueError("matplotlib wrote no SVG.")
    label = html.escape(chart.title)
    body = svg[head.end() :]
    return f'<svg {head["box"]} role="img" aria-label="{label}">{body}'


def save(chart: Chart, path: Path) -> None:
    """Write a chart with its title to PNG, SVG and PDF files."""
    with _make_figure(chart, 6.4, 5.0, **SAVED) as figure:
        (axes,) = figure.axes
        axes.set_title(chart.title, fontsize=9, loc="left")
        write_figure(figure, path, dpi=110)


SAVED = {"svg.hashsalt": "nysboost", "font.size": 10}
"""The style of figures in files. A fixed salt: the same results give the same bytes."""


def write_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure to PNG, SVG and PDF files, which name this library and no date."""
    made: dict[str, dict[str, str | None]] = {
        ".png": {"Software": SOFTWARE},
        ".svg": {"Date": None, "Creator": SOFTWARE},
        ".pdf": {"CreationDate": None, "Creator": SOFTWARE},
    }
    for suffix, metadata in made.items():
        with atomic_file(path.with_suffix(suffix), "The figure") as file:
            figure.savefig(file, format=suffix[1:], dpi=dpi, metadata=metadata)
