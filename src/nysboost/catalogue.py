"""Every method by name, behind one function: `approximate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from nysboost.approximation import Approximation
from nysboost.boosting.algorithm import boost
from nysboost.boosting.ensemble import ensemble
from nysboost.boosting.learner import Learner, Mixture, fit_learner, truncate
from nysboost.boosting.rules import GRID, ExponentialWeights, RidgeWeights, Rule
from nysboost.boosting.variants import JOINT_VARIANTS, RULES, VARIANTS, parse_variant
from nysboost.gram import Gram, Landmarks, make_gram
from nysboost.joint.method import joint
from nysboost.kernels import Kernel
from nysboost.methods import baselines, cholesky, leverage
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import unknown
from nysboost.numerics.memory import MAX_MEMORY
from nysboost.numerics.seeds import RandomState as RandomState
from nysboost.numerics.seeds import make_rng as make_rng
from nysboost.settings import Settings, Shape

Rules: TypeAlias = dict[str, Rule]
Rng: TypeAlias = np.random.Generator
Method: TypeAlias = Callable[[Gram, Settings, Rules, Rng], Approximation]


def _nystrom(fixed_rank: bool) -> Method:
    """C W_k⁺ Cᵀ or, with the rank fixed at the end, (C W⁺ Cᵀ)_k."""

    def run(gram: Gram, settings: Settings, _: Rules, rng: Rng) -> Approximation:
        single = replace(
            settings, n_learners=1, n_columns=settings.n_columns or settings.n_components
        )
        sizes = single.resolve(gram.n, validated=False, boosted=False)
        columns = rng.choice(gram.n, size=sizes.n_columns, replace=False)
        rank = sizes.n_columns if fixed_rank else sizes.rank
        learner = fit_learner(gram, gram.landmarks(columns), rank)
        if fixed_rank:
            learner = truncate(gram, learner, sizes.rank)
        return Approximation(gram, Mixture((learner,), np.ones(1)))

    return run


def _ensemble(letter: str) -> Method:
    """Σ μ_i G_i over learners on uniformly sampled columns."""

    def run(gram: Gram, settings: Settings, rules: Rules, rng: Rng) -> Approximation:
        trajectory, rule = ensemble(gram, settings, rng), rules[letter]
        return Approximation(gram, trajectory.mixture(rule), trajectory, rule)

    return run


def _boosting(name: str) -> Method:
    """Algorithm 1 with the weights and the clustering that the name says."""

    def run(gram: Gram, settings: Settings, rules: Rules, rng: Rng) -> Approximation:
        variant = parse_variant(name, rules)
        trajectory = boost(gram, settings, variant.boosting, variant.selector, rng)
        return Approximation(gram, trajectory.mixture(variant.final), trajectory, variant.final)

    return run


def _joint(gram: Gram, settings: Settings, _: Rules, rng: Rng) -> Approximation:
    """Boosted landmarks, refined, with one joint core."""
    learner = joint(gram, settings.landmarks(gram.n), settings.row_cap, rng)
    return Approximation(gram, Mixture((learner,), np.ones(1)))


def _peer(choose: Callable[[Gram, int, Rng], Landmarks | Learner]) -> Method:
    """Plain Nyström on the landmarks that another method chooses."""

    def run(gram: Gram, settings: Settings, _: Rules, rng: Rng) -> Approximation:
        chosen = choose(gram, settings.landmarks(gram.n), rng)
        if isinstance(chosen, Landmarks):
            chosen = fit_learner(gram, chosen, len(chosen))
        return Approximation(gram, Mixture((chosen,), np.ones(1)))

    return run


_METHODS: dict[str, Method] = {
    "nystrom": _nystrom(fixed_rank=False),
    "nystrom-fixed-rank": _nystrom(fixed_rank=True),
    "ensemble-uniform": _ensemble("U"),
    "ensemble-exponential": _ensemble("E"),
    "ensemble-ridge": _ensemble("R"),
    **{name: _boosting(name) for name in VARIANTS + JOINT_VARIANTS},
    "joint": _joint,
    "uniform": _peer(baselines.uniform),
    "kmeans": _peer(baselines.kmeans),
    "rpcholesky": _peer(cholesky.rpcholesky),
    "greedy": _peer(cholesky.greedy),
    "rls": _peer(leverage.rls),
    "optimal": _peer(baselines.optimal),
}

MIXTURES = frozenset(
    ("ensemble-uniform", "ensemble-exponential", "ensemble-ridge", *VARIANTS, *JOINT_VARIANTS)
)

METHODS: tuple[str, ...] = tuple(_METHODS)
"""Every name that `approximate` takes."""


def approximate(
    X: Any,
    method: str = "joint",
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    n_learners: int = 8,
    n_columns: int | None = None,
    rank: int | None = None,
    n_candidates: int | None = None,
    n_fit: int | None = None,
    n_tune: int | None = None,
    n_components: int | None = None,
    eta: float | Literal["tune"] = 0.01,
    nonnegative: bool = False,
    lambdas: Sequence[float] = GRID,
    residual_shape: Shape = "columns",
    validation_shape: Shape = "columns",
    row_cap: int = 4096,
    residual_rows: int = 512,
    max_memory: int | str = MAX_MEMORY,
    random_state: RandomState = None,
) -> Approximation:
    """Approximate the Gram matrix of the rows of X by one of the Nyström methods.

    Parameters
    ----------
    X : array-like of shape (n, d), or (n, n) if `kernel` is "precomputed"
        Data points (dense or CSR), or kernel values.
    method : str
        One of `METHODS`.
    kernel : str, Kernel or callable
        A kernel object such as ``Gaussian(sigma=5.0)``, one of scikit-learn's names,
        "precomputed", or any vectorised function ``k(X, Y)``.
    n_learners, n_columns, rank, n_candidates, n_fit, n_tune : int
        The paper's p, m, k, s, v1 and v2, for ensemble and boosting; see `Settings` for
        the defaults.
    n_components : int
        Number of landmarks in all, for "joint", the peers and "nystrom"; the mixtures
        have n_learners × n_columns.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Allow no negative ridge weights.
    lambdas : sequence of float
        The grid of ridge penalties, relative to the scale of the normal matrix.
    residual_shape, validation_shape, row_cap, residual_rows
        How V, V1 and V2 are read; see `Settings`.
    max_memory : int or str
        Working memory of products, eigenpairs, features and errors, beyond their result, in
        bytes or as "500MB". Fitting has its own, which does not depend on n.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of all randomness.

    Returns
    -------
    Approximation
        K̂, as a linear operator with entries, features, eigenpairs and errors.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> approx = nb.approximate(X, "URB-mean", nb.Gaussian(sigma=1.0),
    ...                         n_learners=8, n_columns=10, random_state=0)
    >>> approx.relative_error() < 0.1
    True
    """
    run = find_method(method)
    if n_components is not None and method in MIXTURES:
        msg = (
            f"{method} takes n_learners × n_columns columns, not n_components: for "
            f"{n_components} of them, n_learners=4 and n_columns={-(-n_components // 4)}, say."
        )
        raise ValueError(msg)
    settings = Settings(
        n_learners=n_learners,
        n_columns=n_columns,
        rank=rank,
        n_candidates=n_candidates,
        n_fit=n_fit,
        n_tune=n_tune,
        n_components=n_components,
        residual_shape=residual_shape,
        validation_shape=validation_shape,
        row_cap=row_cap,
        residual_rows=residual_rows,
    )
    rules = weight_rules(eta=eta, nonnegative=nonnegative, lambdas=lambdas)
    return run(make_gram(X, kernel, max_memory=max_memory), settings, rules, make_rng(random_state))


def find_method(name: str) -> Method:
    """Return the method of that name."""
    if not isinstance(name, str) or name not in _METHODS:
        raise ValueError(unknown("method", name, METHODS))
    return _METHODS[name]


def weight_rules(
    *,
    eta: float | Literal["tune"] = 0.01,
    nonnegative: bool = False,
    lambdas: Sequence[float] = GRID,
) -> Rules:
    """Return what U, E, R and J mean under these settings."""
    ridge = RidgeWeights(nonnegative, tuple(lambdas))
    return RULES | {"E": ExponentialWeights(eta), "R": ridge}
