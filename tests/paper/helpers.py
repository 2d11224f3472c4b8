"""Small presets and made-up results that the tests of the experiments share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nysboost.paper import presets
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import METHODS
from nysboost.paper.results import Results


def tiny(**changes: Any) -> Preset:
    """Return the simulation with a few points, learners and replicates."""
    small: dict[str, Any] = {
        "n_points": 120, "n_learners": 3, "n_columns": 6, "rank": 5,
        "n_candidates": 24, "n_fit": 8, "n_tune": 8, "replicates": 2,
    }  # fmt: skip
    return replace(presets.load("simulation"), **(small | changes))


def good_boosting(method: str, p: int) -> float:
    """Return an error that falls with the learners, half as large for boosting."""
    return (0.1 if method.startswith("ensemble") else 0.05) * (1 + 1 / p)


def level(method: str, p: int) -> float:
    """Return such an error that differs between methods."""
    return good_boosting(method, p) + 0.001 * len(method)


def made_up(
    name: str, level: Callable[[str, int], float], *, noise: float = 0.01, **changes: Any
) -> Results:
    """Return results whose mean for a method and number of learners is the given level."""
    preset = replace(presets.load(name), **({"replicates": 10} | changes))
    replicates = preset.replicates
    rng = np.random.default_rng(7)
    values = {
        reading: {
            method: np.array([[level(method, p) for p in preset.counts]])
            * (1 + noise * rng.standard_normal((replicates, len(preset.counts))))
            for method in METHODS
        }
        for reading in preset.readings
    }
    return Results(preset, METHODS, 0, values)
