"""What the approximations are for, each against the exact thing: the tables in docs/uses.md.

    make bench-uses DATA=folder                           all of it
    python benchmarks/uses.py --only clustering anova     some of it

`--data-dir` is the folder with the paper's data sets and, in `uci/`, tables of the UCI collection.
Times are processor time with one thread; a ratio above its goal is a goal that was missed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import Row, benchmark, compare, labelled, timed
from environment import in_child, peak_megabytes
from leaderboard import tables
from machines import hinge
from scipy.linalg import subspace_angles
from scipy.stats import binomtest
from sklearn import datasets as samples
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

import nysboost as nb


def pca(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the largest angle between ten components and the exact ones, over 0.05."""
    for data in ("pendigits", "mnist"):
        X, _ = labelled(data, options)
        X = X[np.random.default_rng(0).permutation(len(X))[: options.rows]]
        exact = KernelPCA(10, kernel="rbf", gamma=0.02, eigen_solver="arpack", random_state=0)
        theirs = exact.fit_transform(X)
        for method in ("joint", "kmeans"):
            ours = nb.KernelPCA(
                10, gamma=0.02, method=method, n_landmarks=options.landmarks, random_state=0
            )
            angle = float(subspace_angles(ours.fit_transform(X), theirs).max())
            yield compare(f"KernelPCA, {data}, {method}", "0.05", [angle], 0.05, 1.0, unit="rad")


def clustering(options: argparse.Namespace) -> Iterator[Row]:
    """Yield by how much the adjusted Rand index is below scikit-learn's, over 0.02.

    Both begin k-means at random: the mean over the seeds is compared with the mean of theirs.
    """
    X, y = labelled("pendigits", options)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    some = np.random.default_rng(0).permutation(len(X))[: options.cluster_rows]
    problems = {
        "circles": (*samples.make_circles(1000, factor=0.4, noise=0.05, random_state=0), 2, 20.0),
        "moons": (*samples.make_moons(1000, noise=0.05, random_state=0), 2, 20.0),
        "pendigits, γ = 2": (X[some], y[some], len(np.unique(y)), 2.0),
        "pendigits, γ = 4": (X[some], y[some], len(np.unique(y)), 4.0),
    }
    for name, (X, y, k, gamma) in problems.items():
        found: dict[str, list[float]] = {"ours": [], "theirs": []}
        for seed in range(options.seeds):
            how: dict[str, Any] = {"gamma": gamma, "random_state": seed}
            ours = nb.SpectralClustering(k, n_landmarks=options.landmarks, **how).fit_predict(X)
            theirs = SpectralClustering(k, affinity="rbf", **how).fit_predict(X)
            found["ours"].append(adjusted_rand_score(y, ours))
            found["theirs"].append(adjusted_rand_score(y, theirs))
        means = [float(np.mean(values)) for values in found.values()]
        short = (means[1] - means[0]) / 0.02
        each = ", ".join(f"{a:.3f}/{b:.3f}" for a, b in zip(*found.values(), strict=True))
        yield Row(
            f"SpectralClustering, {name}", "scikit-learn", *means, "ARI", short, short, short, 1.0,
            note=f"seed by seed: {each}",
        )  # fmt: skip


def anova(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the test error of ANOVA regression on landmarks over that of dense kernel ridge."""
    for name, (X, y) in _tables(options).items():
        both = [_anova_errors(X, y, seed, options) for seed in range(options.splits)]
        ours, dense = ([pair[i] for pair in both] for i in (0, 1))
        against = "dense kernel ridge regression"
        yield compare(f"ANOVA, {name}", against, ours, dense, 1.05, unit="RMSE")


def _anova_errors(
    X: np.ndarray, y: np.ndarray, seed: int, options: argparse.Namespace
) -> tuple[float, float]:
    """Return the root mean squared error on a fifth of the rows, of the regressor and dense."""
    order, kernel = np.random.default_rng(seed).permutation(len(X)), nb.Anova(0.5, degree=2)
    test, train = order[: len(X) // 5], order[len(X) // 5 :]
    X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
    dense = GridSearchCV(
        KernelRidge(kernel="precomputed"), {"alpha": 10.0 ** np.arange(-4, 3)}, cv=5
    )
    mean = y[train].mean()
    dense.fit(kernel(X[train], X[train]), y[train] - mean)
    exact = dense.predict(kernel(X[test], X[train])) + mean
    model = nb.NystroemRegressor(options.landmarks, kernel=kernel, random_state=seed)
    ours = model.fit(X[train], y[train]).predict(X[test])
    return tuple(float(np.sqrt(np.mean((found - y[test]) ** 2))) for found in (ours, exact))


def _tables(options: argparse.Namespace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {"friedman": samples.make_friedman1(1000, noise=1.0, random_state=0)}
    for name in ("concrete", "energy", "airfoil"):
        path = Path(options.data_dir or ".") / "uci" / f"{name}.npz"
        if options.data != "synthetic" and path.exists():
            stored = np.load(path)
            found[name] = stored["X"].astype(np.float64), stored["y"].astype(np.float64).ravel()
    return found


def process(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the mean difference of probabilities from the exact process's, over 0.02."""
    iris = samples.load_iris(return_X_y=True)
    moons = samples.make_moons(options.process_rows, noise=0.2, random_state=0)
    problems = {"moons": moons, "iris": iris}
    for name, (X, y) in problems.items():
        train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
        prior = ConstantKernel(10.0, "fixed") * RBF(0.5, "fixed")
        exact = GaussianProcessClassifier(prior, optimizer=None).fit(X[train], y[train])
        ours = nb.GaussianProcessClassifier(
            gamma=2.0, variance=10.0, n_landmarks=int(train.sum()), method="uniform"
        )
        ours.fit(X[train], y[train])
        gap = np.abs(ours.predict_proba(X[test]) - exact.predict_proba(X[test])).mean()
        yield compare(
            f"GaussianProcessClassifier, {name}", "0.02", [float(gap)], 0.02, 1.0, unit=""
        )


def two_samples(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the size of the test under the null, and its power beside the exact test's."""
    rng, kernel, rejected = np.random.default_rng(1), nb.Gaussian(sigma=1.0), 0
    for _ in range(options.null_runs):
        both = rng.exponential(size=(40, 2))
        how: dict[str, Any] = {"n_components": 10, "n_permutations": 39, "random_state": rng}
        rejected += nb.mmd_test(both[:25], both[25:], kernel, **how).pvalue <= 0.05
    p = binomtest(rejected, options.null_runs, 0.05).pvalue
    size = rejected / options.null_runs
    yield compare("mmd_test, size", "0.05", [size], 0.05, unit="", note=f"binomial test {p:.2f}")
    powers = {"ours": 0, "exact": 0}
    for _ in range(options.power_runs):
        A, B = rng.normal(size=(60, 2)), rng.normal([0.5, 0.0], 1.0, size=(60, 2))
        how = {"n_components": 20, "n_permutations": 99, "random_state": rng}
        powers["ours"] += nb.mmd_test(A, B, kernel, **how).pvalue <= 0.05
        powers["exact"] += _quadratic(A, B, kernel, 99, rng) <= 0.05
    ours, exact = (count / options.power_runs for count in powers.values())
    yield compare("mmd_test, misses", "the exact quadratic test", [1 - ours], [1 - exact], unit="")


def _quadratic(
    A: np.ndarray, B: np.ndarray, kernel: nb.Kernel, permutations: int, rng: np.random.Generator
) -> float:
    """Return the p-value of hᵀKh with the whole matrix, h = ±1/n, by permutations."""
    both, n = np.concatenate([A, B]), len(A)
    K = kernel(both, both)
    h = np.where(np.arange(len(both)) < n, 1 / n, -1 / len(B))
    drawn = np.stack([h, *(rng.permutation(h) for _ in range(permutations))])
    values = np.einsum("pi,ij,pj->p", drawn, K, drawn, optimize=True)
    return float(np.mean(values >= values[0] * (1 - 1e-12)))


def onnx(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the largest difference of ONNX Runtime's answers from ours, over 1e-5 of their spread.

    Of a learner on landmarks alone, of one with leaves, and of a transformer, on small tables.
    """
    for table in tables(options.data_dir)[: options.onnx_tables]:
        X, y, _ = table.read()
        some = np.random.default_rng(0).permutation(len(X))[: options.onnx_rows]
        X, y = X.iloc[some].reset_index(drop=True), y[some]
        learner = nb.NystroemClassifier if table.classify else nb.NystroemRegressor
        how: dict[str, Any] = {"n_components": 16, "random_state": 0}
        apart = {
            "landmarks": _onnx_difference(learner(local=False, **how).fit(X, y), X),
            "leaves": _onnx_difference(learner(local=100, **how).fit(X, y), X),
        }
        whole = X.dropna(axis=1)  # a transformer refuses gaps
        apart["features"] = _onnx_difference(nb.Nystroem(**how).fit(whole), whole)
        note = ", ".join(f"{name} {value:.1e}" for name, value in apart.items())
        worst = max(apart.values())
        yield compare(f"ONNX, {table.name}", "1e-5", [worst], 1e-5, 1.0, unit="", note=note)


def _onnx_difference(model: Any, X: Any) -> float:
    """Return the largest difference of what a file answers, over the spread of the answers."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        nb.to_onnx(model, Path(folder) / "model.onnx")
        session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
    inputs = {}
    for one in session.get_inputs():
        column = X[one.name]
        text = one.type == "tensor(string)"  # where a gap is an empty text
        values = column.astype(object).where(column.notna(), "").map(str) if text else column
        inputs[one.name] = values.to_numpy(object if text else np.float64)[:, None]
    found = session.run(None, inputs)[-1]  # of a classifier, the probabilities
    name = next(n for n in ("transform", "predict_proba", "predict") if hasattr(model, n))
    expected = np.asarray(getattr(model, name)(X))
    return float(np.abs(found - expected).max() / np.ptp(expected))


LARGE: dict[str, Callable[[np.ndarray], Any]] = {
    "KernelPCA": lambda X: nb.KernelPCA(10, gamma=0.05, random_state=0).fit_transform(X),
    "SpectralClustering": lambda X: nb.SpectralClustering(
        5, gamma=0.05, n_landmarks=100, random_state=0
    ).fit_predict(X),
    "MeanEmbedding": lambda X: nb.MeanEmbedding(gamma=0.05, random_state=0).fit(X),
    "mmd_test": lambda X: nb.mmd_test(X[::2], X[1::2], n_permutations=99, random_state=0),
}


def large(options: argparse.Namespace) -> Iterator[Row]:
    """Yield processor seconds and peak memory with a million rows of ten features in float32."""
    for name in LARGE:
        seconds, peak, note = in_child(_at_size, name, options.many_rows)
        what = f"{name}, {options.many_rows:,} rows"
        yield compare(f"{what}: time", "a minute", [seconds], 60.0, note=note)
        yield compare(f"{what}: peak", "2 GB", [peak], 2000.0, 1.0, unit="MB")


def _at_size(name: str, n: int) -> tuple[float, float, str]:
    rng = np.random.default_rng(0)
    owner = rng.integers(5, size=n)
    X = rng.standard_normal((n, 10), dtype=np.float32)
    X += 4 * np.eye(5, 10, dtype=np.float32)[owner]
    found: list[Any] = []
    seconds = timed(lambda: found.append(LARGE[name](X)))
    ari = adjusted_rand_score(owner, found[0]) if name == "SpectralClustering" else None
    return seconds, peak_megabytes(), "" if ari is None else f"adjusted Rand index {ari:.3f}"


main = benchmark(
    __file__, __doc__, "The uses of an approximation, each against the exact thing",
    (pca, clustering, hinge, anova, process, two_samples, onnx, large), rounds=1,
    options={
        "device": ("", "of the machines' rows, as PyTorch names it"),
        "places": (["target", "kmeans"], "of machines"),
        "classified": ["pendigits", "ijcnn", "mnist"],
        # the sizes that the goals are about; tests run with small ones
        "rows": 4000, "cluster-rows": 3000, "train-rows": 20_000, "test-rows": 10_000,
        "many-rows": 1_000_000, "process-rows": 200, "landmarks": 240, "machine-landmarks": 500,
        "seeds": 8, "splits": 5, "null-runs": 1000, "power-runs": 300, "onnx-tables": 12,
        "onnx-rows": 400,
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
