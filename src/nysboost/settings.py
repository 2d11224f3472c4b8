"""The sizes of a run and every point that the paper leaves open, by name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from nysboost.numerics.checks import require_count

Shape: TypeAlias = Literal["columns", "square"]

DEFAULT_COLUMNS = 120
DEFAULT_COMPONENTS = 240
DEFAULT_VALIDATION = 20
CANDIDATES_PER_COLUMN = 5


@dataclass(frozen=True)
class Settings:
    """Sizes and readings of one run; None stands for the default that suits n.

    Parameters
    ----------
    n_learners : int
        p, the number of learners in all.
    n_columns : int or None
        m, the number of columns of one learner; None is 120, or as many as n allows.
    rank : int or None
        k, the rank of one learner; None is m.
    n_candidates : int or None
        s, the number of columns of V, whose residual is clustered; None is 5m. Where
        fewer columns are left, V shrinks, and the trajectory records it.
    n_fit, n_tune : int or None
        v1 and v2, the numbers of columns of V1 and V2; None is 20, or n/20 if smaller.
    n_components : int or None
        c, the number of landmarks in all, for the methods with one core: "joint" and the
        peers. None is p·m where m is given and otherwise 240, or as many as n allows.
    residual_shape : "columns" or "square"
        V as whole columns, [n] × J, or as the paper's notation has it, J × J.
    validation_shape : "columns" or "square"
        The same for V1 and V2. A square block's diagonal dominates and the ridge
        weights that it gives are poor.
    row_cap : int
        Whole columns are observed on all n rows up to this many and on a uniform sample
        of this many rows beyond it, so that the cost of fitting does not grow with n.
    residual_rows : int
        The same for the columns of V, of which a clustering needs only the distances:
        fewer rows tell them well enough. J in the boosting step keeps to `row_cap`.
    """

    n_learners: int = 8
    n_columns: int | None = None
    rank: int | None = None
    n_candidates: int | None = None
    n_fit: int | None = None
    n_tune: int | None = None
    n_components: int | None = None
    residual_shape: Shape = "columns"
    validation_shape: Shape = "columns"
    row_cap: int = 4096
    residual_rows: int = 512

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name.endswith("_shape"):
                _require_shape(name, value)
            elif value is not None:
                require_count(name, value)

    def landmarks(self, n: int) -> int:
        """Return c, the number of landmarks in all, for n rows."""
        asked = self.n_components or (self.n_columns and self.n_learners * self.n_columns)
        if asked and asked > n:
            msg = (
                f"{asked} landmarks need at least {asked} rows, but n_samples = {n} were given. "
                "Lower n_components (or n_learners × n_columns, where it is not given)."
            )
            raise ValueError(msg)
        return asked or min(DEFAULT_COMPONENTS, n)

    def resolve(self, n: int, *, validated: bool = True, boosted: bool = True) -> ResolvedSettings:
        """Return these settings with every None replaced by its number for n rows.

        Parameters
        ----------
        n : int
            Number of rows.
        validated, boosted : bool
            Whether V1 and V2, and V, are needed.

        Raises
        ------
        ValueError
            If n is too small for the columns asked, with the number that is needed.
        """
        held = [
            (DEFAULT_VALIDATION if n >= 20 * DEFAULT_VALIDATION else max(1, n // 20))
            if asked is None
            else asked
            for asked in (self.n_fit, self.n_tune)
        ]
        validation = sum(held) if validated else 0
        room = (n - validation) // self.n_learners
        n_columns = self.n_columns or max(1, min(DEFAULT_COLUMNS, room))
        needed = self.n_learners * n_columns + validation
        if needed > n:
            validating = f" plus {held[0]} + {held[1]} validation columns" if validated else ""
            msg = (
                f"{self.n_learners} learner(s) of {n_columns} columns{validating} need at least "
                f"{needed} rows, but n_samples = {n} were given. "
                "Lower n_columns or n_learners, or give more rows."
            )
            raise ValueError(msg)
        rank = self.rank or n_columns
        if rank > n_columns:
            msg = f"rank={rank} is above n_columns={n_columns}: no learner has more than that."
            raise ValueError(msg)
        n_candidates = self.n_candidates or CANDIDATES_PER_COLUMN * n_columns
        if boosted and n_candidates < n_columns:
            msg = (
                f"n_candidates={n_candidates} columns cannot be clustered into "
                f"n_columns={n_columns} groups: raise n_candidates or lower n_columns."
            )
            raise ValueError(msg)
        resolved = replace(
            self,
            n_columns=n_columns,
            rank=rank,
            n_candidates=n_candidates,
            n_fit=held[0],
            n_tune=held[1],
        )
        wanted = (f.name for f in fields(ResolvedSettings))
        return ResolvedSettings(**{name: getattr(resolved, name) for name in wanted})


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings in which every size is a number; see `Settings`."""

    n_learners: int
    n_columns: int
    rank: int
    n_candidates: int
    n_fit: int
    n_tune: int
    residual_shape: Shape
    validation_shape: Shape
    row_cap: int
    residual_rows: int


def _require_shape(name: str, value: Any) -> None:
    if value not in ("columns", "square"):
        msg = f'{name} is "columns" or "square", but {name}={value!r} was given.'
        raise ValueError(msg)
