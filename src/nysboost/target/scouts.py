"""Scouts: small searches that say in which coordinates the large one begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import Array, is_sparse, namespace
from nysboost.target.candidates import WIDE, Candidate, Sample, judged, settled
from nysboost.target.recipes import TRACE_FEW
from nysboost.target.scale import Scale, Scaling, by_quantiles, each_alone

ROWS, LANDMARKS, STEPS = 2000, 64, 60
"""Of a scout: rows, half of which judge, landmarks, and steps of Adam. All scouts together take a
second of one core."""

GAIN = 0.9
"""Quantiles are taken where scouts have less than this share of the squared error there: of tables
with few rows on airfoil (.69 to .78 of it, four splits) and concrete (.73 to .86), where the test
error of the whole search fell by a quarter and by a twentieth; others had .82 to 1.14, mostly 1."""

HEAVY = 20.0
"""With many rows some feature has a value so many deviations from its mean, as 10⁹ exponential
numbers have. The long descent makes up for a wrong unit, and what scouts say of it is not to be
trusted: on bike, whose target is a function of a sum that no quantiles keep, they are for them."""


def scouted(
    candidates: tuple[Candidate, ...], form: Array, tail: float, rng: np.random.Generator
) -> Scaling:
    """Return the scaling that scouts choose, or the usual one where there is nothing to choose.

    Pixels and words, many columns in common units or in sparse rows, are not taken apart.

    Parameters
    ----------
    candidates : tuple of Candidate
        What will be searched for.
    form : array or CSR matrix of shape (1, d)
        Shows how rows are stored.
    tail : float
        How far out, in deviations, some value has to be for scouts to be sent at all.
    rng : numpy.random.Generator
        Its child draws the scouts' landmarks.
    """
    if not candidates or is_sparse(form) or form.shape[1] > WIDE:
        return each_alone
    return Scouted(candidates, tail, int(rng.spawn(1)[0].integers(2**31)))


@dataclass(frozen=True)
class Scouted:
    """Unit spread, or normal quantiles where rows that took no part clearly prefer these."""

    candidates: tuple[Candidate, ...]
    tail: float
    seed: int

    def __call__(self, X: Array, Y: Array, weights: Array | None) -> Scale:
        """Return the coordinates for a search on such rows.

        Every other row judges, whether the rows come in a random order or sorted. Scouts look at
        few rows, but in coordinates of all: a single row far out may have left these no room.
        """
        standard = each_alone(X)
        if float(namespace(X).max(namespace(X).abs(standard(X)))) < self.tail:
            return standard
        some = slice(None, None, max(1, X.shape[0] // ROWS))
        x, y, w = X[some, :], Y[some, :], None if weights is None else weights[some]
        quantiles = by_quantiles(X)
        usual, ranked = (self._error(scale, x, y, w) for scale in (standard, quantiles))
        return quantiles if ranked < GAIN * usual else standard

    def _error(self, scale: Scale, X: Array, Y: Array, weights: Array | None) -> float:
        """Return the least error of the candidates on rows that took no part."""
        every = Sample(scale(X), Y, weights, scale.factor)
        fit, judge = every[slice(0, None, 2)], every[slice(1, None, 2)]
        rng = np.random.default_rng(self.seed)
        starts = (one.start(fit, min(LANDMARKS, fit.n), rng) for one in self.candidates)
        found = (settled(start, fit, TRACE_FEW, fit.n, STEPS) for start in starts)
        return min(judged(one, fit, judge).error for one in found)
