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

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load(name: str, split: int, options: argparse.Namespace) -> Split:
    """Return training rows and targets, test rows and targets."""
    if options.data == "synthetic":
        rng = np.random.default_rng(split)
        X = rng.normal(size=(90, 3))
        y, test = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=90), np.arange(90) >= 70
        y = (y > 0).astype(int) if name in TRAINING else y
    elif name in TRAINING:
        stored = np.load(options.data_dir / f"{name}.npz")
        X, y = stored["X"].astype(np.float64), stored["y"]
        order = np.arange(len(y))
        if name != "mnist":
            order = np.random.default_rng(split).permutation(len(y))
        test = np.isin(np.arange(len(y)), order[TRAINING[name] :])
    else:
        stored = np.load(options.data_dir / "uci" / f"{name}.npz")
        X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64).ravel()
        test = stored["test_mask"][:, split]
        y = (y - y[~test].mean()) / y[~test].std()
    return X[~test], y[~test], X[test], y[test]


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of our learners."""
    how = {"n_components": options.components} if options.components else {}
    return how | ({"local": False} if options.compact else {})


def ours(X: Any, y: np.ndarray, classify: bool, options: argparse.Namespace) -> Any:
    kind: Any = nb.NystroemClassifier if classify else nb.NystroemRegressor
    return kind(**settings(options), random_state=0).fit(X, y)


def lightgbm(X: np.ndarray, y: np.ndarray, classify: bool, _: argparse.Namespace) -> Any:
    import lightgbm as lgb

    order, many = np.random.default_rng(0).permutation(len(y)), len(y) > 3000
    held, rest = order[: len(y) // 10], order[len(y) // 10 :]
    model = (lgb.LGBMClassifier if classify else lgb.LGBMRegressor)(
        n_estimators=5000,
        learning_rate=0.1 if classify else 0.05 if many else 0.03,
        num_leaves=63 if many else 31,
        min_child_samples=20 if many else 5,
        verbose=-1,
    )
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
    kernel = ConstantKernel(1.0) * Matern(np.full(d, d**0.5), nu=1.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return make_pipeline(StandardScaler(), process).fit(X, y)


LEARNERS: dict[str, Callable[[Any, np.ndarray, bool, argparse.Namespace], Any]] = {
    OURS: ours,
    "LightGBM": lightgbm,
    "xRFM": xrfm,
    "exact process": exact_process,
}


def one_run(table: str, split: int, learner: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fit and predict once; return what came of it."""
    X, y, fresh, truth = load(table, split, options)
    train = placed(X, options.device) if learner == OURS else X
    classify = table in TRAINING
    start, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LEARNERS[learner](train, y, classify, options)
    record = {"table": table, "split": split, "learner": learner, "rows": len(X)}
    record |= {"device": _name(options.device), "version": nb.__version__}
    record |= {"seconds": time.perf_counter() - start, "processor": time.process_time() - spent}
    fresh = placed(fresh, options.device) if learner == OURS else fresh
    if classify:
        record["error"] = float(np.mean(_host(model.predict(fresh)) != truth))
    elif learner == OURS:
        mean, std = (_host(part) for part in model.predict(fresh, return_std=True))
        record["covered"] = float(np.mean(np.abs(mean - truth) <= 1.96 * std))
        record["error"] = float(np.sqrt(np.mean((mean - truth) ** 2)))
    else:
        record["error"] = float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)))
    return record


def _name(device: str) -> str:
    if device == "cpu":
        return device
    import torch

    return str(torch.cuda.get_device_name(device))


def _host(values: Any) -> np.ndarray:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


def tables(options: argparse.Namespace) -> Iterator[Row]:
    """Run what is not on file yet, and yield the mean error of each table against the others."""
    key = ("table", "split", "learner")
    records = read(options.runs)
    known = {tuple(r[name] for name in key) for r in records if "split" in r}
    for table in options.tables:
        for split in options.splits if table != "mnist" else [0]:
            for learner in options.learners:
                exact = learner == "exact process" and table not in SMALL
                if (table, split, learner) in known or exact:
                    continue
                record = one_run(table, split, learner, options)
                progress(str(record))
                append(options.runs, record)
                records.append(record)
        found = {
            learner: [r for r in records if (r["table"], r.get("learner")) == (table, learner)]
            for learner in LEARNERS
        }
        errors = {who: [r["error"] for r in runs] for who, runs in found.items() if runs}
        if OURS not in errors:
            continue
        note = " ".join(f"{e:.4f}" for e in errors[OURS])
        if covered := [r["covered"] for r in found[OURS] if "covered" in r]:
            note += f"; {np.mean(covered):.3f} in 95 % intervals"
        mean = [float(np.mean(errors[OURS]))]
        what = f"{table}, {len(errors[OURS])} splits"
        if table in GOALS:
            yield compare(what, "goal", mean, GOALS[table], 1.0, unit="", note=note)
        for learner, theirs in errors.items():
            if learner != OURS:
                yield compare(what, learner, mean, float(np.mean(theirs)), 1.0, unit="", note=note)


def times(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the processor time of fits with 10 features on one core."""
    one_thread()
    for n in options.fit_rows:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 10))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
        spent = time.process_time()
        ours(X, y, False, options)
        spent = time.process_time() - spent
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
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy").astype(np.float64)
    made = {"max_memory": "1GB", "random_state": 0}
    nb.NystroemRegressor(5, landmarks="uniform", **made).fit(X[:4000], y[:4000])
    before, start = peak_megabytes(), time.process_time()
    model = nb.NystroemRegressor(**how, **made).fit(X, y)
    seconds, peak = time.process_time() - start, peak_megabytes() - before
    miss = model.predict(X[:200_000]) - y[:200_000]
    return seconds, peak, float(np.sqrt(np.mean(miss**2)))


def predict(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of predict without leaves against transform of 256 landmarks."""
    X = synthetic(4000, 20)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    how = {"local": False, "random_state": 0, **settings(options)}
    model = nb.NystroemRegressor(**how).fit(X, y)
    plain = nb.Nystroem(nb.Matern(nu=1.5, sigma=3.0), method="uniform", random_state=0,
                        n_components=model.n_components_)  # fmt: skip
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
