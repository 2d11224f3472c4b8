"""The pictures of pages, from the figures that stand on them: ``python docs/_ext/pictures.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from measured import FRONT_TABLES, mean_error, stored
from sklearn.datasets import make_moons

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1]
FIGURES = DOCS / "figures"
ORANGE, BLUE, TEAL, RED, PURPLE, GREY = (
    "#EE7733", "#0077BB", "#009988", "#CC3311", "#AA3377", "#777777",
)  # fmt: skip
STYLE = {
    "font.size": 12.5,
    "axes.titlesize": 12.5,
    "axes.labelsize": 12.5,
    "legend.fontsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Letters that can be read on a phone, where a picture of 5.8 inches is 360 pixels wide."""

LOOKS = {
    "NysBoost": (ORANGE, "o"),
    "LightGBM": (BLUE, "s"),
    "CatBoost": (TEAL, "D"),
    "exact Gaussian process": (RED, "v"),
    "linear model": (GREY, "X"),
}
TITLES = {"mnist": "MNIST", "covertype": "Covertype", "pendigits": "Pendigits"}
METHODS = {
    "joint": (ORANGE, "o"),
    "kmeans": (BLUE, "s"),
    "rpcholesky": (TEAL, "D"),
    "uniform": (GREY, "X"),
    "URB-mean": (PURPLE, "^"),
}
MIXTURES = {
    "ensemble-uniform": (GREY, "X", "ensemble, equal weights"),
    "ensemble-ridge": (BLUE, "s", "ensemble, ridge weights"),
    "RRB-mean": (PURPLE, "^", "boosting, RRB-mean"),
    "URB-mean": (ORANGE, "o", "boosting, URB-mean"),
}
INTERVALS = {
    "NysBoost": (ORANGE, "o"),
    "exact Gaussian process": (RED, "v"),
    "trees, quantile loss": (BLUE, "s"),
}
FITS = {
    "NystroemRegressor": (ORANGE, "o", "NystroemRegressor: fit"),
    "exact": (RED, "v", "exact kernel ridge regression: fit"),
    "Nystroem": (PURPLE, "^", "Nystroem: fit and transform"),
    "scikit-learn's Nystroem": (BLUE, "s", "scikit-learn's Nystroem: fit and transform"),
}
NAMED = {
    "optimal": "left",
    "joint": "above",
    "spectral-shift": "above",
    "kmeans": "left",
    "rpcholesky": "below",
    "uniform": "above",
    "URB-mean": "below",
    "ensemble-ridge": "above",
    "random-fourier": "above",
}
"""Methods whose name is in the picture of all systems, and where it stands beside the dot."""


def save(figure: Any, name: str) -> None:
    """Write a picture on white; the style sheet inverts it on dark pages."""
    figure.savefig(FIGURES / f"{name}.png", dpi=150, facecolor="white")
    plt.close(figure)


def new_figure(width: float, height: float, *grid: int) -> tuple[Any, Any]:
    """Return a figure and its panels."""
    return plt.subplots(*grid, figsize=(width, height), layout="constrained", squeeze=False)


def put_plain_ticks(axes: Any, which: str, values: Sequence[float]) -> None:
    """Write the numbers at a logarithmic axis as people do, those within its limits."""
    low, high = getattr(axes, f"get_{which}lim")()
    inside = [value for value in values if low <= value <= high]
    put = getattr(axes, f"set_{which}ticks")
    put(inside, [f"{value:,.0f}" if value >= 1000 else f"{value:g}" for value in inside])
    put([], minor=True)


def draw_landmarks() -> None:
    """Draw random rows and optimised landmarks of two half moons, with their errors."""
    figure, panels = new_figure(5.8, 2.5, 1, 2)
    X, _ = make_moons(1500, noise=0.09, random_state=0)
    for axes, method, colour, label in (
        (panels[0, 0], "uniform", GREY, "24 random rows"),
        (panels[0, 1], "joint", ORANGE, "24 landmarks"),
    ):
        found = nb.approximate(X, method, nb.Gaussian(sigma=0.35), n_components=24, random_state=0)
        axes.scatter(*X.T, s=3, color="#C9D3E0")
        axes.scatter(*found.landmarks.points.T, s=36, color=colour, edgecolor="white")
        axes.set(xticks=[], yticks=[], title=f"{label}\nerror {found.relative_error():.1%}")
        axes.spines[:].set_visible(False)
    save(figure, "landmarks")


def draw_matrix_error() -> None:
    """Draw error against the number of columns, a panel for each data set."""
    found = stored()["evidence"]
    columns = found["columns"]
    names = list(dict.fromkeys(curve["of"][0] for curve in found["matrix"]))
    figure, panels = new_figure(5.8, 6.2, 2, 2)
    for axes, name in zip(panels.flat, names, strict=False):
        for curve in found["matrix"]:
            data, method = curve["of"]
            if data != name:
                continue
            if method == "optimal":
                axes.plot(columns, curve["values"], color="black", ls=":", label="best possible")
                continue
            colour, marker = METHODS[method]
            axes.plot(columns, curve["values"], color=colour, marker=marker, ms=5, label=method)
        axes.set(xscale="log", yscale="log", title=TITLES[name], xlabel="number of columns")
        put_plain_ticks(axes, "x", (20, 40, 80, 240))
        least, most = axes.get_ylim()
        put_plain_ticks(
            axes, "y", (1e-4, 1e-3, 1e-2, 1e-1) if most > 20 * least else (0.1, 0.2, 0.4)
        )
        axes.grid(alpha=0.25)
    for axes in panels[:, 0]:
        axes.set_ylabel("relative error")
    for axes in panels.flat[len(names) :]:
        axes.set_axis_off()
        axes.legend(*panels[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    save(figure, "matrix_error")


def draw_boosting_error() -> None:
    """Draw error against the number of learners, for boosting and the ensemble."""
    found = stored()["evidence"]["boosting"]
    figure, panels = new_figure(5.8, 3.8, 1, 1)
    axes = panels[0, 0]
    for method, (colour, marker, label) in MIXTURES.items():
        learners = range(1, len(found[method]) + 1)
        axes.plot(learners, found[method], color=colour, marker=marker, ms=5, label=label)
    axes.set(xlabel="number of learners, with 10 columns each", ylabel="relative error", ylim=0)
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    save(figure, "boosting_error")


def draw_error_time() -> None:
    """Draw error against the time to fit, a panel for each table."""
    found = stored()["tables"]["of"]
    down = -(-len(FRONT_TABLES) // 2)
    figure, panels = new_figure(5.8, 2.7 * down + 1, down, 2)
    figure.get_layout_engine().set(h_pad=0.12)
    for axes, name in zip(panels.flat, FRONT_TABLES, strict=True):
        table = found[name]
        drawn = [who for who in LOOKS if who in table["error"]]
        least = min(table["error"][who] for who in drawn)
        for who in drawn:
            colour, marker = LOOKS[who]
            seconds = max(table["seconds"][who], 0.01)
            size = 110 if who == "NysBoost" else 55
            axes.scatter(
                seconds, table["error"][who] / least, s=size, color=colour,
                marker=marker, edgecolor="white", zorder=3,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlim=(0.005, 300), ylim=(0.88, None))
        axes.set_title(f"{name}, {table['rows']:,} rows")
        most = axes.get_ylim()[1]
        put_plain_ticks(axes, "y", (1, 2, 5, 10, 20) if most > 5 else (1, 1.2, 1.5, 2, 3))
        put_plain_ticks(axes, "x", (0.01, 0.1, 1, 10, 100))
        axes.grid(alpha=0.25)
    marks = [
        plt.Line2D([], [], color=c, marker=m, ls="", ms=8, label=n) for n, (c, m) in LOOKS.items()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False)
    for axes in panels[-1]:
        axes.set_xlabel("processor seconds to fit")
    for axes in panels[:, 0]:
        axes.set_ylabel("error / smallest error")
    save(figure, "error_time")


def draw_intervals() -> None:
    """Draw how many test rows are inside their interval, and how wide intervals are."""
    found = stored()["evidence"]
    stated = [100 * coverage for coverage in found["coverages"]]
    figure, panels = new_figure(5.8, 6.4, 2, 1)
    above, below = panels[:, 0]
    above.axline((50, 50), slope=1, color="black", ls=":", label="as stated")
    for learner, (colour, marker) in INTERVALS.items():
        mine = [curve["values"] for curve in found["inside"] if curve["of"][0] == learner]
        inside = 100 * np.array(mine)
        above.plot(stated, inside.mean(axis=0), color=colour, marker=marker, label=learner)
        above.fill_between(stated, inside.min(axis=0), inside.max(axis=0), color=colour, alpha=0.1)
    above.set(xlabel="stated coverage, %", ylabel="test rows inside, %", xticks=stated)
    above.legend(frameon=False)
    above.grid(alpha=0.25)

    tables = [curve["of"][1] for curve in found["width"] if curve["of"][0] == "NysBoost"]
    at = found["coverages"].index(0.9)
    for shift, (learner, (colour, marker)) in enumerate(INTERVALS.items()):
        widths = [curve["values"][at] for curve in found["width"] if curve["of"][0] == learner]
        places = np.arange(len(tables)) + 0.2 * (shift - 1)
        below.plot(places, widths, color=colour, marker=marker, ls="")
    below.set_xticks(range(len(tables)), tables)
    below.set(ylabel="mean width of 90 % intervals\n(standard deviations of y)", ylim=0)
    below.grid(alpha=0.25, axis="y")
    save(figure, "intervals")


def draw_scale() -> None:
    """Draw the time to fit against the number of rows."""
    found = stored()["evidence"]["scale"]
    figure, panels = new_figure(5.8, 4.6, 1, 1)
    axes = panels[0, 0]
    for what, (colour, marker, label) in FITS.items():
        rows, seconds = zip(*found[what], strict=True)
        axes.plot(rows, seconds, color=colour, marker=marker, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds")
    put_plain_ticks(axes, "x", (1e3, 1e4, 1e5, 1e6))
    put_plain_ticks(axes, "y", (0.01, 0.1, 1, 10, 100))
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", frameon=False)
    save(figure, "scale")


def draw_systems() -> None:
    """Draw mean error against time of all methods, with the Pareto front and ten names."""
    methods = stored()["systems"]["of"]
    names = list(methods)
    errors = np.array([mean_error(method) for method in methods.values()])
    seconds = np.array([max(method["seconds"], 0.01) for method in methods.values()])
    figure, panels = new_figure(5.8, 5.4, 1, 1)
    axes = panels[0, 0]
    axes.scatter(seconds, errors, s=26, color="#9DB4D3", zorder=2)
    order = [i for i in np.lexsort((errors, seconds)) if names[i] != "optimal"]  # n ≤ 10,000
    front = [i for k, i in enumerate(order) if errors[i] < min([np.inf, *errors[order[:k]]])]
    axes.plot(seconds[front], errors[front], drawstyle="steps-post", color=GREY, lw=1, zorder=1)
    offsets = {"above": (6, 5), "below": (6, -13), "left": (-8, -4)}
    for name, side in NAMED.items():
        i = names.index(name)
        colour = ORANGE if name == "joint" else "black"
        axes.scatter(seconds[i], errors[i], s=36, color=colour, zorder=3)
        text = "optimal: the limit" if name == "optimal" else name
        axes.annotate(
            text, (seconds[i], errors[i]), offsets[side], textcoords="offset points",
            ha="right" if side == "left" else "left", fontsize=11, color=colour,
        )  # fmt: skip
    axes.set(
        xscale="log", yscale="log", xlim=(0.006, 2.5), xlabel="processor seconds to fit",
        ylabel="relative error, mean of five data sets",
    )  # fmt: skip
    put_plain_ticks(axes, "x", (0.01, 0.1, 1))
    put_plain_ticks(axes, "y", (0.003, 0.01, 0.03, 0.1))
    axes.grid(alpha=0.25)
    save(figure, "systems")


def draw_zoo() -> None:
    """Draw a line of dots for each data set, one for each kernel, sorted by the median."""
    cells = stored()["zoo"]["cells"]
    rows = {data: list(ratios.values()) for data, ratios in cells.items()}
    names = sorted(rows, key=lambda name: np.median(rows[name]), reverse=True)
    figure, panels = new_figure(5.8, 5.2, 1, 1)
    axes = panels[0, 0]
    for at, name in enumerate(names):
        axes.scatter(rows[name], [at] * len(rows[name]), s=30, color=BLUE, alpha=0.55, lw=0)
        axes.scatter(np.median(rows[name]), at, s=70, marker="|", color="black")
    axes.axvline(1, color=GREY, lw=1)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.05), xlabel="error of joint / error of the best other method")
    axes.set_title("Left of 1, joint is better. Bars: medians.")
    axes.grid(alpha=0.25, axis="x")
    save(figure, "zoo")


def draw_all() -> None:
    """Draw every picture of the pages."""
    drawn = (
        *(draw_landmarks, draw_matrix_error, draw_boosting_error, draw_error_time),
        *(draw_intervals, draw_scale, draw_systems, draw_zoo),
    )
    with plt.rc_context(STYLE):
        for draw in drawn:
            draw()


if __name__ == "__main__":
    draw_all()
