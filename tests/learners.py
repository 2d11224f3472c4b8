"""Learners on a problem of the market, and the dense system that their weights solve."""

import numpy as np

from nysboost.boosting.learner import fit_learner
from nysboost.boosting.validation import FeatureTable


def table_of(problem, p=4, m=6, rows=None):
    gram = problem.gram
    n = len(problem.G)
    table = FeatureTable(gram, np.arange(n) if rows is None else rows)
    for i in range(p):
        table.append(fit_learner(gram, gram.landmarks(np.arange(i * m, (i + 1) * m)), m))
    return table


def dense_system(table, rows, cols, p):
    gram = table.gram
    parts = []
    for learner in table.learners[:p]:
        F = learner.round_to(gram).features().astype(np.float64)
        parts.append((F @ F.T)[np.ix_(rows, cols)].ravel())
    return np.column_stack(parts), gram.block(rows, cols).astype(np.float64).ravel()
