"""A market of Gram matrices: the properties of the library hold on every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import nysboost as nb
from nysboost.gram import Gram, make_gram


@dataclass(frozen=True)
class Problem:
    """Data and a kernel as a user passes them, and the dense matrix G in float64.

    `digits` is the precision that a comparison with a dense formula may ask for, relative
    to the largest entry of G.
    """

    X: Any
    kernel: Any
    G: np.ndarray
    digits: float = 1e-7

    @property
    def gram(self) -> Gram:
        return make_gram(self.X, self.kernel)

    @property
    def tolerance(self) -> float:
        return self.digits * float(np.abs(self.G).max())


def with_spectrum(eigenvalues: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(eigenvalues)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    G = (Q * eigenvalues) @ Q.T
    return (G + G.T) / 2


def precomputed(spectrum: Callable[[np.ndarray], np.ndarray], scale: float = 1.0) -> Any:
    def make(n: int, rng: np.random.Generator) -> Problem:
        G = scale * with_spectrum(spectrum(np.arange(n)), rng)
        return Problem(G, "precomputed", G)

    return make


def gaussian(sigma: float, points: Callable[..., np.ndarray], digits: float = 1e-7) -> Any:
    def make(n: int, rng: np.random.Generator) -> Problem:
        X = points(n, rng)
        wide = X.astype(np.float64)
        G = np.exp(-cdist(wide, wide, "sqeuclidean") / (2 * sigma**2))
        return Problem(X, nb.Gaussian(sigma=sigma), G, digits)

    return make


def linear(points: Callable[..., np.ndarray], digits: float = 1e-7) -> Any:
    def make(n: int, rng: np.random.Generator) -> Problem:
        X = points(n, rng)
        wide = X.astype(np.float64)
        return Problem(X, "linear", wide @ wide.T, digits)

    return make


def points(n: int = 80, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def positive_part(K: np.ndarray) -> np.ndarray:
    """The positive semidefinite part of a symmetric matrix."""
    eigenvalues, vectors = np.linalg.eigh(K)
    return (vectors * np.maximum(eigenvalues, 0)) @ vectors.T


def cloud(n: int, rng: np.random.Generator, d: int = 3) -> np.ndarray:
    return rng.normal(size=(n, d))


def doubled(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(cloud(-(-n // 2), rng), 2, axis=0)[:n]


def few_distinct(n: int, rng: np.random.Generator) -> np.ndarray:
    """Five different points, each many times: fewer than a learner's columns."""
    return cloud(5, rng)[rng.integers(5, size=n)]


def constant_columns(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.hstack([cloud(n, rng, 2), np.full((n, 2), 7.0)])


def single(points: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda n, rng: points(n, rng).astype(np.float32)


BUILDERS: dict[str, Callable[[int, np.random.Generator], Problem]] = {
    "decaying spectrum": precomputed(lambda i: 1.0 / (1 + i) ** 2),
    "flat spectrum": precomputed(lambda i: np.ones(len(i))),
    "stepped spectrum": precomputed(lambda i: np.where(i < 12, 1.0, 1e-3)),
    "rank below m": precomputed(lambda i: np.where(i < 4, 1.0, 0.0)),
    "huge": precomputed(lambda i: 1.0 / (1 + i) ** 2, 1e100),
    "tiny": precomputed(lambda i: 1.0 / (1 + i) ** 2, 1e-100),
    "wide Gaussian": gaussian(10.0, cloud, 1e-6),
    "Gaussian": gaussian(1.0, cloud),
    "narrow Gaussian": gaussian(0.05, cloud),
    "doubled rows": gaussian(1.0, doubled),
    "few distinct rows": gaussian(1.0, few_distinct),
    "linear": linear(lambda n, rng: cloud(n, rng, 20)),
    "linear, rank below m": linear(cloud),
    "constant columns": gaussian(1.0, constant_columns),
    "float32 Gaussian": gaussian(1.0, single(cloud), 1e-3),
    "float32 doubled rows": gaussian(1.0, single(doubled), 1e-3),
    "float32 linear": linear(single(cloud), 1e-3),
}
NAMES = tuple(BUILDERS)
FLOAT64 = tuple(name for name in NAMES if not name.startswith("float32"))
WITHOUT_TIES = (
    *("decaying spectrum", "stepped spectrum", "huge", "tiny"),
    *("Gaussian", "linear", "constant columns"),
)
"""No two columns are alike, so that rounding does not decide a clustering."""


MIXTURES = {*nb.VARIANTS, *nb.JOINT_VARIANTS}
OTHERS = [method for method in nb.METHODS if method not in MIXTURES]
LEADING = [*OTHERS, "URB-mean", "RRB-med", "EEB-SF", "JJB-mean"]
"""A method of each kind: mixtures differ by their weights and clusterings alone."""


def in_turn(methods: Any, cases: Any, parts: int = 3) -> list[tuple[Any, Any]]:
    """Every method on one of so many parts of the cases, all cases in turn."""
    return [(m, case) for i, m in enumerate(methods) for case in cases[i % parts :: parts]]


def problem(name: str, n: int = 150, seed: int = 0) -> Problem:
    return BUILDERS[name](n, np.random.default_rng(seed))


MANY = 240
SAMPLED: dict[str, Any] = {
    "row_cap": 24, "residual_rows": 12, "n_candidates": 12, "n_fit": 3, "n_tune": 2,
    "max_memory": 220_000, "n_jobs": 1,
}  # fmt: skip
"""All that bounds what a run looks at and holds, far below `MANY` rows (whose Gram matrix takes
460 kB): what users with much data run."""
