"""The method "target": landmarks, kernel and metric trained on y."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.catalogue import register_target_method
from nysboost.features.feature_map import FeatureMap, Mixture
from nysboost.gram import Gram, KernelGram, Landmarks, require_points
from nysboost.kernels import Matern
from nysboost.kernels.base import Kernel, Mapped
from nysboost.learn.search.regimes import make_candidates
from nysboost.learn.search.search import run_search
from nysboost.numerics.arrays import Floats, TableLike, dense, floats_on_host, like, to_host
from nysboost.numerics.checks import LEAVE_OUT, refuse_non_finite, refuse_unequal
from nysboost.numerics.linalg import positive_or_one
from nysboost.settings import Settings
from nysboost.tables.frames import Table

ROWS_PER_LABEL = 20
"""Integers are labels if each occurs, on average, in at least this many rows."""


def target(
    gram: Gram,
    y: TableLike | None,
    settings: Settings,
    rng: Generator,
) -> Approximation:
    """Return the Nyström approximation with landmarks, kernel and metric trained on y.

    `y` has shape (n,) or (n, t). Of the Gram's kernel, only the family is used, if it is Matérn.
    With few rows, the member with the largest weight is returned.
    """
    kernel = require_points(gram).kernel
    if not isinstance(kernel, Mapped):
        raise ValueError(
            f"The method 'target' learns a metric, but {kernel} cannot have one: choose a "
            "Gaussian, Laplacian or Matérn kernel."
        )
    Y = indicators(y, gram.n)
    c = settings.landmarks(gram.n)

    # a Matérn kernel keeps its smoothness
    family: str | Kernel = "auto"
    if isinstance(kernel, Matern):
        family = kernel
    candidates = make_candidates(family, "auto", "standard", None, "target", gram.rows)
    fitted = run_search(
        gram.rows,
        Y,
        None,
        candidates,
        c,
        rng,
        budget=gram.budget,
    )

    # the largest member, in the precision of the rows
    weights = [member.weight for member in fitted.members]
    largest = fitted.members[int(np.argmax(weights))]
    best = largest.model
    points = like(best.landmarks, dense(gram.rows.template))
    projection = like(best.features.normalization, points)
    landmarks = Landmarks(None, points)
    features = FeatureMap(best.kernel, landmarks, projection)

    learned = KernelGram(gram.rows, best.kernel, gram.budget)
    mixture = Mixture((features,), np.ones(1))
    return Approximation(learned, mixture)


def indicators(y: Table | None, n: int) -> Floats:
    """Return standardised targets, shape (n, t), or the indicators of labels."""
    if y is None:
        raise ValueError("The method 'target' needs y, the target to train on: pass y=y.")
    if hasattr(y, "device") and not isinstance(y, np.ndarray):
        y = to_host(y)
    host = np.asarray(y)
    refuse_unequal(n, len(host))

    # labels: one column for each
    if host.dtype.kind not in "fiu" or _are_labels(host):
        labels, codes = np.unique(host, return_inverse=True)
        return np.eye(len(labels))[codes.ravel()]

    # numbers: columns of mean 0 and spread 1
    numbers = floats_on_host(host)
    refuse_non_finite(numbers, 0, "y", LEAVE_OUT)
    Y = numbers.reshape(n, -1)
    centred = Y - Y.mean(axis=0)
    spread = positive_or_one(Y.std(axis=0))
    return np.asarray(centred / spread)


def _are_labels(y: Floats) -> bool:
    """Whether numbers are labels: integers that each occur many times."""
    if y.ndim != 1 or y.dtype.kind not in "iu":
        return False
    most = max(2, len(y) // ROWS_PER_LABEL)
    return len(np.unique(y)) <= most


register_target_method("target", target)
