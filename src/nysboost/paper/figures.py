"""The paper's Figures 1 to 5, each as one picture with its panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nysboost.compare.charts import (
    BLACK,
    COLOURS,
    GREY,
    SAVED,
    STYLE,
    Dashes,
    Look,
    label_powers,
    write_figure,
)
from nysboost.paper.presets import ORDER, Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.results import ByPreset, Results
from nysboost.user_error import import_optional

if TYPE_CHECKING:
    from matplotlib import figure as mpl_figure
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

AXIS = {
    "error": "relative error (Frobenius)",
    "seconds": "median seconds (processor time)",
}
LINES: dict[str, Dashes] = {"mean": "solid", "med": (0, (6, 2)), "SF": (0, (1, 1.5))}
MARKS = {"mean": "o", "med": "s", "SF": "^"}

WIDTHS = {"UUB": 4.0, "UEB": 2.4}
"""With the paper's η, these curves nearly coincide with others: wider lines remain visible below
them."""

PANEL_WIDTH = 4.4
PANEL_HEIGHT = 3.5
LEGEND_HEIGHT = 0.9
"""Height in inches. Two panels are 880 points wide, so that 9-point letters are legible at 390
pixels."""


@dataclass(frozen=True)
class Panel:
    """One panel: a preset, and the figure of the preset that it draws."""

    preset: str
    number: int = 0


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: its number, its caption, and its panels in the paper's order."""

    number: int
    caption: str
    panels: tuple[Panel, ...]


FIGURES = (
    Figure(
        1,
        "Simulation: mean relative errors on a Gaussian kernel matrix of normal points",
        (Panel("simulation", 0), Panel("simulation", 1)),
    ),
    Figure(2, "Computational time on the simulation's data", (Panel("runtime"),)),
    Figure(3, "MNIST: mean relative errors", (Panel("mnist-linear"), Panel("mnist-gaussian"))),
    Figure(4, "GloVe 6B: mean relative errors", (Panel("glove-linear"), Panel("glove-gaussian"))),
    Figure(
        5,
        "Covertype, Pendigits and IJCNN: mean relative errors",
        (Panel("covertype"), Panel("pendigits"), Panel("ijcnn")),
    ),
)


def available(results: ByPreset) -> list[Figure]:
    """Return the figures with the panels that were run; the user's presets come last."""
    # figures of the paper
    found = []
    for figure in FIGURES:
        panels = tuple(panel for panel in figure.panels if panel.preset in results)
        if panels:
            found.append(Figure(figure.number, figure.caption, panels))

    # figures of other presets
    number = len(FIGURES)
    for name, result in results.items():
        preset = result.preset
        if name not in ORDER and preset.figures:
            number += 1
            panels = tuple(Panel(name, i) for i in range(len(preset.figures)))
            found.append(Figure(number, preset.title, panels))
    return found


def file_name(figure: Figure, reading: Reading) -> str:
    """Return the name of the picture file, without its extension."""
    return f"figure-{figure.number}-{reading}"


def label(panel: Panel, results: ByPreset) -> str:
    """Return the title of a panel."""
    labels = list(results[panel.preset].preset.figures)
    return labels[panel.number]


def write_all(results: ByPreset, folder: Path) -> None:
    """Write every figure under every reading, as PNG, SVG and PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl = import_optional("matplotlib")
    for figure in available(results):
        first = results[figure.panels[0].preset]
        for reading in first.preset.readings:
            with mpl.rc_context(STYLE | SAVED | {"legend.fontsize": 9}):
                picture = _draw(figure, results, reading)
                write_figure(picture, folder / file_name(figure, reading), dpi=160)


def _draw(figure: Figure, results: ByPreset, reading: Reading) -> mpl_figure.Figure:
    """Return a matplotlib figure with all panels; panels of one preset share a vertical axis."""
    # place two panels side by side
    n_panels = len(figure.panels)
    columns = min(2, n_panels)
    rows = -(-n_panels // columns)
    width = PANEL_WIDTH * max(columns, 1.4)
    height = PANEL_HEIGHT * rows + LEGEND_HEIGHT
    drawing = import_optional("matplotlib.figure")
    picture: mpl_figure.Figure = drawing.Figure((width, height), layout="constrained")

    presets = {panel.preset for panel in figure.panels}
    grid = picture.subplots(rows, columns, sharey=len(presets) == 1, squeeze=False)
    places = grid.ravel()

    # draw the panels, and keep a line of each method for one legend of all
    lines: dict[str, Artist] = {}
    for panel, axes in zip(figure.panels, places, strict=False):
        draw_panel(axes, panel, results[panel.preset], reading)
        axes.set_title(label(panel, results), fontsize=10, loc="left")
        handles, names = axes.get_legend_handles_labels()
        lines |= zip(names, handles, strict=True)

    # put the legend below, or where a panel is missing
    where: dict[str, object] = {"loc": "outside lower center", "ncols": 5}
    for empty in places[n_panels:]:
        empty.set_axis_off()
        where = {"loc": "lower right", "bbox_to_anchor": (0.9, 0.15), "ncols": 1}
    picture.legend(lines.values(), lines, frameon=False, **where)
    return picture


def draw_panel(axes: Axes, panel: Panel, result: Results, reading: Reading) -> None:
    """Draw error, or time, against the number of learners; the ensemble is dashed and black."""
    # find the methods of the panel, and a reading that was run
    preset = result.preset
    names = list(preset.figures.values())[panel.number]
    if reading not in preset.readings:
        reading = preset.readings[0]
    in_seconds = preset.measure == "seconds"

    counts = result.counts
    for summary in result.summaries(reading):
        if summary.method not in names:
            continue

        # draw median times: outliers do not move them
        look = find_look(summary.method)
        if in_seconds:
            look["linewidth"] = 1.2
            axes.plot(counts, summary.median, label=summary.method, **look)
            continue

        # draw mean errors, in a band of one standard error
        axes.plot(counts, summary.mean, label=summary.method, **look)
        low = summary.mean - summary.standard_error
        high = summary.mean + summary.standard_error
        if np.isfinite(low).all():
            axes.fill_between(counts, low, high, color=look["color"], alpha=0.15, linewidth=0)

    # give errors a logarithmic axis, and times a linear one from zero
    axes.set(xlabel="number of learners", ylabel=AXIS[preset.measure])
    ticker = import_optional("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    if in_seconds:
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        label_powers(axes.yaxis, *axes.get_ylim())


def find_look(method: str) -> Look:
    """Return a colour for the weights, and a line style and marker for the clustering."""
    if method == BASELINE:
        return {"color": BLACK, "linestyle": "dashed", "linewidth": 1.8}

    weights, _, clustering = method.partition("-")
    return {
        "color": COLOURS.get(weights, GREY),
        "linestyle": LINES.get(clustering, "solid"),
        "marker": MARKS.get(clustering, ""),
        "markersize": 3.2,
        "linewidth": WIDTHS.get(weights, 1.2),
    }
