"""Summaries of the columns of a table, computed by part and added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import Floats, sample_step
from nysboost.rows.sizes import SAMPLE_ROWS
from nysboost.tables.dates import ZONED
from nysboost.tables.frames import Cells, RawColumn, Table, read_columns

PLURALS = {
    "number": "numbers",
    "boolean": "truth values",
    "date": "dates",
    ZONED: "dates with a time zone",
    "duration": "durations",
}


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """The summary of the column `name`.

    `counts` has the values that are no numbers yet, with their rows. Numbers, or what else is
    `sampled`, have a `sample`, one of so many as `every` says, the one `far` from 0, the `least`
    size but 0, and whether a number `repeats` that of the row before. Of values, `returns` is the
    number of rows with a value that came before that of the row above.
    """

    name: str
    kind: str
    gaps: int
    counts: Counter[object]
    sample: Floats
    far: float = 0.0
    least: float = np.inf
    every: int = 1
    sampled: str = ""
    repeats: bool = False
    returns: int = 0

    @classmethod
    def at(cls, cells: RawColumn, size: int = SAMPLE_ROWS) -> ColumnSummary:
        """Summarise a column, or a part of it, and keep a sample of `size` numbers."""
        gaps = cells.gaps
        n_gaps = int(gaps.sum())

        # values that are no numbers yet, with their rows
        if cells.values is not None:
            rows_of = cells.counts().tolist()
            counts = Counter(dict(zip(cells.values, rows_of, strict=True)))
            positions = cells.data[~gaps]
            returns = int(np.sum(positions[1:] < positions[:-1]))
            return cls(cells.name, cells.kind, n_gaps, counts, np.empty(0), returns=returns)

        # numbers without gaps; a copy only if there are some
        there = cells.data
        if n_gaps:
            there = there[~gaps]
        if len(there) == 0:
            return cls(cells.name, cells.kind, n_gaps, Counter(), there)

        # every step-th number, and the extremes of all
        step = sample_step(len(there), size)
        least = float(there.min())
        largest = float(there.max())
        is_repeated = there[1:] == there[:-1]
        return cls(
            name=cells.name,
            kind=cells.kind,
            gaps=n_gaps,
            counts=Counter(),
            sample=there[::step],
            far=max(least, largest, key=abs),
            least=least_size(there),
            every=step,
            sampled=cells.kind,
            repeats=bool(is_repeated.any()),
        )

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of both parts; raise if they differ in kind."""
        # a part with gaps alone has no kind
        kinds = {part.kind for part in (self, other) if part.counts or part.sampled}
        kind = self.kind
        if len(kinds) == 1:
            kind = kinds.pop()
        elif len(kinds) > 1:
            kind = "object"

        # samples of both in the coarser step
        every = max(self.every, other.every)
        upper = self.sample[:: every // self.every]
        lower = other.sample[:: every // other.every]
        sample = np.concatenate([upper, lower])
        if len(sample) > 2 * SAMPLE_ROWS:
            sample = sample[::2]
            every = 2 * every

        return ColumnSummary(
            name=self.name,
            kind=kind,
            gaps=self.gaps + other.gaps,
            counts=self.counts + other.counts,
            sample=sample,
            far=max(self.far, other.far, key=abs),
            least=min(self.least, other.least),
            every=every,
            sampled=self._sampled_with(other),
            repeats=self.repeats or other.repeats,
            returns=self.returns + other.returns,
        )

    def _sampled_with(self, other: ColumnSummary) -> str:
        """Return the kind of the numbers of both parts."""
        found = sorted({self.sampled, other.sampled} - {""})
        if len(found) < 2:
            return "".join(found)

        # truth values are numbers beside numbers
        if found == ["boolean", "number"]:
            return "number"
        both = " in some parts and ".join(PLURALS[each] for each in found)
        raise ValueError(f"Column {self.name!r} holds {both} in others: use one kind of value.")


def least_size(values: Cells) -> float:
    """Return the smallest nonzero absolute value, or infinity."""
    sizes = np.abs(values)
    return float(np.min(sizes, where=sizes != 0, initial=np.inf))


def summarise_columns(part: Table, parts: int = 1) -> list[ColumnSummary]:
    """Return the summary of each column of a table, or of one of its parts."""
    size = max(1, SAMPLE_ROWS // parts)
    return [ColumnSummary.at(cells, size) for cells in read_columns(part)]
