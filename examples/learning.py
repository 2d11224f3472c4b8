"""Learning in seconds: landmarks that know the target, beside those that do not, and trees.

4000 rows of eight features, of which two directions matter. Prints a table and saves a picture of
the test error against the number of landmarks.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

LANDMARKS = (10, 30, 100)
LOOKS = {
    "scikit-learn's Nystroem": ("0.6", ":"),
    "uniform landmarks, tuned": ("0.3", "--"),
    "gradient-boosted trees": ("#009E73", "-."),
    "NysBoost": ("#D55E00", "-"),
}


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a wave along one direction and a step across another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    along, across = X @ np.array([1, 1, -1, 0.5, 0, 0, 0, 0]), X[:, 4] - X[:, 5]
    return X, np.sin(2 * along) + np.tanh(3 * across) + 0.05 * rng.normal(size=n)


def learners(c: int) -> dict[str, object]:
    """Return the contestants with c landmarks."""
    return {
        "scikit-learn's Nystroem": make_pipeline(
            Nystroem(n_components=c, random_state=0), RidgeCV(np.logspace(-6, 2, 9))
        ),
        "uniform landmarks, tuned": nb.NystroemRegressor(c, landmarks="uniform", random_state=0),
        "gradient-boosted trees": HistGradientBoostingRegressor(random_state=0),
        "NysBoost": nb.NystroemRegressor(c, random_state=0),
    }


def main() -> None:
    """Fit, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    (X, y), (fresh, truth) = data(4000, 0), data(2000, 1)
    table = Table("landmarks", *LOOKS, title="Test RMSE (seconds to fit); the noise is 0.05")
    errors: dict[str, list[float]] = {name: [] for name in LOOKS}
    for c in LANDMARKS:
        cells = []
        for name, model in learners(c).items():
            start = time.perf_counter()
            model.fit(X, y)  # type: ignore[attr-defined]
            seconds = time.perf_counter() - start
            error = float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)))  # type: ignore[attr-defined]
            errors[name].append(error)
            cells.append(f"{error:.3f} ({seconds:.1f})")
        table.add_row(str(c), *cells)
    Console().print(table)
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, (colour, dash) in LOOKS.items():
        axes.plot(LANDMARKS, errors[name], label=name, color=colour, linestyle=dash, marker="o")
    axes.set(xscale="log", yscale="log", xlabel="landmarks", ylabel="test RMSE")
    axes.legend(frameon=False)
    figure.savefig(out / "learning.png", dpi=110)
    Console().print(f"The picture is {out / 'learning.png'}.")


if __name__ == "__main__":
    main()
