"""How the error falls with the number of landmarks: from a sample of rows, corrected by trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, to_host
from nysboost.numerics.tolerances import EPS, cutoff


def errors_by_rank(gram: Gram, size: int, rng: np.random.Generator) -> Floats:
    """Return the relative errors of rank c = 1, …, m, never rising, from m sampled columns.

    With V = G[B, A] U Λ^(−½) on other rows B the residual of rank c is G[B, B] − V_c V_cᵀ, whose
    norms are sums over leading entries of VᵀG V and VᵀV. m is `size`, or half of all rows.
    """
    m = min(size, gram.n // 2)
    if m < 2:
        return np.ones(1)
    rows = rng.choice(gram.n, size=2 * m, replace=False)
    A, B = rows[:m], rows[m:]
    truth = to_host(gram.block(B, B)).astype(np.float64)
    eigenvalues, U = np.linalg.eigh(to_host(gram.block(A, A)).astype(np.float64))
    eigenvalues, U = eigenvalues[::-1], U[:, ::-1]
    kept = eigenvalues > cutoff(m, gram.eps) * eigenvalues[0]
    V = to_host(gram.block(B, A)).astype(np.float64) @ U[:, kept] / np.sqrt(eigenvalues[kept])
    g = np.diagonal(truth).copy()
    np.fill_diagonal(truth, 0.0)
    own = np.cumsum(V**2, axis=1)
    both = (V.T @ V) ** 2 - (V**2).T @ V**2
    squares = np.diagonal(np.cumsum(np.cumsum(both, axis=0), axis=1))
    across = np.cumsum(((truth @ V) * V).sum(axis=0))
    share = 1 / (m * max(1, m - 1))
    total = share * (truth**2).sum() + (g**2).mean() / gram.n
    left = share * ((truth**2).sum() - 2 * across + squares)
    left = left + ((g[:, None] - own) ** 2).mean(axis=0) / gram.n
    errors = np.sqrt(np.maximum(left, EPS**2 * total) / total)
    falling: Floats = np.minimum.accumulate(errors)
    return falling


LEAST_SLOPE = 0.5
"""Beyond the last trial log error falls by this times log c at least: better too few than too
many, for on heavy-tailed rows the curve of a sample hardly falls."""

LEAST_SHARE = 0.25
"""Of what was predicted the error falls at least, for two trials may lie too close to tell."""

MUCH = 20.0
"""The curve is followed up to e²⁰ landmarks, more than anyone has rows in memory."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A number of landmarks, and the relative error that came of it."""

    c: int
    error: float


@dataclass(frozen=True, eq=False)
class Curve:
    """How the error falls with the number of landmarks: log error at c = 1, …, m."""

    logs: Floats
    n: int

    @property
    def reach(self) -> int:
        """The most landmarks of which the sample can say anything: half of its rows."""
        return max(1, len(self.logs) // 2)

    def __call__(self, c: Floats) -> Floats:
        """Return log error, beyond the reach of the sample as it fell before."""
        known = self.logs[: self.reach]
        x = np.log(np.arange(1, self.reach + 1))
        half = max(0, self.reach // 2 - 1)
        rise = x[-1] - x[half]
        slope = (known[-1] - known[half]) / rise if rise > 0 else 0.0
        logs = np.log(c)
        beyond = known[-1] + slope * (logs - x[-1])
        without = np.log(np.maximum(1 - c / self.n, EPS))
        found: Floats = np.where(logs <= x[-1], np.interp(logs, x, known), beyond) + without
        return found

    def through(self, trials: Sequence[Tried], target: float) -> Curve:
        """Return the curve shifted to the trial nearest to the target, tilted to the second."""
        near = sorted(trials, key=lambda trial: abs(_log(trial.error) - math.log(target)))[:2]
        if not near:
            return self
        at = np.array([float(trial.c) for trial in near])
        found = np.array([_log(trial.error) for trial in near])
        predicted = self(at)
        logs = self.logs - predicted[0]
        if len(near) > 1:
            step = math.log(at[1] / at[0])
            fall, expected = (float(ends[0] - ends[1]) / step for ends in (found, predicted))
            if fall > expected:
                logs = logs - (fall - expected) * np.log(np.arange(1, len(logs) + 1) / at[0])
            elif expected > 0:
                logs = logs * max(fall / expected, LEAST_SHARE)
        return Curve(logs + found[0], self.n)

    def first_below(self, trials: Sequence[Tried], target: float, low: int, high: int) -> int:
        """Return the fewest landmarks from low to high that come down to the target, or high."""
        candidates = np.arange(low, max(low, high) + 1)
        curve = self.through(trials, target)(candidates.astype(np.float64))
        last = max(trials, key=lambda trial: trial.c, default=None)
        if last is not None and low > last.c:
            steep = _log(last.error) - LEAST_SLOPE * np.log(candidates / last.c)
            curve = np.minimum(curve, steep)
        below = np.flatnonzero(curve <= math.log(target))
        return int(candidates[below[0]]) if len(below) else high

    def landmarks_for(self, trials: Sequence[Tried], tol: float) -> float:
        """Return how many landmarks the tolerance takes, if the error goes on as it fell last."""
        candidates = np.exp(np.linspace(0, MUCH, 2000))
        below = np.flatnonzero(self.through(trials, tol)(candidates) <= math.log(tol))
        return float(candidates[below[0]]) if len(below) else math.inf


def _log(error: float) -> float:
    return math.log(max(error, EPS))
