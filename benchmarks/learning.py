"""Learners with default settings: errors, coverage of intervals and time on public tables.

Regression tables are .npz files with X, y and test_mask (n × splits) in --data-dir/uci, y at unit
variance; MNIST has its standard test set, and of Covertype 464,000 rows are learned. LightGBM stops
early on a tenth of the training rows; xRFM is the best of two kernels and two bandwidths on a fifth
of them; the exact Gaussian process has a length scale per feature, where rows are few. Every run
is a JSON line of --runs and is not repeated; `benchmarks/results.py` puts them into the pages.

    python benchmarks/learning.py --data-dir folder --splits 0 1 2 3 4 --device cuda
    python benchmarks/learning.py --data-dir folder --learners LightGBM xRFM --splits 0 1 2
    python benchmarks/learning.py --only times     processor time of fits of 500 to 50,000 rows
    python benchmarks/learning.py --only memory    from memory maps of 10⁵ to 10⁷ rows
    python benchmarks/learning.py --only predict   predict against transform of as many landmarks
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, append, benchmark, compare, progress, read, synthetic, time_in_turn
from environment import in_child, one_thread, peak_megabytes, placed

import nysboost as nb

OURS = "NysBoost"
GOALS = {
    "kin40k": 0.033,
    "protein": 0.462,
    "pol": 0.050,
    "elevators": 0.3361 * 1.02,
    "keggundirected": 0.1155,
    "bike": 0.0002 * 1.02,
    "covtype": 1 - 0.975,
    "mnist": 1 - 0.986,
}
"""Test error with default settings: root mean squared error, or share of wrong labels."""

SMALL = ("concrete", "energy", "wine", "airfoil", "housing", "solar")
TRAINING = {"mnist": 60_000, "covtype": 464_000}

Record = dict[str, Any]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load(name: str, split: int, options: argparse.Namespace) -> Split:
    """Return training rows and targets, test rows and targets."""
    if options.data == "synthetic":
        return _synthetic(name in TRAINING, split)
    if name in TRAINING:
        return _labelled(options.data_dir / f"{name}.npz", split)
    return _published_split(options.data_dir / "uci" / f"{name}.npz", split)


def _synthetic(classify: bool, split: int) -> Split:
    """Return ninety rows of three features."""
    rng = np.random.default_rng(split)
    X = rng.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=90)
    if classify:
        y = (y > 0).astype(int)
    return _cut(X, y, np.arange(90) >= 70)


def _labelled(path: Path, split: int) -> Split:
    """Return a table of labels: MNIST has its own test rows, of others they are random."""
    stored = np.load(path)
    X = stored["X"].astype(np.float64)
    y = stored["y"]

    order = np.arange(len(y))
    if path.stem != "mnist":
        order = np.random.default_rng(split).permutation(len(y))
    test = np.isin(np.arange(len(y)), order[TRAINING[path.stem] :])
    return _cut(X, y, test)


def _published_split(path: Path, split: int) -> Split:
    """Return a table of numbers, y at unit variance in training."""
    stored = np.load(path)
    X = stored["X"].astype(np.float64)
    y = stored["y"].astype(np.float64).ravel()
    test = stored["test_mask"][:, split]
    seen = y[~test]
    return _cut(X, (y - seen.mean()) / seen.std(), test)


def unit(name: str, split: int, options: argparse.Namespace) -> float:
    """Return the standard deviation of the training targets of a published split, or 1."""
    if options.data == "synthetic" or name in TRAINING:
        return 1.0
    stored = np.load(options.data_dir / "uci" / f"{name}.npz")
    y = stored["y"].astype(np.float64).ravel()
    return float(y[~stored["test_mask"][:, split]].std())


def _cut(X: np.ndarray, y: np.ndarray, test: np.ndarray) -> Split:
    return X[~test], y[~test], X[test], y[test]


# Learners: each takes rows, targets, whether these are labels, and the options


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of our learners."""
    how: dict[str, Any] = {}
    if options.components:
        how["n_components"] = options.components
    if options.compact:
        how["local"] = False
    return how


def ours(X: Any, y: np.ndarray, classify: bool, options: argparse.Namespace) -> Any:
    kind: Any = nb.NystroemRegressor
    if classify:
        kind = nb.NystroemClassifier
    return kind(**settings(options), random_state=0).fit(X, y)


def lightgbm(X: np.ndarray, y: np.ndarray, classify: bool, _: argparse.Namespace) -> Any:
    import lightgbm as lgb

    # larger trees for more than 3,000 rows
    many = len(y) > 3000
    how = {"learning_rate": 0.03, "num_leaves": 31, "min_child_samples": 5}
    if many:
        how = {"learning_rate": 0.05, "num_leaves": 63, "min_child_samples": 20}
    if classify:
        how["learning_rate"] = 0.1
    kind = lgb.LGBMClassifier if classify else lgb.LGBMRegressor
    model = kind(n_estimators=5000, verbose=-1, **how)

    # a tenth of the rows stops it
    order = np.random.default_rng(0).permutation(len(y))
    held = order[: len(y) // 10]
    rest = order[len(y) // 10 :]
    stop = lgb.early_stopping(100, verbose=False)
    return model.fit(X[rest], y[rest], eval_set=[(X[held], y[held])], callbacks=[stop])


def xrfm(X: np.ndarray, y: np.ndarray, classify: bool, options: argparse.Namespace) -> Any:
    from peers import XRFM

    return XRFM(classify, device=options.device).fit(X, y)


def exact_process(X: np.ndarray, y: np.ndarray, _: bool, __: argparse.Namespace) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    d = X.shape[1]
    smooth = Matern(np.full(d, d**0.5), nu=1.5)
    kernel = ConstantKernel(1.0) * smooth + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return make_pipeline(StandardScaler(), process).fit(X, y)


Learner = Callable[[Any, np.ndarray, bool, argparse.Namespace], Any]

LEARNERS: dict[str, Learner] = {
    OURS: ours,
    "LightGBM": lightgbm,
    "xRFM": xrfm,
    "exact process": exact_process,
}


# Errors


def one_run(table: str, split: int, learner: str, options: argparse.Namespace) -> Record:
    """Fit and predict once; return what came of it."""
    X, y, fresh, truth = load(table, split, options)
    train = X
    if learner == OURS:
        train = placed(X, options.device)
        fresh = placed(fresh, options.device)

    start = time.perf_counter()
    spent = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LEARNERS[learner](train, y, table in TRAINING, options)
    return {
        "table": table,
        "split": split,
        "learner": learner,
        "rows": len(X),
        "unit": unit(table, split, options),
        "device": _name(options.device),
        "version": nb.__version__,
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - spent,
        **_errors(model, fresh, truth, labels=table in TRAINING, with_std=learner == OURS),
    }


def _errors(model: Any, X: Any, truth: np.ndarray, *, labels: bool, with_std: bool) -> Record:
    """Return the error on test rows, and the share that 95 % intervals cover."""
    if labels:
        wrong = _host(model.predict(X)) != truth
        return {"error": float(np.mean(wrong))}
    if not with_std:
        return {"error": _rmse(model.predict(X), truth)}

    mean, std = map(_host, model.predict(X, return_std=True))
    inside = np.abs(mean - truth) <= 1.96 * std
    return {"covered": float(np.mean(inside)), "error": _rmse(mean, truth)}


def _rmse(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def _name(device: str) -> str:
    if device == "cpu":
        return device
    import torch

    return str(torch.cuda.get_device_name(device))


def _host(values: Any) -> np.ndarray:
    if hasattr(values, "cpu"):
        values = values.cpu()
    return np.asarray(values)


def tables(options: argparse.Namespace) -> Iterator[Row]:
    """Run what is not on file yet, and yield the mean error of each table against the others."""
    records = read(options.runs)
    known = {(r["table"], r["split"], r["learner"]) for r in records if "split" in r}
    for table in options.tables:
        splits = [0] if table == "mnist" else options.splits
        for split, learner in product(splits, options.learners):
            too_large = learner == "exact process" and table not in SMALL
            if too_large or (table, split, learner) in known:
                continue
            record = one_run(table, split, learner, options)
            progress(str(record))
            append(options.runs, record)
            records.append(record)
        yield from _compare(table, records)


def _compare(table: str, records: list[Record]) -> Iterator[Row]:
    """Yield our mean error on a table against its goal, and against every other learner."""
    errors: dict[str, list[float]] = {}
    covered = []
    for record in records:
        learner = record.get("learner")
        if record["table"] == table and learner is not None:
            errors.setdefault(learner, []).append(record["error"])
        if record["table"] == table and learner == OURS and "covered" in record:
            covered.append(record["covered"])
    if OURS not in errors:
        return

    note = " ".join(f"{error:.4f}" for error in errors[OURS])
    if covered:
        note += f"; {np.mean(covered):.3f} in 95 % intervals"
    mean = [float(np.mean(errors[OURS]))]
    what = f"{table}, {len(errors[OURS])} splits"
    if table in GOALS:
        yield compare(what, "goal", mean, GOALS[table], 1.0, unit="", note=note)
    for learner in LEARNERS:
        if learner != OURS and learner in errors:
            theirs = float(np.mean(errors[learner]))
            yield compare(what, learner, mean, theirs, 1.0, unit="", note=note)


# Time and memory


def times(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the processor time of fits with 10 features on one core."""
    one_thread()
    for n in options.fit_rows:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 10))
        smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
        y = smooth + 0.1 * rng.normal(size=n)

        begun = time.process_time()
        ours(X, y, False, options)
        spent = time.process_time() - begun
        append(options.runs, {"table": "times", "rows": n, "processor": spent})
        yield compare(f"fit of {n:,} rows, d = 10", "a minute", [spent], 60.0)


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Yield time and peak memory of fits from memory maps, each in its own process.

    The peak is that beyond the interpreter with its libraries, y and a fit of few rows.
    """
    for n in sorted(options.memory_rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            _write(Path(name), n)
            seconds, peak, error = in_child(_from_disk, Path(name), settings(options))
        note = f"RMSE {error:.4f}, noise 0.1"
        what = f"peak beyond before, n = {n:,}"
        yield compare(what, "max_memory", [peak], 1000.0, 1.0, unit="MB", note=note)
        yield compare(f"fit, n = {n:,}", "10⁶ rows", [seconds], n / 1e6)


def _write(folder: Path, n: int, block: int = 100_000) -> None:
    """Write n rows of 20 features and their targets, a block at a time."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, 20))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float32, (n,))
    for start in range(0, n, block):
        x = rng.normal(size=(min(block, n - start), 20))
        X[start : start + block] = x
        smooth = np.sin(2 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2] - x[:, 3])
        y[start : start + block] = smooth + 0.1 * rng.normal(size=len(x))


def _from_disk(folder: Path, how: dict[str, Any]) -> tuple[float, float, float]:
    """Return processor seconds, peak memory in MB beyond that before, and the error."""
    X = np.load(folder / "X.npy", mmap_mode="r")
    y = np.load(folder / "y.npy").astype(np.float64)
    made: dict[str, Any] = {"max_memory": "1GB", "random_state": 0}
    nb.NystroemRegressor(5, landmarks="uniform", **made).fit(X[:4000], y[:4000])

    before = peak_megabytes()
    start = time.process_time()
    model = nb.NystroemRegressor(**how, **made).fit(X, y)
    seconds = time.process_time() - start
    peak = peak_megabytes() - before

    some = slice(0, 200_000)
    return seconds, peak, _rmse(model.predict(X[some]), y[some])


def predict(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of predict without leaves against transform of 256 landmarks."""
    X = synthetic(4000, 20)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    how = {"local": False, "random_state": 0, **settings(options)}
    model = nb.NystroemRegressor(**how).fit(X, y)
    plain = nb.Nystroem(
        nb.Matern(nu=1.5, sigma=3.0),
        method="uniform",
        n_components=model.n_components_,
        random_state=0,
    )

    for dtype in (np.float64, np.float32):
        fresh = synthetic(options.predict_rows, 20, seed=1).astype(dtype)
        plain.fit(X.astype(dtype))
        work: dict[str, Callable[[int], Any]] = {
            "predict": lambda _, fresh=fresh: model.predict(fresh),
            "transform": lambda _, fresh=fresh: plain.transform(fresh),
        }
        found = time_in_turn(work, options.rounds)
        what = f"predict, {len(fresh):,} rows, {model.n_components_} landmarks, {dtype.__name__}"
        yield compare(what, "transform", found["predict"], found["transform"], 1.1)


main = benchmark(
    __file__, __doc__, "Learners, {device}", (tables, times, memory, predict), rounds=3,
    usual=("tables",),
    options={
        "tables": [*GOALS, *SMALL], "splits": [0], "learners": ([OURS], ", ".join(LEARNERS)),
        "device": ("cpu", "a device of PyTorch, such as cuda"),
        "components": (0, "landmarks, if not as many as the learner chooses"),
        "compact": (False, "landmarks alone, no leaves"), "runs": Path("out/learning.jsonl"),
        "fit-rows": [500, 1500, 3000, 6000, 20_000, 50_000],
        "memory-rows": [10**5, 10**6, 10**7], "predict-rows": 100_000,
        "folder": (None, "where files are put"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
