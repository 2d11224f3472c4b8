"""The zoo's tables and heat map: every cell's ratio, the worst ones named."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from common import progress, table

PEERS = ("uniform", "kmeans", "rpcholesky", "greedy", "rls")
ROUNDING = 1e-12
"""Errors below this are rounding, and count as this."""

Cell = tuple[str, str, int]
Errors = dict[Cell, dict[str, dict[int, float]]]


def errors_of(records: list[dict[str, Any]], measure: str) -> Errors:
    """Return each cell's errors, by method and seed."""
    errors: Errors = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if measure in record:
            cell = (record["data"], record["kernel"], record["c"])
            errors[cell][record["method"]][record["seed"]] = max(record[measure], ROUNDING)
    return errors


def ratios(cells: Errors, method: str, against: tuple[str, ...]) -> dict[Cell, float]:
    """Return each cell's mean error of a method, over the smallest of some others.

    The means are over the seeds that all of them have.
    """
    found = {}
    for cell, errors in cells.items():
        names = (method, *against)
        seeds = set.intersection(*(set(errors.get(name, ())) for name in names))
        if seeds:
            ours, *theirs = (np.mean([errors[name][seed] for seed in seeds]) for name in names)
            found[cell] = float(ours / min(theirs))
    return found


COMPARISONS = (
    ("joint / best peer", "frobenius", "joint", PEERS, False, 1.02, 0.55),
    ("joint / best peer, held out", "held_out", "joint", PEERS, False, 1.02, 0.80),
    ("joint / best peer, 50,000 rows", "held_out", "joint", PEERS, True, 1.02, None),
    ("JJB-mean / rpcholesky", "frobenius", "JJB-mean", ("rpcholesky",), False, 1.05, 0.85),
    ("joint / optimum", "frobenius", "joint", ("optimal",), False, None, 1.5),
)


def print_tables(records: list[dict[str, Any]], out: Path, worst: int = 12) -> None:
    """Print the summary and the worst cells, and draw the heat map beside the records."""
    lines, named = [], []
    for title, measure, method, against, large, limit, goal in COMPARISONS:
        some = [record for record in records if record["large"] == large]
        found = ratios(errors_of(some, measure), method, against)
        if not found:
            continue
        values = np.array(list(found.values()))
        mean = float(np.exp(np.log(values).mean()))
        above = "" if limit is None else f"{int((values > limit).sum())} above {limit}"
        lines.append(
            [title, str(len(values)), f"{mean:.3f}", _goal(goal), f"{values.max():.3f}", above]
        )
        largest = sorted(found, key=found.__getitem__, reverse=True)[:worst]
        named += [[title, *map(str, cell), f"{found[cell]:.3f}"] for cell in largest]
    header = ["ratio", "cells", "geometric mean", "goal", "largest", "cells missed"]
    print(table(header, lines, True), "\n\nThe worst cells\n")
    print(table(["ratio", "data", "kernel", "c", ""], named, True))
    small = [record for record in records if not record["large"]]
    maps = {
        "in sample": ratios(errors_of(small, "frobenius"), "joint", PEERS),
        "on held-out rows": ratios(errors_of(small, "held_out"), "joint", PEERS),
    }
    _draw(maps, out.with_suffix(".png"))


def _goal(goal: float | None) -> str:
    return "" if goal is None else f"{goal:.2f}"


def _draw(maps: dict[str, dict[Cell, float]], path: Path) -> None:
    """Draw the ratios, a map for each measure: rows are data sets, columns kernels and sizes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        progress("matplotlib is not installed: no picture")
        return
    if not all(maps.values()):
        return
    figure = Figure(figsize=(14, 6.2 * len(maps)), layout="constrained")
    for axes, (where, found) in zip(figure.subplots(len(maps)), maps.items(), strict=True):
        image = _map(axes, found)
        worst = sorted(found, key=found.__getitem__, reverse=True)[:4]
        named = "; ".join(
            f"{data} {kernel} {c}: {found[data, kernel, c]:.2f}" for data, kernel, c in worst
        )
        axes.set_title(
            f"Error of joint / error of the best peer, {where}. Largest: {named}", fontsize=10
        )
        figure.colorbar(image, label="log₂ of the ratio: below zero joint is ahead")
    figure.savefig(path, dpi=110)


def _map(axes: Any, found: dict[Cell, float]) -> Any:
    """Draw one map, with each cell's ratio in it."""
    from matplotlib.colors import TwoSlopeNorm

    data = sorted({cell[0] for cell in found})
    kernels = sorted({cell[1] for cell in found}, key=lambda kernel: (len(kernel) > 5, kernel))
    columns = [(kernel, c) for kernel in kernels for c in sorted({cell[2] for cell in found})]
    grid = np.full((len(data), len(columns)), np.nan)
    for (name, kernel, c), value in found.items():
        grid[data.index(name), columns.index((kernel, c))] = value
    norm = TwoSlopeNorm(0, vmin=-2, vmax=1)
    image = axes.imshow(np.log2(grid), cmap="RdBu_r", norm=norm, aspect="auto")
    axes.set_yticks(range(len(data)), data)
    axes.set_xticks(range(len(columns)), [f"{kernel} {c}" for kernel, c in columns], rotation=90)
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            colour = "white" if value < 0.35 or value > 1.6 else "black"
            place = {"ha": "center", "va": "center", "fontsize": 6.5, "color": colour}
            axes.text(column, row, f"{value:.2f}", **place)
    return image
