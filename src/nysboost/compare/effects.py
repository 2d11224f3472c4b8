"""Effects of columns: how the mean prediction changes with the value of one column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.compare.learners import Model
from nysboost.numerics.arrays import Floats
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


def _predict(model: Model, table: pa.Table) -> Floats:
    """Return the mean prediction over the rows, or the mean probability of each class."""
    if hasattr(model, "classes_"):
        probabilities = model.predict_proba(table)
        return np.asarray(probabilities.mean(axis=0))
    predictions = model.predict(table)
    return np.array([predictions.mean()])


def _value_effect(model: Model, table: pa.Table, name: str) -> list[Effect]:
    """Return the effect of some values of a column, or nothing if it has no values."""
    # find a row for each value
    column = table.column(name)
    place = table.column_names.index(name)
    cells = column.to_pylist()
    row_of = {value: row for row, value in enumerate(cells) if not is_gap(value)}
    different = sorted(row_of, key=_sort_key)
    if not different:
        return []

    # choose values evenly spaced among all of them
    last = len(different) - 1
    chosen = np.linspace(0, last, MOST_VALUES).round().astype(int)
    values = []
    means = []
    for i in np.unique(chosen):
        value = different[i]

        # the column has this value in every row
        same_row = np.full(len(table), row_of[value])
        changed = table.set_column(place, name, column.take(same_row))
        means.append(_predict(model, changed))
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
    place = table.column_names.index(name)

    effects = []
    for part in DATE_PARTS:
        # find the hours, weekdays or months that occur
        present = np.unique(part.find(known)).tolist()
        if len(present) < 2:
            continue

        # move every row to each of them
        means = []
        for value in present:
            moved = pa.array(part.move(stamps, value))
            changed = table.set_column(place, name, moved.cast(column.type))
            means.append(_predict(model, changed))

        title = f"{name}, {part.name}"
        values = [part.label(value) for value in present]
        effects.append(Effect(title, values, np.array(means), len(values)))
    return effects


@dataclass(frozen=True)
class DatePart:
    """A part of a date: its name, how to compute it, and how to move a date to a value."""

    name: str
    find: Callable[[Days], NDArray[np.int64]]
    move: Callable[[Days, int], Days]
    label: Callable[[int], str | int]


def _hours(stamps: Days) -> NDArray[np.int64]:
    since_midnight = stamps - stamps.astype("datetime64[D]")
    hours = since_midnight.astype("timedelta64[h]")
    return np.asarray(hours.astype(np.int64))


def _weekdays(stamps: Days) -> NDArray[np.int64]:
    # 1970 began on a Thursday; Monday is 0
    days = stamps.astype("datetime64[D]").astype(np.int64)
    return np.asarray((days + 3) % 7)


def _months(stamps: Days) -> NDArray[np.int64]:
    # NumPy counts months from January 1970
    months = stamps.astype("datetime64[M]").astype(np.int64)
    return np.asarray(months % 12 + 1)


def _move_to_hour(stamps: Days, hour: int) -> Days:
    change = hour - _hours(stamps)
    return np.asarray(stamps + change.astype("timedelta64[h]"))


def _move_to_weekday(stamps: Days, weekday: int) -> Days:
    change = weekday - _weekdays(stamps)
    return np.asarray(stamps + change.astype("timedelta64[D]"))


def _move_to_month(stamps: Days, month: int) -> Days:
    """Move dates to a month of the same year, and keep the day of the month."""
    begins = stamps.astype("datetime64[M]")
    since = stamps - begins.astype("datetime64[us]")

    change = month - _months(stamps)
    moved = begins + change.astype("timedelta64[M]")
    return np.asarray(moved.astype("datetime64[us]") + since)


def _as_it_is(value: int) -> str | int:
    return value


def _weekday_name(value: int) -> str | int:
    return WEEKDAYS[value]


DATE_PARTS = (
    DatePart("hour", _hours, _move_to_hour, _as_it_is),
    DatePart("weekday", _weekdays, _move_to_weekday, _weekday_name),
    DatePart("month", _months, _move_to_month, _as_it_is),
)
