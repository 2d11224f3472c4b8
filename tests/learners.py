"""Learners on a problem of the market, the dense system of their weights, and a table."""

import numpy as np

from nysboost.boosting.state import FeatureTable
from nysboost.features.feature_map import features_of, fit_learner


def to_table(problem, p=4, m=6, rows=None):
    gram = problem.gram
    n = len(problem.G)
    table = FeatureTable(gram, np.arange(n) if rows is None else rows)
    for i in range(p):
        table.append(fit_learner(gram, gram.landmarks(np.arange(i * m, (i + 1) * m)), m))
    return table


def wave(n=250, seed=0, noise=0.05, d=3):
    """Rows, and a target that the first two of their columns make."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.normal(size=n)


def dense(gram, learner, rows=None):
    """Return F Fᵀ of a learner, in float64."""
    F = features_of(gram, learner.round_to(gram.eps), rows).astype(np.float64)
    return F @ F.T


class Recorder:
    """A selector that remembers what it was shown and what it chose."""

    def __init__(self, selector=lambda residual, m, rng: np.arange(m)):
        self.selector, self.seen = selector, []

    def __call__(self, residual, m, rng):
        chosen = self.selector(residual, m, rng)
        self.seen.append((residual, chosen))
        return chosen


def dense_system(table, rows, cols, p):
    gram = table.gram
    parts = [dense(gram, learner)[np.ix_(rows, cols)].ravel() for learner in table.learners[:p]]
    return np.column_stack(parts), gram.block(rows, cols).astype(np.float64).ravel()
