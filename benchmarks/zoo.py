"""Never worse than the best peer: joint and boosted columns on a zoo of data, kernels and sizes.

The paper's five data sets and twelve tables of the UCI collection (standardised); 4000 random
rows, or three quarters of the smaller tables; Gaussian kernels with σ = ¼, ½, 1, 2 and 4 times
the median distance, Laplacian, Matérn 3/2 and polynomial; c = 60, 240, 480 and 960, at most a
quarter of the rows. Each method's relative error in sample and on other rows, and the optimum
of rank c. With --large: fitted on up to 50,000 rows, the error on 4000 of them, of which 100
are those farthest from the mean. Records are appended as they are made; the same command
goes on where it was.

    make bench-zoo DATA=folder                          reduced: one seed, 1000 rows
    python benchmarks/zoo.py --device cuda --jobs 14    all of it on a GPU, through PyTorch
    python benchmarks/zoo.py --summary                  the tables and the heat map alone
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from joblib import Memory
from scipy.spatial.distance import pdist

import nysboost as nb
from nysboost.boosting.learner import fit_learner
from nysboost.experiments import datasets
from nysboost.gram import Landmarks, make_gram
from nysboost.methods.cholesky import greedy, rpcholesky
from nysboost.methods.leverage import rls
from nysboost.numerics.arrays import Array, like, namespace, to_host
from nysboost.numerics.kmeans import centroids

PAPER = ("mnist", "covertype", "glove", "pendigits", "ijcnn")
TABLES = [
    "kin40k",
    "protein",
    "bike",
    "pol",
    "elevators",
    "keggundirected",
    "concrete",
    "energy",
    "wine",
    "airfoil",
    "housing",
    "solar",
]
PEERS = ("uniform", "kmeans", "rpcholesky", "greedy", "rls")
KERNELS = ("g0.25", "g0.5", "g1", "g2", "g4", "laplacian", "matern", "polynomial")
SIZES = (60, 240, 480, 960)
LARGE, JUDGED, FAR = 50_000, 4000, 100
WHOLE_MATRIX = ("optimal",)
"""Left out where 50,000 rows are fitted."""
KEY = ("data", "kernel", "seed", "large", "c", "method")


@cache
def table(name: str, data_dir: Path | None) -> np.ndarray:
    """Return all rows of a data set, prepared as the paper does, or standardised."""
    if name in PAPER:
        data = datasets.load(name, data_dir)
        assert data.values is not None
        return data.draw(min(len(data.values), LARGE + JUDGED), np.random.default_rng(0))
    X = np.load((data_dir or Path()) / "uci" / f"{name}.npz")["X"].astype(np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def split(X: np.ndarray, rows: int, seed: int, large: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a fit, and the rows to check it with: others or, of many, some."""
    order = np.random.default_rng([seed, 4000]).permutation(len(X))
    if large:
        X = X[order[:LARGE]]
        far = np.argsort(-np.linalg.norm(X - X.mean(axis=0), axis=1))
        return X, X[np.concatenate([far[:FAR], np.sort(far[FAR:])])[:JUDGED]]
    seen = min(rows, 3 * len(X) // 4)
    return X[order[:seen]], X[order[seen : seen + rows]]


def _centroids(
    data: str, data_dir: Path | None, device: str | None, rows: int, seed: int, large: bool, c: int
) -> np.ndarray:
    """Return the centroids of k-means, which are the same for all kernels."""
    seen, _ = split(table(data, data_dir), rows, seed, large)
    return to_host(centroids(_on(device, seen), c, np.random.default_rng([seed, 7])))


def kernel_of(name: str, X: np.ndarray) -> nb.Kernel:
    """Return a kernel of the zoo, its bandwidth measured on up to 1000 rows."""
    some = X[:1000]
    if name == "polynomial":
        return nb.Polynomial(gamma=1 / X.shape[1])
    if name == "laplacian":
        return nb.Laplacian(sigma=float(np.median(pdist(some, "cityblock"))))
    median = float(np.median(pdist(some)))
    if name == "matern":
        return nb.Matern(nu=1.5, sigma=median)
    return nb.Gaussian(sigma=float(name[1:]) * median)


def tasks(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one task for each data set, seed and kernel, in an order that is fair if cut off."""
    found = [
        {"data": data, "kernel": kernel, "seed": seed, "large": options.large}
        for data in options.sets
        for kernel in options.kernels
        for seed in range(options.seeds)
    ]
    order = np.random.default_rng(0).permutation(len(found))
    return sorted((found[i] for i in order), key=lambda task: task["seed"])


Wanted = dict[str, list[int]]
"""The numbers of landmarks that each method is still to be run with."""


def wanted(task: dict[str, Any], done: set[tuple[Any, ...]], options: argparse.Namespace) -> Wanted:
    """Return what is not recorded yet of a task: of each method, the sizes that its rows allow."""
    X = table(task["data"], options.data_dir)
    rows = min(LARGE, len(X)) if task["large"] else min(options.rows, 3 * len(X) // 4)
    sizes = [c for c in options.sizes if c <= rows // 4]
    left = {
        method: [c for c in sizes if _key({**task, "c": c, "method": method}) not in done]
        for method in options.methods
        if not (task["large"] and method in WHOLE_MATRIX)
    }
    return {method: some for method, some in left.items() if some}


def run(task: dict[str, Any], methods: Wanted, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the methods that are wanted on one task."""
    X = table(task["data"], options.data_dir)
    seen, other = split(X, options.rows, task["seed"], task["large"])
    kernel = kernel_of(task["kernel"], seen)
    where = (task["data"], options.data_dir, options.device, options.rows, task["seed"])
    centres = Memory(options.cache, verbose=0).cache(_centroids)
    seen, other = (_on(options.device, part) for part in (seen, other))
    judged = {"held_out": (other, kernel(other, other))}
    if not task["large"]:
        judged["frobenius"] = (seen, kernel(seen, seen))
    fitted = _fitted(seen, kernel, methods, task["seed"], partial(centres, *where, task["large"]))
    records, began = [], time.perf_counter()
    for method, c, features in fitted:
        errors = {name: _error(features(rows), G) for name, (rows, G) in judged.items()}
        errors["seconds"] = time.perf_counter() - began
        records.append({**task, "n": len(seen), "c": c, "method": method, **errors})
        began = time.perf_counter()
    if "optimal" in methods:
        records += _optima(task, judged["frobenius"][1], methods["optimal"])
    return records


def _fitted(
    X: Array,
    kernel: nb.Kernel,
    methods: Wanted,
    seed: int,
    centres: Callable[[int], np.ndarray],
) -> Iterator[tuple[str, int, Any]]:
    """Yield method, c and feature map; pivots of a large run serve the smaller ones too."""
    gram = make_gram(X, kernel)
    for method, sizes in methods.items():
        rng = np.random.default_rng([seed, 7])
        columns = _columns(gram, method, max(sizes), rng)
        for c in sizes if method != "optimal" else ():
            if columns is not None:
                landmarks = gram.landmarks(columns[:c])
            elif method == "kmeans":
                landmarks = Landmarks(None, like(centres(c), X))
            elif method == "rls":
                landmarks = rls(gram, c, rng)
            else:
                yield method, c, _own(X, kernel, method, c, seed)
                continue
            learner = fit_learner(gram, landmarks, c)
            yield (
                method,
                c,
                lambda rows, fit=learner: gram.evaluate(rows, fit.landmarks) @ fit.projection,
            )


def _columns(gram: Any, method: str, c: int, rng: np.random.Generator) -> np.ndarray | None:
    if method == "uniform":
        return rng.permutation(gram.n)[:c]
    choose = {"rpcholesky": rpcholesky, "greedy": greedy}.get(method)
    return None if choose is None else choose(gram, c, rng).indices


def _own(X: Array, kernel: nb.Kernel, method: str, c: int, seed: int) -> Any:
    how: dict[str, int] = {"n_components": c}
    if method != "joint":
        m = c // 4
        how = {"n_learners": 4, "n_columns": m, "n_candidates": 1000 if m < 120 else 2000}
    return nb.approximate(X, method, kernel, **how, random_state=seed).feature_map()[0]


def _on(device: str | None, array: np.ndarray) -> Array:
    """Return the array as it is, or as a PyTorch tensor on a device."""
    if device is None:
        return array
    import torch

    return torch.asarray(array, device=device)


def _error(F: Array, G: Array) -> float:
    norm = namespace(G).linalg.vector_norm
    return float(norm(G - F @ F.T) / norm(G))


def _optima(task: dict[str, Any], G: Array, sizes: list[int]) -> list[dict[str, Any]]:
    """Return the errors of the best matrices of rank c: the limit."""
    spectrum = np.abs(to_host(namespace(G).linalg.eigvalsh(G)))
    spectrum = np.sort(spectrum)[::-1]
    return [
        {
            **task,
            "n": len(spectrum),
            "c": c,
            "method": "optimal",
            "frobenius": float(np.linalg.norm(spectrum[c:]) / np.linalg.norm(spectrum)),
        }
        for c in sizes
    ]


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in KEY)


def _results(
    todo: list[tuple[dict[str, Any], Wanted]], options: argparse.Namespace
) -> Iterator[list[dict[str, Any]]]:
    """Yield each task's records as it ends, from here or from as many workers as there are jobs."""
    if options.jobs == 1:
        yield from (run(task, methods, options) for task, methods in todo)
        return
    import zoo  # by this name the workers find it too

    # a worker stays to the end: a new one would spend seconds on PyTorch and the device
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as workers:
        running = [workers.submit(zoo.run, task, methods, options) for task, methods in todo]
        yield from (one.result() for one in as_completed(running))


def read(path: Path) -> list[list[dict[str, Any]]]:
    """Return the tasks recorded in full; a half-written last line is left out."""
    done = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            done.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return done


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--large", action="store_true", help="fit on up to 50,000 rows")
    parser.add_argument("--sets", nargs="+", default=[*PAPER, *TABLES])
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--methods", nargs="+", default=[*PEERS, "optimal", "JJB-mean", "joint"])
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--device", default=None, help="a PyTorch device, such as cuda")
    parser.add_argument("--out", type=Path, default=Path("out/zoo.jsonl"))
    parser.add_argument("--cache", type=Path, default=Path("out/zoo-centroids"))
    parser.add_argument("--summary", action="store_true", help="tables and heat map, and stop")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        done = {_key(record) for records in read(options.out) for record in records}
        todo = [
            (task, methods) for task in tasks(options) if (methods := wanted(task, done, options))
        ]
        with options.out.open("a") as file:
            for number, records in enumerate(_results(todo, options), 1):
                file.write(json.dumps(records) + "\n")
                file.flush()
                print(f"{number}/{len(todo)} {_key(records[-1]) if records else ''}", flush=True)
    from zoo_tables import print_tables

    print_tables([record for records in read(options.out) for record in records], options.out)


if __name__ == "__main__":
    main()
