"""Learners on all tables of a data folder: errors, ranks, Elo, time, and a picture.

Tables are uci/*.npz (regression, in their published splits), tables/*.csv.gz (with categories
and gaps; tables.json names target and task) and covtype, ijcnn1, mnist and pendigits (5,000 rows to
learn from, 5,000 to test), small ones first. Errors are those of TabArena (Erickson et al. 2025):
RMSE, 1 − AUC with two classes, log loss with more; the normalised error of a table is 0 for the
best learner and 1 for the median one or worse; Elo is the maximum of the Bradley-Terry likelihood
over all pairs of learners on each split, 1000 for the random forest, with 95 % intervals over
resampled tables. A learner that cannot do a table has the forest's result there, as in TabArena.

Every finished cell is a JSON line of --runs and is not run again. A learner of your own is any
class with fit and predict: --learner package.module:Class; it takes data frames with text and gaps.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from common import append, read, record_options
from common import table as format_table
from environment import machine, machine_line
from peers import REFERENCE, learners
from scipy.optimize import minimize
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit, train_test_split
from sklearn.preprocessing import LabelEncoder

import nysboost as nb

SPLITS = 5
LARGEST = {
    "exact Gaussian process": 2000,
    "TabM": 2000,
    "RealMLP": 2000,
    "EBM": 2000,
    "XGBoost": 20_000,
    "random forest": 20_000,
    "extra trees": 20_000,
    "xRFM": 10_000,
}
"""Training rows up to which a learner is run."""

IMAGES, SEEN = ("covtype", "ijcnn1", "mnist", "pendigits"), 5000


Cell: TypeAlias = dict[str, Any]
"""The record of one learner on one split of a table."""


class Data(NamedTuple):
    """X, y, and which rows are for testing, for each split."""

    X: pd.DataFrame
    y: np.ndarray
    splits: list[np.ndarray]


@dataclass(frozen=True)
class Table:
    """A table, and how it is read."""

    name: str
    classify: bool
    size: int
    read: Callable[[], Data]


def tables(folder: Path | None) -> list[Table]:
    """Return all tables of a data folder, small ones first; without one, two synthetic ones."""
    if folder is None:
        return [Table(f"synthetic {c}", c, 150, partial(_synthetic, c)) for c in (False, True)]

    # numbers in published splits
    found = []
    for path in (folder / "uci").glob("*.npz"):
        size = np.load(path)["y"].size
        found.append(Table(path.stem, False, size, partial(_uci, path)))

    # tables with categories and gaps
    known = json.loads((folder / "tables" / "tables.json").read_text())
    for name, about in known.items():
        classify = about["task"] == "classification"
        path = folder / "tables" / f"{name}.csv.gz"
        read_table = partial(_csv, path, about["target"], classify)
        found.append(Table(name, classify, about["rows"], read_table))

    # labelled rows, of which as many are learned as tested
    for name in IMAGES:
        read_table = partial(_image, folder / f"{name}.npz")
        found.append(Table(name, True, 2 * SEEN + 1, read_table))
    return sorted(found, key=lambda table: table.size)


def _synthetic(classify: bool) -> Data:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    X["colour"] = pd.Categorical(rng.choice(["red", "blue"], size=150))
    smooth = X["a"] ** 2 + 3.0 * (X["colour"] == "red")
    y = (smooth + 0.1 * rng.normal(size=150)).to_numpy()
    if classify:
        y = (y > np.median(y)).astype(int)
    return Data(X, y, _folds(y, classify))


def _uci(path: Path) -> Data:
    stored = np.load(path)
    X = pd.DataFrame(stored["X"].astype(np.float64)).rename(columns=str)
    y = stored["y"].astype(np.float64).ravel()
    return Data(X, y, list(stored["test_mask"].T[:SPLITS]))


def _csv(path: Path, target: str, classify: bool) -> Data:
    X = pd.read_csv(path, na_values=["?"]).dropna(subset=[target])
    y = X.pop(target)
    texts = X.select_dtypes(exclude="number").columns
    X[texts] = X[texts].astype("category")
    if classify:
        numbers = LabelEncoder().fit_transform(y)
    else:
        numbers = y.to_numpy(np.float64)
    return Data(X.reset_index(drop=True), numbers, _folds(numbers, classify))


def _image(path: Path) -> Data:
    stored = np.load(path)
    y = LabelEncoder().fit_transform(stored["y"])
    kept, _ = train_test_split(np.arange(len(y)), train_size=2 * SEEN, stratify=y, random_state=0)
    X = pd.DataFrame(stored["X"][kept].astype(np.float64)).rename(columns=str)
    splitter = StratifiedShuffleSplit(SPLITS, test_size=SEEN, random_state=0)
    return Data(X, y[kept], _masks(splitter, y[kept]))


def _folds(y: np.ndarray, classify: bool) -> list[np.ndarray]:
    """Return the test rows of folds, with labels in equal shares."""
    kind = StratifiedKFold if classify else KFold
    return _masks(kind(SPLITS, shuffle=True, random_state=0), y)


def _masks(splitter: Any, y: np.ndarray) -> list[np.ndarray]:
    """Return which rows are for testing in each split of scikit-learn's."""
    rows = np.arange(len(y))
    return [np.isin(rows, test) for _, test in splitter.split(y[:, None], y)]


def metric_of(y: np.ndarray, classify: bool) -> str:
    """Return the name of the error of a table."""
    if not classify:
        return "RMSE"
    if y.max() == 1:
        return "1 − AUC"
    return "log loss"


def error_of(model: Any, X: pd.DataFrame, y: np.ndarray, classify: bool) -> float:
    """Return the error of a model on test rows."""
    metric = metric_of(y, classify)
    if metric == "RMSE":
        missed = np.asarray(model.predict(X)).ravel() - y
        return float(np.sqrt(np.mean(missed**2)))

    # probabilities, of labels alone 0 and 1
    k = int(y.max()) + 1
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        p = np.eye(k)[np.asarray(model.predict(X), dtype=int)]

    if metric == "1 − AUC":
        return float(1 - roc_auc_score(y, p[:, 1]))
    p = np.clip(p, 1e-15, None)
    p = p / p.sum(axis=1, keepdims=True)
    return float(log_loss(y, p, labels=range(k)))


def measure(model: Any, table: Table, data: Data, split: int) -> Cell:
    """Return error and CPU seconds of one learner on one split of a table."""
    X, y, splits = data
    test = splits[split]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        model.fit(X[~test], y[~test])
        fitted = time.process_time()
        error = error_of(model, X[test], y[test], table.classify)
    return {
        "error": error,
        "metric": metric_of(y, table.classify),
        "rows": int((~test).sum()),
        "test_rows": int(test.sum()),
        "fit_s": fitted - begun,
        "predict_s": time.process_time() - fitted,
    }


def run(options: argparse.Namespace) -> list[Cell]:
    """Run the cells that are missing, small tables first, and return all."""
    # what failed is tried again
    done = [cell for cell in read(options.runs) if "error" in cell]
    known = {(cell["table"], cell["split"], cell["learner"]) for cell in done}
    made = learners(options.threads, options.learner)

    for table in tables(options.data_dir):
        left_out = options.tables and table.name not in options.tables
        if left_out or table.size > options.max_rows:
            continue
        cells = product(range(options.splits), options.only or made)
        missing = [cell for cell in cells if (table.name, *cell) not in known]
        if not missing:
            continue

        data = table.read()
        for split, name in missing:
            cell = run_cell(name, made[name](table.classify), table, data, split)
            if cell is None:
                continue
            done.append(cell)
            append(options.runs, cell)
            result = cell.get("error", cell.get("failed"))
            print(f"{table.name} {split} {name}: {result}", flush=True)
    return [cell for cell in done if "error" in cell]


def run_cell(name: str, model: Any, table: Table, data: Data, split: int) -> Cell | None:
    """Return the record of one learner on one split, None if it cannot do the table."""
    rows = int((~data.splits[split]).sum())
    if model is None or rows > LARGEST.get(name, rows):
        return None
    cell = {"table": table.name, "split": split, "learner": name, "nysboost": nb.__version__}
    try:
        return cell | measure(model, table, data, split)
    except Exception as problem:  # another's learner may fail; the rest goes on
        return cell | {"failed": f"{type(problem).__name__}: {problem}"}


def elo(errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ratings of learners from their errors, shape (learners, units), units weighted."""
    # how often each learner wins against each; ties are half a win
    own = errors[:, None, :]
    others = errors[None, :, :]
    points = 1.0 * (own < others) + 0.5 * (own == others)
    wins = points @ weights
    np.fill_diagonal(wins, 0.0)

    # a small ridge gives finite ratings also to who wins always
    ridge = 0.5 / (1e6 * np.log(10) ** 2)

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        gap = t[:, None] - t[None, :]
        likelihood = wins * np.logaddexp(0, -gap)
        value = float(likelihood.sum() + ridge * t @ t)

        lost = wins / (1 + np.exp(gap))  # 1 − p of what was won
        slope = lost.sum(axis=0) - lost.sum(axis=1) + 2 * ridge * t
        return value, slope

    found = minimize(loss, np.zeros(len(wins)), jac=True, method="L-BFGS-B", tol=1e-14)
    return found.x * 400 / np.log(10)


def standings(done: list[Cell], rounds: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the leaderboard, best first, and the mean errors by table and learner."""
    frame = pd.DataFrame(done)
    errors = frame.pivot_table(index="learner", columns=["table", "split"], values="error")
    own_cells = errors.notna().mean(axis=1)

    # a cell that is missing has the forest's error
    errors = errors.loc[:, errors.loc[REFERENCE].notna()]
    errors = errors.fillna(errors.loc[REFERENCE])

    # each table counts once, however many splits it has
    names = errors.columns.get_level_values("table")
    titles, number = np.unique(names, return_inverse=True)
    share = 1 / np.bincount(number)[number]
    ranks = (errors.rank() * share).sum(axis=1) / len(titles)

    # Elo of all tables, and of tables drawn with replacement
    rating = _elo_to_reference(errors, share)
    rng = np.random.default_rng(0)
    drawn_ratings = []
    for _ in range(rounds):
        drawn = rng.integers(len(titles), size=len(titles))
        times = np.bincount(drawn, minlength=len(titles))
        drawn_ratings.append(_elo_to_reference(errors, share * times[number]))
    low, high = np.quantile(drawn_ratings, (0.025, 0.975), axis=0)

    mean = errors.T.groupby(level="table").mean().T
    board = pd.DataFrame(
        {
            "Elo": rating,
            "low": low,
            "high": high,
            "rank": ranks,
            "own": own_cells,
            "normalised error": _normalised(mean).mean(axis=1),
            **_seconds_per_thousand(frame),
        },
        index=errors.index,
    )
    return board.sort_values("Elo", ascending=False), mean


def _elo_to_reference(errors: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """Return the Elo of each learner, where the reference has 1000."""
    found = elo(errors.to_numpy(), weights)
    return 1000 + found - found[list(errors.index).index(REFERENCE)]


def _normalised(mean: pd.DataFrame) -> pd.DataFrame:
    """Return errors of tables, 0 for the best learner and 1 for the median one or worse."""
    best = mean.min()
    to_median = (mean.median() - best).replace(0, np.inf)
    return ((mean - best) / to_median).clip(upper=1)


def _seconds_per_thousand(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the median seconds of a learner to fit and to predict 1,000 rows."""
    fit = 1000 * frame["fit_s"] / frame["rows"]
    predict = 1000 * frame["predict_s"] / frame["test_rows"]
    learner = frame["learner"]
    return {"fit": fit.groupby(learner).median(), "predict": predict.groupby(learner).median()}


def page(board: pd.DataFrame, mean: pd.DataFrame) -> str:
    """Return the leaderboard as Markdown."""
    ranks = []
    for name, row in board.iterrows():
        ranks.append(
            [
                str(name),
                f"{row['Elo']:.0f} ({row['low']:.0f} – {row['high']:.0f})",
                f"{row['rank']:.2f}",
                f"{row['normalised error']:.3f}",
                f"{row['fit']:.3g}",
                f"{row['predict']:.2g}",
                f"{row['own']:.0%}",
            ]
        )

    order = list(board.index)
    errors = []
    for name, column in mean[sorted(mean)].items():
        shown = [f"{value:.4g}" for value in column[order]]
        best = int(np.argmin(column[order]))
        shown[best] = f"**{shown[best]}**"
        errors.append([str(name), *shown])

    header = ["", "Elo (95 %)", "mean rank", "normalised error", "fit", "predict"]
    return (
        f"# Leaderboard\n\n{mean.shape[1]} tables; {machine_line(machine())}.\n\n"
        "Seconds of CPU for 1,000 rows, medians.\n\n"
        f"{format_table([*header, 'cells of its own'], ranks, True)}\n\n## Mean errors\n\n"
        f"{format_table(['', *order], errors, True)}\n\n![error against time](leaderboard.png)\n"
    )


def picture(board: pd.DataFrame, path: Path) -> None:
    """Draw the normalised error against the time to fit."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, row in board.iterrows():
        at = (row["fit"], row["normalised error"])
        axes.scatter(*at, zorder=2)
        axes.annotate(str(name), at, xytext=(5, 5), textcoords="offset points")
    axes.set(xscale="log", xlabel="CPU seconds to fit 1,000 rows", ylabel="normalised error")
    axes.margins(x=0.2, y=0.1)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    options = record_options(__doc__, {
        "runs": Path("out/leaderboard.jsonl"),
        "tables": ([], "all unless given"),
        "only": ([], "names of learners; all unless given"), "learner": ([], "module:Class"),
        "splits": SPLITS,
        "max-rows": (10**9, "leave larger tables out"), "threads": 1,
    }).parse_args(arguments)  # fmt: skip
    runs = run(options)
    if not any(record["learner"] == REFERENCE for record in runs):
        print(f"For the ranks, run the {REFERENCE} into the same file.")
        return
    board, mean = standings(runs)
    text = page(board, mean)
    options.runs.with_suffix(".md").write_text(text, encoding="utf-8")
    picture(board, options.runs.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
