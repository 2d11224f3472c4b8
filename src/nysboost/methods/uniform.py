"""Columns drawn uniformly."""

from __future__ import annotations

from numpy.random import Generator

from nysboost.gram import Gram, Landmarks


def uniform(gram: Gram, c: int, rng: Generator) -> Landmarks:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    columns = rng.choice(gram.n, size=c, replace=False)
    return gram.landmarks(columns)
