"""Tables with categories and gaps: our learner beside LightGBM, CatBoost and a linear model.

Log loss, or root mean squared error, on a quarter of the rows, five splits of each table; the
ratio to the best of the others. Every fit is a line of a JSON file, and a run that was stopped
goes on where it was.

    python benchmarks/tables.py --data-dir DATA/tables
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import append, read
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nysboost as nb
from nysboost.tables.codes import Codes
from nysboost.tables.files import join_tables, open_table
from nysboost.tables.schema import Schema
from nysboost.tables.targets import read_target
from nysboost.tables.values import is_missing

OURS = "NysBoost"
GOALS = "goals: geometric mean 0.97, each 1.05, census_income 1.02"


def load(path: Path, target: str) -> tuple[Any, Any]:
    """Return the columns of a table, and its target."""
    file = open_table(path)
    table = join_tables(list(file.batches()))
    y = read_target(table.column(target), target, str(path))
    return table.drop_columns([target]), y


def splits(y: Any, classify: bool, count: int) -> list[tuple[Any, Any]]:
    kind: Any = StratifiedShuffleSplit if classify else ShuffleSplit
    return list(kind(count, test_size=0.25, random_state=0).split(np.empty(len(y)), y))


def contestants(classify: bool, seed: int) -> dict[str, Callable[[Any, Any], Callable[[Any], Any]]]:
    """Return for each learner: rows and targets ↦ what it says of new rows."""

    def ours(table: Any, y: Any) -> Callable[[Any], Any]:
        kind: Any = nb.NystroemClassifier if classify else nb.NystroemRegressor
        model = kind(random_state=seed, verbose=0).fit(table, y)
        return model.predict_proba if classify else model.predict

    def linear(table: Any, y: Any) -> Callable[[Any], Any]:
        schema = Schema.of(table)
        codes = Codes.of(schema)
        X = codes(table)
        plain: Any = (
            LogisticRegression(max_iter=500) if classify else RidgeCV(np.logspace(-4, 4, 9))
        )
        model = make_pipeline(StandardScaler(), plain).fit(X, y)
        answer = model.predict_proba if classify else model.predict
        return lambda rows: answer(codes(rows))

    def lightgbm(table: Any, y: Any) -> Callable[[Any], Any]:
        import lightgbm as lgb

        kind = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
        frame = _pandas(table)
        model = kind(random_state=seed, verbose=-1, n_jobs=1).fit(frame, y)
        answer = model.predict_proba if classify else model.predict
        kinds = frame.dtypes
        return lambda rows: answer(_pandas(rows).astype(kinds))

    def catboost(table: Any, y: Any) -> Callable[[Any], Any]:
        import catboost as cb

        kind = cb.CatBoostClassifier if classify else cb.CatBoostRegressor
        text = [n for n, c in _pandas(table).items() if str(c.dtype) == "category"]
        model = kind(random_seed=seed, verbose=0, thread_count=1, allow_writing_files=False)
        model.fit(_filled(table, text), y, cat_features=text)
        answer = model.predict_proba if classify else model.predict
        return lambda rows: answer(_filled(rows, text))

    return {OURS: ours, "linear": linear, "LightGBM": lightgbm, "CatBoost": catboost}


def _pandas(table: Any) -> Any:
    """Return a table as pandas has it, text and truth values as categories."""
    frame = table.to_pandas()
    for name, column in frame.items():
        if column.dtype.kind not in "fiu":
            frame[name] = column.mask(column.map(is_missing).astype(bool)).astype("category")
    return frame


def _filled(table: Any, text: list[str]) -> Any:
    frame = table.to_pandas()
    for name in text:
        frame[name] = frame[name].map(lambda value: str(value)).fillna("nan").astype(str)
    return frame


def loss(answer: Any, y: Any, classify: bool, labels: Any) -> float:
    if classify:
        proba = np.clip(answer, 1e-7, 1 - 1e-7)
        return float(log_loss(y, proba / proba.sum(axis=1, keepdims=True), labels=labels))
    return float(np.sqrt(np.mean((np.asarray(answer) - y) ** 2)))


def run(data: Path, out: Path, names: list[str], count: int) -> None:
    """Fit what has not been fitted yet, a line of JSON for each fit."""
    about = json.loads((data / "tables.json").read_text())
    done = {(r["table"], r["split"], r["learner"]) for r in read(out)}
    for name in names or about:
        classify = about[name]["task"] == "classification"
        table, y = load(data / f"{name}.csv.gz", about[name]["target"])
        for split, (train, test) in enumerate(splits(y, classify, count)):
            for learner, fit in contestants(classify, split).items():
                if (name, split, learner) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    begun = time.process_time()
                    answer = fit(table.take(train), y[train])
                    seconds = time.process_time() - begun
                    found = loss(answer(table.take(test)), y[test], classify, np.unique(y))
                record = {"table": name, "split": split, "learner": learner, "loss": found}
                record |= {"seconds": round(seconds, 2), "version": nb.__version__}
                append(out, record)
                print(f"{name} {split} {learner}: {found:.4f}, {seconds:.1f} s", flush=True)


def report(out: Path) -> None:
    """Print the ratio to the best of the others for each table, means over its splits."""
    losses: dict[str, dict[str, dict[int, float]]] = {}
    for r in read(out):
        losses.setdefault(r["table"], {}).setdefault(r["learner"], {})[r["split"]] = r["loss"]
    ratios = {}
    for name, by in losses.items():
        shared = set.intersection(*(set(splits) for splits in by.values()))
        if OURS not in by or not shared:
            continue
        means = {who: float(np.mean([found[s] for s in shared])) for who, found in by.items()}
        best = min((v, who) for who, v in means.items() if who != OURS)
        ratios[name] = means[OURS] / best[0]
        print(f"{name:26} {means[OURS]:10.4f} {best[0]:10.4f} {ratios[name]:6.3f}  {best[1]}, "
              f"{len(shared)} splits")  # fmt: skip
    if ratios:
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        print(f"geometric mean {mean:.3f}, largest {max(ratios.values()):.3f} ({GOALS})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out/tables.jsonl"))
    parser.add_argument("--tables", default="", help="names, separated by commas; default all")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--report-only", action="store_true")
    given = parser.parse_args()
    if not given.report_only:
        run(given.data_dir, given.out, [t for t in given.tables.split(",") if t], given.splits)
    report(given.out)


if __name__ == "__main__":
    main()
