"""The paper's Figures 1 to 5, each as one picture with its panels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.compare.charts import BLACK, COLOURS, STYLE
from nysboost.paper.presets import Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.results import Results
from nysboost.rows.files import atomic_file
from nysboost.user_error import import_optional

AXIS = {
    "error": "relative error (Frobenius)",
    "seconds": "median seconds (processor time)",
}
LINES = {"mean": "solid", "med": (0, (6, 2)), "SF": (0, (1, 1.5))}
MARKS = {"mean": "o", "med": "s", "SF": "^"}

PANEL_WIDTH = 4.4
PANEL_HEIGHT = 3.5
"""Inches. Two panels are 880 points wide, so that 9-point letters are legible at 390 pixels."""


@dataclass(frozen=True)
class Panel:
    """One panel: a preset, and which of the preset's own figures it draws."""

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


def available(results: Mapping[str, Results]) -> list[Figure]:
    """Return the figures with those of their panels that were run."""
    found = []
    for figure in FIGURES:
        panels = tuple(panel for panel in figure.panels if panel.preset in results)
        if panels:
            found.append(Figure(figure.number, figure.caption, panels))
    return found


def file_name(figure: Figure, reading: Reading) -> str:
    """Return the picture's name, without what says its format."""
    return f"figure-{figure.number}-{reading}"


def label(panel: Panel, results: Mapping[str, Results]) -> str:
    """Return what is written above a panel."""
    return list(results[panel.preset].preset.figures)[panel.number]


def write_all(results: Mapping[str, Results], folder: Path) -> None:
    """Write every figure under every reading, as PNG, SVG and PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in available(results):
        for reading in results[figure.panels[0].preset].preset.readings:
            _write(figure, results, reading, folder)


def _write(figure: Figure, results: Mapping[str, Results], reading: Reading, folder: Path) -> None:
    matplotlib = import_optional("matplotlib")
    drawing = import_optional("matplotlib.figure")
    # a fixed salt and no date: the same results give the same bytes
    style = STYLE | {"svg.hashsalt": "nysboost", "font.size": 10, "legend.fontsize": 9}
    with matplotlib.rc_context(style):
        picture = _draw(drawing, figure, results, reading)
        path = folder / file_name(figure, reading)
        how: dict[str, dict[str, Any]] = {
            "png": {"dpi": 160, "metadata": {"Software": SOFTWARE}},
            "svg": {"metadata": {"Date": None, "Creator": SOFTWARE}},
            "pdf": {"metadata": {"CreationDate": None, "Creator": SOFTWARE}},
        }
        for kind, options in how.items():
            with atomic_file(path.with_name(f"{path.name}.{kind}"), "The figure") as file:
                picture.savefig(file, format=kind, **options)


def _draw(drawing: Any, figure: Figure, results: Mapping[str, Results], reading: Reading) -> Any:
    """Return a figure of matplotlib with all panels."""
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    size = (PANEL_WIDTH * max(columns, 1.4), PANEL_HEIGHT * rows + 0.9)
    picture = drawing.Figure(size, layout="constrained")
    axes = np.atleast_1d(picture.subplots(rows, columns)).ravel()
    for panel, one in zip(figure.panels, axes, strict=False):
        draw_panel(one, panel, results[panel.preset], reading)
        one.set_title(label(panel, results), fontsize=10, loc="left")

    handles: dict[str, Any] = {}
    for one in axes[: len(figure.panels)]:
        for line, name in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, line)
    where: dict[str, Any] = {"loc": "outside lower center", "ncols": 5}
    for empty in axes[len(figure.panels) :]:
        # the legend takes the place that the panels leave free
        empty.set_axis_off()
        where = {"loc": "lower right", "bbox_to_anchor": (0.9, 0.15), "ncols": 1}
    picture.legend(handles.values(), handles, frameon=False, **where)
    return picture


def draw_panel(axes: Any, panel: Panel, result: Results, reading: Reading) -> None:
    """Draw error, or time, against the number of learners; the ensemble is dashed and black."""
    names = list(result.preset.figures.values())[panel.number]
    known = result.preset.readings
    summaries = result.summaries(reading if reading in known else known[0])
    in_seconds = result.preset.measure == "seconds"
    for summary in summaries:
        if summary.method not in names:
            continue
        y = summary.median if in_seconds else summary.mean
        look = find_look(summary.method)
        axes.plot(result.counts, y, label=summary.method, **look)
        if not in_seconds and np.isfinite(summary.standard_error).all():
            axes.fill_between(
                result.counts,
                summary.mean - summary.standard_error,
                summary.mean + summary.standard_error,
                color=look["color"],
                alpha=0.15,
                linewidth=0,
            )

    axes.set(xlabel="number of learners", ylabel=AXIS[result.preset.measure])
    _set_ticks(axes, result)


def find_look(method: str) -> dict[str, Any]:
    """Return a colour for the weights, and a line and a mark for the clustering."""
    if method == BASELINE:
        return {"color": BLACK, "linestyle": "dashed", "linewidth": 1.8}
    weights, _, clustering = method.partition("-")
    return {
        "color": COLOURS.get(weights, "#777777"),
        "linestyle": LINES.get(clustering, "solid"),
        "marker": MARKS.get(clustering, ""),
        "markersize": 3.2,
        "linewidth": 1.2,
    }


def _set_ticks(axes: Any, result: Results) -> None:
    """Give errors a logarithmic axis with plain numbers, and times a linear one from zero."""
    ticker = import_optional("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    if result.preset.measure == "seconds":
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
