"""Each figure of the paper as PNG and SVG, and its numbers as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.data.whole import whole_file
from nysboost.experiments.palette import style
from nysboost.experiments.presets import Figure
from nysboost.experiments.results import Results, Summary, write_csv
from nysboost.experiments.user_error import need

READING_WORDS = {"columns": "V read as whole columns", "square": "V read as a square block"}
MEASURE_WORDS = {
    "error": "relative error (Frobenius norm)",
    "seconds": "seconds (processor time, one thread)",
}
LOGARITHMIC_FROM = 8.0
"""Values this far apart, largest to smallest, are drawn on a logarithmic axis."""


def write_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure of a preset under every reading and return the PNG files."""
    drawings = []
    for i, figure in enumerate(results.preset.figures, start=1):
        drawn = [m for m in figure.draws if m in results.methods]
        for reading in results.preset.readings:
            if drawn:
                path = folder / figure_name(results, i, reading)
                draw(results, figure, drawn, reading, path)
                write_csv(results, path.with_suffix(".csv"), drawn, [reading])
                drawings.append(path)
    write_csv(
        results,
        folder / f"{results.preset.name}-all-methods.csv",
        results.methods,
        results.preset.readings,
    )
    return drawings


def figure_name(results: Results, number: int, reading: str) -> str:
    """Return the name of the PNG file of a figure, counted from 1."""
    return f"{results.preset.name}-figure-{number}-{reading}.png"


def draw(
    results: Results, figure: Figure, methods: Sequence[str], reading: str, path: Path
) -> None:
    """Draw mean against number of learners, with a band of one standard error."""
    plot = need("matplotlib.figure", "experiments")
    matplotlib = need("matplotlib", "experiments")
    summaries = [s for s in results.summaries(reading) if s.method in methods]
    # A fixed salt and no date: the same results give the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": "nysboost", "font.size": 10}):
        canvas = plot.Figure(figsize=(7.2, 4.4), layout="constrained")
        axes = canvas.add_subplot()
        for summary in sorted(summaries, key=lambda s: -float(s.mean[-1])):
            _curve(axes, results.counts, summary)
        _decorate(axes, results, figure, reading, summaries)
        with whole_file(path, "The figure") as file:
            canvas.savefig(file, format="png", dpi=110, metadata={"Software": SOFTWARE})
        with whole_file(path.with_suffix(".svg"), "The figure") as file:
            canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": SOFTWARE})


def _curve(axes: Any, counts: Sequence[int], summary: Summary) -> None:
    look = style(summary.method)
    dashes = (0, tuple(float(d) / 2 for d in look.dash.split())) if look.dash else "solid"
    axes.plot(
        counts,
        summary.mean,
        label=summary.method,
        color=look.colour,
        marker=look.mark,
        linestyle=dashes,
        markersize=4,
        linewidth=1.6,
    )
    if np.isfinite(summary.standard_error).all():
        low, high = (summary.mean + s * summary.standard_error for s in (-1, 1))
        axes.fill_between(counts, low, high, color=look.colour, alpha=0.15, linewidth=0)


def spread_out(summaries: Sequence[Summary]) -> bool:
    """Whether the means call for a logarithmic axis."""
    means = np.concatenate([summary.mean for summary in summaries])
    return bool(means.min() > 0 and means.max() / means.min() > LOGARITHMIC_FROM)


def _decorate(
    axes: Any, results: Results, figure: Figure, reading: str, summaries: Sequence[Summary]
) -> None:
    if spread_out(summaries):
        axes.set_yscale("log")
    replicates = len(next(iter(results.values[reading].values())))
    axes.set_xlabel("number of learners p")
    axes.set_ylabel(MEASURE_WORDS[results.preset.measure])
    axes.set_xticks([c for c in results.counts if c == 1 or c % 2 == 0 or len(results.counts) < 8])
    axes.set_title(
        f"{figure.label}\n{results.preset.title}\n"
        f"{READING_WORDS[reading]}; {replicates} replicates; band: one standard error",
        fontsize=9,
        loc="left",
    )
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
