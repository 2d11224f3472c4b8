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
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

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
LARGEST = {"exact Gaussian process": 2000, "xRFM": 40_000}
"""Training rows up to which a learner is run."""

IMAGES, SEEN = ("covtype", "ijcnn1", "mnist", "pendigits"), 5000


Data = tuple[pd.DataFrame, np.ndarray, list[np.ndarray]]
"""X, y, and which rows are for testing, for each split."""


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
    found = []
    for path in (folder / "uci").glob("*.npz"):
        size = np.load(path)["y"].size
        found.append(Table(path.stem, False, size, partial(_uci, path)))
    for name, about in json.loads((folder / "tables" / "tables.json").read_text()).items():
        classify = about["task"] == "classification"
        read = partial(_csv, folder / "tables" / f"{name}.csv.gz", about["target"], classify)
        found.append(Table(name, classify, about["rows"], read))
    found += [Table(name, True, 10_001, partial(_image, folder / f"{name}.npz")) for name in IMAGES]
    return sorted(found, key=lambda table: table.size)


def _synthetic(classify: bool) -> Data:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    X["colour"] = pd.Categorical(rng.choice(["red", "blue"], size=150))
    y = X["a"] ** 2 + 3.0 * (X["colour"] == "red") + 0.1 * rng.normal(size=150)
    y = (y > y.median()).to_numpy(int) if classify else y.to_numpy()
    return X, y, _folds(y, classify)


def _uci(path: Path) -> Data:
    stored = np.load(path)
    X = pd.DataFrame(stored["X"].astype(np.float64)).rename(columns=str)
    return X, stored["y"].astype(np.float64).ravel(), list(stored["test_mask"].T[:SPLITS])


def _csv(path: Path, target: str, classify: bool) -> Data:
    X = pd.read_csv(path, na_values=["?"]).dropna(subset=[target])
    y = X.pop(target)
    texts = X.select_dtypes(exclude="number").columns
    X[texts] = X[texts].astype("category")
    numbers = LabelEncoder().fit_transform(y) if classify else y.to_numpy(np.float64)
    return X.reset_index(drop=True), numbers, _folds(numbers, classify)


def _image(path: Path) -> Data:
    stored = np.load(path)
    y = LabelEncoder().fit_transform(stored["y"])
    kept, _ = train_test_split(np.arange(len(y)), train_size=2 * SEEN, stratify=y, random_state=0)
    X = pd.DataFrame(stored["X"][kept].astype(np.float64)).rename(columns=str)
    return (
        X,
        y[kept],
        _masks(StratifiedShuffleSplit(SPLITS, test_size=SEEN, random_state=0), y[kept]),
    )


def _folds(y: np.ndarray, classify: bool) -> list[np.ndarray]:
    return _masks((StratifiedKFold if classify else KFold)(SPLITS, shuffle=True, random_state=0), y)


def _masks(splitter: Any, y: np.ndarray) -> list[np.ndarray]:
    return [np.isin(np.arange(len(y)), test) for _, test in splitter.split(y[:, None], y)]


def error_of(model: Any, X: pd.DataFrame, y: np.ndarray, classify: bool) -> float:
    """Return RMSE, 1 − AUC or the log loss."""
    if not classify:
        return float(np.sqrt(np.mean((np.asarray(model.predict(X)).ravel() - y) ** 2)))
    k = int(y.max()) + 1
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        p = np.eye(k)[np.asarray(model.predict(X), dtype=int)]
    if k == 2:
        return float(1 - roc_auc_score(y, p[:, 1]))
    p = np.clip(p, 1e-15, None)
    return float(log_loss(y, p / p.sum(axis=1, keepdims=True), labels=range(k)))


def measure(model: Any, table: Table, data: tuple[Any, ...], split: int) -> dict[str, Any]:
    """Return error and CPU seconds of one learner on one split of a table."""
    X, y, splits = data
    test = splits[split]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        model.fit(X[~test], y[~test])
        fitted = time.process_time()
        error = error_of(model, X[test], y[test], table.classify)
    seconds = {"fit_s": fitted - begun, "predict_s": time.process_time() - fitted}
    return {"error": error, "rows": int((~test).sum()), "test_rows": int(test.sum()), **seconds}


def cells(options: argparse.Namespace) -> Iterator[tuple[Table, int, str, Callable[[bool], Any]]]:
    """Yield what is to be run: small tables first, all learners on a split before the next."""
    made = learners(options.threads, options.learner)
    for table in tables(options.data_dir):
        if table.size <= options.max_rows and table.name in (options.tables or [table.name]):
            for split, name in product(range(options.splits), options.only or made):
                yield table, split, name, made[name]


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the cells that are missing, and return all."""
    done = [cell for cell in read(options.runs) if "error" in cell]  # what failed is tried again
    known = {(cell["table"], cell["split"], cell["learner"]) for cell in done}
    held: tuple[str, Any] = ("", None)
    for table, split, name, make in cells(options):
        if (table.name, split, name) in known:
            continue
        held = held if held[0] == table.name else (table.name, table.read())
        model, rows = make(table.classify), int((~held[1][2][split]).sum())
        if model is None or rows > LARGEST.get(name, rows):
            continue
        cell = {"table": table.name, "split": split, "learner": name, "nysboost": nb.__version__}
        try:
            cell |= measure(model, table, held[1], split)
        except Exception as problem:  # another's learner may fail; the rest goes on
            cell |= {"failed": f"{type(problem).__name__}: {problem}"}
        done.append(cell)
        append(options.runs, cell)
        print(f"{table.name} {split} {name}: {cell.get('error', cell.get('failed'))}", flush=True)
    return [cell for cell in done if "error" in cell]


def elo(errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ratings of learners from their errors, shape (learners, units), units weighted."""
    less = errors[:, None, :] < errors[None, :, :]
    wins = (less + 0.5 * (errors[:, None, :] == errors[None, :, :])) @ weights
    np.fill_diagonal(wins, 0.0)
    ridge = 0.5 / (1e6 * np.log(10) ** 2)  # finite ratings also for who wins always

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        gap = t[:, None] - t[None, :]
        lost = wins / (1 + np.exp(gap))  # 1 − p of what was won
        value = float((wins * np.logaddexp(0, -gap)).sum() + ridge * t @ t)
        return value, lost.sum(axis=0) - lost.sum(axis=1) + 2 * ridge * t

    found = minimize(loss, np.zeros(len(wins)), jac=True, method="L-BFGS-B", tol=1e-14)
    return found.x * 400 / np.log(10)


def standings(done: list[dict[str, Any]], rounds: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the leaderboard, best first, and the mean errors by table and learner."""
    frame = pd.DataFrame(done)
    wide = frame.pivot_table(index="learner", columns=["table", "split"], values="error")
    ours = wide.notna().mean(axis=1)
    wide = wide.loc[:, wide.loc[REFERENCE].notna()]
    wide = wide.fillna(wide.loc[REFERENCE])
    names = wide.columns.get_level_values("table")
    titles, unit = np.unique(names, return_inverse=True)
    share = 1 / np.bincount(unit)[unit]
    rng, at = np.random.default_rng(0), list(wide.index).index(REFERENCE)
    errors, ratings = wide.to_numpy(), []
    for draw in range(rounds + 1):
        drawn = rng.integers(len(titles), size=len(titles)) if draw else np.arange(len(titles))
        found = elo(errors, share * np.bincount(drawn, minlength=len(titles))[unit])
        ratings.append(1000 + found - found[at])
    mean = wide.T.groupby(level="table").mean().T
    best, median = mean.min(), mean.median()
    worse = ((mean - best) / (median - best).replace(0, np.inf)).clip(upper=1)
    ranks = (wide.rank() * share).sum(axis=1) / len(titles)
    low, high = np.quantile(ratings[1:], (0.025, 0.975), axis=0)
    frame["fit"], frame["predict"] = (
        1000 * frame[seconds] / frame[rows]
        for seconds, rows in (("fit_s", "rows"), ("predict_s", "test_rows"))
    )
    times = frame.groupby("learner")[["fit", "predict"]].median()
    columns = {"Elo": ratings[0], "low": low, "high": high, "rank": ranks, "own": ours,
               "normalised error": worse.mean(axis=1), **times}  # fmt: skip
    board = pd.DataFrame(columns, index=wide.index)
    return board.sort_values("Elo", ascending=False), mean


def page(board: pd.DataFrame, mean: pd.DataFrame) -> str:
    """Return the leaderboard as Markdown."""
    header = ["", "Elo (95 %)", "mean rank", "normalised error", "fit", "predict"]
    ranks = [
        [
            str(name), f"{row['Elo']:.0f} ({row['low']:.0f} – {row['high']:.0f})",
            f"{row['rank']:.2f}", f"{row['normalised error']:.3f}", f"{row['fit']:.3g}",
            f"{row['predict']:.2g}", f"{row['own']:.0%}",
        ]
        for name, row in board.iterrows()
    ]  # fmt: skip
    order, errors = list(board.index), []
    for name, column in mean[sorted(mean)].items():
        least = column.min()
        shown = (f"**{v:.4g}**" if v == least else f"{v:.4g}" for v in column[order])
        errors.append([str(name), *shown])
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
