"""From a learner's settings to what is tried; landmarks may be those of any method."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysboost.catalogue import METHODS, Method, find_method
from nysboost.data.rows import Rows
from nysboost.gram import KernelGram
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import unknown
from nysboost.settings import Settings
from nysboost.target.menu import Menu, as_it_is, learns_metric, menu, without_target
from nysboost.target.plain import Place, at_random

STILL = "rpcholesky"
"""Landmarks of a kernel that learns no metric. With an ANOVA kernel and 240 of them the test error
on concrete was that of dense kernel ridge regression; with k-means centres it was 1.25 of that."""


def menu_of(kernel: Any, metric: str | None, landmarks: str, rows: Rows) -> Menu:
    """Return what is tried: the strings and kernels of a learner's settings as objects.

    Parameters
    ----------
    kernel, metric, landmarks
        As in `NystroemRegressor`.
    rows : Rows
        The training rows.
    """
    name = STILL if landmarks == "target" else landmarks
    if metric is None:
        return as_it_is(kernel, place_of(name), landmarks, rows)
    if learns_metric(kernel):
        options = menu(kernel, metric, rows.n_features)
        if landmarks == "target":
            return options
    return without_target(kernel, place_of(name), name)


def place_of(name: Any) -> Place:
    """Return where the landmarks of a method's name come from; "uniform" are rows at random.

    What a method finds is taken as it is: its landmarks Z, and the N of its features k(x, Z) N.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(unknown("kind of landmarks", name, ("target", *METHODS)))
    return at_random if name == "uniform" else _of_method(name, find_method(name))


def _of_method(name: str, run: Method) -> Place:
    def place(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, Array]:
        settings = Settings(n_components=c)
        transform, _ = run(gram, settings, rng).feature_map(settings.row_cap)
        landmarks = transform.landmarks
        if landmarks.basis is not None or landmarks.points is None:
            msg = (
                f"{name!r} has features of another kind than kernel values against landmarks: "
                'compare it as nb.Nystroem(method=…) in a pipeline, or take landmarks="joint".'
            )
            raise ValueError(msg)
        return landmarks.points, transform.normalization

    return place
