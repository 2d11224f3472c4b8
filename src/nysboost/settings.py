"""The sizes of a run, and a named setting for each choice that the paper leaves open."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from nysboost.numerics.checks import require_count, require_fraction, require_positive
from nysboost.numerics.messages import unknown

if TYPE_CHECKING:
    from nysboost.boosting.algorithm import Sampling
    from nysboost.boosting.state import Step
    from nysboost.boosting.variants import RuleLike, SelectorLike

Shape: TypeAlias = Literal["columns", "square"]

Option: TypeAlias = Any
"""The value of a setting, given by name."""

DEFAULT_LEARNERS = 8
DEFAULT_COLUMNS = 120
DEFAULT_COMPONENTS = 240
DEFAULT_VALIDATION = 20
"""The paper's sizes on its real data: p up to 8, m = 120, v1 = v2 = 20."""

CANDIDATES_PER_COLUMN = 10
"""The paper's s is 10m on its simulation and 5m on its real data. Errors on the simulation, 20
seeds, p = 20: .0619 with 10m, .0683 with 5m, .0681 with 4m."""

LETTERS = {
    "p": "n_learners", "m": "n_columns", "k": "rank", "s": "n_candidates", "v1": "n_fit",
    "v2": "n_tune", "V": "n_candidates", "V1": "n_fit", "V2": "n_tune", "σ": "sigma", "η": "eta",
    "λ": "lambdas",
}  # fmt: skip
"""The setting for each letter of the paper."""

COUNTS = (
    "n_components", "n_learners", "n_columns", "rank", "n_candidates", "candidates_per_column",
    "n_fit", "n_tune", "row_cap", "residual_rows",
)  # fmt: skip
"""The settings that are positive whole numbers."""

ROW_CAP = 4096
"""Largest number of rows that a run uses: the paper's matrices have 4,000."""

GRID = tuple(float(value) for value in np.logspace(-12, 2, 29))
"""λ and η are tuned on this grid, relative to the scale of the errors."""

SAMPLED: dict[str, Option] = {"candidates_per_column": 4, "residual_rows": 448}
"""What `Settings.fast` changes. Errors on Covertype are 1.035 times as large with 256 rows."""

MIN_GAIN = 0.01
"""With `n_learners="auto"`, boosting stops when a learner lowers the error on V2 by less than this
share."""

MOST_LEARNERS = 100
"""Largest number of learners with `n_learners="auto"`."""

PAPER: dict[str, dict[str, Option]] = {
    "simulation": {
        "n_learners": 20, "n_columns": 10, "rank": 10, "n_candidates": 100, "n_fit": 20,
        "n_tune": 20,
    },
    "real": {
        "n_learners": 20, "n_columns": 120, "rank": 50, "n_candidates": 600, "n_fit": 20,
        "n_tune": 20,
    },
}  # fmt: skip
"""The sizes of Section 3.1 and of Section 3.2 of the paper."""


@dataclass(frozen=True, repr=False)
class Settings:
    """Sizes and options of a run; None chooses a value based on n.

    .. versionadded:: 0.1

    Parameters
    ----------
    n_components : int or None
        c, the total number of landmarks, for every method. A mixture has n_learners learners of
        n_components // n_learners columns each. None is p·m if m is given; otherwise 960 for a
        mixture and 240 for one core, or fewer if n is small.
    n_learners : int, "auto" or None
        p, the number of learners; None is 8. With "auto", boosting stops when more learners would
        reduce the error on V2 by little (`min_gain`), or when no columns are left.
    n_columns : int or None
        m, the number of columns of one learner, if `n_components` is not given.
    rank : int or None
        k, the rank of one learner; None is m.
    n_candidates : int or None
        s, the number of columns of V, whose residual is clustered; None is
        `candidates_per_column` · m. If fewer unused columns are left, V has all of them.
    candidates_per_column : int
        s / m, used if `n_candidates` is None.
    n_fit, n_tune : int or None
        v1 and v2, the numbers of columns of V1 and V2; None is 20, or n/20 if smaller.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Restrict ridge weights to non-negative values.
    lambdas : sequence of float or None
        The grid of ridge penalties, relative to the scale of the normal matrix; None is 29 numbers
        from 1e-12 to 100.
    residual_shape : "columns" or "square"
        Whether V consists of whole columns, [n] × J, or of the square block J × J, as in the
        paper's notation.
    validation_shape : "columns" or "square"
        The same for V1 and V2. In a square block most of the error comes from the diagonal, so
        ridge weights fit badly.
    row_cap : int
        With up to this many rows, a run uses all of them. With more, it uses a uniform sample of
        this many rows, or of four rows per landmark if that is more. So the cost of a fit does not
        grow with n.
    residual_rows : int or None
        Boosting evaluates the columns of V, V1 and V2 on this many rows, in float32 if that is
        precise enough for the error of the first learner. None uses all rows, up to `row_cap`.
        Ensembles, and the letter J in the boosting step, always use `row_cap` rows.
    rule : Rule, function, str, a pair of them, or None
        How to combine learners. It replaces the letters in the name of a variant, or the weights of
        an ensemble: a `Rule`, a function (V1, V2, p) ↦ weights, or a letter. A pair gives the rules
        of the boosting step and of the final mixture.
    selector : Selector, function, str or None
        How to cluster the residual. It replaces the clustering in the name of a variant: a function
        (residual, m, rng) ↦ m column positions, or "mean", "med" or "SF".
    sampling : str or function
        How to choose the columns of the first learner: "uniform", as in the paper, "leverage",
        "kmeans" (the rows nearest to the centres), "rpcholesky", or a function (gram, m, rng) ↦ m
        row numbers.
    min_gain : float
        With `n_learners="auto"`, the share by which a learner must reduce the error on V2, on
        average over three learners.
    callback : function or None
        Called with the record of each boosting step (`Approximation.steps`).

    See Also
    --------
    approximate : accepts these fields by name.

    References
    ----------
    .. [1] K. Hamm, Z. Lu, W. Ouyang and H. H. Zhang (2023). Boosting Nyström Method.
          arXiv:2302.11032.

    Examples
    --------
    >>> Settings(n_components=100, n_learners=4).resolve(1000).n_columns
    25
    """

    n_components: int | None = None
    n_learners: int | Literal["auto"] | None = None
    n_columns: int | None = None
    rank: int | None = None
    n_candidates: int | None = None
    candidates_per_column: int = CANDIDATES_PER_COLUMN
    n_fit: int | None = None
    n_tune: int | None = None
    eta: float | Literal["tune"] = 0.01
    nonnegative: bool = False
    lambdas: Sequence[float] | None = None
    residual_shape: Shape = "columns"
    validation_shape: Shape = "columns"
    row_cap: int = ROW_CAP
    residual_rows: int | None = None
    rule: RuleLike | tuple[RuleLike | None, RuleLike | None] | None = None
    selector: SelectorLike | None = None
    sampling: str | Sampling = "uniform"
    min_gain: float = MIN_GAIN
    callback: Callable[[Step], object] | None = None

    def __new__(cls, *_: object, **given: object) -> Settings:
        """Raise for an unknown setting, and name the right one for a letter of the paper."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name in LETTERS:
                msg = f"There is no setting {name!r}: the paper's {name} is {LETTERS[name]!r} here."
                raise TypeError(msg)
            if name not in known:
                raise TypeError(unknown("setting", name, sorted(known)))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        # whole numbers, of which some are open, or "auto"
        for name in COUNTS:
            value = getattr(self, name)
            is_auto = name == "n_learners" and value == "auto"
            is_open = value is None and getattr(Settings, name) is None
            if is_open or is_auto:
                continue
            require_count(name, value)
            object.__setattr__(self, name, int(value))  # NumPy's small ones overflow

        # shapes, switches and functions
        for name in ("residual_shape", "validation_shape"):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in ("columns", "square"):
                msg = f'{name} is "columns" or "square", but {name}={value!r} was given.'
                raise ValueError(msg)

        if not isinstance(self.nonnegative, bool | np.bool_):
            msg = f"nonnegative is True or False, but nonnegative={self.nonnegative!r} was given."
            raise ValueError(msg)
        if self.callback is not None and not callable(self.callback):
            msg = f"callback is a function of a step's record, but {self.callback!r} was given."
            raise TypeError(msg)

        # η, λ and the gain of a learner
        require_eta(self.eta)
        require_penalties(self.lambdas)
        require_fraction("min_gain", self.min_gain)

    @classmethod
    def fast(cls, **settings: Option) -> Settings:
        """Return settings for fast boosting: fewer candidates, observed on fewer rows.

        V has 4m columns, and V, V1 and V2 are observed on 448 rows. On 4,000 rows of Pendigits
        with 20 learners of 120 columns this takes .19 s on one core instead of 1.6 s (with s =
        600), and has the same error. Pass other settings by name, as to `Settings`.

        Examples
        --------
        >>> Settings.fast(n_learners=20, n_columns=120).resolve(4000).n_candidates
        480
        """
        return cls(**SAMPLED | settings)

    @classmethod
    def paper(cls, data: Literal["simulation", "real"], **settings: Option) -> Settings:
        """Return the sizes of the paper's experiments on its simulation, or on its real data.

        Pass other settings by name, as to `Settings`.

        Examples
        --------
        >>> Settings.paper("real").n_candidates
        600
        """
        if data not in PAPER:
            raise ValueError(unknown("experiment of the paper", data, PAPER))
        return cls(**PAPER[data] | settings)

    def with_sampling(self) -> Settings:
        """Return these settings with the values of `fast`, except for fields that are set."""
        return replace(self, **SAMPLED | given_settings(self))

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults."""
        given = given_settings(self)
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"Settings({shown})"

    def landmarks(self, n: int) -> int:
        """Return c, the total number of landmarks, for n rows and one core."""
        # c as given, or p·m
        asked = self.n_components
        if asked is None and self.n_columns is not None:
            asked = self._given_learners() * self.n_columns
        if asked is None:
            return min(DEFAULT_COMPONENTS, n)

        if asked > n:
            warnings.warn(_say_clipped(asked, n, n), stacklevel=2)
        return min(asked, n)

    def resolve(self, n: int, *, validated: bool = True, boosted: bool = True) -> Sizes:
        """Return the sizes of a run on n rows, with every None replaced by a number.

        Parameters
        ----------
        n : int
            Number of rows.
        validated, boosted : bool
            Whether V1 and V2 are needed, and whether V is.

        Raises
        ------
        ValueError
            If n is too small for this many columns; the message gives the number of rows needed.
        """
        # v1 and v2
        v1 = _validation(self.n_fit, n)
        v2 = _validation(self.n_tune, n)
        validation = 0
        if validated:
            validation = v1 + v2

        # p and m
        room = n - validation
        if self.n_learners == "auto" and boosted:
            p, m = self._as_many_as_fit(room)
        else:
            p, m = self._mixture(room)

        needed = p * m + validation
        if needed > n:
            validating = ""
            sizes = {"n_columns": m, "n_learners": p}
            if validated:
                validating = f" plus {v1} + {v2} validation columns"
                sizes |= {"n_fit": v1, "n_tune": v2}

            # what can be lowered
            larger = [name for name, size in sizes.items() if size > 1]
            advice = "Give"
            if larger:
                advice = f"Lower {' or '.join(larger)}, or give"
            raise ValueError(
                f"{p} learner(s) of {m} columns{validating} need at least {needed} "
                f"rows, but n_samples = {n} were given. {advice} more rows."
            )

        # k and s
        k = self.rank or m
        if k > m:
            raise ValueError(f"rank={k} is above n_columns={m}, which limits it: lower rank.")
        s = self.n_candidates or self.candidates_per_column * m
        if boosted and s < m:
            raise ValueError(
                f"n_candidates={s} columns cannot be clustered into "
                f"n_columns={m} groups: raise n_candidates or lower n_columns."
            )
        return Sizes(p, m, k, s, v1, v2)

    def _given_learners(self) -> int:
        """Return p, or its default."""
        if self.n_learners == "auto":
            msg = 'n_learners="auto" is available for boosting only: give a number.'
            raise ValueError(msg)
        return self.n_learners or DEFAULT_LEARNERS

    def _mixture(self, room: int) -> tuple[int, int]:
        """Return p and m. If only the total number of columns was given, p·m is at most n."""
        # m as given
        p = self._given_learners()
        if self.n_columns is not None:
            return p, self.n_columns

        # or as many columns as there are for each of p learners
        if self.n_components is None:
            m = min(DEFAULT_COLUMNS, room // p)
            return p, max(1, m)

        # m = c / p, with at most as many learners as columns
        c = self.n_components
        p = min(p, c, max(1, room))
        if c > room > 0:
            taken = p * (room // p)
            warnings.warn(_say_clipped(c, room, taken), stacklevel=3)
        m = min(c, room) // p
        return p, max(1, m)

    def _as_many_as_fit(self, room: int) -> tuple[int, int]:
        """Return m, and the largest p for which p·m is at most n and at most the given total."""
        columns = room
        if self.n_components is not None:
            columns = min(room, self.n_components)

        # m as given, or as for the default number of learners
        m = self.n_columns
        if m is None:
            share = columns // DEFAULT_LEARNERS
            m = max(1, min(DEFAULT_COLUMNS, share))

        p = max(1, columns // m)
        return min(MOST_LEARNERS, p), m


def given_settings(holder: object) -> dict[str, Option]:
    """Return the settings among an object's attributes that differ from their defaults."""
    given = {}
    for setting in fields(Settings):
        default = setting.default
        value = getattr(holder, setting.name, default)
        if value is default or (default is not None and value == default):
            continue
        given[setting.name] = value
    return given


def replace_settings(settings: Settings | None, named: Mapping[str, Option]) -> Settings:
    """Return the given settings, by default `Settings()`, with the named fields replaced."""
    if settings is None:
        settings = Settings()
    if not isinstance(settings, Settings):
        msg = f"settings is a nysboost.Settings, but a {type(settings).__name__} was given."
        raise TypeError(msg)
    return replace(settings, **named)


def _validation(given: int | None, n: int) -> int:
    """Return v1 or v2: the given number, else 20, or n/20 if that is smaller."""
    if given is not None:
        return given
    share = n // DEFAULT_VALIDATION
    return min(DEFAULT_VALIDATION, max(1, share))


class Sizes(NamedTuple):
    """The sizes of a run as numbers; see `Settings`."""

    n_learners: int
    n_columns: int
    rank: int
    n_candidates: int
    n_fit: int
    n_tune: int


def require_eta(eta: object) -> None:
    """Raise unless the rate of exponential weights is a positive number or "tune"."""
    if isinstance(eta, str) and eta != "tune":
        raise ValueError(f'eta is a positive number or "tune", but eta={eta!r} was given.')
    if eta != "tune":
        require_positive("eta", eta)


def require_penalties(lambdas: Sequence[float] | None) -> None:
    """Raise unless ridge penalties are a sequence of positive numbers, or None."""
    if lambdas is None:
        return
    if isinstance(lambdas, str) or not isinstance(lambdas, Sequence | np.ndarray):
        msg = f"lambdas is a sequence of ridge penalties, but lambdas={lambdas!r} was given."
        raise ValueError(msg)
    if len(lambdas) == 0:
        raise ValueError("lambdas is empty: give at least one ridge penalty.")
    for penalty in lambdas:
        require_positive("lambdas", penalty)


def _say_clipped(asked: int, room: int, taken: int) -> str:
    return (
        f"{asked} landmarks were asked for, but there are only {room} rows to take them from: "
        f"{taken} are used. Ask for fewer to silence this."
    )
