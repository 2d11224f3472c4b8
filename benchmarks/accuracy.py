"""Accuracy per landmark, on the paper's data sets: the flagship, its family and the peers.

n = 4000 random rows, Gaussian kernel with σ = 5 (and the linear kernel on MNIST and
GloVe), several seeds. For each method: the relative error in the Frobenius norm, the trace
and the spectral norm, and the Frobenius error on 4000 other rows. Records are appended as
they are made; the same command goes on where it was.

    make bench-accuracy DATA=folder              all of it, then the tables
    python benchmarks/accuracy.py --device cuda  the same on a GPU, through PyTorch
    python benchmarks/accuracy.py --summary      the tables alone
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from joblib import Parallel, delayed
from sklearn.kernel_approximation import Nystroem

import nysboost as nb
from nysboost.experiments import datasets
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, like, namespace, to_host

GAUSSIAN = ("mnist", "covertype", "glove", "pendigits", "ijcnn")
PEERS = ("uniform", "kmeans", "rpcholesky", "greedy", "rls")
METHODS = (*PEERS, "JJB-mean", "JJB-med", "joint")
ROWS = 4000
LARGE = 50_000
GAMMA = 1 / 50


def tasks(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield one task for each data set, kernel and seed."""
    for seed in range(seeds):
        for data in GAUSSIAN:
            yield {"data": data, "kernel": "gaussian", "seed": seed, "n": ROWS}
        for data in ("mnist", "glove"):
            yield {"data": data, "kernel": "linear", "seed": seed, "n": ROWS}
        for data in ("mnist", "covertype"):
            if seed < 3:
                yield {"data": data, "kernel": "gaussian", "seed": seed, "n": LARGE}


def landmarks_of(task: dict[str, Any]) -> tuple[int, ...]:
    """Return the numbers of landmarks of a task."""
    if task["kernel"] == "linear":
        return (120,)
    return (240, 480) if task["n"] == ROWS else (240,)


def run(task: dict[str, Any], data_dir: Path | None, device: str | None) -> list[dict[str, Any]]:
    """Run every method on one task, for all its numbers of landmarks."""
    rng = np.random.default_rng([task["seed"], 4000])
    rows = rng.permutation(datasets.load(task["data"], data_dir).draw(task["n"] + ROWS, rng))
    seen, other = (_on(device, part) for part in (rows[: task["n"]], rows[task["n"] :]))
    # the in-sample error of a large fit is that of as many of its rows as are held out
    judged = seen[:ROWS]
    kernel = nb.Gaussian(gamma=GAMMA) if task["kernel"] == "gaussian" else nb.Linear()
    G, H = kernel(judged, judged), kernel(other, other)
    methods = METHODS if task["n"] == ROWS else ("kmeans", "joint")
    records = []
    for c in landmarks_of(task):
        where = {**task, "c": c}
        records += [
            _fitted(where, method, kernel, seen, (judged, G), (other, H)) for method in methods
        ]
        if methods is METHODS and task["kernel"] == "gaussian":
            peer = Nystroem(gamma=GAMMA, n_components=c, random_state=task["seed"])
            F, out = (
                _on(device, features)
                for features in (
                    peer.fit_transform(rows[: task["n"]]),
                    peer.transform(rows[task["n"] :]),
                )
            )
            records.append(where | {"method": "scikit-learn"} | _errors(F, G, out, H))
    return records + (_optima(task, G) if methods is METHODS else [])


def _on(device: str | None, array: np.ndarray) -> Array:
    """Return the array as it is, or as a PyTorch tensor on a device."""
    if device is None:
        return array
    import torch

    return torch.asarray(array, device=device)


def _fitted(
    task: dict[str, Any],
    method: str,
    kernel: Kernel,
    X: Array,
    inside: tuple[Array, Array],
    outside: tuple[Array, Array],
) -> dict[str, Any]:
    c = task["c"]
    how: dict[str, int] = {"n_components": c}
    if method not in (*PEERS, "joint"):
        how = {"n_learners": 4, "n_columns": c // 4, "n_candidates": 1000 if c < 480 else 2000}
    approx = nb.approximate(X, method, kernel, **how, random_state=task["seed"])
    features, _ = approx.feature_map()
    record = {**task, "method": method, "entries": approx.entries_evaluated}
    return record | _errors(features(inside[0]), inside[1], features(outside[0]), outside[1])


def _errors(F: Array, G: Array, out: Array, H: Array) -> dict[str, float]:
    residual = G - F @ F.T
    norm, trace = namespace(G).linalg.vector_norm, namespace(G).linalg.trace
    return {
        "frobenius": float(norm(residual) / norm(G)),
        "trace": float(abs(trace(residual)) / trace(G)),
        "spectral": _largest(residual) / _largest(G),
        "held_out": float(norm(H - out @ out.T) / norm(H)),
    }


def _optima(task: dict[str, Any], G: Array) -> list[dict[str, Any]]:
    """Return the errors of the best matrices of rank c: the limit."""
    spectrum = np.maximum(to_host(namespace(G).linalg.eigvalsh(G))[::-1], 0)
    return [
        {
            **task,
            "c": c,
            "method": "optimal",
            "frobenius": float(np.linalg.norm(spectrum[c:]) / np.linalg.norm(spectrum)),
            "trace": float(spectrum[c:].sum() / spectrum.sum()),
            "spectral": float(spectrum[c] / spectrum[0]),
        }
        for c in landmarks_of(task)
    ]


def _largest(matrix: Array) -> float:
    """Return the largest absolute eigenvalue of a symmetric matrix, by power iteration."""
    norm = namespace(matrix).linalg.vector_norm
    v = like(np.random.default_rng(0).normal(size=matrix.shape[0]), matrix)
    size = 0.0
    for _ in range(60):
        v = matrix @ (v / norm(v))
        size, last = float(norm(v)), size
        if abs(size - last) < 1e-4 * size:
            break
    return size


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("data", "kernel", "seed", "n"))


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the tasks recorded in full; a half-written last line is left out."""
    done = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            done.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--device", default=None, help="a PyTorch device, such as cuda")
    parser.add_argument("--out", type=Path, default=Path("out/accuracy.jsonl"))
    parser.add_argument("--summary", action="store_true", help="print the tables and stop")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        done = {_key(record[0]) for record in _read(options.out)}
        todo = [task for task in tasks(options.seeds) if _key(task) not in done]
        results = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
            delayed(run)(task, options.data_dir, options.device) for task in todo
        )
        with options.out.open("a") as file:
            for number, records in enumerate(results, 1):
                file.write(json.dumps(records) + "\n")
                file.flush()
                print(f"{number}/{len(todo)} {_key(records[0])}", flush=True)
    from accuracy_tables import print_tables

    print_tables([record for records in _read(options.out) for record in records])


if __name__ == "__main__":
    main()
