"""One replicate: nine boosting trajectories and an ensemble, each found once, give 30 methods."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from nysboost import catalogue
from nysboost.boosting.algorithm import VARIANTS, boost, ensemble, parse_variant
from nysboost.boosting.rules import Rule
from nysboost.boosting.trajectory import Trajectory
from nysboost.gram import Gram, make_gram
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import unknown
from nysboost.paper.datasets import Points
from nysboost.paper.errors import WholeGram, relative_errors
from nysboost.paper.presets import Preset
from nysboost.settings import Settings
from nysboost.user_error import UserError

ENSEMBLES = {"ensemble-uniform": "U", "ensemble-exponential": "E", "ensemble-ridge": "R"}
BASELINE = "ensemble-ridge"
METHODS: tuple[str, ...] = (*VARIANTS, *ENSEMBLES)

Values = dict[str, list[float]]
_DATA_STREAM = 0
"""Which random numbers draw the data: the same for every method of a replicate."""


def parse_method(name: str) -> tuple[str, str]:
    """Return the trajectory of one of the thirty methods, and the rule that weighs it in the end.

    Examples
    --------
    >>> parse_method("URB-mean")
    ('U-mean', 'R')
    """
    if name in ENSEMBLES:
        return "ensemble", ENSEMBLES[name]
    if name not in VARIANTS:
        raise UserError(unknown("method of the paper", name, METHODS))
    weights, clustering = name.split("-")
    return f"{weights[0]}-{clustering}", weights[1]


TRAJECTORIES = tuple(dict.fromkeys(parse_method(name)[0] for name in METHODS))


def settings_of(preset: Preset, reading: str, n_learners: int | None = None) -> Settings:
    """Return the settings of a preset under one reading of V."""
    try:
        settings = Settings(
            n_learners=n_learners or preset.n_learners,
            n_columns=preset.n_columns,
            rank=preset.rank,
            n_candidates=preset.n_candidates,
            n_considered=preset.n_points,
            n_fit=preset.n_fit,
            n_tune=preset.n_tune,
            residual_shape=cast(Literal["columns", "square"], reading),
            validation_shape=cast(Literal["columns", "square"], preset.validation_shape),
            row_cap=preset.row_cap,
            residual_rows=preset.row_cap,
        )
        settings.resolve(preset.n_points)
    except ValueError as error:
        raise UserError(f"Preset {preset.name}: {error}") from error
    return settings


def rules_of(preset: Preset) -> dict[str, Rule]:
    """Return what U, E and R mean in a preset."""
    return catalogue.rules_of(Settings(eta=preset.eta))


def kernel_gram(preset: Preset, X: Array) -> Gram:
    """Return the Gram matrix of a preset's kernel."""
    params: dict[str, Any] = {} if preset.sigma is None else {"sigma": preset.sigma}
    try:
        return make_gram(X, preset.kernel, **params)
    except (ValueError, TypeError) as error:
        raise UserError(f"Preset {preset.name}: {error}") from error


def find_trajectory(
    gram: Gram, preset: Preset, name: str, settings: Settings, rng: np.random.Generator
) -> Trajectory:
    """Run the boosting of one of the nine trajectories, or the ensemble."""
    if name == "ensemble":
        return ensemble(gram, settings, rng)
    rule, clustering = name.split("-")
    variant = parse_variant(f"{rule}UB-{clustering}", rules_of(preset))
    return boost(gram, settings, variant.boosting, variant.selector, rng)


@dataclass(frozen=True, eq=False)
class Replicate:
    """All that the numbers of one replicate depend on; an empty `device` is NumPy."""

    preset: Preset
    points: Points
    methods: Sequence[str]
    seed: int
    number: int
    reading: str
    device: str = ""

    def measure(self) -> Values:
        """Return what the preset measures, for each method at each number of learners."""
        return self.seconds() if self.preset.measure == "seconds" else self.errors()

    def generator(self, stream: int) -> np.random.Generator:
        """Return the random numbers of one part of the replicate, whoever computes it and when."""
        shared = stream == _DATA_STREAM and not self.preset.redraw
        key = (zlib.crc32(self.preset.name.encode()), 0 if shared else self.number, stream)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def draw(self) -> NDArray[np.float64]:
        """Return the points."""
        return self.points.draw(self.preset.n_points, self.generator(_DATA_STREAM))

    def errors(self) -> Values:
        """Return the relative errors of each method with each number of learners."""
        # The whole matrix once: ten trajectories and their errors ask for it many times over.
        gram = WholeGram(kernel_gram(self.preset, _place(self.draw(), self.device)))
        settings, rules = settings_of(self.preset, self.reading), rules_of(self.preset)
        parsed = {name: parse_method(name) for name in self.methods}
        found: dict[tuple[str, int], float] = {}
        for stream, name in enumerate(TRAJECTORIES, start=1):
            final = {m: rules[rule] for m, (mine, rule) in parsed.items() if mine == name}
            if final:
                rng = self.generator(stream)
                trajectory = find_trajectory(gram, self.preset, name, settings, rng)
                weights = {
                    (method, p): trajectory.mixture(rule, p).weights
                    for method, rule in final.items()
                    for p in self.preset.counts
                }
                features = [learner.with_gram(gram).features() for learner in trajectory.learners]
                found |= relative_errors(gram.values, features, weights)
        return {name: [found[name, p] for p in self.preset.counts] for name in self.methods}

    def seconds(self) -> Values:
        """Return the processor time of each method and number of learners, nothing shared."""
        X = self.draw()
        self._time(X, self.methods[0], 1)  # the first call loads code
        return {name: [self._time(X, name, p) for p in self.preset.counts] for name in self.methods}

    def _time(self, X: NDArray[np.float64], name: str, p: int) -> float:
        settings = settings_of(self.preset, self.reading, n_learners=p)
        rng = np.random.default_rng(self.seed + self.number)
        trajectory, final = parse_method(name)
        rule = rules_of(self.preset)[final]
        began = time.process_time()
        gram = kernel_gram(self.preset, X)
        find_trajectory(gram, self.preset, trajectory, settings, rng).mixture(rule)
        return time.process_time() - began


def _place(X: NDArray[np.float64], device: str) -> Array:
    """Return the points on a device of PyTorch, if one is named."""
    if not device:
        return X
    try:
        import torch
    except ImportError as error:
        raise UserError(f"--device {device} needs PyTorch: pip install torch.") from error
    return cast(Array, torch.asarray(X, device=device))
