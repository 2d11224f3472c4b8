"""Landmarks that do not know y, for comparison: those of any method of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysboost.catalogue import METHODS, Method, find_method
from nysboost.gram import KernelGram
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import unknown
from nysboost.settings import Settings
from nysboost.target.plain import Place, at_random


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
