"""Effects of columns: how the mean prediction changes with the value of one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.compare.learners import Model
from nysboost.numerics.arrays import Floats, spaced_indices
from nysboost.tables.gaps import is_gap

if TYPE_CHECKING:
    import pyarrow as pa

MOST_VALUES = 12
"""Largest number of values of a column at which its effect is computed."""

MOST_CLASSES = 4
"""Largest number of classes whose probability is drawn."""

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Days: TypeAlias = NDArray[np.datetime64]
"""Dates in microseconds."""


@dataclass(frozen=True)
class Effect:
    """The mean prediction if all rows had the same value, for some values; a column per output.

    `n_different` is the number of different values of the column.
    """

    column: str
    values: Sequence[str | float]
    means: Floats
    n_different: int

    @property
    def title(self) -> str:
        """The title of the chart."""
        if len(self.values) < self.n_different:
            return f"Effect of {self.column} ({len(self.values)} of {self.n_different:,} values)"
        return f"Effect of {self.column}"

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, which a curve can join."""
        return not any(isinstance(value, str) for value in self.values)


def find_effects(model: Model, table: pa.Table, name: str) -> list[Effect]:
    """Return the effects of a column of an Arrow table; a date has one for each of its parts."""
    import pyarrow as pa

    kind = table.column(name).type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _date_effects(model, table, name)
    return _value_effect(model, table, name)


def _predict_with(model: Model, table: pa.Table, name: str, column: pa.ChunkedArray) -> Floats:
    """Return the mean prediction, or mean probability of each class, with another column."""
    place = table.column_names.index(name)
    changed = table.set_column(place, name, column)
    if hasattr(model, "classes_"):
        probabilities = model.predict_proba(changed)
        return np.asarray(probabilities.mean(axis=0))
    predictions = model.predict(changed)
    return np.array([predictions.mean()])


def _value_effect(model: Model, table: pa.Table, name: str) -> list[Effect]:
    """Return the effect of some values of a column, or nothing if it has no values."""
    # find a row for each value
    column = table.column(name)
    cells = column.to_pylist()
    row_of = {value: row for row, value in enumerate(cells) if not is_gap(value)}
    different = sorted(row_of, key=_sort_key)
    if not different:
        return []

    # choose values evenly spaced among all of them
    values = []
    means = []
    for i in spaced_indices(len(different), MOST_VALUES):
        # the column has this value in every row
        value = different[i]
        same_row = np.full(len(table), row_of[value])
        means.append(_predict_with(model, table, name, column.take(same_row)))
        if not isinstance(value, int | float):
            value = str(value)
        values.append(value)
    return [Effect(name, values, np.array(means), len(different))]


def _sort_key(value: object) -> tuple[str, object]:
    """Return a sort key for values of several types."""
    return str(type(value)), value


def _date_effects(model: Model, table: pa.Table, name: str) -> list[Effect]:
    """Return the effects of hour, weekday and month, as far as they vary."""
    import pyarrow as pa

    column = table.column(name)
    stamps = column.cast(pa.timestamp("us")).to_numpy()
    known = stamps[~np.isnat(stamps)]

    effects = []
    for part in DATE_PARTS:
        # find the hours, weekdays or months that occur
        present = np.unique(part.find(known)).tolist()
        if len(present) < 2:
            continue

        # move every row to each of them
        means = []
        for value in present:
            moved = pa.array(part.move(stamps, value)).cast(column.type)
            means.append(_predict_with(model, table, name, moved))

        title = f"{name}, {part.name}"
        values = [part.label(value) for value in present]
        effects.append(Effect(title, values, np.array(means), len(values)))
    return effects


@dataclass(frozen=True)
class DatePart:
    """A part of a date: which of the `period` units of a larger one it is, numbered from `first`.

    `unit` is NumPy's name of the unit, and `began` the number of units of the period that had
    passed when 1970 began. `names` are labels instead of numbers.
    """

    name: str
    unit: str
    period: int
    first: int = 0
    began: int = 0
    names: Sequence[str] = ()

    def find(self, stamps: Days) -> NDArray[np.int64]:
        """Return the part of each date."""
        units = stamps.astype(f"datetime64[{self.unit}]").astype(np.int64)
        return np.asarray((units + self.began) % self.period + self.first)

    def move(self, stamps: Days, value: int) -> Days:
        """Return the dates with this part, and all smaller units as they were."""
        begins = stamps.astype(f"datetime64[{self.unit}]")
        since = stamps - begins.astype(stamps.dtype)

        change = value - self.find(stamps)
        moved = begins + change.astype(f"timedelta64[{self.unit}]")
        return np.asarray(moved.astype(stamps.dtype) + since)

    def label(self, value: int) -> str | int:
        """Return a value of this part as a label."""
        if self.names:
            return self.names[value]
        return value


DATE_PARTS = (
    DatePart("hour", "h", 24),
    DatePart("weekday", "D", 7, began=3, names=WEEKDAYS),  # 1970 began on a Thursday
    DatePart("month", "M", 12, first=1),
)
