"""Tables with categories and gaps: our learner beside LightGBM, CatBoost and a linear model.

Log loss, or root mean squared error, on a quarter of the rows, five splits of each table; the
ratio to the best of the others. Every fit is a line of a JSON file, and a run that was stopped
goes on where it was.

    python benchmarks/tables.py --data-dir DATA/tables
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import append, read, record_options
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nysboost as nb
from nysboost.tables.codes import Codes
from nysboost.tables.files import join_tables, open_table
from nysboost.tables.gaps import is_gap
from nysboost.tables.schema import Schema
from nysboost.tables.targets import read_target

OURS = "NysBoost"
GOALS = "goals: geometric mean 0.97, each 1.05, census_income 1.02"


def load(path: Path, target: str) -> tuple[Any, Any]:
    """Return the columns of a table, and its target."""
    file = open_table(path)
    table = join_tables(list(file.batches()))
    y = read_target(table.column(target), target, str(path))
    return table.drop_columns([target]), y


def splits(y: Any, classify: bool, count: int) -> list[tuple[Any, Any]]:
    """Return training and test rows of each split, a quarter for testing."""
    kind: Any = ShuffleSplit
    if classify:
        kind = StratifiedShuffleSplit
    splitter = kind(count, test_size=0.25, random_state=0)
    return list(splitter.split(np.empty(len(y)), y))


Code = Callable[[Any], Any]
"""From a table to what a learner takes."""


@dataclass(frozen=True)
class Learner:
    """A model, and what makes its input of a table."""

    model: Any
    code: Code


def make_learners(classify: bool, seed: int, train: Any) -> dict[str, Learner]:
    """Return each learner for tables with the columns of `train`."""
    import catboost
    import lightgbm

    frame = _pandas(train)
    text = [name for name, column in frame.items() if str(column.dtype) == "category"]
    codes = Codes.of(Schema.of(train))
    for_catboost: dict[str, Any] = {
        "cat_features": text,
        "thread_count": 1,
        "allow_writing_files": False,
        "verbose": 0,
    }
    for_lightgbm: dict[str, Any] = {"verbose": -1, "n_jobs": 1}

    if classify:
        own: Any = nb.NystroemClassifier(random_state=seed, verbose=0)
        plain: Any = LogisticRegression(max_iter=500)
        boosted = lightgbm.LGBMClassifier(random_state=seed, **for_lightgbm)
        cat = catboost.CatBoostClassifier(random_seed=seed, **for_catboost)
    else:
        own = nb.NystroemRegressor(random_state=seed, verbose=0)
        plain = RidgeCV(np.logspace(-4, 4, 9))
        boosted = lightgbm.LGBMRegressor(random_state=seed, **for_lightgbm)
        cat = catboost.CatBoostRegressor(random_seed=seed, **for_catboost)

    return {
        OURS: Learner(own, lambda table: table),
        "linear": Learner(make_pipeline(StandardScaler(), plain), codes),
        "LightGBM": Learner(boosted, lambda table: _pandas(table).astype(frame.dtypes)),
        "CatBoost": Learner(cat, lambda table: _filled(table, text)),
    }


def _pandas(table: Any) -> Any:
    """Return a table as pandas has it, text and truth values as categories."""
    frame = table.to_pandas()
    for name, column in frame.items():
        if column.dtype.kind in "fiu":
            continue
        gaps = column.map(is_gap).astype(bool)
        frame[name] = column.mask(gaps).astype("category")
    return frame


def _filled(table: Any, text: list[str]) -> Any:
    """Return a table as pandas has it, gaps in text as a word."""
    frame = table.to_pandas()
    for name in text:
        frame[name] = frame[name].map(str).fillna("nan").astype(str)
    return frame


def loss(answer: Any, y: Any, classify: bool, labels: Any) -> float:
    """Return the log loss of probabilities, or the root mean squared error."""
    if not classify:
        missed = np.asarray(answer) - y
        return float(np.sqrt(np.mean(missed**2)))
    proba = np.clip(answer, 1e-7, 1 - 1e-7)
    proba = proba / proba.sum(axis=1, keepdims=True)
    return float(log_loss(y, proba, labels=labels))


def run(data: Path, out: Path, names: list[str], count: int) -> None:
    """Fit what has not been fitted yet, a line of JSON for each fit."""
    about = json.loads((data / "tables.json").read_text())
    done = {(r["table"], r["split"], r["learner"]) for r in read(out)}
    for name in names or about:
        classify = about[name]["task"] == "classification"
        table, y = load(data / f"{name}.csv.gz", about[name]["target"])

        for split, (train, test) in enumerate(splits(y, classify, count)):
            for who, learner in make_learners(classify, split, table.take(train)).items():
                if (name, split, who) in done:
                    continue
                record = {"table": name, "split": split, "learner": who}
                record |= measure(learner, table, y, train, test, classify)
                append(out, record | {"version": nb.__version__})
                found = f"{record['loss']:.4f}, {record['seconds']:.1f} s"
                print(f"{name} {split} {who}: {found}", flush=True)


def measure(
    learner: Learner, table: Any, y: Any, train: Any, test: Any, classify: bool
) -> dict[str, Any]:
    """Return the loss of a learner on the test rows, and the processor time of its fit."""
    model = learner.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        model.fit(learner.code(table.take(train)), y[train])
        seconds = time.process_time() - begun

        predict = model.predict_proba if classify else model.predict
        answer = predict(learner.code(table.take(test)))
        found = loss(answer, y[test], classify, np.unique(y))
    return {"loss": found, "seconds": round(seconds, 2)}


def report(out: Path) -> None:
    """Print the ratio to the best of the others for each table, means over its splits."""
    records = pd.DataFrame(read(out), columns=["table", "split", "learner", "loss"])
    ratios = []
    for name, of_table in records.groupby("table", sort=False):
        # splits that every learner has
        losses = of_table.pivot_table(index="split", columns="learner", values="loss").dropna()
        if OURS not in losses or losses.empty:
            continue
        means = losses.mean()
        own = means.pop(OURS)
        ratio = own / means.min()
        ratios.append(ratio)
        best = f"{means.idxmin()}, {len(losses)} splits"
        print(f"{name:26} {own:10.4f} {means.min():10.4f} {ratio:6.3f}  {best}")
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"geometric mean {mean:.3f}, largest {max(ratios):.3f} ({GOALS})")


def main() -> None:
    options = {
        "out": Path("out/tables.jsonl"), "tables": ([], "all unless given"), "splits": 5,
        "report-only": False,
    }  # fmt: skip
    given = record_options(__doc__, options).parse_args()
    if not given.report_only:
        run(given.data_dir, given.out, given.tables, given.splits)
    report(given.out)


if __name__ == "__main__":
    main()
