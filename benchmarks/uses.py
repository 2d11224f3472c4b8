"""What the approximations are for, each against the exact estimator.

    python benchmarks/uses.py --data-dir folder
    python benchmarks/uses.py --data-dir folder --only pca hinge     some of it

Times are processor time with one thread.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import Row, benchmark, compare, labelled, timed
from environment import in_child, peak_megabytes
from machines import hinge
from scipy.linalg import subspace_angles
from scipy.stats import binomtest
from sklearn import datasets as samples
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import adjusted_rand_score

import nysboost as nb

TITLES = {"pendigits": "Pendigits", "mnist": "MNIST"}


def pca(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the largest angle between the space of ten components and the exact one."""
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
            what = f"kernel PCA, {TITLES[data]}, `{method}`: angle with the exact subspace"
            yield compare(what, "at most", [angle], 0.05, 1.0, unit="rad")


def clustering(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the adjusted Rand index and scikit-learn's.

    Both begin k-means at random: the mean over the seeds is compared with the mean of theirs.
    """
    X, y = labelled("pendigits", options)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    some = np.random.default_rng(0).permutation(len(X))[: options.cluster_rows]
    problems = {
        "circles": (*samples.make_circles(1000, factor=0.4, noise=0.05, random_state=0), 2, 20.0),
        "moons": (*samples.make_moons(1000, noise=0.05, random_state=0), 2, 20.0),
        "Pendigits, γ = 2": (X[some], y[some], len(np.unique(y)), 2.0),
        "Pendigits, γ = 4": (X[some], y[some], len(np.unique(y)), 4.0),
    }
    for name, (X, y, k, gamma) in problems.items():
        found: dict[str, list[float]] = {"ours": [], "theirs": []}
        for seed in range(options.seeds):
            how: dict[str, Any] = {"gamma": gamma, "random_state": seed}
            ours = nb.SpectralClustering(k, n_landmarks=options.landmarks, **how).fit_predict(X)
            theirs = SpectralClustering(k, affinity="rbf", **how).fit_predict(X)
            found["ours"].append(adjusted_rand_score(y, ours))
            found["theirs"].append(adjusted_rand_score(y, theirs))
        what = f"spectral clustering, {name}: adjusted Rand index"
        means = [[float(np.mean(values))] for values in found.values()]
        yield compare(what, "scikit-learn", *means, unit="")


def process(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the mean difference of probabilities from the exact process's."""
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
        what = f"Gaussian process classification, {name}: difference from exact probabilities"
        yield compare(what, "at most", [float(gap)], 0.02, 1.0, unit="")


def two_samples(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the size of the test under the null, and its power beside the exact test's."""
    rng, kernel, rejected = np.random.default_rng(1), nb.Gaussian(sigma=1.0), 0
    for _ in range(options.null_runs):
        both = rng.exponential(size=(40, 2))
        how: dict[str, Any] = {"n_components": 10, "n_permutations": 39, "random_state": rng}
        rejected += nb.mmd_test(both[:25], both[25:], kernel, **how).pvalue <= 0.05
    p = binomtest(rejected, options.null_runs, 0.05).pvalue
    size = rejected / options.null_runs
    what = "`mmd_test`: rejections of samples with the same distribution"
    how = {"unit": "%", "note": f"binomial test {p:.2f}"}
    yield compare(what, "level", [100 * size], 5.0, **how)
    powers = {"ours": 0, "exact": 0}
    for _ in range(options.power_runs):
        A, B = rng.normal(size=(60, 2)), rng.normal([0.5, 0.0], 1.0, size=(60, 2))
        how = {"n_components": 20, "n_permutations": 99, "random_state": rng}
        powers["ours"] += nb.mmd_test(A, B, kernel, **how).pvalue <= 0.05
        powers["exact"] += _quadratic(A, B, kernel, 99, rng) <= 0.05
    misses = [[100 * (1 - count / options.power_runs)] for count in powers.values()]
    yield compare("`mmd_test`: misses of a shifted mean", "exact quadratic test", *misses, unit="%")


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


LARGE: dict[str, Callable[[np.ndarray], Any]] = {
    "KernelPCA": lambda X: nb.KernelPCA(10, gamma=0.05, random_state=0).fit_transform(X),
    "SpectralClustering": lambda X: nb.SpectralClustering(
        5, gamma=0.05, n_landmarks=100, random_state=0
    ).fit_predict(X),
    "MeanEmbedding": lambda X: nb.MeanEmbedding(gamma=0.05, random_state=0).fit(X),
    "mmd_test": lambda X: nb.mmd_test(X[::2], X[1::2], n_permutations=99, random_state=0),
}


def large(options: argparse.Namespace) -> Iterator[Row]:
    """Yield processor seconds and peak memory with many rows of ten features in float32."""
    for name in LARGE:
        seconds, peak, note = in_child(_at_size, name, options.many_rows)
        what = f"`{name}`, {options.many_rows:,} rows"
        yield compare(what, "at most", [seconds], 60.0, 1.0, note=note)
        yield compare(f"{what}: peak memory", "at most", [peak], 2000.0, 1.0, unit="MB")


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
    (pca, clustering, process, two_samples, hinge, large), rounds=1,
    options={
        "device": ("", "of the machines' rows, as PyTorch names it"),
        "places": (["uniform", "kmeans"], "landmarks of machines"),
        "classified": ["pendigits", "ijcnn"],
        "rows": 1500, "cluster-rows": 1500, "train-rows": 20_000, "test-rows": 10_000,
        "many-rows": 200_000, "process-rows": 200, "landmarks": 240, "machine-landmarks": 500,
        "seeds": 3, "null-runs": 300, "power-runs": 60,
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
