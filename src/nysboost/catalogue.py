"""Every method by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nysboost.approximation import Approximation
from nysboost.boosting import algorithm
from nysboost.boosting.algorithm import ENSEMBLES, JOINT_VARIANTS, VARIANTS
from nysboost.certificates.tolerance import within_tolerance
from nysboost.features.feature_map import FeatureMap
from nysboost.features.nystrom import Mixture, fit_learner, truncate
from nysboost.gram import Gram, Landmarks, given_landmarks
from nysboost.joint.core import core_on
from nysboost.joint.method import joint
from nysboost.methods import adaptive, centres, cholesky, cur, determinantal, fourier, leverage
from nysboost.methods.block_nystrom import block_nystrom
from nysboost.methods.nuclear_scores import nuclear_scores
from nysboost.methods.uniform import uniform
from nysboost.numerics.messages import unknown
from nysboost.settings import Settings

Rng: TypeAlias = np.random.Generator
Found: TypeAlias = Landmarks | FeatureMap | Mixture | Approximation
Method: TypeAlias = Callable[[Gram, Settings, Rng], Approximation]
TargetMethod: TypeAlias = Callable[[Gram, Any, Settings, Rng], Approximation]

_WITH_TARGET: dict[str, TargetMethod] = {}


def _nystrom(gram: Gram, settings: Settings, rng: Rng, *, fixed_rank: bool = False) -> FeatureMap:
    """C W_k⁺ Cᵀ or, with the rank fixed at the end, (C W⁺ Cᵀ)_k."""
    sizes = replace(settings, n_learners=1).resolve(gram.n, validated=False, boosted=False)
    columns = rng.choice(gram.n, size=sizes.n_columns, replace=False)
    rank = sizes.n_columns if fixed_rank else sizes.rank
    learner = fit_learner(gram, gram.landmarks(columns), rank)
    return truncate(gram, learner, sizes.rank) if fixed_rank else learner


def _mix(name: str, gram: Gram, settings: Settings, rng: Rng) -> Approximation:
    """Σ μ_i G_i over learners of an ensemble, or of Algorithm 1 as the name says."""
    if name in JOINT_VARIANTS:
        settings = settings.with_sampling()
    steps, rule = algorithm.parse_method(name, settings)
    trajectory = algorithm.find_learners(gram, settings, steps, rng)
    return Approximation(gram, trajectory.mixture(rule), trajectory, rule)


def _block_nystrom(gram: Gram, settings: Settings, rng: Rng) -> Mixture:
    """Return the mean of n_learners small Nyström approximations."""
    sizes = settings.resolve(gram.n, validated=False, boosted=False)
    return block_nystrom(gram, sizes.n_learners, sizes.n_columns, rng)


def _of_size(fit: Callable[[Gram, int, Rng], Found]) -> Callable[[Gram, Settings, Rng], Found]:
    """Return the method of a function that takes a number of landmarks."""
    return lambda gram, settings, rng: fit(gram, settings.landmarks(gram.n), rng)


_FAMILIES: dict[str, dict[str, Callable[[Gram, Settings, Rng], Found]]] = {
    "joint": {"joint": lambda gram, s, rng: joint(gram, s.landmarks(gram.n), s.row_cap, rng)},
    "standard": {
        "nystrom": _nystrom,
        "nystrom-fixed-rank": partial(_nystrom, fixed_rank=True),
        "uniform": _of_size(uniform),
    },
    "ensemble": {
        **{name: partial(_mix, name) for name in ENSEMBLES},
        "block-nystrom": _block_nystrom,
    },
    "boosting": {name: partial(_mix, name) for name in VARIANTS},
    "boosting, joint core": {name: partial(_mix, name) for name in JOINT_VARIANTS},
    "cluster centres": {
        "kmeans": _of_size(centres.kmeans),
        "density-weighted": lambda gram, s, rng: centres.density_weighted(
            gram, s.landmarks(gram.n), rng, s.rank
        ),
        "meka": _of_size(centres.meka),
    },
    "pivoted Cholesky": {
        "rpcholesky": _of_size(cholesky.rpcholesky),
        "greedy": _of_size(cholesky.greedy),
        "sparse-greedy": _of_size(cholesky.sparse_greedy),
        "nuclear-scores": lambda gram, s, rng: nuclear_scores(
            gram, s.landmarks(gram.n), s.row_cap, rng
        ),
    },
    "sampling by importance": {
        "rls": _of_size(leverage.rls),
        "bless": _of_size(leverage.bless),
        "arp": _of_size(leverage.arp),
        "dpp": _of_size(determinantal.dpp),
        "adaptive": _of_size(adaptive.adaptive),
        "adaptive-partial": _of_size(adaptive.adaptive_partial),
    },
    "core from all of G": {
        "modified": _of_size(adaptive.modified),
        "spectral-shift": _of_size(adaptive.spectral_shift),
    },
    "CUR": {
        "cur": _of_size(partial(cur.cur, leverage.rls, cur.project_core)),
        "cur-uniform": _of_size(partial(cur.cur, uniform, cur.project_core)),
        "cur-cross": _of_size(partial(cur.cur, leverage.rls, cur.invert_intersection)),
        "cur-cross-uniform": _of_size(partial(cur.cur, uniform, cur.invert_intersection)),
        "robust-cur": _of_size(cur.robust_cur),
    },
    "random features": {
        "random-fourier": _of_size(partial(fourier.fourier, fourier.independent)),
        "orthogonal-fourier": _of_size(partial(fourier.fourier, fourier.orthogonal)),
        "quasi-fourier": _of_size(partial(fourier.fourier, fourier.evenly_spread)),
    },
    "limit": {"optimal": _of_size(adaptive.optimal)},
}

_METHODS = {name: run for family in _FAMILIES.values() for name, run in family.items()}

FAMILIES: dict[str, tuple[str, ...]] = {family: tuple(runs) for family, runs in _FAMILIES.items()}
"""The names of the methods, family by family."""

ROBUST = frozenset(("robust-cur",))
"""The methods that take a precomputed matrix with wrong entries, which may be indefinite."""

METHODS: tuple[str, ...] = tuple(_METHODS)
"""Every name that `approximate` takes; with y also "target"."""


_SEES_ALL = 30_000, "evaluates all n² entries of the kernel matrix"
_LIMITS = {
    **dict.fromkeys(("adaptive", "modified", "spectral-shift", "cur", "cur-uniform"), _SEES_ALL),
    "robust-cur": (10_000, "lists the corrupted entries of all n²"),
    "optimal": (10_000, "decomposes the whole n×n matrix"),
}
"""The most rows of methods that need all of G, which take minutes there, and the reason."""


def run_method(
    method: str,
    gram: Gram,
    settings: Settings,
    rng: Rng,
    *,
    landmarks: Any = None,
    y: Any = None,
    tol: float | None = None,
) -> Approximation:
    """Return what a method finds in a Gram matrix, under its name.

    A user may give landmarks, targets, or a relative error to reach.
    """
    run = find_method(method, y)
    _warn_of_unused_sizes(method, settings)
    if tol is not None:
        if landmarks is not None or settings.n_columns is not None:
            also = "n_columns" if landmarks is None else "landmarks"
            msg = f"tol finds the number of landmarks, which {also} says already: leave one out."
            raise ValueError(msg)
        certificates = rng.spawn(1)[0]

        def fit(c: int) -> Approximation:
            # every trial with the same seed, as a run with so many components would have
            return run(gram, replace(settings, n_components=c), deepcopy(rng))

        return within_tolerance(fit, tol, gram, settings.n_components, certificates)
    if landmarks is None:
        return run(gram, settings, rng)
    if settings.n_components is not None:
        msg = "landmarks says already how many components there are: leave n_components out."
        raise ValueError(msg)
    if method not in ("joint", "nystrom"):
        raise ValueError(
            f"{method!r} chooses its own landmarks. Give yours to 'joint' or to 'nystrom', or "
            "leave landmarks out."
        )
    Z = given_landmarks(gram, landmarks)
    if method == "joint":
        return _wrap(method, gram, core_on(gram, Z, settings.row_cap, rng))
    return _wrap(method, gram, fit_learner(gram, Z, settings.rank or len(Z)))


def _warn_of_unused_sizes(method: str, settings: Settings) -> None:
    """Warn of sizes that the default method makes no use of, though others of its family do."""
    idle = [name for name in ("rank", "n_candidates") if getattr(settings, name) is not None]
    if idle and method == "joint":
        msg = (
            f"'joint' has one core and makes no use of {' and '.join(idle)}, which belong to "
            "mixtures of learners such as 'URB-mean': leave them out."
        )
        warnings.warn(msg, UserWarning, stacklevel=5)


def register_target_method(name: str, run: TargetMethod) -> None:
    """Add a method that needs a target y: the learners, a floor above, have one."""
    _WITH_TARGET[name] = run


def find_method(name: str, y: Any = None) -> Method:
    """Return the method of that name, for a target y if it takes one."""
    known = (*METHODS, *_WITH_TARGET)
    if not isinstance(name, str) or name not in known:
        raise ValueError(unknown("method", name, known))

    def run(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
        most, does = _LIMITS.get(name, (gram.n, ""))
        if gram.n > most:
            raise ValueError(
                f'"{name}" {does}, which is meant for n ≤ {most}, but n_samples = {gram.n} were '
                "given. Pass a sample of the rows, or a principal submatrix, or take a method that "
                'does not need them all, such as "joint" or "rpcholesky".'
            )
        if name in _WITH_TARGET:
            return _WITH_TARGET[name](gram, y, settings, rng).with_name(name)
        return _wrap(name, gram, _METHODS[name](gram, settings, rng))

    return run


def _wrap(name: str, gram: Gram, found: Found) -> Approximation:
    """Return what a method found as an approximation: of landmarks, C W⁺ Cᵀ on them."""
    if isinstance(found, Landmarks):
        found = fit_learner(gram, found, len(found))
    if isinstance(found, FeatureMap):
        found = Mixture((found,), np.ones(1))
    approximation = Approximation(gram, found) if isinstance(found, Mixture) else found
    return approximation.with_name(name)
