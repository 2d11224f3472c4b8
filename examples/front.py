"""The picture and the three numbers of the front page: ``python examples/front.py``."""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn import kernel_approximation
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

SIZES = (10, 20, 40, 80)
GREY, TEAL, ORANGE = "#777777", "#009988", "#EE7733"
MEGABYTE = 2**20


def accuracies() -> dict[str, list[float]]:
    """Return the accuracy on test digits with landmarks of three kinds, the mean of three seeds."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1000, random_state=0)
    gamma = 1 / (X.shape[1] * X.var())

    def accuracy(make, c):
        pipelines = [make_pipeline(make(c, seed), RidgeClassifier(0.01)) for seed in range(3)]
        return float(np.mean([p.fit(X_train, y_train).score(X_test, y_test) for p in pipelines]))

    kinds = {
        "rows at random: scikit-learn's Nystroem": lambda c, seed: kernel_approximation.Nystroem(
            gamma=gamma, n_components=c, random_state=seed
        ),
        "landmarks that serve the matrix": lambda c, seed: nb.Nystroem(
            gamma=gamma, n_components=c, random_state=seed
        ),
        "landmarks that know the labels": lambda c, seed: nb.Nystroem(
            method="target", n_components=c, random_state=seed
        ),
    }
    return {kind: [accuracy(make, c) for c in SIZES] for kind, make in kinds.items()}


def errors() -> tuple[float, float]:
    """Return the matrix errors of uniform landmarks and of `joint`: 100 of each, on the digits."""
    X = load_digits().data
    found = [
        nb.approximate(X, method, sigma="median", n_components=100, random_state=0)
        for method in ("uniform", "joint")
    ]
    return found[0].relative_error(), found[1].relative_error()


def megabytes_held(budget: str) -> tuple[float, float]:
    """Return what writing the features of 100,000 rows to a file holds, and the file's size."""
    rows = np.random.default_rng(0).normal(size=(100_000, 10)).astype(np.float32)
    fitted = nb.Nystroem(method="kmeans", n_components=100, max_memory=budget, random_state=0)
    fitted.fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        tracemalloc.start()
        features = fitted.transform(rows, out=Path(folder) / "features.npy")
        held = tracemalloc.get_traced_memory()[1] / MEGABYTE
        tracemalloc.stop()
        size = features.nbytes / MEGABYTE
        del features
    return held, size


def draw(scores: dict[str, list[float]], path: Path) -> None:
    """Draw landmarks before and after they moved, and what landmarks are worth."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.9), layout="constrained", width_ratios=(1.05, 1)
    )
    X, _ = make_moons(1500, noise=0.09, random_state=0)
    left.scatter(*X.T, s=5, color="#C9D3E0")
    for method, colour, mark, label in (
        ("uniform", GREY, "x", "rows at random"),
        ("joint", ORANGE, "o", "landmarks that moved"),
    ):
        found = nb.approximate(X, method, nb.Gaussian(sigma=0.35), n_components=24, random_state=0)
        label = f"{label}: error {found.relative_error():.0e}".replace("e-0", "e-")
        left.scatter(*found.landmarks.points.T, s=40, marker=mark, color=colour, label=label)
    left.set(xticks=[], yticks=[], title="24 landmarks stand for 1500 points")
    left.set_ylim(-0.9, 1.75)
    left.legend(frameon=False, loc="upper right", fontsize=9)
    for (kind, values), colour in zip(scores.items(), (GREY, TEAL, ORANGE), strict=True):
        right.plot(SIZES, values, "o-", color=colour, label=kind)
    right.set(xscale="log", xlabel="landmarks", title="Accuracy on test digits")
    right.set_xticks(SIZES, SIZES)
    right.minorticks_off()
    right.grid(alpha=0.3)
    right.legend(frameon=False, loc="lower right", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Print the numbers and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/front.png"))
    path = parser.parse_args().out
    scores = accuracies()
    at = SIZES.index(20)
    random, _, known = (values[at] for values in scores.values())
    print(f"Accuracy on test digits, 20 landmarks: {known:.3f}; rows at random: {random:.3f}")
    uniform, joint = errors()
    print(f"Error of the matrix, 100 landmarks: {joint:.2e}; rows at random: {uniform:.2e}")
    held, size = megabytes_held("10MB")
    print(f"Held while {size:.0f} MB of features are written, max_memory 10MB: {held:.1f} MB")
    draw(scores, path)
    print(path)


if __name__ == "__main__":
    main()
