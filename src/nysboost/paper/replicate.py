"""One replicate: 30 methods from nine boosting trajectories and an ensemble, each computed once.

The errors of all mixtures are exact. Their squares are expanded into inner products of features,
which are computed once. If this cancels, the error is computed from the residual.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import eigsh

from nysboost.boosting.algorithm import find_learners
from nysboost.boosting.variants import ENSEMBLES, VARIANTS, parse_method
from nysboost.features.feature_map import features_of, fit_learner
from nysboost.gram import Gram, Landmarks, PrecomputedGram, make_gram
from nysboost.methods.adaptive import adaptive
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
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

    def measure(self, readings: Sequence[Reading | None]) -> Iterator[Measured]:
        """Yield the measurements of the preset, under each reading."""
        if self.preset.measure == "seconds":
            yield from self._measure_seconds(readings)
        else:
            yield from self._measure_errors(readings)

    # Errors

    def _measure_errors(self, readings: Sequence[Reading | None]) -> Iterator[Measured]:
        """Yield the errors of all methods, and the properties of the matrix."""
        # compute the whole matrix once: all trajectories and errors use it
        X = _place(self.draw(), self.device)
        G = kernel_gram(self.preset, X).whole()
        gram = PrecomputedGram(ArrayRows(G))
        for reading in readings:
            if reading is not None:
                yield Measured(reading, self._mixture_errors(G, gram, reading), {})
                continue

            # measure what no reading changes
            on_host = to_host(G)
            properties = {}
            for name in self.preset.properties:
                properties[name] = measure_matrix(name, on_host, self.preset.rank)
            yield Measured(None, self._pooled_errors(G, gram), properties)

    def _mixture_errors(self, G: Array, gram: Gram, reading: Reading) -> Values:
        """Return the relative errors of boosting and ensembles with each number of learners."""
        settings = settings_of(self.preset, reading)
        counts = self.preset.counts
        found: dict[tuple[str, int], float] = {}
        for names in group_by_trajectory(self.mixtures):
            # steps 1 and 2: the learners, which all methods of the group share
            steps, _ = parse_method(names[0], settings)
            trajectory = find_learners(gram, settings, steps, self.generator(LEARNERS))

            # step 3, the strong approximation, of the first p learners
            weights = {}
            for name in names:
                _, rule = parse_method(name, settings)
                for p in counts:
                    weights[name, p] = trajectory.mixture(rule, p).weights

            features = [features_of(gram, learner) for learner in trajectory.learners]
            found |= relative_errors(G, features, weights)

        return {name: [found[name, p] for p in counts] for name in self.mixtures}

    def _pooled_errors(self, G: Array, gram: Gram) -> Values:
        """Return the errors of single Nyström approximations with as many columns as p learners."""
        counts = self.preset.counts
        pooled = [name for name in self.methods if name in POOLED]
        values: Values = {name: [np.nan] * len(counts) for name in pooled}

        for sampling in ("nystrom", "adaptive"):
            names = [name for name in pooled if name.startswith(sampling)]
            for p in POOLED[f"{sampling}-k"]:
                if p not in counts or not names:
                    continue

                # the same columns for both ranks
                landmarks = self._choose_columns(sampling, gram, p * self.preset.n_columns)
                for name in names:
                    rank = self.preset.rank
                    if name.endswith("-pk"):
                        rank *= p
                    F = features_of(gram, fit_learner(gram, landmarks, rank))
                    errors = relative_errors(G, [F], {name: np.ones(1)})
                    values[name][counts.index(p)] = errors[name]
        return values

    def _choose_columns(self, sampling: str, gram: Gram, c: int) -> Landmarks:
        """Choose c columns uniformly, or in rounds by their squared residual."""
        if sampling == "adaptive":
            columns = adaptive(gram, c, self.generator(ADAPTIVE))
        else:
            rng = self.generator(UNIFORM)
            columns = rng.choice(gram.n, size=c, replace=False)
        return gram.landmarks(columns)

    # Seconds

    def _measure_seconds(self, readings: Sequence[Reading | None]) -> Iterator[Measured]:
        """Yield the processor time of each method and number of learners, measured separately."""
        X = self.draw()
        few = min(2, self.preset.n_learners)
        for reading in readings:
            if reading is None:
                properties = {name: self._slope(name) for name in self.preset.properties}
                yield Measured(None, {}, properties)
                continue

            # a first call of each method loads code and fills caches
            for name in self.mixtures:
                self._time(self.preset, X, name, reading, few)

            # each method and number of learners begins anew
            values: Values = {name: [] for name in self.mixtures}
            for name, seconds in values.items():
                for p in self.preset.counts:
                    taken = self._time(self.preset, X, name, reading, p)
                    seconds.append(taken)
            yield Measured(reading, values, {})

    def _time(self, preset: Preset, X: Floats, name: str, reading: Reading, p: int) -> float:
        """Return the processor time of one method with p learners, from points to weights."""
        settings = settings_of(preset, reading, n_learners=p)
        steps, rule = parse_method(name, settings)
        rng = self.generator(LEARNERS)

        began = time.process_time()
        gram = kernel_gram(preset, X)
        find_learners(gram, settings, steps, rng).mixture(rule)
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
    groups: dict[str, list[str]] = {}
    for name in methods:
        weights, _, clustering = name.partition("-")
        kind = f"{weights[0]}-{clustering}"
        if name in ENSEMBLES:
            kind = "ensemble"
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

    G has shape (n, n), F_i (n, k_i); each vector, of shape (p,), weighs the first p learners. The
    square is ‖G‖² − 2 Σ w_i ⟨G, F_i F_iᵀ⟩ + wᵀHw with H_ij = ‖F_iᵀF_j‖². If this cancels, it is
    computed from the residual.
    """
    # F = [F_1, F_2, …], and where each of them starts
    xp = namespace(G)
    F = xp.concat(list(features), axis=1)
    widths = np.array([f.shape[1] for f in features])
    ends = np.cumsum(widths)
    starts = ends - widths

    # ⟨G, F_i F_iᵀ⟩, sums over the columns of F_i
    total = float(xp.sum(G * G))
    products = F * (G @ F)
    by_column = to_host(xp.sum(products, axis=0))
    with_G = np.add.reduceat(by_column, starts)

    # H_ij, sums over the blocks of FᵀF
    squares = np.square(to_host(F.T @ F))
    H = np.add.reduceat(squares, starts, axis=0)
    H = np.add.reduceat(H, starts, axis=1)

    errors = {}
    for key, w in weights.items():
        p = len(w)
        cross = 2 * w @ with_G[:p]
        own = w @ H[:p, :p] @ w
        square = float(total - cross + own)

        # the residual itself where that cancels, of the learners that have weights
        if square < CANCELS_BELOW**2 * total:
            used = F[:, : int(ends[p - 1])]
            of_columns = np.repeat(w, widths[:p])
            scaled = used * like(of_columns, F)
            residual = G - scaled @ used.T
            square = float(xp.sum(residual * residual))
        errors[key] = float(np.sqrt(square / total))
    return errors
