"""Learning in seconds: landmarks that know the labels, beside those that do not, and trees.

The 1797 handwritten digits that scikit-learn brings along, a quarter of them held out. Prints a
table and saves a picture of the accuracy against the number of landmarks.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

LANDMARKS = (10, 20, 40)
GAMMA = 1 / (64 * 36.2)
"""1 / (number of features · their variance), which scikit-learn's `SVC` calls "scale"."""

LOOKS = {
    "scikit-learn's Nystroem": ("0.6", ":"),
    "500 random trees": ("#009E73", "-."),
    "NysBoost": ("#D55E00", "-"),
}


def learners(c: int) -> dict[str, Any]:
    """Return the contestants that have c landmarks."""
    uniform = Nystroem(gamma=GAMMA, n_components=c, random_state=0)
    return {
        "scikit-learn's Nystroem": make_pipeline(uniform, RidgeClassifier(1e-3)),
        "NysBoost": nb.NystroemClassifier(c, random_state=0),
    }


def timed(model: Any, X: Any, y: Any) -> float:
    """Fit, and return the seconds that it took."""
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main() -> None:
    """Fit, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    digits, labels = load_digits(return_X_y=True)
    X, fresh, y, truth = train_test_split(digits, labels, random_state=0, stratify=labels)
    trees = RandomForestClassifier(500, random_state=0)
    with console.status("trees"):
        seconds = timed(trees, X, y)
    accuracy = {name: [trees.score(fresh, truth)] * len(LANDMARKS) for name in LOOKS}
    title = f"Accuracy on {len(truth)} held-out digits (seconds to fit)"
    table = Table("landmarks", *learners(1), title=title)
    for i, c in enumerate(LANDMARKS):
        cells = []
        for name, model in learners(c).items():
            with console.status(f"{name}, {c} landmarks"):
                took = timed(model, X, y)
            accuracy[name][i] = model.score(fresh, truth)
            cells.append(f"{accuracy[name][i]:.3f} ({took:.1f})")
        table.add_row(str(c), *cells)
    console.print(table)
    known = accuracy["500 random trees"][0]
    console.print(f"500 random trees, each with all rows: {known:.3f} ({seconds:.1f}).")
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, (colour, dash) in LOOKS.items():
        marker = None if "trees" in name else "o"
        axes.plot(
            LANDMARKS, accuracy[name], label=name, color=colour, linestyle=dash, marker=marker
        )
    axes.set(xlabel="landmarks", ylabel="accuracy on held-out digits", xticks=LANDMARKS)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(out / "learning.png", dpi=110)
    console.print(f"The picture is {out / 'learning.png'}.\n")


if __name__ == "__main__":
    main()
