"""Predictive distributions of regressions, against the quantiles of boosted trees.

The tables are uci/*.npz in their published splits, with at most --most training rows. A learner
predicts quantiles at five levels. Measured on the test rows are the pinball loss, a mean over the
levels; the share of rows inside the 90 % interval; and its interval score (Gneiting and Raftery
2007). Targets have unit variance in training.

Trees have their default settings and stop early on a held-out tenth of the training rows. LightGBM
has a model for each level, made conformal on the same rows (CQR, Romano et al. 2019); CatBoost has
one model for all levels, MultiQuantile. Every fit is a line of --runs and is not repeated.

    python benchmarks/distributions.py --data-dir DATA
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import append, progress, read, record_options, table
from peers import TREES, hold_out

import nysboost as nb

TABLES = (
    *("housing", "energy", "concrete", "solar", "airfoil", "wine"),
    *("pol", "elevators", "bike", "kin40k", "protein", "keggundirected"),
)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
COVERAGE = 0.9
SCORES = ("pinball", "inside", "score")
OURS = "NysBoost"

Record = dict[str, Any]
Rows = tuple[np.ndarray, np.ndarray]
"""Features and targets."""


def load(folder: Path | None, name: str, split: int, most: int) -> tuple[Rows, Rows]:
    """Return training and test rows of a table; without a folder, synthetic ones."""
    if folder is None:
        rng = np.random.default_rng(split)
        X = rng.normal(size=(150, 2))
        y = X[:, 0] + rng.exponential(size=150)
        test = np.arange(150) >= 120
    else:
        stored = np.load(folder / "uci" / f"{name}.npz")
        X = stored["X"].astype(np.float64)
        y = stored["y"].astype(np.float64).ravel()
        test = stored["test_mask"][:, split]

    train = np.flatnonzero(~test)
    if len(train) > most:
        train = np.random.default_rng(split).choice(train, most, replace=False)
    y = (y - y[train].mean()) / y[train].std()
    return (X[train], y[train]), (X[test], y[test])


# Learners: each returns quantiles of new rows at LEVELS, and the ends of their interval


def ours(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, ...]:
    model = nb.NystroemRegressor(random_state=0).fit(X, y)
    return model.predict_quantiles(new, LEVELS), *model.predict_interval(new, COVERAGE)


def lightgbm(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, ...]:
    import lightgbm

    _, settings = TREES["lightgbm"]
    train, held = hold_out(y, False)
    columns, of_held = [], []
    for level in LEVELS:
        model = lightgbm.LGBMRegressor(objective="quantile", alpha=level, n_jobs=1, **settings)
        model.fit(X[train], y[train], eval_set=[(X[held], y[held])])
        columns.append(model.predict(new))
        of_held.append(model.predict(X[held]))
    return _with_ends(conformal(np.stack(columns, 1), np.stack(of_held, 1), y[held]))


def catboost(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, ...]:
    import catboost

    _, settings = TREES["catboost"]
    levels = ",".join(str(level) for level in LEVELS)
    loss = f"MultiQuantile:alpha={levels}"
    train, held = hold_out(y, False)
    model = catboost.CatBoostRegressor(loss_function=loss, thread_count=1, **settings)
    model.fit(X[train], y[train], eval_set=[(X[held], y[held])])
    return _with_ends(model.predict(new))


def conformal(quantiles: np.ndarray, of_held: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return quantiles (n, q) whose intervals cover held-out rows (h,) as stated.

    The ends of each interval are moved by the same amount: the smallest that covers its share of
    held-out rows, of which a new row is one more.
    """
    moved = quantiles.copy()
    for low in range(len(LEVELS) // 2):
        high = len(LEVELS) - 1 - low
        outside = np.maximum(of_held[:, low] - truth, truth - of_held[:, high])
        share = (LEVELS[high] - LEVELS[low]) * (1 + 1 / len(truth))
        shift = np.quantile(outside, min(share, 1.0), method="inverted_cdf")
        moved[:, low] -= shift
        moved[:, high] += shift
    return moved


def _with_ends(quantiles: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return quantiles in rising order, and the outer ones as the ends of the interval."""
    rising = np.sort(quantiles, axis=1)
    return rising, rising[:, 0], rising[:, -1]


Learner = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]

LEARNERS: dict[str, Learner] = {
    OURS: ours,
    "LightGBM, conformal": lightgbm,
    "CatBoost": catboost,
}


def scores(y: np.ndarray, quantiles: np.ndarray, low: np.ndarray, high: np.ndarray) -> Record:
    """Return pinball loss, coverage and interval score of predictions for targets y (n,)."""
    missed = y[:, None] - quantiles
    pinball = np.maximum(LEVELS * missed, (LEVELS - 1) * missed)

    inside = (low <= y) & (y <= high)
    beyond = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    score = (high - low) + 2 / (1 - COVERAGE) * beyond
    return {
        "pinball": float(pinball.mean()),
        "inside": float(inside.mean()),
        "score": float(score.mean()),
    }


def run(options: argparse.Namespace) -> list[Record]:
    """Measure what is not on file yet, and return all records."""
    records = read(options.runs)
    known = {(r["table"], r["split"], r["learner"]) for r in records}
    wanted = product(options.tables, options.splits, options.only or LEARNERS)
    for name, split, learner in wanted:
        if (name, split, learner) in known:
            continue
        (X, y), (new, truth) = load(options.data_dir, name, split, options.most)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.process_time()
            predicted = LEARNERS[learner](X, y, new)
        record = {
            "table": name,
            "split": split,
            "learner": learner,
            "rows": len(X),
            "test_rows": len(new),
            "nysboost": nb.__version__,
            "seconds": time.process_time() - begun,
            **scores(truth, *predicted),
        }
        progress(str(record))
        append(options.runs, record)
        records.append(record)
    return records


def means(records: list[Record]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the mean of each score, by table and learner, of tables that all learners have."""
    found = {}
    for name in dict.fromkeys(record["table"] for record in records):
        of_learner = {}
        for learner in LEARNERS:
            mine = [r for r in records if (r["table"], r["learner"]) == (name, learner)]
            if mine:
                of_learner[learner] = {
                    score: float(np.mean([r[score] for r in mine])) for score in SCORES
                }
        if len(of_learner) == len(LEARNERS):
            found[name] = of_learner
    return found


def summary(records: list[Record]) -> str:
    """Return a table: pinball loss and interval score over those of the better trees, coverage."""
    lines = []
    ratios = []
    for name, of_learner in means(records).items():
        trees = [scores for learner, scores in of_learner.items() if learner != OURS]
        ratio = {
            score: of_learner[OURS][score] / min(other[score] for other in trees)
            for score in ("pinball", "score")
        }
        ratios.append(ratio["pinball"])
        shares = [f"{100 * scores['inside']:.1f}" for scores in of_learner.values()]
        lines.append([name, f"{ratio['pinball']:.3f}", f"{ratio['score']:.3f}", *shares])
    if not lines:
        return "No table has been measured with every learner."

    mean = np.exp(np.mean(np.log(ratios)))
    lines.append(["geometric mean", f"{mean:.3f}"] + [""] * (len(LEARNERS) + 1))
    head = ["", "pinball / best trees", "interval score / best trees"]
    return table([*head, *(f"{learner}, % inside" for learner in LEARNERS)], lines, markdown=True)


def main(arguments: Sequence[str] | None = None) -> None:
    options = record_options(__doc__, {
        "runs": Path("out/distributions.jsonl"), "tables": [*TABLES], "splits": [0, 1],
        "only": ([], ", ".join(LEARNERS)), "most": (10_000, "training rows"),
    }).parse_args(arguments)  # fmt: skip
    print(summary(run(options)))


if __name__ == "__main__":
    main()
