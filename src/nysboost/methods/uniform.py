"""Columns drawn uniformly."""

from __future__ import annotations

from numpy.random import Generator

from nysboost.gram import Gram
from nysboost.numerics.arrays import Indices


def uniform(gram: Gram, c: int, rng: Generator) -> Indices:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    return rng.choice(gram.n, size=c, replace=False)
