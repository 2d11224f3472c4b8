"""NysBoost in a minute: the paper's method, a table from file to predictions, and digits.

1. The paper's simulation: boosting against the ensemble by number of learners, with a paired test.
2. A table with categories and gaps: a CSV file, ``nysboost fit``, ``nysboost predict`` with 90 %
   intervals, and gradient-boosted trees on the same rows.
3. Handwritten digits: accuracy and log loss against trees and logistic regression.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import ttest_rel
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import nysboost as nb

DISTRICTS = {"north": 1.0, "south": 1.2, "harbour": 1.4, "old town": 1.7}
REPLICATES, LEARNERS = 20, 20
SHOWN = (1, 4, 8, 12, 16, 20)


def rents(n: int) -> pd.DataFrame:
    """Return rents of n flats: a category, a column with gaps, a smooth function, noise."""
    rng = np.random.default_rng(0)
    flats = pd.DataFrame(
        {
            "area": rng.uniform(30, 160, n).round(1),
            "rooms": rng.integers(1, 6, n),
            "district": rng.choice(list(DISTRICTS), n),
            "built": rng.integers(1900, 2024, n).astype(float),
        }
    )
    age = (2024 - flats["built"]) / 124
    size = flats["area"] ** 0.9 * flats["district"].map(DISTRICTS)
    rent = 7 * size * (1.2 - 0.5 * np.sin(3 * age)) + 30 * flats["rooms"]
    flats["rent"] = (rent + 25 * rng.normal(size=n)).round()
    flats.loc[rng.choice(n, n // 10, replace=False), "built"] = np.nan
    return flats


def show_paper(console: Console) -> None:
    """Boosting against the ensemble on the simulation of the paper, replicate by replicate."""
    console.rule("1. The paper: boosting Nyström against the ensemble")
    kernel = nb.Gaussian(sigma=1.0)
    paths = {name: np.zeros((REPLICATES, LEARNERS)) for name in ("ensemble-ridge", "URB-mean")}
    joint = np.zeros(REPLICATES)
    for r in range(REPLICATES):
        X = np.random.default_rng(r).normal(size=(1000, 2))
        for method, errors in paths.items():
            run = nb.approximate(
                X, method, kernel, n_learners=LEARNERS, n_columns=10, random_state=r
            )
            errors[r] = run.error_path()
        joint[r] = nb.approximate(
            X, "joint", kernel, n_components=40, random_state=r
        ).relative_error()

    table = Table("error with … learners", *map(str, SHOWN))
    for method, errors in paths.items():
        table.add_row(method, *(f"{errors[:, p - 1].mean():.3f}" for p in SHOWN))
    console.print(table)

    boosting, ensemble = paths["URB-mean"], paths["ensemble-ridge"]
    reached = boosting.mean(axis=0) <= ensemble[:, -1].mean()
    wins = int((boosting[:, -1] < ensemble[:, -1]).sum())
    test = ttest_rel(boosting[:, -1], ensemble[:, -1], alternative="less")
    verdict = "holds" if test.pvalue < 0.01 else "is not decided"
    console.print(
        f"[bold]URB-mean reaches with {reached.argmax() + 1} learners what the ensemble has with "
        f"{LEARNERS}.[/] The paper's statement that it is better {verdict}: with {LEARNERS} "
        f"learners it has the smaller error in {wins} of {REPLICATES} replicates (paired t-test, "
        f"p = {test.pvalue:.0e}). 40 landmarks in one joint core have an error of "
        f"{joint.mean():.4f}. All statements of the paper: nysboost reproduce simulation.\n"
    )


def show_table(console: Console, out: Path) -> None:
    """From a file to predictions with intervals, by the command line; and trees beside it."""
    console.rule("2. A table: from a CSV file to predictions with intervals")
    train, test = train_test_split(rents(900), test_size=300, random_state=0)
    train.to_csv(out / "flats.csv", index=False)
    test.to_csv(out / "new.csv", index=False)
    fit = "fit flats.csv --target rent --out rent.nysboost --force"
    predict = (
        "predict rent.nysboost new.csv --interval 0.9 --keep rent --out predictions.csv --force"
    )
    for command in (fit, predict):
        console.print(f"[bold]$ nysboost {command}[/]")
        subprocess.run([sys.executable, "-m", "nysboost", *command.split()], cwd=out, check=True)
    found = pd.read_csv(out / "predictions.csv")
    console.print(found.head(3).round().to_string(index=False))
    inside = found["rent"].between(found["lower"], found["upper"]).mean()
    trees = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    X, Y = (t.drop(columns="rent").astype({"district": "category"}) for t in (train, test))
    with threadpool_limits(1):
        theirs = root_mean_squared_error(test["rent"], trees.fit(X, train["rent"]).predict(Y))
    ours = root_mean_squared_error(found["rent"], found["prediction"])
    console.print(
        f"[bold]Root mean squared error on 300 new flats: NysBoost {ours:.0f}, gradient-boosted "
        f"trees {theirs:.0f}[/] (the noise has 25). {inside:.0%} of their rents are in their 90 % "
        "interval.\n"
    )


def show_digits(console: Console) -> None:
    """Accuracy, log loss and time of three classifiers."""
    console.rule("3. Handwritten digits: classes with probabilities")
    X, y = load_digits(return_X_y=True)
    X, fresh, y, truth = train_test_split(X, y, random_state=0, stratify=y)
    table = Table("classifier", "wrong labels", "log loss", "seconds to fit")
    for name, model in {
        "logistic regression": LogisticRegression(max_iter=5000),
        "gradient-boosted trees": HistGradientBoostingClassifier(random_state=0),
        "NystroemClassifier": nb.NystroemClassifier(random_state=0),
    }.items():
        begun = time.perf_counter()
        with threadpool_limits(1):  # beside a busy process, trees took fifty times as long with two
            model.fit(X, y)
        took = time.perf_counter() - begun
        wrong, loss = 1 - model.score(fresh, truth), log_loss(truth, model.predict_proba(fresh))
        table.add_row(name, f"{wrong:.1%}", f"{loss:.3f}", f"{took:.1f}")
    console.print(table)
    console.print()


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the files")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    begun = time.perf_counter()
    show_paper(console)
    show_table(console, out)
    show_digits(console)
    console.print(f"\n{time.perf_counter() - begun:.0f} seconds. The files are in {out}.")


if __name__ == "__main__":
    main()
