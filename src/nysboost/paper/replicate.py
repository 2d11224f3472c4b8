"""One replicate: nine boosting trajectories and an ensemble, each found once, give 30 methods.

The errors of all mixtures are exact: their squares are expanded into inner products of features,
which are computed once; small ones, where that cancels, come from the residual.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nysboost.boosting.variants import ENSEMBLES, VARIANTS, find_learners, parse_method
from nysboost.features.feature_map import features_of
from nysboost.gram import Gram, PrecomputedGram, make_gram
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.paper.datasets import Points
from nysboost.paper.presets import Preset
from nysboost.rows.array_rows import ArrayRows
from nysboost.settings import Settings
from nysboost.user_error import UserError

BASELINE = "ensemble-ridge"
METHODS: tuple[str, ...] = (*VARIANTS, *ENSEMBLES)

Key = TypeVar("Key", bound=Hashable)
Values = dict[str, list[float]]
_DATA_STREAM = 0
"""Which random numbers draw the data: the same for every method of a replicate."""


def settings_of(preset: Preset, reading: str, n_learners: int | None = None) -> Settings:
    """Return the settings of a preset under one reading of V."""
    names = [f.name for f in fields(Settings) if hasattr(preset, f.name)]
    given: dict[str, Any] = {name: getattr(preset, name) for name in names}
    given |= {"residual_shape": reading, "n_learners": n_learners or preset.n_learners}
    try:
        settings = Settings(**given)
        settings.resolve(preset.n_points)
    except ValueError as error:
        raise UserError(f"Preset {preset.name}: {error}") from error
    return settings


def kernel_gram(preset: Preset, X: Array) -> Gram:
    """Return the Gram matrix of a preset's kernel."""
    params: dict[str, Any] = {} if preset.sigma is None else {"sigma": preset.sigma}
    try:
        return make_gram(X, preset.kernel, **params)
    except (ValueError, TypeError) as error:
        raise UserError(f"Preset {preset.name}: {error}") from error


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
        G = kernel_gram(self.preset, _place(self.draw(), self.device)).whole()
        gram, settings = PrecomputedGram(ArrayRows(G)), settings_of(self.preset, self.reading)
        parsed = {name: parse_method(name, settings) for name in METHODS}
        found: dict[tuple[str, int], float] = {}
        for stream, steps in enumerate(dict.fromkeys(s for s, _ in parsed.values()), start=1):
            final = {m: parsed[m][1] for m in self.methods if parsed[m][0] == steps}
            if final:
                trajectory = find_learners(gram, settings, steps, self.generator(stream))
                weights = {
                    (method, p): trajectory.mixture(rule, p).weights
                    for method, rule in final.items()
                    for p in self.preset.counts
                }
                features = [features_of(gram, learner) for learner in trajectory.learners]
                found |= relative_errors(G, features, weights)
        return {name: [found[name, p] for p in self.preset.counts] for name in self.methods}

    def seconds(self) -> Values:
        """Return the processor time of each method and number of learners, nothing shared."""
        X = self.draw()
        self._time(X, self.methods[0], 1)  # the first call loads code
        return {name: [self._time(X, name, p) for p in self.preset.counts] for name in self.methods}

    def _time(self, X: NDArray[np.float64], name: str, p: int) -> float:
        settings = settings_of(self.preset, self.reading, n_learners=p)
        rng = np.random.default_rng(self.seed + self.number)
        steps, final = parse_method(name, settings)
        began = time.process_time()
        find_learners(kernel_gram(self.preset, X), settings, steps, rng).mixture(final)
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


CANCELS_BELOW = 1e-4
"""Below this relative error the expansion has lost more than half of its digits."""


def relative_errors(
    G: Array, features: Sequence[Array], weights: Mapping[Key, Floats]
) -> dict[Key, float]:
    """Return ‖G − Σ w_i F_i F_iᵀ‖_F / ‖G‖_F for each vector of weights.

    G has shape (n, n), F_i (n, k_i); each vector, of shape (p,), weighs the first p learners. The
    square is ‖G‖² − 2 Σ w_i ⟨G, F_i F_iᵀ⟩ + wᵀHw with H_ij = ‖F_iᵀF_j‖², or, where that cancels,
    computed from the residual itself.
    """
    xp = namespace(G)
    F, widths = xp.concat(list(features), axis=1), np.array([f.shape[1] for f in features])
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    total = float(xp.sum(G * G))
    with_G = np.add.reduceat(to_host(xp.sum(F * (G @ F), axis=0)), starts)
    H = np.add.reduceat(np.add.reduceat(to_host(F.T @ F) ** 2, starts, axis=0), starts, axis=1)
    errors = {}
    for key, w in weights.items():
        p = len(w)
        square = float(total - 2 * w @ with_G[:p] + w @ H[:p, :p] @ w)
        if square < CANCELS_BELOW**2 * total:
            used = F[:, : sum(widths[:p])]
            residual = G - (used * like(np.repeat(w, widths[:p]), F)) @ used.T
            square = float(xp.sum(residual * residual))
        errors[key] = float(np.sqrt(square / total))
    return errors
