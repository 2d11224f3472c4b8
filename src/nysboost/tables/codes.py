"""Columns of any kind as numbers: one-hot codes, means of the target, filled gaps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.magnitudes import column_sizes, positive_or_one
from nysboost.rows.lazy import code_table
from nysboost.rows.recognise import make_rows
from nysboost.tables.columns import is_far, say_far
from nysboost.tables.frames import is_frame, list_column_names
from nysboost.tables.schema import Schema
from nysboost.tables.values import FEW_VALUES

MOST_COLUMNS = 1024
"""One-hot columns of all categories together: 100,000 rows of them take 800 MB."""

FOLDS = 5
"""Parts of the rows; the mean of the target for a row comes from those that it is not in."""

MOST_TARGETS = 8
"""Targets whose means stand for a category with many values: the most frequent classes."""


@dataclass(frozen=True, eq=False)
class Codes:
    """How the columns of a schema become numbers.

    A gap becomes the median of its column, with an indicator. A category becomes a column for each
    value, or for the most frequent; for the others the mean of the target, drawn towards that of
    all: (Σ w y + a ȳ) / (Σ w + a). `means` has for such a column those of the targets for each
    value, an unknown one and the gap, shape (v + 2, t); all are None where there was no target.
    """

    schema: Schema
    means: tuple[Floats | None, ...]

    @classmethod
    def of(cls, schema: Schema) -> Codes:
        """Return the codes of a schema, which know no targets."""
        return cls(schema, (None,) * len(schema.columns))

    @classmethod
    def train(
        cls, schema: Schema, columns: list[Any], Y: Floats | None, weights: Floats | None
    ) -> tuple[Codes, Floats]:
        """Return the codes with means of Y, (n, t), and `columns` as numbers, out of fold."""
        codes, Y = cls.of(schema), None if Y is None else _leading(Y)
        means, apart = list(codes.means), list(codes.means)
        for j, (column, shown) in enumerate(zip(schema.columns, codes.shown, strict=True)):
            count = len(column.values)
            if Y is not None and shown is not None and count > len(shown) - bool(column.gaps):
                means[j] = _means(columns[j], count, Y, weights)
                apart[j] = _out_of_fold(columns[j], count, Y, weights)
        return cls(schema, tuple(means)), codes._numbers(columns, apart)

    @cached_property
    def shown(self) -> list[list[int] | None]:
        """For each category the positions of values with a column, −1 for the gap."""
        columns = self.schema.columns
        many = max(1, sum(c.kind == "category" for c in columns))
        most = max(2, min(FEW_VALUES, MOST_COLUMNS // many))
        often = [np.argsort(-np.array(c.counts), kind="stable")[:most] for c in columns]
        return [
            [-1] * bool(c.gaps) + np.sort(frequent).tolist() if c.kind == "category" else None
            for c, frequent in zip(columns, often, strict=True)
        ]

    def __call__(self, X: Any, start: int = 0, missing: str = "fill") -> Any:
        """Return the rows of a table as numbers, shape (n, Σ columns of each)."""
        numbers = not is_frame(X) and getattr(X.dtype, "kind", "") != "O"  # which is text
        as_it_is = numbers and not self.schema.columns
        columns = [] if as_it_is else self.schema.read(X, missing, start)
        if not self.schema.columns:
            table = X if as_it_is else np.stack(columns, axis=1)
            return _fill_array(table, self.schema.medians if missing == "fill" else None, start)
        apart = [
            None if means is None else means[values]  # from the end: −1 a gap, −2 unknown
            for values, means in zip(columns, self.means, strict=True)
        ]
        return self._numbers(columns, apart)

    def code_lazily(self, X: Any, missing: str = "fill") -> Any:
        """Return a lazy frame or array as a lazy array of numbers; each task makes its own."""
        meta = None
        if not self.schema.columns:
            if missing != "fill" or self.schema.medians is None:
                return X
            X = make_rows(X).data
            meta = X._meta
        elif is_frame(X) and self.schema.named:
            self.schema.match_names(list_column_names(X))
        return code_table(X, _code_part, len(self.origins), self, missing, meta=meta)

    def _numbers(self, columns: list[Any], apart: list[Floats | None]) -> Floats:
        """Return columns that were read, and the means for each row, as one table of numbers."""
        parts = [self._parts(j, *pair) for j, pair in enumerate(zip(columns, apart, strict=True))]
        return np.column_stack([x for part in parts for x in part]).astype(np.float64, copy=False)

    def _parts(self, j: int, values: Any, means: Floats | None) -> list[Any]:
        """Return the numbers that a column becomes, each of shape (n,)."""
        column, shown = self.schema.columns[j], self.shown[j]
        if values is None:
            return []
        if shown is not None:
            return [*(values == place for place in shown), *(() if means is None else means.T)]
        gaps = np.isnan(values)
        numbers = np.where(gaps, column.median, values) * column.scale
        return [numbers, gaps] if column.gaps else [numbers]

    @cached_property
    def origins(self) -> Indices:
        """For each number that a row becomes, the column of the table that it comes from."""
        if not self.schema.columns:
            return np.arange(self.schema.width)
        none = np.empty(0)
        widths = [
            len(self._parts(j, none if column.used else None, means))
            for j, (column, means) in enumerate(zip(self.schema.columns, self.means, strict=True))
        ]
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def gap_columns(self) -> Indices:
        """Positions among a row's numbers of those that say whether a value is missing."""
        pairs = enumerate(zip(self.schema.columns, self.shown, strict=True))
        places = [
            np.searchsorted(self.origins, j) + (shown is None)  # a category begins with its gap
            for j, (column, shown) in pairs
            if column.gaps and column.used
        ]
        return np.array(places, dtype=np.intp)


def _code_part(part: Any, codes: Codes, missing: str) -> Any:
    if part.shape[0] == 0:
        return np.empty((0, len(codes.origins))) if codes.schema.columns else part
    return codes(part, missing=missing)


def _fill_array(X: Any, medians: Floats | None, start: int) -> Any:
    """Return an array of any namespace with medians for NaN; refuse codes for "no data"."""
    sizes = column_sizes(arrays.as_float(X))
    refuse_far(X, sizes, start)
    if medians is None or not np.isnan(sizes).any():
        return X
    filled: Any
    if arrays.is_sparse(X):
        filled = X.tocsr(copy=True)
        gaps = np.isnan(filled.data)
        filled.data[gaps] = medians[filled.indices[gaps]]
    else:
        xp = arrays.namespace(X)
        filled = xp.where(xp.isnan(X), arrays.like(medians, X), X)
    return filled


def refuse_far(X: Any, sizes: Floats, start: int, usual: float = 0.0) -> None:
    """Refuse a code for "no data" in an array or a CSR matrix, and say where it is."""
    finite = np.where(np.isfinite(sizes), sizes, 0.0)
    j = int(np.argmax(finite))
    if is_far(finite[j], usual):
        column = np.nan_to_num(arrays.floats_on_host(arrays.dense(X[:, j : j + 1]))[:, 0])
        row = int(np.argmax(np.abs(column)))
        raise ValueError(say_far(str(j), float(column[row]), start + row))


def _leading(Y: Floats) -> Floats:
    """Return at most `MOST_TARGETS` targets, those that vary most; one of two classes."""
    if Y.shape[1] == 2 and np.allclose(Y.sum(axis=1), Y[0].sum()):
        return Y[:, 1:]
    return Y[:, np.sort(np.argsort(-Y.var(axis=0), kind="stable")[:MOST_TARGETS])]


def _means(values: Any, count: int, Y: Floats, weights: Floats | None) -> Floats:
    """Return the means of the targets for each value, drawn towards that of all."""
    w = np.ones(len(Y)) if weights is None else weights
    total = max(float(w.sum()), np.finfo(float).tiny)
    prior = (w[:, None] * Y).sum(axis=0) / total
    at = values % (count + 2)  # the last is that of a gap, before it the unknown
    often = np.bincount(at, w, minlength=count + 2)
    sums = np.stack([np.bincount(at, w * y, minlength=count + 2) for y in (Y - prior).T], axis=1)
    squares = (w[:, None] * (Y - prior) ** 2).sum(axis=0) / total
    raw = sums / np.maximum(often, np.finfo(float).tiny)[:, None]
    # variance among means less that which noise alone gives them
    between = (often[:, None] * raw**2).sum(axis=0) / total
    noise = np.maximum(squares - between, 0.0)
    among = np.maximum(between - noise * (often > 0).sum() / total, 1e-3 * squares)
    a = noise / positive_or_one(among)
    return np.asarray(prior + sums / np.maximum(often[:, None] + a, np.finfo(float).tiny))


def _out_of_fold(values: Any, count: int, Y: Floats, weights: Floats | None) -> Floats:
    """Return for each row the mean of its value among the rows of other folds."""
    # shuffled: values that come again every fifth row would all be in one fold
    fold = np.random.default_rng(0).permutation(len(Y)) % FOLDS
    found = np.empty_like(Y)
    for k in range(FOLDS):
        here, rest = fold == k, fold != k
        table = _means(values[rest], count, Y[rest], None if weights is None else weights[rest])
        found[here] = table[values[here]]
    return found
