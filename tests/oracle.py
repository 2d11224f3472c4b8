"""The paper's equations, in dense form: slow, literal, and independent of the library."""

from __future__ import annotations

import numpy as np

from nysboost import VARIANTS

METHODS = (
    *("nystrom", "nystrom-fixed-rank"),
    *("ensemble-uniform", "ensemble-exponential", "ensemble-ridge"),
    *VARIANTS,
)
"""The methods of the paper."""

LAMBDAS = np.logspace(-12, 2, 29)


def optimal_error(G: np.ndarray, C: np.ndarray, rcond: float = 1e-12) -> float:
    """‖G − P G P‖ with P the projector onto the range of C: the least error of any core."""
    P = C @ np.linalg.pinv(C, rcond=rcond)
    return float(np.linalg.norm(G - P @ G @ P))


def best_rank(A: np.ndarray, k: int) -> np.ndarray:
    U, s, Vt = np.linalg.svd(A)
    return (U[:, :k] * s[:k]) @ Vt[:k]


def nystrom(G: np.ndarray, J: np.ndarray, k: int) -> np.ndarray:
    C, W = G[:, J], G[np.ix_(J, J)]
    rounding = len(J) * np.finfo(np.float64).eps
    return C @ np.linalg.pinv(best_rank(W, k), rcond=rounding, hermitian=True) @ C.T


def fixed_rank(G: np.ndarray, J: np.ndarray, k: int) -> np.ndarray:
    return best_rank(nystrom(G, J, len(J)), k)


def weights(
    letter: str, G: np.ndarray, parts: list[np.ndarray], v1: np.ndarray, v2: np.ndarray
) -> np.ndarray:
    """Uniform, exponential (eta = 0.01) or ridge weights; V1 and V2 are whole columns."""
    p = len(parts)
    if letter == "U":
        return np.full(p, 1 / p)
    if letter == "E":
        errors = np.array([np.linalg.norm(K[:, v1] - G[:, v1]) for K in parts])
        w = np.exp(-0.01 * (errors - errors.min()))
        return w / w.sum()
    (A1, b1), (A2, b2) = (
        (np.column_stack([K[:, v].ravel() for K in parts]), G[:, v].ravel()) for v in (v1, v2)
    )
    candidates = [ridge(A1, b1, lam * np.linalg.norm(A1, 2) ** 2) for lam in LAMBDAS]
    return min(candidates, key=lambda w: np.linalg.norm(A2 @ w - b2))


def ridge(A: np.ndarray, b: np.ndarray, lam: float) -> np.ndarray:
    """The normal equations (AᵀA + λI) w = Aᵀb, as a least-squares problem."""
    p = A.shape[1]
    rows = np.vstack([A, np.sqrt(lam) * np.eye(p)])
    return np.linalg.lstsq(rows, np.concatenate([b, np.zeros(p)]), rcond=None)[0]


def draw(free: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    columns = rng.choice(np.flatnonzero(free), size=size, replace=False)
    free[columns] = False
    return columns


def ensemble(
    G: np.ndarray, letter: str, p: int, m: int, k: int, v: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    free = np.ones(len(G), dtype=bool)
    J, v1, v2 = (draw(free, size, rng) for size in (m, *v))
    parts = [nystrom(G, J, k)]
    while len(parts) < p:
        parts.append(nystrom(G, draw(free, m, rng), k))
    return mix(weights(letter, G, parts, v1, v2), parts)


def boosting(
    G: np.ndarray, variant: str, J: list[np.ndarray], k: int, v: tuple[np.ndarray, np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Algorithm 1 for columns J that a clustering has chosen, with its step letters.

    Returns the residual of each boosting step, on all columns, and the strong approximation.
    """
    x, y = variant[0], variant[1]
    parts, residuals = [nystrom(G, J[0], k)], []  # step 1
    for columns in J[1:]:
        mu = weights(x, G, parts, *v)  # (a)
        residuals.append(G - mix(mu, parts))  # (b), (c)
        parts.append(nystrom(G, columns, k))  # (d), (e)
    return residuals, mix(weights(y, G, parts, *v), parts)  # step 3


def mix(w: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return sum(weight * part for weight, part in zip(w, parts, strict=True))


def loss(distances: np.ndarray, medoids: list[int]) -> float:
    return float(distances[:, medoids].min(axis=1).sum())


def pam(distances: np.ndarray, k: int) -> list[int]:
    """BUILD greedily, then the best of all swaps until none helps, as a double loop."""
    n = len(distances)
    medoids: list[int] = []
    for _ in range(k):
        others = [j for j in range(n) if j not in medoids]
        medoids.append(min(others, key=lambda j: loss(distances, [*medoids, j])))
    while True:
        swaps = [
            [*medoids[:i], j, *medoids[i + 1 :]]
            for i in range(k)
            for j in range(n)
            if j not in medoids
        ]
        best = min(swaps, key=lambda swap: loss(distances, swap), default=medoids)
        if not loss(distances, best) < loss(distances, medoids) * (1 - 1e-14):
            return medoids
        medoids = best


def park_jun(distances: np.ndarray, k: int) -> list[int]:
    """Steps 1-1 to 3-2 of Park and Jun (2009)."""
    n = len(distances)
    totals = [sum(distances[i]) or 1.0 for i in range(n)]
    v = [sum(distances[i, j] / totals[i] for i in range(n)) for j in range(n)]
    medoids = sorted(range(n), key=lambda j: v[j])[:k]
    best = np.inf
    while True:
        clusters: dict[int, list[int]] = {medoid: [medoid] for medoid in medoids}
        for i in range(n):
            if i not in medoids:
                clusters[min(medoids, key=lambda medoid: distances[i, medoid])].append(i)
        total = sum(distances[i, medoid] for medoid, group in clusters.items() for i in group)
        if not total < best:
            return medoids
        best = total
        medoids = [
            min(sorted(group), key=lambda j: sum(distances[i, j] for i in group))
            for group in clusters.values()
        ]
