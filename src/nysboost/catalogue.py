"""Every method by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nysboost.approximation import Approximation
from nysboost.boosting.algorithm import (
    JOINT_VARIANTS,
    RULES,
    VARIANTS,
    boost,
    ensemble,
    parse_variant,
)
from nysboost.boosting.core import core_on
from nysboost.boosting.learner import Mixture, fit_learner, truncate
from nysboost.boosting.rules import ExponentialWeights, RidgeWeights, Rule
from nysboost.boosting.trajectory import Origin
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, Landmarks, given_landmarks
from nysboost.joint.method import joint
from nysboost.methods import adaptive, centres, cholesky, cur, fourier, sampling
from nysboost.methods.target import target
from nysboost.numerics.checks import RandomState as RandomState
from nysboost.numerics.checks import make_rng as make_rng
from nysboost.numerics.checks import unknown
from nysboost.settings import Settings
from nysboost.tolerance import PILOT_ROWS, within_tolerance

Rules: TypeAlias = dict[str, Rule]
Rng: TypeAlias = np.random.Generator
Method: TypeAlias = Callable[[Gram, Settings, Rng], Approximation]


def _nystrom(fixed_rank: bool) -> Method:
    """C W_k⁺ Cᵀ or, with the rank fixed at the end, (C W⁺ Cᵀ)_k."""

    def run(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
        sizes = replace(settings, n_learners=1).resolve(gram.n, validated=False, boosted=False)
        columns = rng.choice(gram.n, size=sizes.n_columns, replace=False)
        rank = sizes.n_columns if fixed_rank else sizes.rank
        learner = fit_learner(gram, gram.landmarks(columns), rank)
        return _single(gram, truncate(gram, learner, sizes.rank) if fixed_rank else learner)

    return run


def _ensemble(letter: str) -> Method:
    """Σ μ_i G_i over learners on uniformly sampled columns."""

    def run(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
        trajectory, rule = ensemble(gram, settings, rng), rules_of(settings)[letter]
        origin = Origin(trajectory=trajectory, rule=rule)
        return Approximation(gram, trajectory.mixture(rule), origin)

    return run


def _boosting(name: str) -> Method:
    """Algorithm 1 with the weights and the clustering that the name says."""

    def run(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
        variant = parse_variant(name, rules_of(settings))
        trajectory = boost(gram, settings, variant.boosting, variant.selector, rng)
        origin = Origin(trajectory=trajectory, rule=variant.final)
        return Approximation(gram, trajectory.mixture(variant.final), origin)

    return run


def _joint(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
    """Boosted landmarks, refined, with one joint core."""
    return _single(gram, joint(gram, settings.landmarks(gram.n), settings.row_cap, rng))


def _landmarks(choose: Callable[[Gram, int, Rng], Landmarks]) -> Method:
    """Plain Nyström on the landmarks that another method chooses."""

    def fit(gram: Gram, c: int, rng: Rng) -> FeatureMap:
        landmarks = choose(gram, c, rng)
        return fit_learner(gram, landmarks, len(landmarks))

    return _learner(fit)


def _learner(fit: Callable[[Gram, int, Rng], FeatureMap]) -> Method:
    """Return the method of a learner with a core, or a basis, of its own."""
    return _result(lambda gram, c, rng: _single(gram, fit(gram, c, rng)))


def _mixture(fit: Callable[[Gram, int, Rng], Mixture]) -> Method:
    """Return the method of a mixture, whose core may be indefinite."""
    return _result(lambda gram, c, rng: Approximation(gram, fit(gram, c, rng)))


def _result(fit: Callable[[Gram, int, Rng], Approximation]) -> Method:
    """Return the method of a result of its own kind."""

    def run(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
        return fit(gram, settings.landmarks(gram.n), rng)

    return run


def _density_weighted(gram: Gram, settings: Settings, rng: Rng) -> Approximation:
    """Cluster centres, weighed by the sizes of their clusters, cut to a rank."""
    learner = centres.density_weighted(gram, settings.landmarks(gram.n), rng, settings.rank)
    return _single(gram, learner)


def _single(gram: Gram, learner: FeatureMap) -> Approximation:
    return Approximation(gram, Mixture((learner,), np.ones(1)))


_FAMILIES: dict[str, dict[str, Method]] = {
    "joint": {"joint": _joint},
    "standard": {
        "nystrom": _nystrom(fixed_rank=False),
        "nystrom-fixed-rank": _nystrom(fixed_rank=True),
        "uniform": _landmarks(sampling.uniform),
    },
    "ensemble": {
        "ensemble-uniform": _ensemble("U"),
        "ensemble-exponential": _ensemble("E"),
        "ensemble-ridge": _ensemble("R"),
    },
    "boosting": {name: _boosting(name) for name in VARIANTS},
    "boosting, joint core": {name: _boosting(name) for name in JOINT_VARIANTS},
    "cluster centres": {
        "kmeans": _landmarks(centres.kmeans),
        "density-weighted": _density_weighted,
        "meka": _learner(centres.meka),
    },
    "pivoted Cholesky": {
        "rpcholesky": _landmarks(cholesky.rpcholesky),
        "greedy": _landmarks(cholesky.greedy),
        "sparse-greedy": _landmarks(cholesky.sparse_greedy),
    },
    "sampling by importance": {
        "rls": _landmarks(sampling.rls),
        "bless": _landmarks(sampling.bless),
        "arp": _landmarks(sampling.arp),
        "dpp": _landmarks(sampling.dpp),
        "adaptive": _landmarks(adaptive.adaptive),
        "adaptive-partial": _landmarks(adaptive.adaptive_partial),
    },
    "core from all of G": {
        "modified": _learner(adaptive.modified),
        "spectral-shift": _result(adaptive.spectral_shift),
    },
    "CUR": {
        "cur": _mixture(cur.cur_leverage),
        "cur-uniform": _mixture(cur.cur_uniform),
        "cur-cross": _mixture(cur.cross_leverage),
        "cur-cross-uniform": _mixture(cur.cross_uniform),
        "robust-cur": _result(cur.robust_cur),
    },
    "random features": {
        "random-fourier": _learner(fourier.random_fourier),
        "orthogonal-fourier": _learner(fourier.orthogonal_fourier),
        "quasi-fourier": _learner(fourier.quasi_fourier),
    },
    "limit": {"optimal": _learner(adaptive.optimal)},
}

_METHODS: dict[str, Method] = {
    name: run for family in _FAMILIES.values() for name, run in family.items()
}

FAMILIES: dict[str, tuple[str, ...]] = {family: tuple(runs) for family, runs in _FAMILIES.items()}
"""The names of the methods, family by family."""

ROBUST = frozenset(("robust-cur",))
"""The methods that take a precomputed matrix with wrong entries, which may be indefinite."""

METHODS: tuple[str, ...] = tuple(_METHODS)
"""Every name that `approximate` takes; with y also those of `SUPERVISED`."""

SUPERVISED: dict[str, Callable[[Gram, Any, Settings, Rng], Approximation]] = {"target": target}
"""The methods whose landmarks are fitted to a target y."""

WITH_PILOT_FITS = frozenset(("joint",))
"""The methods whose fit is so costly that one on fewer rows comes first, where `tol` is given."""

OWN_LANDMARKS: dict[str, Callable[[Gram, Landmarks, Settings, Rng], FeatureMap]] = {
    "joint": lambda gram, Z, settings, rng: core_on(gram, Z, settings.row_cap, rng),
    "nystrom": lambda gram, Z, settings, _: fit_learner(gram, Z, settings.rank or len(Z)),
}
"""The methods that take the user's own landmarks: a joint core on them, or C W_k⁺ Cᵀ."""


@dataclass(frozen=True, eq=False)
class Given:
    """What a user may give beside the rows: landmarks, targets, a relative error to reach."""

    landmarks: Any = None
    y: Any = None
    tol: float | None = None


def run_method(
    method: str,
    gram: Gram,
    settings: Settings,
    rng: Rng,
    given: Given | None = None,
) -> Approximation:
    """Return what a method finds in a Gram matrix, under its name."""
    given = given or Given()
    landmarks, tol = given.landmarks, given.tol
    run = find_method(method, given.y)
    _tell_idle(method, settings)
    if tol is not None:
        _refuse_beside_tol(landmarks, settings)
        certificates = rng.spawn(1)[0]

        def fit(c: int, row_cap: int = settings.row_cap) -> Approximation:
            # every trial as a run of its own would be: with the same seed and so many components
            sizes = replace(settings, n_components=c, row_cap=row_cap)
            return run(gram, sizes, deepcopy(rng)).with_name(method)

        has_pilots = method in WITH_PILOT_FITS and min(gram.n, settings.row_cap) >= 2 * PILOT_ROWS
        pilot = partial(fit, row_cap=PILOT_ROWS) if has_pilots else None
        held = gram.n <= settings.row_cap and gram.rows.in_memory
        with gram.holding() if held else nullcontext():
            return within_tolerance(fit, tol, gram, settings.n_components, certificates, pilot)
    if landmarks is None:
        return run(gram, settings, rng).with_name(method)
    if settings.n_components is not None:
        msg = "landmarks says already how many components there are: leave n_components out."
        raise ValueError(msg)
    if method not in OWN_LANDMARKS:
        msg = (
            f"{method!r} chooses its own landmarks. Give yours to "
            f"{' or to '.join(map(repr, OWN_LANDMARKS))}, or leave landmarks out."
        )
        raise ValueError(msg)
    learner = OWN_LANDMARKS[method](gram, given_landmarks(gram, landmarks), settings, rng)
    return _single(gram, learner).with_name(method)


def _tell_idle(method: str, settings: Settings) -> None:
    """Warn of sizes that the default method makes no use of, though others of its family do."""
    idle = [name for name in ("rank", "n_candidates") if getattr(settings, name) is not None]
    if idle and method == "joint":
        msg = (
            f"'joint' has one core and makes no use of {' and '.join(idle)}, which belong to "
            "mixtures of learners such as 'URB-mean': leave them out."
        )
        warnings.warn(msg, UserWarning, stacklevel=5)


def _refuse_beside_tol(landmarks: Any, settings: Settings) -> None:
    """Say that a number of landmarks cannot be both given and found."""
    if landmarks is not None or settings.n_columns is not None:
        given = "n_columns" if landmarks is None else "landmarks"
        msg = f"tol finds the number of landmarks, which {given} says already: leave one out."
        raise ValueError(msg)


def find_method(name: str, y: Any = None) -> Method:
    """Return the method of that name, for a target y if it takes one."""
    if isinstance(name, str) and name in SUPERVISED:
        serve = SUPERVISED[name]
        return lambda gram, settings, rng: serve(gram, y, settings, rng)
    if not isinstance(name, str) or name not in _METHODS:
        raise ValueError(unknown("method", name, (*METHODS, *SUPERVISED)))
    return _METHODS[name]


def rules_of(settings: Settings) -> Rules:
    """Return what U, E, R and J mean under these settings."""
    ridge = RidgeWeights(settings.nonnegative, tuple(settings.lambdas))
    return RULES | {"E": ExponentialWeights(settings.eta), "R": ridge}
