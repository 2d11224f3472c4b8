"""One replicate: 30 methods from nine boosting trajectories and an ensemble, each computed once.

The errors of all mixtures are exact. Their squares are expanded into inner products of features,
which are computed once. If this cancels, the error is computed from the residual.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import eigsh

from nysboost.boosting.algorithm import Sampling, find_learners, uniform
from nysboost.boosting.variants import ENSEMBLES, VARIANTS, parse_method
from nysboost.features.feature_map import features_of, fit_learner
from nysboost.gram import Gram, PrecomputedGram, make_gram
from nysboost.methods.adaptive import adaptive
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.numerics.linalg import norms
from nysboost.paper.datasets import Points
from nysboost.paper.presets import Preset, Reading
from nysboost.rows.rows import ArrayRows
from nysboost.settings import Settings
from nysboost.user_error import UserError

BASELINE = "ensemble-ridge"
MIXTURES: tuple[str, ...] = (*VARIANTS, *ENSEMBLES)

POOLED: dict[str, tuple[int, ...]] = {
    "nystrom-k": (5, 10),
    "nystrom-pk": (5, 10),
    "adaptive-k": (5,),
    "adaptive-pk": (5,),
}
"""One Nyström approximation on p·m columns, uniform or by adaptive sampling, of rank k or p·k, and
the numbers p at which it is measured."""

METHODS: tuple[str, ...] = (*MIXTURES, *POOLED)

Key = TypeVar("Key", bound=Hashable)
Values = dict[str, list[float]]
"""The measured values of each method at each number of learners, NaN if not measured."""

DATA, LEARNERS, UNIFORM, ADAPTIVE = range(4)
"""Streams of random numbers. All mixtures use the same one, so they share the first learner, V1 and
V2."""


SAMPLINGS: dict[str, tuple[Sampling, int]] = {
    "nystrom": (uniform, UNIFORM),
    "adaptive": (adaptive, ADAPTIVE),
}
"""The columns of single approximations, by the beginning of their names, with their stream."""


def settings_of(preset: Preset, reading: Reading, n_learners: int | None = None) -> Settings:
    """Return the settings of a preset under one reading of the validation sets."""
    # the paper's p, m, k, s, v1, v2 and η
    try:
        settings = Settings(
            n_learners=n_learners or preset.n_learners,
            n_columns=preset.n_columns,
            rank=preset.rank,
            n_candidates=preset.n_candidates,
            n_fit=preset.n_fit,
            n_tune=preset.n_tune,
            eta=preset.eta,
            row_cap=preset.row_cap,
            residual_shape=reading.residual,
            validation_shape=reading.validation,
        )
        settings.resolve(preset.n_points)
    except ValueError as error:
        raise UserError(f"Preset {preset.name}: {error}") from error
    return settings


def kernel_gram(preset: Preset, X: Array) -> Gram:
    """Return the Gram matrix of a preset's kernel."""
    try:
        return make_gram(X, preset.kernel, sigma=preset.sigma)
    except (ValueError, TypeError) as error:
        raise UserError(f"Preset {preset.name}: {error}") from error


@dataclass(frozen=True)
class Measured:
    """The result of a replicate under a reading; `reading` is None if it does not matter."""

    reading: Reading | None
    values: Values
    properties: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Replicate:
    """Everything on which the numbers of a replicate depend; an empty `device` is NumPy."""

    preset: Preset
    points: Points
    methods: Sequence[str]
    seed: int
    number: int
    device: str = ""

    @property
    def mixtures(self) -> tuple[str, ...]:
        """The methods that depend on the reading of the validation sets."""
        return tuple(name for name in self.methods if name not in POOLED)

    def generator(self, stream: int) -> np.random.Generator:
        """Return the random generator of one part of the replicate, independent of the process."""
        number = self.number
        if stream == DATA and not self.preset.redraw:
            number = 0  # all replicates have the same points
        key = (zlib.crc32(self.preset.name.encode()), number, stream)
        sequence = np.random.SeedSequence(self.seed, spawn_key=key)
        return np.random.default_rng(sequence)

    def draw(self) -> Floats:
        """Return the points."""
        return self.points.draw(self.preset.n_points, self.generator(DATA))

    def measure(self, reading: Reading | None) -> Measured:
        """Measure the methods under a reading; None measures what no reading changes."""
        in_seconds = self.preset.measure == "seconds"
        if reading is None:
            properties = {name: self._property(name) for name in self.preset.properties}
            values = {}
            if not in_seconds:
                values = self._pooled_errors()
            return Measured(None, values, properties)

        if in_seconds:
            return Measured(reading, self._seconds(reading), {})
        return Measured(reading, self._mixture_errors(reading), {})

    def _property(self, name: str) -> float:
        """Return a property of the matrix, or of the time."""
        if name.startswith("slope"):
            return self._slope(name)
        return measure_matrix(name, to_host(self.G), self.preset.rank)

    # Errors

    @cached_property
    def G(self) -> Array:  # noqa: N802
        """The whole kernel matrix, which all trajectories and errors use."""
        X = _place(self.draw(), self.device)
        return kernel_gram(self.preset, X).whole()

    def _mixture_errors(self, reading: Reading) -> Values:
        """Return the relative errors of boosting and ensembles with each number of learners."""
        gram = PrecomputedGram(ArrayRows(self.G))
        settings = settings_of(self.preset, reading)
        counts = self.preset.counts
        found: dict[tuple[str, int], float] = {}
        for names in group_by_trajectory(self.mixtures):
            # steps 1 and 2: the learners, which all methods of the group share
            steps, final = parse_method(names[0], settings)
            trajectory = find_learners(gram, settings, steps, final, self.generator(LEARNERS))

            # step 3, the strong approximation, of the first p learners
            weights = {}
            for name in names:
                _, rule = parse_method(name, settings)
                for p in counts:
                    weights[name, p] = trajectory.mixture(rule, p).weights

            features = [features_of(gram, learner) for learner in trajectory.learners]
            found |= relative_errors(self.G, features, weights)

        return {name: [found[name, p] for p in counts] for name in self.mixtures}

    def _pooled_errors(self) -> Values:
        """Return the errors of single Nyström approximations with as many columns as p learners."""
        gram = PrecomputedGram(ArrayRows(self.G))
        counts = self.preset.counts
        pooled = [name for name in self.methods if name in POOLED]
        values: Values = {name: [np.nan] * len(counts) for name in pooled}

        for sampling, (choose, stream) in SAMPLINGS.items():
            names = [name for name in pooled if name.startswith(sampling)]
            for p in POOLED[f"{sampling}-k"]:
                if p not in counts or not names:
                    continue

                # the same columns for both ranks
                rng = self.generator(stream)
                columns = choose(gram, p * self.preset.n_columns, rng)
                landmarks = gram.landmarks(columns)
                for name in names:
                    rank = self.preset.rank
                    if name.endswith("-pk"):
                        rank *= p
                    learner = fit_learner(gram, landmarks, rank)
                    F = features_of(gram, learner)
                    errors = relative_errors(self.G, [F], {name: np.ones(1)})
                    values[name][counts.index(p)] = errors[name]
        return values

    # Seconds

    def _seconds(self, reading: Reading) -> Values:
        """Return the processor time of each method and number of learners, each begun anew."""
        X = self.draw()
        preset = self.preset
        few = min(2, preset.n_learners)
        values: Values = {}
        for name in self.mixtures:
            # a first call loads code and fills caches
            self._time(preset, X, name, reading, few)
            values[name] = [self._time(preset, X, name, reading, p) for p in preset.counts]
        return values

    def _time(self, preset: Preset, X: Floats, name: str, reading: Reading, p: int) -> float:
        """Return the processor time of one method with p learners, from points to weights."""
        settings = settings_of(preset, reading, n_learners=p)
        steps, rule = parse_method(name, settings)
        rng = self.generator(LEARNERS)

        began = time.process_time()
        gram = kernel_gram(preset, X)
        find_learners(gram, settings, steps, rule, rng).mixture(rule)
        return time.process_time() - began

    def _slope(self, name: str) -> float:
        """Return d log(time) / d log(size) of URB-mean in n, p or m."""
        reading = Reading("columns", "columns")
        seconds = []
        for factor in SLOPE_FACTORS:
            sized = _resize(self.preset, name, factor)
            X = self.points.draw(sized.n_points, self.generator(DATA))

            # the shorter of two: what else the machine does only adds
            p = sized.n_learners
            first = self._time(sized, X, "URB-mean", reading, p)
            second = self._time(sized, X, "URB-mean", reading, p)
            seconds.append(min(first, second))

        slope, _ = np.polyfit(np.log(SLOPE_FACTORS), np.log(seconds), 1)
        return float(slope)


SLOPE_FACTORS = (1, 2, 4)
"""Factors of the sizes for a slope: n from 1000 to 4000, p and m from half to twice the preset."""


def _resize(preset: Preset, slope: str, factor: int) -> Preset:
    """Return the preset with another n, p or m; the smallest p and m are half the preset's."""
    match slope:
        case "slope_n":
            return replace(preset, n_points=factor * preset.n_points)
        case "slope_p":
            return replace(preset, n_learners=factor * preset.n_learners // 2)
    n_columns = factor * preset.n_columns // 2
    return replace(preset, n_columns=n_columns, rank=min(preset.rank, n_columns))


def group_by_trajectory(methods: Sequence[str]) -> list[list[str]]:
    """Group methods that find the same learners and differ only in the final weights.

    These are the ensembles, and variants with the same X and clustering in "XYB-clustering".
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name in methods:
        weights, _, clustering = name.partition("-")
        kind = weights[0], clustering
        if name in ENSEMBLES:
            kind = "ensemble", ""
        groups.setdefault(kind, []).append(name)
    return list(groups.values())


def measure_matrix(name: str, G: Floats, rank: int) -> float:
    """Return a property of a kernel matrix G, shape (n, n).

    "rank_99" is the number of leading eigenvalues with 99 % of the trace. "coherence" is (n / k)
    max_i ‖U_k[i, :]‖² for the k leading eigenvectors. It is between 1, if all rows have equal
    weight, and n / k, if an eigenvector belongs to a single row.
    """
    n = len(G)
    if name == "rank_99":
        eigenvalues = eigvalsh(G)[::-1]
        shares = np.cumsum(eigenvalues) / eigenvalues.sum()
        return float(np.searchsorted(shares, 0.99) + 1)

    _, U = eigsh(G, rank, v0=np.ones(n))
    leverage = np.square(U).sum(axis=1)
    return float(n / rank * leverage.max())


def _place(X: Floats, device: str) -> Array:
    """Return the points on a device of PyTorch, if one is named."""
    if not device:
        return X
    try:
        import torch
    except ImportError as error:
        raise UserError(f"--device {device} needs PyTorch: pip install torch.") from error
    return cast(Array, torch.asarray(X, device=device))


CANCELS_BELOW = 1e-5
"""Below this relative error, the expansion of its square has fewer than five correct digits."""


def relative_errors(
    G: Array, features: Sequence[Array], weights: Mapping[Key, Floats]
) -> dict[Key, float]:
    """Return ‖G − Σ w_i F_i F_iᵀ‖_F / ‖G‖_F for each vector of weights.

    G has shape (n, n), F_i (n, k_i); each vector, of shape (p,), weighs the first p learners. What
    all vectors share is computed once.
    """
    products = InnerProducts.of(G, features)
    norm = np.sqrt(products.of_G)

    errors = {}
    for key, w in weights.items():
        square = products.squared_error(w)
        error = np.sqrt(max(square, 0.0)) / norm
        if error < CANCELS_BELOW:
            error = _norm_of_residual(G, features, w) / norm
        errors[key] = float(error)
    return errors


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Inner products of G and of the learners K_i = F_i F_iᵀ, from which errors are expanded.

    Attributes
    ----------
    of_G : float
        ⟨G, G⟩ = ‖G‖².
    with_G : array of shape (p,)
        ⟨G, K_i⟩.
    of_learners : array of shape (p, p)
        ⟨K_i, K_j⟩ = ‖F_iᵀ F_j‖².
    """

    of_G: float  # noqa: N815
    with_G: Floats  # noqa: N815
    of_learners: Floats

    @classmethod
    def of(cls, G: Array, features: Sequence[Array]) -> InnerProducts:
        """Compute them, with one product by G for all features side by side."""
        xp = namespace(G)
        F = xp.concat(list(features), axis=1)
        of_columns = to_host(xp.sum(F * (G @ F), axis=0))
        of_pairs = to_host(F.T @ F) ** 2

        # add up the columns of each learner, which begin at these
        widths = [F_i.shape[1] for F_i in features]
        first = np.cumsum([0, *widths[:-1]])
        by_row = np.add.reduceat(of_pairs, first, axis=0)
        return cls(
            of_G=float(xp.sum(G * G)),
            with_G=np.add.reduceat(of_columns, first),
            of_learners=np.add.reduceat(by_row, first, axis=1),
        )

    def squared_error(self, w: Floats) -> float:
        """Return ‖G‖² − 2 Σ w_i ⟨G, K_i⟩ + Σ w_i w_j ⟨K_i, K_j⟩ for the first p learners."""
        p = len(w)
        cross = w @ self.with_G[:p]
        own = w @ self.of_learners[:p, :p] @ w
        return float(self.of_G - 2 * cross + own)


def _norm_of_residual(G: Array, features: Sequence[Array], w: Floats) -> float:
    """Return ‖G − Σ w_i F_i F_iᵀ‖_F from the residual itself, which does not cancel."""
    # F = [F_1, F_2, …], and the weight of each column
    used = features[: len(w)]
    F = namespace(G).concat(list(used), axis=1)
    of_columns = np.repeat(w, [F_i.shape[1] for F_i in used])

    scaled = F * like(of_columns, F)
    return float(norms(G - scaled @ F.T))
