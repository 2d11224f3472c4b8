"""A catalogue of all methods by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.boosting.algorithm import uniform
from nysboost.boosting.variants import (
    ENSEMBLES,
    SAMPLINGS,
    VARIANTS,
    MixtureOfLearners,
    is_variant,
    register_rule,
)
from nysboost.certificates.fewest_landmarks import within_tolerance
from nysboost.features.factor import truncate
from nysboost.features.feature_map import FeatureMap, Mixture, fit_learner
from nysboost.gram import Gram, Landmarks, given_landmarks
from nysboost.joint.core import core_on
from nysboost.joint.method import joint
from nysboost.joint.rule import JointCore
from nysboost.methods import (
    adaptive,
    centres,
    cholesky,
    cur,
    determinantal,
    first_columns,
    fourier,
    leverage,
)
from nysboost.methods.block_nystrom import block_nystrom
from nysboost.methods.nuclear_scores import nuclear_scores
from nysboost.numerics.arrays import Indices, TableLike
from nysboost.numerics.messages import unknown
from nysboost.settings import Settings

Run: TypeAlias = Callable[[Gram, Settings, Generator], Approximation]
TargetMethod: TypeAlias = Callable[[Gram, TableLike | None, Settings, Generator], Approximation]

Found: TypeAlias = Indices | Landmarks | FeatureMap | Mixture | Approximation
"""What a method returns: columns or landmarks for plain Nyström (C W⁺ Cᵀ), a map, or an
approximation."""

_WITH_TARGET: dict[str, TargetMethod] = {}

# what the paper does not have: the joint core, and columns drawn in other ways at first
register_rule("J", JointCore())
SAMPLINGS["leverage"] = leverage.rls
SAMPLINGS["kmeans"] = first_columns.nearest_to_centres
SAMPLINGS["rpcholesky"] = first_columns.by_pivots

JOINT_VARIANTS: tuple[str, ...] = tuple(
    f"{x}{y}B-{clustering}"
    for clustering, x, y in product(("mean", "med", "SF"), "UERJ", "UERJ")
    if "J" in (x, y)
)
"""The 21 names with J, the joint core, in one step or in both."""


class Method(Protocol):
    """A method of the catalogue."""

    def uses(self, named: Collection[str]) -> frozenset[str]:
        """Return the settings that the method uses, if the settings `named` are given."""

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Found:
        """Apply the method to a Gram matrix."""


@dataclass(frozen=True)
class MethodOfSize:
    """A method with c landmarks: a function (gram, c, rng) that chooses them or fits a map.

    Parameters
    ----------
    function : callable
        Called as ``function(gram, c, rng)``, with the settings in `further` as keyword arguments.
    further : tuple of str
        The names of further settings of the function.
    """

    function: Callable[..., Found]
    further: tuple[str, ...] = ()

    def uses(self, named: Collection[str]) -> frozenset[str]:
        """Return c and the settings of the function. c is p·m only if m is given and c is not."""
        uses = frozenset(("n_components", *self.further))
        if "n_columns" in named and "n_components" not in named:
            return uses | {"n_columns", "n_learners"}
        return uses

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Found:
        """Call the function with the given number of landmarks."""
        c = settings.landmarks(gram.n)
        further = {name: getattr(settings, name) for name in self.further}
        return self.function(gram, c, rng, **further)


@dataclass(frozen=True)
class StandardNystrom:
    """C W_k⁺ Cᵀ on uniform columns, or (C W⁺ Cᵀ)_k if the rank is truncated at the end."""

    fixed_rank: bool = False

    def uses(self, named: Collection[str]) -> frozenset[str]:  # noqa: ARG002
        """Return the number of columns, and the rank."""
        return frozenset(("n_components", "n_columns", "rank"))

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> FeatureMap:
        """Fit one learner."""
        # m and k
        single = replace(settings, n_learners=1)
        sizes = single.resolve(gram.n, validated=False, boosted=False)
        columns = uniform(gram, sizes.n_columns, rng)
        landmarks = gram.landmarks(columns)
        if not self.fixed_rank:
            return fit_learner(gram, landmarks, sizes.rank)

        # of all features the best k
        whole = fit_learner(gram, landmarks, sizes.n_columns)
        return truncate(gram, whole, sizes.rank)


@dataclass(frozen=True)
class BlockNystrom:
    """The mean of n_learners small Nyström approximations."""

    def uses(self, named: Collection[str]) -> frozenset[str]:  # noqa: ARG002
        """Return the settings for the number of blocks and their columns."""
        return frozenset(("n_components", "n_columns", "n_learners"))

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Mixture:
        """Fit the blocks."""
        blocks = replace(settings, rank=None)  # of full rank
        sizes = blocks.resolve(gram.n, validated=False, boosted=False)
        return block_nystrom(gram, sizes.n_learners, sizes.n_columns, rng)


def _mixtures(names: Iterable[str]) -> dict[str, Method]:
    return {name: MixtureOfLearners(name) for name in names}


_FAMILIES: dict[str, dict[str, Method]] = {
    "joint": {"joint": MethodOfSize(joint, ("row_cap",))},
    "standard": {
        "nystrom": StandardNystrom(),
        "nystrom-fixed-rank": StandardNystrom(fixed_rank=True),
        "uniform": MethodOfSize(uniform),
    },
    "ensemble": {**_mixtures(ENSEMBLES), "block-nystrom": BlockNystrom()},
    "boosting": _mixtures(VARIANTS),
    "boosting, joint core": _mixtures(JOINT_VARIANTS),
    "cluster centres": {
        "kmeans": MethodOfSize(centres.kmeans),
        "density-weighted": MethodOfSize(centres.density_weighted, ("rank",)),
        "meka": MethodOfSize(centres.meka),
    },
    "pivoted Cholesky": {
        "rpcholesky": MethodOfSize(cholesky.rpcholesky),
        "greedy": MethodOfSize(cholesky.greedy),
        "sparse-greedy": MethodOfSize(cholesky.sparse_greedy),
        "nuclear-scores": MethodOfSize(nuclear_scores, ("row_cap",)),
    },
    "sampling by importance": {
        "rls": MethodOfSize(leverage.rls),
        "bless": MethodOfSize(leverage.bless),
        "arp": MethodOfSize(leverage.arp),
        "dpp": MethodOfSize(determinantal.dpp),
        "adaptive": MethodOfSize(adaptive.adaptive),
        "adaptive-partial": MethodOfSize(adaptive.adaptive_partial),
    },
    "core from all of G": {
        "modified": MethodOfSize(adaptive.modified),
        "spectral-shift": MethodOfSize(adaptive.spectral_shift),
    },
    "CUR": {
        "cur": MethodOfSize(cur.CUR(leverage.rls, cur.project_core)),
        "cur-uniform": MethodOfSize(cur.CUR(uniform, cur.project_core)),
        "cur-cross": MethodOfSize(cur.CUR(leverage.rls, cur.invert_intersection)),
        "cur-cross-uniform": MethodOfSize(cur.CUR(uniform, cur.invert_intersection)),
        "robust-cur": MethodOfSize(cur.robust_cur),
    },
    "random features": {
        "random-fourier": MethodOfSize(fourier.RandomFeatures(fourier.independent)),
        "orthogonal-fourier": MethodOfSize(fourier.RandomFeatures(fourier.orthogonal)),
        "quasi-fourier": MethodOfSize(fourier.RandomFeatures(fourier.evenly_spread)),
    },
    "limit": {"optimal": MethodOfSize(adaptive.optimal)},
}

_METHODS: dict[str, Method] = {}
for _members in _FAMILIES.values():
    _METHODS.update(_members)

FAMILIES: dict[str, tuple[str, ...]] = {family: tuple(_FAMILIES[family]) for family in _FAMILIES}
"""The names of the methods, family by family."""

ROBUST = frozenset(("robust-cur",))
"""The methods that accept a precomputed matrix with corrupted entries, which may be indefinite."""

METHODS: tuple[str, ...] = tuple(_METHODS)
"""All names that `approximate` accepts, in addition to "target", which needs y."""


class Limit(NamedTuple):
    """The largest number of rows for a method that needs all of G, and the reason.

    At this size, it takes minutes.
    """

    most: int
    reason: str

    def check(self, name: str, n: int) -> None:
        """Raise if there are more rows."""
        if n > self.most:
            raise ValueError(
                f'"{name}" {self.reason}, so it accepts at most {self.most} rows, but '
                f"n_samples = {n} were given. Pass a sample of the rows or a principal submatrix, "
                'or choose a method that needs only some entries, such as "joint" or "rpcholesky".'
            )


_SEES_ALL = Limit(30_000, "evaluates all n² entries of the kernel matrix")
_LIMITS = {
    "adaptive": _SEES_ALL,
    "modified": _SEES_ALL,
    "spectral-shift": _SEES_ALL,
    "cur": _SEES_ALL,
    "cur-uniform": _SEES_ALL,
    "robust-cur": Limit(10_000, "lists the corrupted entries of all n²"),
    "optimal": Limit(10_000, "decomposes the whole n×n matrix"),
}


def run_method(
    method: str,
    gram: Gram,
    settings: Settings,
    rng: Generator,
    *,
    landmarks: TableLike | None = None,
    y: TableLike | None = None,
    tol: float | None = None,
    named: Collection[str] = (),
) -> Approximation:
    """Run a method on a Gram matrix, and name the result after it.

    The user may pass landmarks, targets, or a tolerance. `named` are the settings that the user
    passed by name; if the method does not use one of them, a warning says so.
    """
    run = find_method(method, y)
    _warn_of_unused(method, named)

    # as many landmarks as an error needs
    if tol is not None:
        sizes = {"landmarks": landmarks, "n_columns": settings.n_columns}
        for also, size in sizes.items():
            if size is not None:
                raise ValueError(
                    f"tol finds the number of landmarks, but {also} sets it: leave one of them out."
                )
        return _run_within(tol, run, gram, settings, rng)

    # on landmarks of the user's, or on those that the method finds
    if landmarks is not None:
        return _on_landmarks(method, gram, settings, rng, landmarks)
    return run(gram, settings, rng)


def _run_within(
    tol: float,
    run: Run,
    gram: Gram,
    settings: Settings,
    rng: Generator,
) -> Approximation:
    """Return what a method finds with the fewest landmarks whose error is at most `tol`."""
    (for_certificates,) = rng.spawn(1)

    def fit(c: int) -> Approximation:
        # every trial with the same seed, as a run with so many components would have
        with_size = replace(settings, n_components=c)
        return run(gram, with_size, deepcopy(rng))

    return within_tolerance(fit, tol, gram, settings.n_components, for_certificates)


def _on_landmarks(
    method: str,
    gram: Gram,
    settings: Settings,
    rng: Generator,
    landmarks: TableLike,
) -> Approximation:
    """Run "joint" or "nystrom" on the user's landmarks."""
    if settings.n_components is not None:
        msg = "landmarks already sets the number of components: leave n_components out."
        raise ValueError(msg)
    if method not in ("joint", "nystrom"):
        raise ValueError(
            f"{method!r} chooses its own landmarks. Give yours to 'joint' or to 'nystrom', or "
            "leave landmarks out."
        )

    Z = given_landmarks(gram, landmarks)
    if method == "joint":
        learner = core_on(gram, Z, settings.row_cap, rng)
    else:
        learner = fit_learner(gram, Z, settings.rank or len(Z))
    return _wrap(method, gram, learner)


def _warn_of_unused(method: str, named: Collection[str]) -> None:
    """Warn about settings that were given by name but have no effect."""
    if method in _WITH_TARGET:
        return

    uses = _method(method).uses(named)
    unused = [name for name in named if name not in uses]
    if unused:
        names = " and ".join(unused)
        msg = f"{method!r} does not use {names}: leave out what has no effect."
        warnings.warn(msg, UserWarning, stacklevel=5)


def register_target_method(name: str, run: TargetMethod) -> None:
    """Register a method that needs a target y; it is defined in the package of the learners."""
    _WITH_TARGET[name] = run


def _method(name: str) -> Method:
    """Return the method with this name, which may contain the user's rules and selectors."""
    if name in _METHODS:
        return _METHODS[name]
    return MixtureOfLearners(name)


def find_method(name: str, y: TableLike | None = None) -> Run:
    """Return the method with this name, for the target y if it needs one."""
    known = (*METHODS, *_WITH_TARGET)
    is_known = isinstance(name, str) and (name in known or is_variant(name))
    if not is_known:
        raise ValueError(unknown("method", name, known))

    def run(gram: Gram, settings: Settings, rng: Generator) -> Approximation:
        if name in _LIMITS:
            _LIMITS[name].check(name, gram.n)

        # a method that needs y has the form of a run
        if name in _WITH_TARGET:
            approximation = _WITH_TARGET[name](gram, y, settings, rng)
            return approximation.with_name(name)

        method = _method(name)
        found = method.find(gram, settings, rng)
        return _wrap(name, gram, found)

    return run


def _wrap(name: str, gram: Gram, found: Found) -> Approximation:
    """Turn the result of a method into an approximation; for landmarks it is C W⁺ Cᵀ."""
    # columns and landmarks stand for plain Nyström on them, one map for a mixture of one
    if isinstance(found, np.ndarray):
        found = gram.landmarks(found)
    if isinstance(found, Landmarks):
        found = fit_learner(gram, found, len(found))
    if isinstance(found, FeatureMap):
        found = Mixture((found,), np.ones(1))
    if isinstance(found, Mixture):
        found = Approximation(gram, found)
    return found.with_name(name)
