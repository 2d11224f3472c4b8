"""The paper's simulation in seconds: ten methods and the SVD optimum.

1000 points from N(0, I₂), Gaussian kernel with σ = 1, learners of m = k = 10 columns,
V, V1 and V2 of 100, 20 and 20 columns (Section 3.1). Prints a table and saves a picture
of the error against the number of learners.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import nysboost as nb

mpl.use("Agg")
import matplotlib.pyplot as plt

METHODS = {
    "ensemble-uniform": ("0.6", ":"),
    "ensemble-exponential": ("0.45", "-."),
    "ensemble-ridge": ("black", "--"),
    "UUB-mean": ("#E69F00", "-"),
    "UEB-mean": ("#56B4E9", "-"),
    "URB-mean": ("#0072B2", "-"),
    "URB-med": ("#009E73", "-"),
    "URB-SF": ("#CC79A7", "-"),
    "RRB-mean": ("#D55E00", "-"),
    "RRB-med": ("#8C510A", "-"),
}
N_POINTS, N_LEARNERS, N_COLUMNS = 1000, 12, 10
KERNEL = nb.Gaussian(sigma=1.0)


def errors_of(method: str, X: np.ndarray, seed: int) -> Iterator[float]:
    """Yield the relative error with 1, 2, … learners: the prefixes of one run."""
    approx = nb.approximate(
        X,
        method,
        KERNEL,
        n_learners=N_LEARNERS,
        n_columns=N_COLUMNS,
        n_candidates=100,
        n_fit=20,
        n_tune=20,
        random_state=seed,
    )
    for p in range(1, N_LEARNERS + 1):
        yield approx.prefix(p).relative_error()


def optimal_errors(X: np.ndarray) -> list[float]:
    """Return the smallest error that rank p·m allows, for each p."""
    squares = np.linalg.eigvalsh(nb.Gaussian(gamma=0.5)(X, X))[::-1] ** 2
    ranks = N_COLUMNS * np.arange(1, N_LEARNERS + 1)
    return [float(np.sqrt(squares[rank:].sum() / squares.sum())) for rank in ranks]


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console()
    jobs = [(method, r) for r in range(options.replicates) for method in METHODS]
    errors = {method: np.zeros((options.replicates, N_LEARNERS)) for method in METHODS}
    for method, r in track(jobs, "Fitting", console=console):
        X = np.random.default_rng([options.seed, r]).normal(size=(N_POINTS, 2))
        errors[method][r] = list(errors_of(method, X, seed=r))
    optimum = optimal_errors(X)
    _print_table(console, errors, optimum)
    picture = options.out / "demo.png"
    options.out.mkdir(parents=True, exist_ok=True)
    _draw(errors, picture)
    console.print(f"Error against number of learners: [bold]{picture}[/]")


def _print_table(console: Console, errors: dict[str, np.ndarray], optimum: list[float]) -> None:
    shown = [1, 2, 4, 8, N_LEARNERS]
    table = Table(title="Relative Frobenius error, mean over replicates")
    table.add_column("method")
    for p in shown:
        table.add_column(f"p = {p}", justify="right")
    for method, values in sorted(errors.items(), key=lambda item: item[1][:, -1].mean()):
        table.add_row(method, *(f"{values[:, p - 1].mean():.4f}" for p in shown))
    table.add_row("SVD optimum of rank p·m", *(f"{optimum[p - 1]:.2g}" for p in shown))
    console.print(table)


def _draw(errors: dict[str, np.ndarray], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    learners = np.arange(1, N_LEARNERS + 1)
    for method, (colour, style) in METHODS.items():
        axes.plot(learners, errors[method].mean(axis=0), style, color=colour, label=method)
    axes.set(
        xlabel="number of learners p",
        ylabel="relative Frobenius error",
        yscale="log",
        title="Simulation of the paper: 1000 points, Gaussian kernel σ = 1, m = k = 10",
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend(ncols=2, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
