"""The pictures of pages, from the figures that stand on them: ``python docs/_ext/pictures.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from measured import stored
from sklearn.datasets import make_moons

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1]
FIGURES = DOCS / "figures"
ORANGE, BLUE, TEAL, RED, PURPLE, GREY = (
    "#EE7733", "#0077BB", "#009988", "#CC3311", "#AA3377", "#777777",
)  # fmt: skip
LOOKS = {
    "NysBoost": (ORANGE, "o"),
    "LightGBM": (BLUE, "s"),
    "CatBoost": (TEAL, "D"),
    "random forest": (PURPLE, "^"),
    "exact Gaussian process": (RED, "v"),
    "linear model": (GREY, "X"),
}
NAMED = {
    "optimal": "right", "joint": "left", "spectral-shift": "left", "JJB-mean": "below",
    "kmeans": "right", "rpcholesky": "left", "uniform": "left", "URB-mean": "right",
    "ensemble-ridge": "left", "random-fourier": "left",
}  # fmt: skip
"""Methods that have their name in the picture of all systems, and how it is aligned."""


def save(figure: Any, name: str) -> None:
    """Write a picture on white, which dark pages show as it is."""
    figure.savefig(FIGURES / f"{name}.png", dpi=130, facecolor="white")
    plt.close(figure)


def read_rows(page: str, first: str) -> list[list[str]]:
    """Return the cells of the table of a page whose head begins with a word."""
    text = (DOCS / page).read_text(encoding="utf-8")
    table = re.search(rf"^\| {first}\b.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table, f"{page} has no table that begins with {first!r}"
    return [[c.strip(" `*") for c in r.split("|")[1:-1]] for r in table.group(1).splitlines()]


def draw_landmarks() -> None:
    """Draw random rows and optimised landmarks of two half moons, with their errors."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained", sharey=True)
    X, _ = make_moons(1500, noise=0.09, random_state=0)
    for axes, method, colour, label in (
        (panels[0], "uniform", GREY, "24 random rows"),
        (panels[1], "joint", ORANGE, "24 optimised landmarks"),
    ):
        found = nb.approximate(X, method, nb.Gaussian(sigma=0.35), n_components=24, random_state=0)
        axes.scatter(*X.T, s=4, color="#C9D3E0")
        axes.scatter(*found.landmarks.points.T, s=44, color=colour, edgecolor="white")
        axes.set(xticks=[], yticks=[], title=f"{label}: error {found.relative_error():.1%}")
    save(figure, "landmarks")


def draw_error_time() -> None:
    """Draw error against the time to fit, a panel for each table."""
    found = stored()["error_time"]
    names = [cell["table"] for cell in found["cells"] if cell["learner"] == "NysBoost"]
    down = -(-len(names) // 3)
    figure, panels = plt.subplots(
        down, 3, figsize=(10, 2.6 * down + 1), layout="constrained", squeeze=False
    )
    for axes in panels.flat[len(names) :]:
        axes.remove()
    for axes, name in zip(panels.flat, names, strict=False):
        cells = [cell for cell in found["cells"] if cell["table"] == name]
        least = min(cell["error"] for cell in cells)
        for cell in cells:
            colour, marker = LOOKS[cell["learner"]]
            size = 130 if cell["learner"] == "NysBoost" else 60
            axes.scatter(
                max(cell["seconds"], 0.01), cell["error"] / least, s=size, color=colour,
                marker=marker, edgecolor="white", zorder=3,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlim=(0.005, 300), ylim=(0.88, None))
        axes.set_title(f"{name}, {cells[0]['rows']:,} rows", fontsize=13)
        axes.tick_params(labelsize=11)
        top = axes.get_ylim()[1]
        steps = (1, 2, 5, 10, 20) if top > 5 else (1, 1.2, 1.5, 2, 3)
        ticks = [t for t in steps if t <= top]
        axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
        axes.set_yticks([], minor=True)
        axes.grid(alpha=0.25)
    marks = [
        plt.Line2D([], [], color=c, marker=m, ls="", ms=8, label=n) for n, (c, m) in LOOKS.items()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=12)
    for axes in panels[-1]:
        axes.set_xlabel("processor seconds to fit", fontsize=12)
    for axes in panels[:, 0]:
        axes.set_ylabel("error / the smallest", fontsize=12)
    save(figure, "error_time")


def draw_systems() -> None:
    """Draw mean error against time of all methods, with the Pareto front and ten names."""
    rows = read_rows("systems.md", "method")
    names = [row[0] for row in rows]
    errors = np.exp([np.mean(np.log([float(cell) for cell in row[1:6]])) for row in rows])
    seconds = np.array([max(float(row[6]), 0.01) for row in rows])
    figure, axes = plt.subplots(figsize=(8.5, 5), layout="constrained")
    axes.scatter(seconds, errors, s=26, color="#9DB4D3", zorder=2)
    order = [i for i in np.lexsort((errors, seconds)) if names[i] != "optimal"]  # n ≤ 10,000
    front = [i for k, i in enumerate(order) if errors[i] < min([np.inf, *errors[order[:k]]])]
    axes.plot(seconds[front], errors[front], drawstyle="steps-post", color=GREY, lw=1, zorder=1)
    offsets = {"left": (7, 4), "right": (-7, -2), "below": (0, -14)}
    for name, side in NAMED.items():
        i = names.index(name)
        colour = ORANGE if name == "joint" else "black"
        axes.scatter(seconds[i], errors[i], s=36, color=colour, zorder=3)
        text = "optimal: the limit" if name == "optimal" else name
        axes.annotate(
            text, (seconds[i], errors[i]), offsets[side], textcoords="offset points",
            ha="center" if side == "below" else side, fontsize=9, color=colour,
        )  # fmt: skip
    axes.set(
        xscale="log", yscale="log", xlim=(0.006, 2.5), xlabel="processor seconds to fit",
        ylabel="relative error, geometric mean of five data sets",
    )  # fmt: skip
    axes.grid(alpha=0.25)
    save(figure, "systems")


def draw_zoo() -> None:
    """Draw a line of dots for each data set, one for each kernel, sorted by the median."""
    rows = {row[0]: [float(cell) for cell in row[1:]] for row in read_rows("zoo.md", "data")}
    names = sorted(rows, key=lambda name: np.median(rows[name]), reverse=True)
    figure, axes = plt.subplots(figsize=(8.5, 5.2), layout="constrained")
    for at, name in enumerate(names):
        axes.scatter(rows[name], [at] * len(rows[name]), s=30, color=BLUE, alpha=0.55, lw=0)
        axes.scatter(np.median(rows[name]), at, s=70, marker="|", color="black")
    axes.axvline(1, color=GREY, lw=1)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.05), xlabel="error of joint / error of the best other method")
    axes.set_title("left of 1 joint is better; bars are medians of eight kernels", fontsize=10)
    axes.grid(alpha=0.25, axis="x")
    save(figure, "zoo")


def draw_all() -> None:
    """Draw every picture of the pages."""
    for draw in (draw_landmarks, draw_error_time, draw_systems, draw_zoo):
        draw()


if __name__ == "__main__":
    draw_all()
