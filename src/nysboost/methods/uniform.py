"""Columns drawn uniformly."""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram, Landmarks


def uniform(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    return gram.landmarks(rng.choice(gram.n, size=c, replace=False))
