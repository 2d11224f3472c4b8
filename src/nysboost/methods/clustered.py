"""Cluster centres as landmarks, weighed by the sizes of their clusters."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import Learner, fit_learner
from nysboost.gram import Gram
from nysboost.methods.baselines import cluster_rows


def density_weighted(
    gram: Gram, c: int, rng: np.random.Generator, rank: int | None = None
) -> Learner:
    """Return C D^½ (D^½ W D^½)_k⁺ D^½ Cᵀ on k-means centres, with D the clusters' sizes.

    Zhang and Kwok (2009), "Density-weighted Nyström method for computing large kernel
    eigensystems": a centre stands for as many rows as its cluster has, so that the k leading
    eigenvectors are those of the data, not of the centres. At full rank D cancels, and this is
    plain Nyström on the centres, "kmeans".
    """
    found = cluster_rows(gram, c, rng, "density-weighted")
    sizes = np.bincount(found.labels, minlength=c).astype(np.float64)
    return fit_learner(gram, found.centres, rank or c, sizes)
