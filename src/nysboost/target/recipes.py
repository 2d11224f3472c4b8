"""What is done with few rows, in a fold and with all of them: recipes that find variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from nysboost.numerics.arrays import namespace
from nysboost.target.candidates import (
    MATERN12,
    UNIT_LAPLACIAN,
    Candidate,
    Found,
    Sample,
    loss_of,
    settled,
)
from nysboost.target.plain import Plain

STEPS_FEW = 60
"""Steps of Adam that a candidate takes in each fold, and then on all rows. There a hundred left
.995 of the test error (four tables, split 6), and thirty 1.018 (six tables, splits 6 and 7). With
τ = 0.1 Adam left .987 of the error that 40 evaluations of L-BFGS left, which 80 did not."""

TRACE_FEW = 0.03
"""τ with few rows: on the same splits .975 of the test error that τ = 0.1 left, which was .97 of
that with the whole bound, τ = 1."""

LAPLACIAN_SCALES = (0.25, 0.5, 1.0, 2.0)
"""Bandwidths at which a Laplacian takes over the scales of a Matérn 1/2 kernel."""


class Recipe(Protocol):
    """Rows → variants of one search: what differs in bandwidth or kernel alone."""

    @property
    def size(self) -> float:
        """How long it takes, in searches."""

    def __call__(
        self, sample: Sample, c: int, rng: np.random.Generator, starts: Sequence[Found] = ()
    ) -> list[Found]:
        """Return the variants found on a sample, from the best of some starts if given."""


@dataclass(frozen=True)
class Still:
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
class Moved:
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
            best = min(starts, key=lambda found: loss_of(found, sample, TRACE_FEW))
            start = _grown(best, sample, c, rng)
        else:
            start = self.candidate.start(sample, c, rng)
        found = settled(start, sample, TRACE_FEW, sample.n, STEPS_FEW)
        if self.candidate != Candidate(MATERN12, "each"):
            return [found]
        scale, name = found.point.A / sample.X.shape[1] ** 0.5, "Laplacian, a scale per feature"
        points = [replace(found.point, A=scale * share) for share in LAPLACIAN_SCALES]
        return [found] + [
            replace(found, name=name, kernel=UNIT_LAPLACIAN, point=point) for point in points
        ]


def _grown(found: Found, sample: Sample, c: int, rng: np.random.Generator) -> Found:
    """Return the same with c landmarks: rows of the sample join those that it has."""
    Z, more = found.point.Z, rng.permutation(sample.n)[: c - found.point.Z.shape[0]]
    grown = namespace(Z).concat([Z, sample.X[more, :]])
    return replace(found, point=replace(found.point, Z=grown))
