"""Columns of a table: what is seen of them, part by part, and what they are from then on."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.messages import format_count
from nysboost.tables import values as of_values
from nysboost.tables.frames import RawColumn, read_columns
from nysboost.tables.values import first_of

SAMPLE_ROWS = 2**17
"""Rows, spread evenly, whose median fills gaps: its standard error is 1/300 of the spread."""

BIG, OUTLYING = 1e28, 1e25
"""A number beyond one, and so many times another of its column, is a code for "no data"."""

EXTREME = 1e60
"""Numbers beyond this, or all below its inverse, are brought near 1 by a power of two."""

FEW_FOR_TEXT = 32
"""Different values that may each be in one row alone; beyond, text needs two rows for each."""

MANY_UNKNOWN = 10
"""Rows whose categories are all unknown that are no chance: another spelling, or another table."""

PLURALS = {"number": "numbers", "boolean": "truth values", "date": "dates", "duration": "durations"}


@dataclass(frozen=True)
class Column:
    """One column: "number", "boolean", "date", "duration" (both in seconds), "category".

    Others are not used: "text" that hardly comes again, and "empty" ones. `values` of a category
    are sorted, `counts` are their rows; `gaps` counts rows without a value, `marks` is what stood
    there; `median` is that of numbers, `usual` that of their sizes, `form` how text of it is
    written: the unit of numbers, or "day first" or "month first".
    """

    name: str
    kind: str = "number"
    values: tuple[Any, ...] = ()
    gaps: int = 0
    marks: tuple[str, ...] = ()
    usual: float = 0.0
    median: float = 0.0
    counts: tuple[int, ...] = ()
    form: str = ""

    @property
    def used(self) -> bool:
        """Whether anything can be learned from it."""
        return self.kind not in ("text", "empty")

    @property
    def scale(self) -> float:
        """The power of two that brings numbers near 1 whose squares are out of range."""
        out = self.usual > EXTREME or 0 < self.usual < 1 / EXTREME
        return float(np.exp2(-np.frexp(self.usual)[1].clip(-1020, 1020))) if out else 1.0

    def describe(self) -> str:
        """Return its name, and how many values and gaps it has."""
        notes = [format_count(len(self.values), "value")] if self.values else []
        notes += [self.form if " first" in self.form else f"in {self.form}"] if self.form else []
        notes += [format_count(self.gaps, "gap")] if self.gaps else []
        notes += [f"written {', '.join(map(repr, self.marks))}"] if self.marks else []
        return f"{self.name} ({', '.join(notes)})" if notes else self.name

    def read(self, cells: RawColumn, missing: str, start: int) -> Any:
        """Return the same column of another table, shape (n,), or say which row does not fit.

        Floats have NaN in gaps; categories are positions among `values`, −1 in gaps, −2 if unknown.
        """
        if self.kind == "category":
            found: Any = self._positions(cells, missing, start)
            gaps = found == -1
        else:
            found = self._numbers(cells, start)
            gaps, sizes = np.isnan(found), np.abs(found)
            far = is_far(sizes, self.usual) if self.kind == "number" else np.isinf(sizes)
            if (row := first_of(far)) is not None:
                raise ValueError(say_far(self.name, found[row], start + row))
        if missing != "fill" and (row := first_of(gaps)) is not None:
            raise ValueError(say_gaps(self.name, int(gaps.sum()), f", first in row {start + row}"))
        return found

    def _numbers(self, cells: RawColumn, start: int) -> Floats:
        data, values, kinds = cells.data, cells.values, (self.kind, cells.kind)
        if values is not None:
            numbers, other = of_values.numbers_as(self.kind, values, self.form)
            wrong, data = np.append(other, False)[data], cells.replace_values(numbers)
        elif kinds == ("boolean", "number"):
            wrong = ~np.isnan(data) & (data != 0) & (data != 1)
        else:
            fits = self.kind == cells.kind or kinds == ("number", "boolean")
            wrong = ~np.isnan(data) & (not fits)
        if (row := first_of(wrong)) is None:
            return np.asarray(data)
        shown = f"{data[row]:g}" if kinds == ("boolean", "number") else f"a {cells.kind}"
        if values is not None:
            shown = f"{values[cells.data[row]]!r:.60}"
        raise ValueError(
            f"Column {self.name!r} was fitted with {PLURALS[self.kind]}, but row {start + row} "
            f"has {shown}: give it the kind of value that it had in fitting."
        )

    def _positions(self, cells: RawColumn, missing: str, start: int) -> Indices:
        if cells.values is None:
            value: Any = {"boolean": bool, "date": of_values.from_seconds}.get(cells.kind, float)
            listed = [value(x) if x == x else x for x in cells.data.tolist()]
            cells = RawColumn.of(cells.name, cells.kind, listed)
        known = cells.values or ()
        found: Indices = np.array([*of_values.find_positions(self.values, known), -1])[cells.data]
        if missing == "raise" and (row := first_of(found == -2)) is not None:
            raise ValueError(
                f"Column {self.name!r} has the value {known[cells.data[row]]!r:.60} in row "
                f'{start + row}, which was not there in fitting and which missing="raise" refuses.'
            )
        there = found != -1
        if there.sum() >= MANY_UNKNOWN and (found[there] == -2).all():
            warnings.warn(
                f"Column {self.name!r} has no value that was there in fitting: it has "
                f"{_list_some(known)}, and was fitted with {_list_some(self.values)}. Other "
                "columns alone make the prediction.",
                stacklevel=2,
            )
        return found


# Looking


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What was seen of the column `name`; summaries of its parts add up.

    `counts` has the values that are no numbers yet. Numbers, or what else is `sampled`, have a
    `sample`, one of so many as `every` says, the one `far` from 0, and the `least` but 0.
    """

    name: str
    kind: str
    gaps: int
    counts: Counter[Any]
    sample: Floats
    far: float = 0.0
    least: float = np.inf
    every: int = 1
    sampled: str = ""

    @classmethod
    def at(cls, cells: RawColumn, size: int = SAMPLE_ROWS) -> ColumnSummary:
        """Summarise a column, or a part of it, of which `size` numbers are kept."""
        gaps, data = cells.gaps, cells.data
        about = cells.name, cells.kind, int(gaps.sum())
        if cells.values is not None:
            counts = dict(zip(cells.values, cells.counts().tolist(), strict=True))
            return cls(*about, Counter(counts), np.empty(0))
        there = data[~gaps] if about[2] else data
        if not len(there):
            return cls(*about, Counter(), there)
        far = max(float(there.min()), float(there.max()), key=abs)
        least = float(np.min(np.abs(there), where=there != 0, initial=np.inf))
        every = sample_step(len(there), size)
        return cls(*about, Counter(), there[::every], far, least, every, cells.kind)

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of both parts, or say that they do not go together."""
        kinds = {summary.kind for summary in (self, other) if summary.counts or summary.sampled}
        kind = self.kind if not kinds else "object" if len(kinds) > 1 else kinds.pop()
        sampled = sorted({summary.sampled for summary in (self, other) if summary.sampled})
        sampled = ["number"] if sampled == ["boolean", "number"] else sampled
        if len(sampled) > 1:
            both = " in some parts and ".join(PLURALS[each] for each in sampled)
            raise ValueError(f"Column {self.name!r} holds {both} in others: make them one kind.")
        counts, every = self.counts + other.counts, max(self.every, other.every)
        sample = np.concatenate([at.sample[:: every // at.every] for at in (self, other)])
        if len(sample) > 2 * SAMPLE_ROWS:
            sample, every = sample[::2], 2 * every
        far, least = max(self.far, other.far, key=abs), min(self.least, other.least)
        about = self.name, kind, self.gaps + other.gaps, counts
        return ColumnSummary(*about, sample, far, least, every, "".join(sampled))


def sample_step(n: int, size: int = SAMPLE_ROWS) -> int:
    """Return the power of two s for which every s-th of n rows makes at most `size` of them."""
    return int(2 ** max(0, int(np.ceil(np.log2(n / size)))))


def summarise_columns(part: Any, parts: int = 1) -> list[ColumnSummary]:
    """Return the summary of each column of a table, or of one of so many parts of it."""
    size = max(1, SAMPLE_ROWS // parts)
    return [ColumnSummary.at(cells, size) for cells in read_columns(part)]


# Deciding


def decide(summary: ColumnSummary, missing: str) -> Column:
    """Say what a column is; gaps are refused unless `missing` is "fill"."""
    name, kind, form, marks = summary.name, summary.kind, "", list[str]()
    values, counts = list(summary.counts), np.array(list(summary.counts.values()), dtype=np.intp)
    if kind == "object" or (kind == "category" and not values):
        kind, form, numbers = of_values.kind_of(values, counts)
        if kind == "numbers, but" or summary.sampled:  # other parts of the column came as numbers
            kind = summary.sampled or "number"
            numbers, wrong = of_values.numbers_as(kind, values, form)
            if (at := first_of(wrong)) is not None:
                raise ValueError(
                    f"Column {name!r} holds {PLURALS[kind]}, but also {values[at]!r:.60}: make it "
                    f"a {kind} or leave it empty; or make the column a category, with "
                    'astype("category") or --category.'
                )
    if values and kind in of_values.READINGS:
        read = ColumnSummary.at(RawColumn(name, kind, np.repeat(numbers, counts)))
        marks = sorted(str(v) for v, x in zip(values, numbers, strict=True) if x != x)
        if marks and missing == "fill":
            warnings.warn(
                f"Column {name!r} holds numbers, and {read.gaps} times "
                f"{', '.join(map(repr, marks))}: these are taken as missing values.",
                stacklevel=2,
            )
        summary = read + replace(summary, counts=Counter())
    if summary.gaps and missing != "fill":
        raise ValueError(say_gaps(name, summary.gaps))
    if kind == "category":
        return _category(summary)
    if summary.gaps and not summary.sampled:
        msg = f"Column {name!r} has no value in any of {summary.gaps} rows, and is left out."
        warnings.warn(msg, stacklevel=2)
        return Column(name, "empty", gaps=summary.gaps)
    far = summary.far
    if not np.isfinite(far) or (kind == "number" and is_far(abs(far), summary.least)):
        raise ValueError(say_far(name, far))
    middle = median(np.abs(summary.sample[summary.sample != 0])), median(summary.sample)
    return Column(name, kind, (), summary.gaps, tuple(marks), *middle, form=form)


def _category(summary: ColumnSummary) -> Column:
    name, there = summary.name, summary.counts.total()
    if summary.kind == "object" and len(summary.counts) > max(FEW_FOR_TEXT, there / 2):
        dates = all(of_values.in_usual_form(v, of_values.DAY_FIRST) != v for v in summary.counts)
        hint = " Dates whose day and month could be swapped are written 2020-01-31." * dates
        warnings.warn(
            f"Column {name!r} is text with {len(summary.counts)} different values in {there} rows: "
            f"nothing can be learned from values that hardly come again, and it is left out.{hint}",
            stacklevel=2,
        )
        return Column(name, "text", gaps=summary.gaps)
    counts: Counter[Any] = Counter()
    for value, count in summary.counts.items():
        counts[of_values.plain(value)] += count
    values = tuple(sorted(counts, key=lambda v: (isinstance(v, str), v)))
    return Column(name, "category", values, summary.gaps, counts=tuple(counts[v] for v in values))


def median(values: Floats) -> float:
    """Return the median, of halves: the sum of two numbers may be out of range."""
    return float(2 * np.median(values / 2)) if len(values) else 0.0


def is_far(size: Any, usual: float) -> Any:
    """Whether a number's size is that of a code for "no data" beside a usual one, or none."""
    return (size > BIG) & (size > (usual if 0 < usual < np.inf else 1.0) * OUTLYING)


# Sentences


def _list_some(values: Sequence[Any]) -> str:
    """Return the first of some values, as a sentence has them."""
    more = ", …" if len(values) > 3 else ""
    return ", ".join(f"{value!r:.60}" for value in values[:3]) + more


def say_gaps(name: str, count: int, first: str = "") -> str:
    """Return the sentence about gaps that are refused."""
    return (
        f"Column {name!r} has {format_count(count, 'missing value')} (it contains NaN){first}. "
        'Remove such rows or fill them in first: a learner does with missing="fill", any other '
        "estimator with sklearn.impute.SimpleImputer before it."
    )


def say_far(name: str, value: float, row: int | None = None) -> str:
    """Return the sentence about a number that is too large."""
    at = f" in row {row}" if row is not None else ""
    if not np.isfinite(value):
        return (
            f"Column {name!r} contains infinity ({value}), or a number too large for floating "
            f"point{at}: remove such rows or clip them first."
        )
    return (
        f"Column {name!r} has the value {value:.6g}{at}, out of range beside its other values: "
        "if it stands for no data, make it NaN; else divide the column or leave such rows out."
    )
