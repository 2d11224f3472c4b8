"""Codes of columns as numbers: one-hot codes, target means, cycles, filled gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, namespace
from nysboost.numerics.checks import refuse_non_finite, refuse_unequal
from nysboost.numerics.linalg import column_sizes
from nysboost.rows.dask_rows import DaskRows
from nysboost.rows.driver import BlockTask
from nysboost.rows.lazy import code_parts, code_table, compute_parts
from nysboost.rows.recognise import is_frame, make_rows
from nysboost.rows.rows import EncodedRows, Rows
from nysboost.tables.categories import GAP
from nysboost.tables.columns import Column, is_far, say_far
from nysboost.tables.dates import encode_cycles
from nysboost.tables.frames import Cells, Table, list_column_names
from nysboost.tables.schema import Schema
from nysboost.tables.target_means import leading_targets, out_of_fold_means, target_means
from nysboost.tables.values import FEW_VALUES

MOST_COLUMNS = 1024
"""Largest number of one-hot columns of all categories: 100,000 rows of them take 800 MB."""


@dataclass(frozen=True, eq=False)
class Codes:
    """The encoding of the columns of a schema as numbers.

    A number keeps its value, and a missing value becomes the median of its column, with an
    indicator column. A date also gets its cycles, as sine and cosine. A category becomes one column
    per value, or per frequent value; then a column with the mean of the target for each value is
    added. For such a category, `means` holds the target means (v + 2, t) of each value, of an
    unknown value and of a missing one. Without a target, all are None.
    """

    schema: Schema
    means: tuple[Floats | None, ...]

    @classmethod
    def of(cls, schema: Schema) -> Codes:
        """Return the codes of a schema, without targets."""
        return cls(schema, (None,) * len(schema.columns))

    # What a row becomes

    @cached_property
    def shown(self) -> list[list[int] | None]:
        """For each category, the positions of values with a column (−1 is missing); else None."""
        columns = self.schema.columns
        is_category = [column.kind == "category" for column in columns]
        share = MOST_COLUMNS // max(1, sum(is_category))
        most = max(2, min(FEW_VALUES, share))

        shown: list[list[int] | None] = [None] * len(columns)
        for j in np.flatnonzero(is_category):
            shown[j] = _choose_shown(columns[j], most)
        return shown

    @cached_property
    def many_valued(self) -> list[int]:
        """Positions of the categories with values that have no column of their own."""
        positions = []
        for j, shown in enumerate(self.shown):
            if shown is None:
                continue
            n_values = len(self.schema.columns[j].values)
            n_shown = sum(position != GAP for position in shown)
            if n_shown < n_values:
                positions.append(j)
        return positions

    @cached_property
    def origins(self) -> Indices:
        """For each number of an encoded row, the column of the table from which it comes."""
        if not self.schema.columns:
            return np.arange(self.schema.width)

        # encode a column without rows, to count its numbers
        widths = []
        for j, means in enumerate(self.means):
            numbers = self._encode_column(j, np.empty(0), means)
            widths.append(len(numbers))
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def gap_columns(self) -> Indices:
        """Positions of the missing-value indicators in an encoded row."""
        positions = []
        for j, column in enumerate(self.schema.columns):
            if not (column.gaps and column.used):
                continue

            # a category begins with its gap, a number has it behind its value
            position = int(np.searchsorted(self.origins, j))
            if column.kind != "category":
                position += 1
            positions.append(position)
        return np.array(positions, dtype=np.intp)

    # Encoding

    def __call__(self, X: Table, start: int = 0, missing: str = "fill") -> Table:
        """Return the rows of a table as numbers, shape (n, Σ columns of each)."""
        if not self.schema.columns:
            return self._fill_gaps(X, start, missing)

        # means of each row; the last two are those of unknown values, −2, and of gaps, −1
        columns = self.schema.read(X, missing, start)
        row_means: list[Floats | None] = [None] * len(columns)
        for j, means in enumerate(self.means):
            if means is not None:
                row_means[j] = means[columns[j]]
        return self.encode(columns, row_means)

    def _fill_gaps(self, X: Table, start: int, missing: str) -> Table:
        """Return a table of numbers alone, with medians for its gaps if they may be filled."""
        table = X
        dtype = getattr(X, "dtype", None)
        is_text = getattr(dtype, "kind", "") == "O"  # PyTorch's types have no kind
        if is_frame(X) or is_text:
            columns = self.schema.read(X, missing, start)
            table = np.stack(columns, axis=1)

        medians = None
        if missing == "fill":
            medians = self.schema.medians
        return _fill_array(table, medians, start)

    def encode(self, columns: Sequence[Cells], row_means: Sequence[Floats | None]) -> Floats:
        """Encode columns, and target means for each row, as one table."""
        parts: list[Cells] = []
        for j, values in enumerate(columns):
            parts += self._encode_column(j, values, row_means[j])
        table = np.column_stack(parts)
        return table.astype(np.float64, copy=False)

    def _encode_column(self, j: int, values: Cells, means: Floats | None) -> list[Cells]:
        """Return the codes of a column, each of shape (n,)."""
        column = self.schema.columns[j]
        if not column.used:
            return []

        shown = self.shown[j]
        if shown is None:
            return _encode_numbers(column, values)

        # a category: a column for each value shown, and the means
        parts: list[Cells] = [values == position for position in shown]
        if means is not None:
            parts += list(means.T)
        return parts

    def code_lazily(self, X: Table, missing: str = "fill") -> Table:
        """Encode a lazy frame or array as a lazy array of numbers, task by task."""
        meta = None

        # a table of numbers needs no codes: only its gaps are filled
        if not self.schema.columns:
            if missing != "fill" or self.schema.medians is None:
                return X
            X = make_rows(X).data
            meta = X._meta
        elif is_frame(X) and self.schema.named:
            self.schema.match_names(list_column_names(X))
        return code_table(X, _code_part, len(self.origins), self, missing, meta=meta)


def _choose_shown(column: Column, most: int) -> list[int]:
    """Return the positions of values of a category with a column, with missing values first."""
    counts = np.array(column.counts)
    by_count = np.argsort(-counts, kind="stable")
    frequent: list[int] = sorted(by_count[:most].tolist())
    if column.gaps:
        return [GAP, *frequent]
    return frequent


def _encode_numbers(column: Column, values: Cells) -> list[Cells]:
    """Return numbers with the median in gaps, an indicator of gaps, and the cycles of dates."""
    gaps = np.isnan(values)
    filled = np.where(gaps, column.median, values)
    parts: list[Cells] = [filled * column.scale]
    if column.gaps:
        parts.append(gaps)
    return [*parts, *encode_cycles(column.cycles, values)]


def _code_part(part: Table, codes: Codes, missing: str) -> Table:
    if part.shape[0] > 0:
        return codes(part, missing=missing)
    if not codes.schema.columns:
        return part
    return np.empty((0, len(codes.origins)))


# Training rows, whose means of the targets come from other rows


@dataclass(frozen=True, eq=False)
class TrainingCodes:
    """The codes of a table, with out-of-fold target means for its own rows.

    `row_means` holds them for each category with many values, shape (n, t).
    """

    codes: Codes
    row_means: Mapping[int, Floats]

    @classmethod
    def of(
        cls,
        schema: Schema,
        positions: Mapping[int, Cells],
        Y: Floats | None,
        weights: Floats | None,
    ) -> TrainingCodes:
        """Compute means of Y (n, t) for the categories with given `positions` (n,)."""
        if Y is None or not positions:
            return cls(Codes.of(schema), {})

        # for later rows the means of all rows, for these the means of other folds
        means: list[Floats | None] = [None] * len(schema.columns)
        row_means: dict[int, Floats] = {}
        Y = leading_targets(Y)
        for j, of_column in positions.items():
            n_values = len(schema.columns[j].values)
            means[j] = target_means(of_column, n_values, Y, weights)
            row_means[j] = out_of_fold_means(of_column, n_values, Y, weights)
        return cls(Codes(schema, tuple(means)), row_means)

    @classmethod
    def of_parts(
        cls,
        schema: Schema,
        parts: Sequence[Sequence[Indices]],
        Y: Floats,
        weights: Floats | None,
    ) -> TrainingCodes:
        """Compute means of Y, (n, t), from what a `PositionReader` found in parts of a table."""
        many_valued = Codes.of(schema).many_valued
        columns = [np.concatenate(of_parts) for of_parts in zip(*parts, strict=True)]
        positions = dict(zip(many_valued, columns, strict=True))
        return cls.of(schema, positions, Y, weights)

    @classmethod
    def of_lazy(
        cls, schema: Schema, X: Table, Y: Floats | None, weights: Floats | None
    ) -> tuple[TrainingCodes, list[int]]:
        """Return the codes of a lazy table, and the number of rows of each part.

        Only the positions of categories with many values are computed locally.
        """
        codes = Codes.of(schema)
        if Y is None or not codes.many_valued:
            return cls(codes, {}), []

        # one column of a part has as many rows as the part
        parts = compute_parts(X, PositionReader(codes))
        lengths = [len(part[0]) for part in parts]
        refuse_unequal(sum(lengths), len(Y))
        return cls.of_parts(schema, parts, Y, weights), lengths

    def encode(self, columns: Sequence[Cells], start: int = 0) -> Floats:
        """Encode training rows; `start` is the number of the first one."""
        n = max(map(len, columns))  # columns that are not used have no rows
        here = self._take_means(start, n)
        row_means = [here.get(j) for j in range(len(columns))]
        return self.codes.encode(columns, row_means)

    def _take_means(self, start: int, n: int) -> dict[int, Floats]:
        """Return the means of n training rows, from the row `start` on."""
        rows = slice(start, start + n)
        return {j: means[rows] for j, means in self.row_means.items()}

    def encode_table(self, X: Table, start: int = 0, missing: str = "fill") -> Floats:
        """Encode a part of the training table from row `start`."""
        columns = self.codes.schema.read(X, missing, start)
        return self.encode(columns, start)

    def code_lazily(self, X: Table, lengths: Sequence[int], missing: str) -> Table:
        """Encode the lazy training table; each task receives the means of its rows."""
        if not self.row_means:
            return self.codes.code_lazily(X, missing)

        # the means of the rows of each part
        of_parts = []
        start = 0
        for n in lengths:
            of_parts.append(self._take_means(start, n))
            start += n
        width = len(self.codes.origins)
        return code_parts(X, _code_training_part, lengths, width, of_parts, self.codes, missing)


@dataclass(frozen=True, eq=False)
class PositionReader:
    """Reads the positions of the values of categories with many values, shape (n,) each."""

    codes: Codes

    def __call__(self, part: Table) -> list[Indices]:
        """Return the positions in one part of a table."""
        columns = self.codes.schema.read(part)
        return [columns[j].astype(np.int32) for j in self.codes.many_valued]


def _code_training_part(
    part: Table, row_means: Mapping[int, Floats], codes: Codes, missing: str
) -> Floats:
    if part.shape[0] == 0:
        return np.empty((0, len(codes.origins)))
    return TrainingCodes(codes, row_means).encode_table(part, missing=missing)


# Arrays without a schema


def _fill_array(X: Table, medians: Floats | None, start: int) -> Table:
    """Fill NaN with medians in an array of any namespace; raise for "no data" codes."""
    sizes = column_sizes(arrays.as_float(X))
    refuse_far(X, sizes, start)
    if not np.isfinite(sizes).all():
        refuse_non_finite(X, start, gaps=medians is not None)
    has_gaps = np.isnan(sizes).any()
    if medians is None or not has_gaps:
        return X

    # in a sparse matrix only stored numbers can be gaps
    if arrays.is_sparse(X):
        filled = X.tocsr(copy=True)
        gaps = np.isnan(filled.data)
        filled.data[gaps] = medians[filled.indices[gaps]]
        return filled

    xp = arrays.namespace(X)
    filling = arrays.like(medians, X)
    return xp.where(xp.isnan(X), filling, X)


def refuse_far(X: Array, sizes: Floats, start: int, usual: float = 0.0) -> None:
    """Raise for a "no data" code in an array or a CSR matrix, and say where it is."""
    finite = np.where(np.isfinite(sizes), sizes, 0.0)
    j = int(np.argmax(finite))
    if not is_far(finite[j], usual):
        return

    # the row of the largest number
    dense = arrays.dense(X[:, j : j + 1])
    column = arrays.floats_on_host(dense)[:, 0]
    sizes_of_column = np.abs(np.nan_to_num(column))
    row = int(np.argmax(sizes_of_column))
    raise ValueError(say_far(str(j), float(column[row]), start + row))


# Piecewise-linear codes of numerical features


LOOK = 2048
"""Number of rows that show which features have more than two values."""


def count_numeric(X: Array) -> int:
    """Return how many features have more than two values."""
    x = arrays.to_host(X[:LOOK, :])
    above_least = x > x.min(axis=0)
    below_largest = x < x.max(axis=0)
    between = above_least & below_largest
    return int(np.count_nonzero(between.any(axis=0)))


@dataclass(frozen=True, eq=False)
class PiecewiseCodes:
    """Piecewise-linear codes, added to the features (Gorishniy et al. 2022).

    Code j of a feature with increasing edges e is (x − e_j)/(e_{j+1} − e_j), clipped to [0, 1]. A
    feature with fewer than three edges has no codes.
    """

    edges: tuple[Floats, ...]

    @classmethod
    def of(cls, X: Array, most: int) -> PiecewiseCodes:
        """Choose edges for at most `most` codes: distinct values of each feature, or quantiles.

        A feature has at most 2∛n edges (Rice's rule), and at least three.
        """
        by_rows = int(2 * X.shape[0] ** (1 / 3))
        by_share = most // max(1, count_numeric(X))
        most = max(3, min(by_rows, by_share))

        # different values, or quantiles of these
        edges = []
        for column in arrays.to_host(X).T:
            values = np.unique(column)
            if len(values) > most + 1:
                shares = np.linspace(0, 1, most + 1)
                values = np.unique(np.quantile(values, shares))
            edges.append(values)
        return cls(tuple(edges))

    @cached_property
    def origins(self) -> Indices:
        """The feature from which each column comes."""
        features = np.arange(len(self.edges))
        n_pieces = np.array([len(e) - 1 for e in self.edges], dtype=np.intp)
        n_codes = np.where(n_pieces > 1, n_pieces, 0)
        return np.concatenate([features, np.repeat(features, n_codes)])

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats]:
        """The start and the width of each code."""
        coded = [e for e in self.edges if len(e) > 2]
        if not coded:
            return np.empty(0), np.empty(0)
        begins = [e[:-1] for e in coded]
        widths = [np.diff(e) for e in coded]
        return np.concatenate(begins), np.concatenate(widths)

    def outside(self, X: Array) -> Array:
        """Return how far each row is outside the range of a feature, (n,): 1 is the whole range."""
        X = arrays.dense(arrays.as_float(X))
        least = np.array([e[0] for e in self.edges])
        largest = np.array([e[-1] for e in self.edges])
        width = np.where(largest > least, largest - least, np.inf)

        # as a share of the range, of the feature where it is largest
        xp = namespace(X)
        below = arrays.like(least, X) - X
        above = X - arrays.like(largest, X)
        shares = xp.maximum(below, above) / arrays.like(width, X)
        return xp.clip(xp.max(shares, axis=1), min=0.0, max=1.0)

    def __call__(self, X: Array, start: int = 0) -> Array:  # noqa: ARG002
        """Return the features with their codes, shape (n, d + codes)."""
        X = arrays.dense(arrays.as_float(X))
        xp = namespace(X)

        # the features that have codes, once for each of them
        coded = self.origins[len(self.edges) :]
        x = arrays.take(X, coded, axis=1)

        begins, widths = (arrays.like(part, X) for part in self._pieces)
        steps = (x - begins) / widths
        codes = xp.clip(steps, min=0.0, max=1.0)
        return xp.concat([X, codes], axis=1)


def with_codes(rows: Rows, codes: PiecewiseCodes | None) -> Rows:
    """Return rows with their codes, if any."""
    if codes is None:
        return rows
    if not rows.lazy:
        return EncodedRows(rows, codes)
    task = BlockTask("codes", PiecewiseCodes.__call__, codes)
    return DaskRows(rows.map(task, len(codes.origins)))
