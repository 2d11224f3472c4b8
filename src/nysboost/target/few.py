"""Learning from few rows: candidates are judged by folds, and mixed rather than chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from nysboost.engine.moments import Moments
from nysboost.numerics.arrays import Array, Floats, Indices, to_host
from nysboost.numerics.progress import Work
from nysboost.target.candidates import (
    MATERN12,
    UNIT_LAPLACIAN,
    Candidate,
    Found,
    Sample,
    loss_of,
    moved,
)
from nysboost.target.judged import Judged
from nysboost.target.linear import Basis, LinearModel, chosen, predictions_along
from nysboost.target.plain import Plain
from nysboost.target.scale import Scale

FEW = 3000
"""Up to this many rows candidates are mixed; beyond it one held-out part chooses as well."""

FOLDS = 5
STEPS_FEW = 40
"""Evaluations of a candidate in each fold."""

TRACE_FEW = 0.1
"""τ with few rows. On splits 5 and 6 of six tables of 500 to 1600 rows the mixture's test error was
.97 of that with the whole bound, τ = 1; 100 steps instead of 40 made it .99."""

SHRINKAGE = 0.001
"""Pull of the mixture's shares towards equal ones, relative to the candidates' predictions. On the
same splits 1e-4 to 5e-3 made no difference, and 0.05 lost some."""

LAPLACIAN_SCALES = (0.25, 0.5, 1.0, 2.0)
"""Bandwidths at which a Laplacian takes over the scales of a Matérn 1/2 kernel."""

NEGLIGIBLE = 0.02
"""A candidate with a smaller share leaves the mixture."""

GAIN = 0.98
"""The mixture has to be better than the simplest model by this factor."""


class _Recipe(Protocol):
    """Rows → variants of one search: what differs in bandwidth or kernel alone."""

    @property
    def size(self) -> float:
        """How long it takes, in searches."""

    def __call__(
        self, sample: Sample, c: int, rng: np.random.Generator, starts: Sequence[Found] = ()
    ) -> list[Found]:
        """Return the variants found on a sample, from the best of some starts if given."""


@dataclass(frozen=True)
class _Still:
    """Landmarks that do not know y, at several bandwidths."""

    plain: Plain
    size = 0.1

    def __call__(
        self,
        sample: Sample,
        c: int,
        rng: np.random.Generator,
        starts: Sequence[Found] = (),  # noqa: ARG002
    ) -> list[Found]:
        """Return the variants found on a sample."""
        return self.plain.found(sample, c, rng)


@dataclass(frozen=True)
class _Moved:
    """Landmarks and a metric that know y; of Matérn 1/2 also what a Laplacian makes of them.

    Sums of |x_j − z_j| are what trees are good at, and their scales are much the same.
    """

    candidate: Candidate
    size = 1.0

    def __call__(
        self, sample: Sample, c: int, rng: np.random.Generator, starts: Sequence[Found] = ()
    ) -> list[Found]:
        """Return the variants found on a sample, from the best of some starts if given."""
        if starts:
            start = min(starts, key=lambda found: loss_of(found, sample, TRACE_FEW))
        else:
            start = self.candidate.start(sample, c, rng)
        found = moved(start, sample, TRACE_FEW, STEPS_FEW)
        if self.candidate != Candidate(MATERN12, "each"):
            return [found]
        scale, name = found.point.A / sample.X.shape[1] ** 0.5, "Laplacian, a scale per feature"
        points = [replace(found.point, A=scale * share) for share in LAPLACIAN_SCALES]
        return [found] + [
            replace(found, name=name, kernel=UNIT_LAPLACIAN, point=point) for point in points
        ]


@dataclass(frozen=True, eq=False)
class _Entrant:
    """A variant of a recipe, with its predictions for rows that its fold left out.

    `at` is the place of the chosen γ among those that each search offers, which are multiples of
    the γ it found: another search may end at another amplitude, where the number means nothing.
    """

    name: str
    recipe: _Recipe
    starts: tuple[Found, ...]
    variant: int
    at: int
    mean: Floats
    spread: Floats
    error: float


def learn_few(
    sample: Sample,
    scale: Scale,
    plain: Plain,
    candidates: tuple[Candidate, ...],
    c: int,
    rng: np.random.Generator,
    work: Work,
) -> Judged:
    """Return a mixture of candidates, weighed by their out-of-fold predictions.

    Parameters
    ----------
    sample : Sample
        All rows, standardised.
    scale : Scale
        The way back to the rows as they are.
    plain : Plain
        The simplest model.
    candidates : tuple of Candidate
        What is tried beside it.
    c : int
        Landmarks of each candidate, at most.
    rng : numpy.random.Generator
        Source of all randomness.
    work : Work
        Takes lines of progress.
    """
    seed = int(rng.integers(2**31))
    folds = _folds(sample.n, np.random.default_rng(seed))
    still = (plain, Plain(UNIT_LAPLACIAN)) if candidates else (plain,)
    recipes: list[_Recipe] = [_Still(each) for each in still]
    recipes += [_Moved(candidate) for candidate in candidates]
    work.begin(sum(recipe.size for recipe in recipes) * (len(folds) + 1))
    entrants: list[_Entrant] = []
    for recipe in recipes:
        entered = _entered(recipe, sample, folds, c, seed)
        best = min(entered, key=lambda entrant: entrant.error)
        line = f"{best.name}: out-of-fold error {best.error**0.5:.4g}"
        work.step(recipe.size * len(folds), line)
        entrants += entered
    shares = _shares(entrants, sample)
    kept = np.flatnonzero(shares > 0)
    models = _fitted([entrants[k] for k in kept], sample, scale, c, seed)
    work.step(work.total - work.done, f"{len(kept)} of them, on all rows")
    mean = sum(shares[k] * entrants[k].mean for k in kept)
    variance = sum(
        shares[k] * entrants[k].spread[:, None] * to_host(model.noise)
        for k, model in zip(kept, models, strict=True)
    )
    weights = None if sample.weights is None else to_host(sample.weights)
    notes = [(entrant.name, entrant.error**0.5) for entrant in entrants]
    return Judged(models, shares[kept], to_host(sample.Y), mean, np.sqrt(variance), weights, notes)


def _folds(n: int, rng: np.random.Generator) -> list[Indices]:
    """Return the rows of each fold, shuffled; as many folds as rows where there are few."""
    return [np.sort(part) for part in np.array_split(rng.permutation(n), min(FOLDS, n))]


def _entered(
    recipe: _Recipe, sample: Sample, folds: list[Indices], c: int, seed: int
) -> list[_Entrant]:
    """Return the best variant of each name, at the γ that serves its out-of-fold predictions."""
    parts = [_in_fold(recipe, sample, held, c, seed) for held in folds]
    starts = tuple(found[0] for found, _, _ in parts)
    best: dict[str, _Entrant] = {}
    for variant, founds in enumerate(zip(*(found for found, _, _ in parts), strict=True)):
        gammas = np.exp(np.mean([np.log(found.gammas) for found in founds], axis=0))
        mean = np.empty((len(gammas), *sample.Y.shape))
        for held, (_, means, _) in zip(folds, parts, strict=True):
            mean[:, held] = means[variant]
        errors = np.array([_error(sample, of_gamma) for of_gamma in mean])
        at = chosen(gammas, errors)
        spread = np.empty(sample.n)
        for held, found, (_, _, spreads) in zip(folds, founds, parts, strict=True):
            spread[held] = spreads[variant](float(found.gammas[at]))
        name, error = founds[0].name, float(errors[at])
        if name not in best or error < best[name].error:
            best[name] = _Entrant(name, recipe, starts, variant, at, mean[at], spread, error)
    return list(best.values())


def _in_fold(
    recipe: _Recipe, sample: Sample, held: Indices, c: int, seed: int
) -> tuple[list[Found], list[Floats], list[Callable[[float], Floats]]]:
    """Return what is found without a fold: variants, predictions there, γ ↦ spreads there."""
    rest = np.setdiff1d(np.arange(sample.n), held)
    fit, judge = sample[rest if len(rest) else held], sample[held]
    founds = recipe(fit, min(c, fit.n), np.random.default_rng(seed))
    means: list[Floats] = []
    spreads: list[Callable[[float], Floats]] = []
    for found in founds:
        basis = found.basis()
        moments = Moments.of(basis(fit.X), fit.Y, fit.weights)
        F = basis(judge.X)
        means.append(np.stack([to_host(m) for m in predictions_along(moments, F, found.gammas)]))
        spreads.append(partial(_spread, basis, moments, F))
    return founds, means, spreads


def _spread(basis: Basis, moments: Moments, F: Array, gamma: float) -> Floats:
    """Return variances over the noise: of that, the final model has less than one of a fold."""
    return np.asarray(to_host(LinearModel.fit(basis, moments, gamma).spread(F)))


def _error(sample: Sample, mean: Floats) -> float:
    miss = np.mean((to_host(sample.Y) - mean) ** 2, axis=1)
    weights = None if sample.weights is None else to_host(sample.weights)
    return float(np.average(miss, weights=weights))


def _shares(entrants: list[_Entrant], sample: Sample) -> Floats:
    """Return non-negative shares of sum 1: ridge regression of y on out-of-fold predictions.

    The pull is towards equal shares. The simplest model is taken alone where the mixture is
    hardly better.
    """
    m = len(entrants)
    alone: Floats = np.eye(m)[0]
    if m == 1:
        return alone
    centre = to_host(sample.mean)
    weights = np.ones(sample.n) if sample.weights is None else to_host(sample.weights)
    root = np.sqrt(weights / weights.sum())[:, None]
    P = np.stack([((e.mean - centre) * root).ravel() for e in entrants], axis=1)
    y = ((to_host(sample.Y) - centre) * root).ravel()
    scale = np.sqrt(np.mean(np.sum(P**2, axis=0))) or 1.0
    pull = np.sqrt(SHRINKAGE) * scale
    total = 100 * scale  # a heavy row: shares of sum 1, to 1e-4
    A = np.vstack([P, pull * np.eye(m), np.full((1, m), total)])
    shares, _ = nnls(A, np.concatenate([y, np.full(m, pull / m), [total]]))
    shares = np.where(shares >= NEGLIGIBLE * shares.sum(), shares, 0.0)
    shares /= shares.sum()
    mixed = sum(share * e.mean for share, e in zip(shares, entrants, strict=True))
    return shares if _error(sample, mixed) <= GAIN * entrants[0].error else alone


def _fitted(
    entrants: list[_Entrant], sample: Sample, scale: Scale, c: int, seed: int
) -> list[LinearModel]:
    """Return the entrants that share in the mixture, found on all rows.

    A search goes on from that fold's landmarks which serve all rows best: begun anew, it may end
    in a worse place than those that were judged.
    """
    searched: dict[_Recipe, list[Found]] = {}
    raw = scale.back(sample.X)
    models = []
    for entrant in entrants:
        if entrant.recipe not in searched:
            rng = np.random.default_rng(seed)
            size = min(c, sample.n)
            searched[entrant.recipe] = entrant.recipe(sample, size, rng, entrant.starts)
        found = searched[entrant.recipe][entrant.variant]
        basis = scale.undone(found)
        moments = Moments.of(basis(raw), sample.Y, sample.weights)
        models.append(LinearModel.fit(basis, moments, float(found.gammas[entrant.at])))
    return models
