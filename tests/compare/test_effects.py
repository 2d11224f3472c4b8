"""Effects of columns, against the mean prediction computed by hand."""

import datetime as dt

import numpy as np
import pyarrow as pa

from nysboost.compare.effects import find_effects


class HourModel:
    """Predicts the hour of a date, plus ten in the weekend."""

    def predict(self, table):
        stamps = table.column("at").to_pylist()
        return np.array([stamp.hour + 10 * (stamp.weekday() >= 5) for stamp in stamps])


class ThreeClasses:
    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, table):
        x = np.asarray(table.column("x"), dtype=float)
        return np.column_stack([x, 1 - x, 0 * x])


def test_the_effects_of_a_date_are_those_of_its_hour_and_weekday():
    begins = dt.datetime(2026, 3, 2)  # a Monday
    stamps = [begins + dt.timedelta(hours=7 * i) for i in range(100)]
    table = pa.table({"at": pa.array(stamps, pa.timestamp("us"))})
    effects = {effect.column: effect for effect in find_effects(HourModel(), table, "at")}
    hours = effects["at, hour"]
    assert hours.values == list(range(24))
    np.testing.assert_allclose(np.diff(hours.means[:, 0]), 1)
    weekdays = effects["at, weekday"]
    assert weekdays.values == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    weekend = weekdays.means[5:, 0].mean() - weekdays.means[:5, 0].mean()
    np.testing.assert_allclose(weekend, 10)


class MonthModel:
    """Predicts 100 times the month of a date, plus its day; nothing of dates that are missing."""

    def predict(self, table):
        stamps = table.column("at").to_pylist()
        return np.array([100 * stamp.month + stamp.day if stamp else 0 for stamp in stamps])


def test_a_date_moved_to_another_month_keeps_its_day_also_before_1970():
    stamps = [dt.datetime(1969 + i // 6, 1 + 2 * i % 12, 5 + i) for i in range(12)]
    table = pa.table({"at": pa.array([*stamps, None], pa.timestamp("us"))})
    effects = {effect.column: effect for effect in find_effects(MonthModel(), table, "at")}
    months = effects["at, month"]
    assert months.values == [1, 3, 5, 7, 9, 11]
    days = sum(stamp.day for stamp in stamps)
    np.testing.assert_allclose(13 * months.means[:, 0], 12 * 100 * np.array(months.values) + days)


def test_a_title_says_how_many_of_the_values_are_shown():
    table = pa.table({"x": np.linspace(0, 1, 30)})
    (effect,) = find_effects(ThreeClasses(), table, "x")
    assert effect.title == "Effect of x (12 of 30 values)"
    np.testing.assert_allclose(effect.means[:, 0], effect.values)
    np.testing.assert_allclose(effect.means[:, 1], 1 - np.array(effect.values))
