"""The picture of a benchmark: error against time, one curve for each method."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

from common import FLOOR, Curve, Report, machine_line, progress

from nysboost.experiments.palette import style


def draw(report: Report, path: Path) -> None:
    """Draw the curves of a report, or say that matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, NullFormatter
    except ImportError:
        progress("matplotlib is not installed: no picture; --plot draws it from the JSON elsewhere")
        return
    figure = Figure(figsize=(8.4, 5.8), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for curve in report.curves:
        _curve(axes, curve)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds (the number at a point is that of its landmarks)")
    axes.set_ylabel("relative Frobenius error")
    axes.grid(alpha=0.25, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    legend = {"title": report.title, "title_fontsize": 11, "fontsize": 9, "frameon": False}
    figure.legend(loc="outside upper center", ncols=2, **legend)
    figure.supxlabel(fill(machine_line(report.machine), 130), fontsize=7, color="0.4")
    figure.savefig(path, dpi=120)


def _curve(axes: Any, curve: Curve) -> None:
    look = style("optimal" if curve.method == FLOOR else curve.method)
    dashes = (0, tuple(map(float, look.dash.split()))) if look.dash else "solid"
    shape = {"color": look.colour, "marker": look.mark, "linestyle": dashes}
    axes.plot(curve.seconds, curve.errors, label=curve.label, markersize=5, **shape)
    for c, x, y in zip(curve.landmarks, curve.seconds, curve.errors, strict=True):
        place = {"xytext": (5, 4), "textcoords": "offset points"}
        axes.annotate(str(c), (x, y), fontsize=8, color=look.colour, **place)
