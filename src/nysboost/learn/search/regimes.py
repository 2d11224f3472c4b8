"""Which candidates are tried: by the size of the table, and by what the user asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.kernels import Anova, Gaussian, Matern, make_kernel
from nysboost.kernels.base import Mapped
from nysboost.kernels.radial import Radial
from nysboost.kernels.scaling import (
    SCALINGS,
    FixedScale,
    PrincipalComponents,
    Scale,
    unit_spread,
)
from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import Candidate, Place, uniform_landmarks
from nysboost.learn.search.data import uses_folds
from nysboost.numerics.messages import unknown
from nysboost.rows.rows import Rows

UNIT_GAUSSIAN = Gaussian(gamma=0.5)
MATERN12 = Matern(0.5, 1.0)
MATERN32 = Matern(1.5, 1.0)

SHAPES = ("auto", "one", "each", "full")
"""Shapes of a metric that a user can ask for."""

Groups: TypeAlias = list[tuple[Candidate, ...]]
"""Groups of candidates: first steps select one of each."""


@dataclass(frozen=True)
class Request:
    """What a user asks for, and the sizes of the table.

    A kernel of None, and a metric or scale of "auto", leave the choice to the search.
    """

    kernel: Any
    metric: str
    scale: str | None
    n_rows: int
    n_features: int

    @property
    def few(self) -> bool:
        """Whether the rows are few: held out in folds, and many candidates are mixed."""
        return uses_folds(self.n_rows)

    @property
    def wide(self) -> bool:
        """Whether a full metric is one of principal components."""
        return self.n_features > tuning.WIDE

    @property
    def smooth(self) -> Any:
        """The kernel asked for, or Matérn 3/2."""
        return self.kernel or MATERN32

    @property
    def rough(self) -> Any:
        """The kernel asked for, or Matérn 1/2."""
        return self.kernel or MATERN12

    @property
    def kernels(self) -> list[Any]:
        """The smooth and the rough kernel; one, if it is asked for."""
        return list(dict.fromkeys((self.smooth, self.rough)))

    @property
    def general(self) -> str:
        """The shape of the metric asked for, or a full one."""
        return "full" if self.metric == "auto" else self.metric

    @property
    def narrow(self) -> str:
        """The shape of the metric asked for, or a scale per feature."""
        return "each" if self.metric == "auto" else self.metric

    def scalings(self, *automatic: str) -> list[str]:
        """Return the name of the scaling asked for, or these."""
        if self.scale == "auto":
            return list(automatic)
        return [self.scale or "none"]


def make_candidates(
    kernel: Any, metric: str | None, scale: str | None, place: Place | None, name: str, rows: Rows
) -> Groups:
    """Return the candidates for a learner's settings, in groups of which one each is selected.

    `place`, called `name`, chooses landmarks that are not trained on y; with trained ones, random
    rows are a baseline, for targets that are nearly linear.
    """
    automatic = isinstance(kernel, str) and kernel == "auto"
    made = None
    if not automatic:
        made = make_kernel(kernel) if isinstance(kernel, str) else kernel
    if metric is None:
        return [(_as_given(kernel if automatic else made, place, name, rows),)]
    if metric not in SHAPES:
        raise ValueError(unknown("shape of a metric", metric, SHAPES))
    unit = None if made is None else _unit_bandwidth(made)
    request = Request(unit, metric, scale, rows.n, rows.n_features)

    if place is not None:
        return [_untrained(unit or UNIT_GAUSSIAN, place, name, request)]
    baseline = _untrained(UNIT_GAUSSIAN, uniform_landmarks, "uniform", request)
    return [*_trained(request), *_with_codes(request), baseline]


def _trained(request: Request) -> Groups:
    """Return the candidates with landmarks and metric trained on y."""
    if request.wide and request.few:
        return _each_alone(_wide_candidates(request))
    if request.wide:
        return [tuple(_wide_candidates(request))]
    if request.few:
        return _each_alone(_few_rows_candidates(request))
    return [tuple(_many_rows_candidates(request))]


def _many_rows_candidates(request: Request) -> list[Candidate]:
    """Return both kernels with a full metric."""
    space = request.scalings("standard")[0]
    return [
        Candidate(kernel, request.general, space, SCALINGS[space]) for kernel in request.kernels
    ]


def _few_rows_candidates(request: Request) -> list[Candidate]:
    """Return a full metric, and a scale per feature at quantiles, which suits heavy tails.

    Candidates with codes, if there are any, have the rough kernel.
    """
    kernels = request.kernels
    if _codes_help(request):
        kernels = kernels[:1]
    first, second = request.scalings("standard")[0], request.scalings("quantile")[0]
    forms = dict.fromkeys(((request.general, first), (request.narrow, second)))
    return [
        Candidate(kernel, shape, space, SCALINGS[space])
        for kernel in kernels
        for shape, space in forms
    ]


def _wide_candidates(request: Request) -> list[Candidate]:
    """Return full metrics of principal components, and a scale per feature if n ≥ d.

    Components without scaling suit pixels; hotel rates, 146 columns, have .252, and .206 scaled.
    """
    found = []
    spaces = request.scalings("none", "standard")

    if request.general == "full":
        kernel = request.kernel or UNIT_GAUSSIAN
        for space in spaces:
            components = PrincipalComponents(SCALINGS[space], tuning.WIDE)
            name = f"components, {space}"
            found.append(Candidate(kernel, "full", name, components, mapped_landmarks=True))

    enough_rows = request.n_features <= request.n_rows
    if request.narrow != "full" and (enough_rows or not found):
        space = spaces[-1]
        found.append(Candidate(request.smooth, request.narrow, space, SCALINGS[space]))
    return found


def _with_codes(request: Request) -> Groups:
    """Return candidates with piecewise-linear codes of each feature: for steps and spikes."""
    if not _codes_help(request):
        return []
    kernels = [request.rough]
    if request.few:
        kernels = list(dict.fromkeys((request.rough, request.smooth)))
    return _each_alone([
        Candidate(kernel, "each", "codes", unit_spread, codes=True) for kernel in kernels
    ])  # fmt: skip


def _codes_help(request: Request) -> bool:
    """Whether codes are tried: each has a scale, and a few rows have few of them."""
    free = request.scale == "auto" and request.narrow == "each"
    return free and not (request.few and request.wide)


def _untrained(kernel: Any, place: Place, name: str, request: Request) -> tuple[Candidate, ...]:
    """Return candidates with the landmarks of `place`, one for each bandwidth."""
    scaling = SCALINGS[request.scale or "none"]
    bandwidths = tuning.BANDWIDTHS
    if not isinstance(request.kernel, Anova):
        bandwidths = bandwidths * request.n_features**0.5
    return tuple(
        Candidate(kernel, 1 / bandwidth, name, scaling, place=place)
        for bandwidth in bandwidths.tolist()
    )


def _each_alone(candidates: Sequence[Candidate]) -> Groups:
    """Return a group for each candidate, so that all are fitted and mixed."""
    return [(candidate,) for candidate in candidates]


def _as_given(kernel: Any, place: Place | None, name: str, rows: Rows) -> Candidate:
    """Return the user's kernel with a fixed metric."""
    stays = isinstance(kernel, Mapped) and (kernel.metric is None or kernel.metric.warp is None)
    if not stays:
        msg = (
            f"metric=None leaves the kernel as it is, but kernel={kernel!r} cannot stay: give one "
            'of the difference of rows, as Gaussian(gamma="scale") or Matern(1.5, sigma=2.0).'
        )
        raise ValueError(msg)
    resolved: Any = kernel.resolve(rows)
    own = np.ones(())
    if resolved.metric is not None:
        own = resolved.metric.map

    space = "as given" if place is None else name
    if place is None and not isinstance(resolved, Radial):
        place = uniform_landmarks
    same = Scale(np.zeros(rows.n_features), np.ones(rows.n_features))
    return Candidate(replace(resolved, metric=None), own, space, FixedScale(same), place=place)


def _unit_bandwidth(kernel: Any) -> Any:
    """Return a kernel with unit bandwidth: the metric finds the scale."""
    if isinstance(kernel, Gaussian):
        return UNIT_GAUSSIAN
    if isinstance(kernel, Matern):
        return replace(kernel, sigma=1.0, gamma=None, metric=None)
    if isinstance(kernel, Anova):
        return replace(kernel, gamma=0.5, metric=None)
    msg = (
        f"kernel={kernel!r} cannot learn a metric: Gaussian and Matérn can, ANOVA at least a "
        'bandwidth; or leave kernel="auto".'
    )
    raise ValueError(msg)
