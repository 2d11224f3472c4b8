"""The paper's equations, in dense form: slow, literal, and independent of the library."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from nysboost import VARIANTS

METHODS = (
    "nystrom",
    "nystrom-fixed-rank",
    "ensemble-uniform",
    "ensemble-exponential",
    "ensemble-ridge",
    *VARIANTS,
)
"""The methods of the paper."""

LAMBDAS = np.logspace(-12, 2, 29)


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
    G: np.ndarray,
    variant: str,
    p: int,
    m: int,
    k: int,
    s: int,
    v: tuple[int, int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Algorithm 1, with its step letters."""
    x, y, clustering = variant[0], variant[1], variant[4:]
    free = np.ones(len(G), dtype=bool)
    J, v1, v2 = (draw(free, size, rng) for size in (m, *v))
    parts = [nystrom(G, J, k)]  # step 1
    while len(parts) < p:
        mu = weights(x, G, parts, v1, v2)  # (a)
        V = rng.choice(np.flatnonzero(free), size=min(s, free.sum()), replace=False)  # (b)
        residual = G[:, V] - mix(mu, parts)[:, V]  # (c)
        J = V[CLUSTERINGS[clustering](residual.T, m, rng)]  # (d)
        free[J] = False
        parts.append(nystrom(G, J, k))  # (e)
    return mix(weights(y, G, parts, v1, v2), parts)  # step 3


def mix(w: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    return sum(weight * part for weight, part in zip(w, parts, strict=True))


def kmeans(points: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """The point nearest to each centre; the next nearest where that one is taken."""
    clusters = KMeans(m, init=greedy_seeds(points, m, rng), n_init=1, tol=0).fit(points)
    to_centres = cdist(clusters.cluster_centers_, points, "sqeuclidean")
    rounding = 1e-14 * len(points) * (points**2).sum(axis=1).max()
    chosen: list[int] = []
    for centre in range(m):
        near = {i: to_centres[centre, i] for i in range(len(points)) if i not in chosen}
        chosen.append(min(i for i in near if near[i] <= min(near.values()) + rounding))
    return np.array(chosen)


def greedy_seeds(points: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """The best, or the first of the best, of 10 points at a time, drawn by their distance."""
    seeds = [points[rng.integers(len(points))]]
    for uniforms in rng.random((m - 1, 10)):
        share = np.cumsum(cdist(points, seeds, "sqeuclidean").min(axis=1))
        drawn = [np.flatnonzero(share > u * share[-1])[0] for u in uniforms]
        after = [cdist(points, [*seeds, points[i]], "sqeuclidean") for i in drawn]
        losses = [distances.min(axis=1).sum() for distances in after]
        rounding = 1e-14 * len(points) ** 2 * cdist(points, points, "sqeuclidean").max()
        best = [i for i, loss in zip(drawn, losses, strict=True) if loss <= min(losses) + rounding]
        seeds.append(points[min(best)])
    return np.array(seeds)


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


def exact_distances(points: np.ndarray) -> np.ndarray:
    """Distances in multiples of a power of two, so that equal losses are equal."""
    distances = cdist(points, points)
    step = 2.0 ** (np.frexp(distances.max())[1] - 32)
    return np.round(distances / step) * step


CLUSTERINGS = {
    "mean": kmeans,
    "med": lambda points, m, _: np.array(pam(exact_distances(points), m)),
    "SF": lambda points, m, _: np.array(park_jun(exact_distances(points), m)),
}
