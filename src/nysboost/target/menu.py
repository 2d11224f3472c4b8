"""From settings to candidates: strings become objects here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from nysboost.data.rows import Rows
from nysboost.kernels import Anova, Gaussian, Matern, make_kernel
from nysboost.kernels.mapped import Mapped, Radial
from nysboost.numerics.checks import unknown
from nysboost.target.candidates import MATERN12, MATERN32, UNIT_GAUSSIAN, WIDE, Candidate, Shape
from nysboost.target.given import Given, Towards
from nysboost.target.plain import SIMPLEST, Place, Plain

SHAPES = ("auto", "one", "each", "full")
ALIKE = ("uniform", "kmeans")
"""Landmarks that are the same at every bandwidth."""


@dataclass(frozen=True)
class Menu:
    """The simplest model, and what is tried beside it, with many rows and with few.

    `given` is the simplest model where there is nothing to choose: its kernel stays as it is.
    """

    many: tuple[Candidate, ...] = ()
    few: tuple[Candidate, ...] = ()
    plain: Plain = SIMPLEST
    given: Given | None = None


def without_target(kernel: Any, place: Place, landmarks: str) -> Menu:
    """Return the simplest model alone, with landmarks of the user's choice.

    Parameters
    ----------
    kernel : "auto", str or Kernel
        "auto" is Gaussian.
    place : callable
        Where the landmarks come from.
    landmarks : str
        What they are called.
    """
    automatic = isinstance(kernel, str) and kernel == "auto"
    unit = UNIT_GAUSSIAN if automatic else _unit(kernel)
    return Menu(plain=Plain(unit, place, landmarks, alike=landmarks in ALIKE))


def as_it_is(kernel: Any, place: Place, landmarks: str, rows: Rows) -> Menu:
    """Return the one model whose kernel is the user's own.

    Parameters
    ----------
    kernel : str or Mapped
        "auto" is none.
    place : callable
        Where the landmarks come from.
    landmarks : str
        What they are called; "target" ones move from there, if the kernel is one of distances.
    rows : Rows
        From which the kernel may take its bandwidth.
    """
    made = _made(kernel)
    if not isinstance(made, Mapped) or (made.metric is not None and made.metric.warp is not None):
        msg = (
            f"metric=None leaves the kernel as it is, but kernel={kernel!r} cannot stay: give one "
            'of the difference of rows, as Gaussian(gamma="scale") or Matern(1.5, sigma=2.0).'
        )
        raise ValueError(msg)
    kind = Towards if landmarks == "target" and isinstance(made, Radial) else Given
    given = kind(made.resolve(rows), place, landmarks)
    return Menu(plain=given, given=given)


def menu(kernel: Any, metric: str, d: int) -> Menu:
    """Return the candidates that the settings allow.

    Parameters
    ----------
    kernel : "auto", str or Radial
        "auto" is Matérn 1/2 and 3/2, and of many features Gaussian and Matérn 3/2.
    metric : "auto", "one", "each" or "full"
        Shape of the metric.
    d : int
        Number of features.
    """
    if metric not in SHAPES:
        raise ValueError(unknown("shape of a metric", metric, SHAPES))
    automatic = isinstance(kernel, str) and kernel == "auto"
    if metric != "auto":
        rough: tuple[Radial, ...] = (MATERN12, MATERN32) if automatic else (_unit(kernel),)
        shaped = tuple(Candidate(k, cast(Shape, metric)) for k in rough)
        return Menu(shaped, shaped)
    if d > WIDE:
        smooth: tuple[Radial, ...] = (UNIT_GAUSSIAN, MATERN32) if automatic else (_unit(kernel),)
        # what is wide may be pixels, or a table of many categories, whose columns stand alone:
        # hotel rates of R's package modeldata, 146 columns, had a test error of .252, and .206 so
        wide = (
            *(Candidate(k, "full", own_units=True) for k in smooth),
            Candidate(smooth[0], "full"),
            Candidate(smooth[-1], "each"),
        )
        return Menu(wide, wide)
    rough = (MATERN12, MATERN32) if automatic else (_unit(kernel),)
    full = tuple(Candidate(k, "full") for k in rough)
    return Menu(full, tuple(Candidate(k, "each") for k in rough) + full)


def learns_metric(kernel: Any) -> bool:
    """Whether landmarks and a metric can go down the target's loss: ANOVA has but a bandwidth."""
    return not isinstance(_made(kernel), Anova)


def _made(kernel: Any) -> Any:
    return make_kernel(kernel) if isinstance(kernel, str) and kernel != "auto" else kernel


def _unit(kernel: Any) -> Any:
    """Return a kernel with unit bandwidth: the metric finds the scale."""
    made = _made(kernel)
    if isinstance(made, Gaussian):
        return UNIT_GAUSSIAN
    if isinstance(made, Matern):
        return replace(made, sigma=1.0, metric=None)
    if isinstance(made, Anova):
        return replace(made, gamma=0.5, metric=None)
    msg = (
        f"kernel={kernel!r} cannot learn a metric: Gaussian and Matérn can, ANOVA at least a "
        'bandwidth; or leave kernel="auto".'
    )
    raise ValueError(msg)
