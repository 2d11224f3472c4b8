"""Choose the candidates by the size of the table and the user's settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from nysboost.kernels import Anova, Gaussian, Kernel, Linear, Matern, make_kernel
from nysboost.kernels.base import Mapped
from nysboost.kernels.metric import (
    SCALINGS,
    FixedScale,
    PrincipalComponents,
    Scale,
    unit_spread,
)
from nysboost.kernels.radial import Radial
from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import (
    Candidate,
    Place,
    linear_candidate,
    uniform_landmarks,
)
from nysboost.learn.search.data import uses_folds
from nysboost.numerics.messages import unknown
from nysboost.rows.rows import Rows

T = TypeVar("T")

UNIT_GAUSSIAN = Gaussian(gamma=0.5)
MATERN12 = Matern(0.5, 1.0)
MATERN32 = Matern(1.5, 1.0)

SHAPES = ("auto", "one", "each", "full")
"""The values of the setting `metric`."""

Groups: TypeAlias = list[tuple[Candidate, ...]]
"""Groups of candidates; first steps select one from each group."""


@dataclass(frozen=True)
class Request:
    """The settings of a user, and the size of the table.

    With a kernel of None, or a metric or scale of "auto", the search chooses.
    """

    kernel: Mapped | None
    metric: str
    scale: str | None
    n_rows: int
    n_features: int

    @property
    def few(self) -> bool:
        """Whether the table is small, so that it uses folds and mixes many candidates."""
        return uses_folds(self.n_rows)

    @property
    def wide(self) -> bool:
        """Whether a full metric uses principal components."""
        return self.n_features > tuning.WIDE

    @property
    def smooth(self) -> Mapped:
        """The user's kernel, or Matérn 3/2."""
        return self.kernel or MATERN32

    @property
    def rough(self) -> Mapped:
        """The user's kernel, or Matérn 1/2."""
        return self.kernel or MATERN12

    @property
    def kernels(self) -> list[Mapped]:
        """The smooth and the rough kernel, or the user's kernel."""
        return _distinct(self.smooth, self.rough)

    @property
    def general(self) -> str:
        """The user's shape of the metric, or a full metric."""
        return self._shape("full")

    @property
    def narrow(self) -> str:
        """The user's shape of the metric, or a scale per feature."""
        return self._shape("each")

    def _shape(self, automatic: str) -> str:
        """Return the user's shape of the metric, or the given one."""
        if self.metric == "auto":
            return automatic
        return self.metric

    @property
    def tries_codes(self) -> bool:
        """Whether codes are tried: each has its own scale, and small tables have few codes."""
        free = self.scale == "auto" and self.narrow == "each"
        few_codes = self.few and self.wide
        return free and not few_codes

    def scalings(self, *automatic: str) -> list[str]:
        """Return the user's scaling, or the given names."""
        if self.scale == "auto":
            return list(automatic)
        return [self.scale or "none"]


def make_candidates(
    kernel: str | Kernel,
    metric: str | None,
    scale: str | None,
    place: Place | None,
    name: str,
    rows: Rows,
) -> Groups:
    """Return groups of candidates for a learner's settings; one of each group is selected.

    `place`, with the name `name`, chooses landmarks that are not trained on y.
    """
    # the kernel as it is
    made = _asked_kernel(kernel)
    if metric is None:
        return [(_as_given(made, place, name, rows),)]
    if metric not in SHAPES:
        raise ValueError(unknown("shape of a metric", metric, SHAPES))

    # a linear model alone
    request = Request(None, metric, scale, rows.n, rows.n_features)
    if isinstance(made, Linear) and metric == "auto" and place is None:
        return _linear(request, request.scalings("standard"))

    # landmarks of a method, at a bandwidth that held-out rows choose
    unit = _unit_bandwidth(made)
    request = replace(request, kernel=unit)
    if place is not None:
        return [_untrained(unit or UNIT_GAUSSIAN, place, name, request)]

    # without training, for targets that are nearly linear: random landmarks, and a linear model
    baseline = _untrained(UNIT_GAUSSIAN, uniform_landmarks, "uniform", request)
    linear: Groups = []
    if request.few:
        scalings = ["none", "standard"] if request.wide else ["standard"]
        linear = _linear(request, request.scalings(*scalings))

    # landmarks and metric trained on y, and the same with codes, for steps and spikes
    return [*_trained(request), *_with_codes(request), *linear, baseline]


def _asked_kernel(kernel: str | Kernel) -> str | Kernel:
    """Return the kernel of a name, or "auto"."""
    if not isinstance(kernel, str) or kernel == "auto":
        return kernel
    return make_kernel(kernel)


def _trained(request: Request) -> Groups:
    """Return the candidates with landmarks and metric trained on y.

    In small tables all are fitted and mixed; in large tables, first steps select one.
    """
    if request.wide:
        candidates = _wide_candidates(request)
    elif request.few:
        candidates = _few_rows_candidates(request)
    else:
        candidates = _many_rows_candidates(request)

    if request.few:
        return _each_alone(candidates)
    return [tuple(candidates)]


def _many_rows_candidates(request: Request) -> list[Candidate]:
    """Return both kernels with a full metric."""
    space = request.scalings("standard")[0]
    scaling = SCALINGS[space]
    return [Candidate(kernel, request.general, space, scaling) for kernel in request.kernels]


def _few_rows_candidates(request: Request) -> list[Candidate]:
    """Return a full metric, and a scale per feature at quantiles, which suits heavy tails.

    Candidates with codes, if there are any, have the rough kernel.
    """
    kernels = request.kernels
    if request.tries_codes:
        kernels = kernels[:1]
    standard = request.scalings("standard")[0]
    quantile = request.scalings("quantile")[0]

    candidates = []
    for kernel in kernels:
        candidates += [
            Candidate(kernel, request.general, standard, SCALINGS[standard]),
            Candidate(kernel, request.narrow, quantile, SCALINGS[quantile]),
        ]
    return _distinct(*candidates)


def _wide_candidates(request: Request) -> list[Candidate]:
    """Return full metrics of principal components, and a scale per feature if n ≥ d.

    Components without scaling suit pixels. Hotel rates, with 146 columns, have an error of .252
    without scaling and .206 with it.
    """
    candidates = []
    spaces = request.scalings("none", "standard")

    # 64 principal components, of columns in proportion and at unit spread
    if request.general == "full":
        kernel = request.kernel or UNIT_GAUSSIAN
        for space in spaces:
            components = PrincipalComponents(SCALINGS[space], tuning.WIDE)
            name = f"components, {space}"
            candidates.append(Candidate(kernel, "full", name, components, mapped_landmarks=True))

    # a scale for each feature
    enough_rows = request.n_features <= request.n_rows
    if request.narrow != "full" and (enough_rows or not candidates):
        space = spaces[-1]
        scaling = SCALINGS[space]
        candidates.append(Candidate(request.smooth, request.narrow, space, scaling))
    return candidates


def _with_codes(request: Request) -> Groups:
    """Return candidates with codes beside the features, and a scale for each.

    Of few rows there are a rough and a smooth kernel. Of very many rows one candidate begins with a
    linear model: a metric that has to follow a steep effect of one column misses weak ones of
    several. First steps cannot tell which of the two is better, so both are fitted.
    """
    if not request.tries_codes:
        return []
    coded = Candidate(request.rough, "each", "codes", unit_spread, codes=True)
    candidates = [coded]
    if request.few:
        kernels = _distinct(request.rough, request.smooth)
        candidates = [replace(coded, kernel=kernel) for kernel in kernels]
    elif request.n_rows >= tuning.AFTER_LINEAR:
        candidates.append(replace(coded, after_linear=True))
    return _each_alone(candidates)


def _linear(request: Request, spaces: list[str]) -> Groups:
    """Return a linear model of the columns for each scaling."""
    scaled = linear_candidate(request.n_rows, request.n_features)
    return _each_alone(replace(scaled, space=space, scaling=SCALINGS[space]) for space in spaces)


def _untrained(
    kernel: Mapped,
    place: Place,
    name: str,
    request: Request,
) -> tuple[Candidate, ...]:
    """Return candidates with the landmarks of `place`, one for each bandwidth."""
    scaling = SCALINGS[request.scale or "none"]

    # distances grow with √d, but ANOVA compares one feature at a time
    bandwidths = tuning.BANDWIDTHS
    if not isinstance(request.kernel, Anova):
        bandwidths = bandwidths * request.n_features**0.5

    candidates = []
    for bandwidth in bandwidths.tolist():
        one = Candidate(kernel, 1 / bandwidth, name, scaling, place=place)
        candidates.append(one)
    return tuple(candidates)


def _distinct(*values: T) -> list[T]:
    """Return the values in their order, each once."""
    return list(dict.fromkeys(values))


def _each_alone(candidates: Iterable[Candidate]) -> Groups:
    """Put each candidate in its own group, so that all are fitted and mixed."""
    return [(candidate,) for candidate in candidates]


def _as_given(
    kernel: str | Kernel,
    place: Place | None,
    name: str,
    rows: Rows,
) -> Candidate:
    """Return the user's kernel with a fixed metric."""
    if not isinstance(kernel, Mapped) or _is_warped(kernel):
        raise ValueError(
            f"metric=None needs a kernel of the distance between rows, but kernel={kernel!r} was "
            'given: choose one such as Gaussian(gamma="scale") or Matern(1.5, sigma=2.0).'
        )

    # the metric of the kernel, if it has one, is the candidate's
    resolved = kernel.resolve(rows)
    assert isinstance(resolved, Mapped)
    own = np.ones(())
    if resolved.metric is not None:
        own = resolved.metric.map
    unmapped = resolved.with_metric(None)

    # only kernels of the distance have a loss whose gradient moves the landmarks
    if place is None:
        name = "as given"
        if not isinstance(resolved, Radial):
            place = uniform_landmarks

    # columns stay as they are
    d = rows.n_features
    same = Scale(np.zeros(d), np.ones(d))
    return Candidate(unmapped, own, name, FixedScale(same), place=place)


def _is_warped(kernel: Mapped) -> bool:
    """Whether the metric of a kernel bends rows before its linear map."""
    return kernel.metric is not None and kernel.metric.warp is not None


def _unit_bandwidth(kernel: str | Kernel) -> Mapped | None:
    """Return a kernel with unit bandwidth, whose scale the metric finds; "auto" is None."""
    if isinstance(kernel, str):
        return None
    if isinstance(kernel, Gaussian):
        return UNIT_GAUSSIAN
    if isinstance(kernel, Matern):
        return Matern(kernel.nu, 1.0)
    if isinstance(kernel, Anova):
        return Anova(0.5, kernel.degree)
    raise ValueError(
        f"kernel={kernel!r} cannot learn a metric: choose Gaussian, Matérn, ANOVA (which learns a "
        'bandwidth only) or kernel="auto".'
    )
