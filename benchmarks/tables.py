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
from pathlib import Path
from typing import Any

import numpy as np
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
    kind: Any = StratifiedShuffleSplit if classify else ShuffleSplit
    return list(kind(count, test_size=0.25, random_state=0).split(np.empty(len(y)), y))


Code = Callable[[Any], Any]
"""From a table to what a learner takes."""


def make_learners(classify: bool, seed: int, train: Any) -> dict[str, tuple[Any, Code]]:
    """Return each learner, and what makes its input of a table with the columns of `train`."""
    import catboost
    import lightgbm

    kind = "Classifier" if classify else "Regressor"
    codes, frame = Codes.of(Schema.of(train)), _pandas(train)
    text = [n for n, c in frame.items() if str(c.dtype) == "category"]
    plain: Any = LogisticRegression(max_iter=500) if classify else RidgeCV(np.logspace(-4, 4, 9))
    boosted = getattr(lightgbm, f"LGBM{kind}")(random_state=seed, verbose=-1, n_jobs=1)
    how = {"cat_features": text, "thread_count": 1, "allow_writing_files": False, "verbose": 0}
    cat = getattr(catboost, f"CatBoost{kind}")(random_seed=seed, **how)
    return {
        OURS: (getattr(nb, f"Nystroem{kind}")(random_state=seed, verbose=0), lambda table: table),
        "linear": (make_pipeline(StandardScaler(), plain), codes),
        "LightGBM": (boosted, lambda table: _pandas(table).astype(frame.dtypes)),
        "CatBoost": (cat, lambda table: _filled(table, text)),
    }


def _pandas(table: Any) -> Any:
    """Return a table as pandas has it, text and truth values as categories."""
    frame = table.to_pandas()
    for name, column in frame.items():
        if column.dtype.kind not in "fiu":
            frame[name] = column.mask(column.map(is_gap).astype(bool)).astype("category")
    return frame


def _filled(table: Any, text: list[str]) -> Any:
    frame = table.to_pandas()
    for name in text:
        frame[name] = frame[name].map(str).fillna("nan").astype(str)
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
            seen, new = table.take(train), table.take(test)
            for learner, (model, code) in make_learners(classify, split, seen).items():
                if (name, split, learner) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    begun = time.process_time()
                    model.fit(code(seen), y[train])
                    seconds = time.process_time() - begun
                    answer = (model.predict_proba if classify else model.predict)(code(new))
                    found = loss(answer, y[test], classify, np.unique(y))
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
