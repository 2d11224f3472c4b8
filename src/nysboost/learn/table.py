"""Tables as they come: category columns and missing values become numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Floats, Indices

MOST_CATEGORIES = 32
"""Columns that one category column becomes at most; rarer values are 0 in all of them."""


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: columns with names and types of their own."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


@dataclass(frozen=True, eq=False)
class Table:
    """How the columns of a table become numbers.

    Numbers stay as they are, a missing one becomes the median of its column with an
    indicator beside it, and a category becomes a column for each of its values.

    Parameters
    ----------
    medians : array of shape (d,)
        Of the numeric columns; NaN for others.
    indicated : array of int
        Numeric columns that had missing values.
    categories : tuple of (tuple of str, or None)
        For each column, the values that have a column of their own; None for numbers.
    """

    medians: Floats
    indicated: Indices
    categories: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(cls, X: Any, missing: str) -> Table:
        """Learn from a data frame or an array."""
        columns = _columns(X)
        medians, indicated = np.full(len(columns), np.nan), []
        categories: list[tuple[str, ...] | None] = []
        for j, column in enumerate(columns):
            if _is_category(column):
                categories.append(_frequent(_as_text(column)))
                continue
            categories.append(None)
            values = _as_floats(column, _name(X, j))
            gaps = np.isnan(values)
            if gaps.any() and missing == "raise":
                msg = (
                    f"Column {_name(X, j)} has {int(gaps.sum())} missing values (NaN), which "
                    'missing="raise" refuses: fill them in, or leave missing="fill".'
                )
                raise ValueError(msg)
            medians[j] = float(np.median(values[~gaps])) if not gaps.all() else 0.0
            if gaps.any():
                indicated.append(j)
        return cls(medians, np.array(indicated, dtype=np.intp), tuple(categories))

    def __call__(self, X: Any) -> Floats:
        """Return the table as numbers, shape (n, Σ columns of each).

        A category that was not there in fitting, or was rare, is 0 in all of its columns.
        """
        parts: list[Floats] = []
        for j, column in enumerate(_columns(X)):
            known = self.categories[j]
            if known is not None:
                same = _as_text(column)[:, None] == np.array(known)[None, :]
                parts.append(same.astype(np.float64))
                continue
            values = _as_floats(column, _name(X, j))
            gaps = np.isnan(values)
            parts.append(np.where(gaps, self.medians[j], values)[:, None])
            if j in self.indicated:
                parts.append(gaps[:, None].astype(np.float64))
        return np.concatenate(parts, axis=1)

    @property
    def origins(self) -> Indices:
        """For each column of numbers, the column of the table that it comes from."""
        indicated = np.isin(np.arange(len(self.medians)), self.indicated)
        widths = [
            1 + int(also) if known is None else len(known)
            for known, also in zip(self.categories, indicated, strict=True)
        ]
        return np.repeat(np.arange(len(widths)), widths)


def _columns(X: Any) -> list[Any]:
    if not is_frame(X):
        return list(np.asarray(X).T)
    return [X[name] for name in X.columns]


def _name(X: Any, j: int) -> str:
    return repr(str(list(X.columns)[j])) if is_frame(X) else str(j)


def _is_category(column: Any) -> bool:
    """Whether the values are names: text, categories or truth values, not numbers."""
    kind = str(getattr(column, "dtype", "")).lower()
    names = (
        "category",
        "categorical",
        "enum",
        "object",
        "str",
        "string",
        "bool",
        "boolean",
        "utf8",
    )
    return kind.startswith(names)


def _as_text(column: Any) -> Any:
    """Return the values as text, shape (n,); what is missing is a category of its own."""
    return np.array([_text(value) for value in np.asarray(column, dtype=object)], dtype=str)


def _frequent(values: Any) -> tuple[str, ...]:
    """Return the most frequent values, sorted."""
    names, counts = np.unique(values, return_counts=True)
    kept = names[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]]
    return tuple(sorted(str(name) for name in kept))


def _text(value: Any) -> str:
    absent = value is None or value != value
    return "(missing)" if absent is True or str(value) in ("<NA>", "nan") else str(value)


def _as_floats(column: Any, name: str) -> Floats:
    try:
        to_numpy = getattr(column, "to_numpy", None)
        if to_numpy is not None and hasattr(column, "isna"):
            values = to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"Column {name} is neither numbers nor categories: {error}."
        raise ValueError(msg) from error
    if np.isinf(values).any():
        msg = f"Column {name} contains infinity: remove such rows or clip them first."
        raise ValueError(msg)
    return np.asarray(values)
