"""Dates, ids, gaps and targets of categories: what a table says beyond its numbers."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import nysboost as nb
from nysboost.tables.codes import Codes
from nysboost.tables.files import open_table
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import summarise_columns
from nysboost.tables.values import as_number

QUICK = {"n_components": 30, "landmarks": "uniform", "random_state": 0, "verbose": 0}


def deliveries(n=600, seed=0):
    """Deliveries with a rush hour, in no order, and minutes that depend on hour and weekday."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 150 * 86_400, n)
    ordered = pd.Series(pd.Timestamp("2023-01-02") + pd.to_timedelta(seconds, "s"))
    hour = ordered.dt.hour + ordered.dt.minute / 60
    rush = 9 * np.exp(-(((hour - 17.5) / 2) ** 2))
    minutes = 30 + rush - 5 * (ordered.dt.day_of_week >= 5) + rng.normal(0, 1, n)
    return pd.DataFrame({"ordered_at": ordered}), minutes.to_numpy()


def test_hours_and_weekdays_of_a_date_are_learned():
    frame, y = deliveries()
    hand = pd.DataFrame(
        {
            "second": (frame["ordered_at"] - frame["ordered_at"].min()).dt.total_seconds(),
            "hour": frame["ordered_at"].dt.hour,
            "weekday": frame["ordered_at"].dt.day_of_week,
        }
    )
    errors = []
    for table in (frame, hand):
        model = nb.NystroemRegressor(verbose=0, random_state=0).fit(table[:450], y[:450])
        errors.append(np.sqrt(np.mean((model.predict(table[450:]) - y[450:]) ** 2)))
    assert errors[0] < 1.05 * errors[1]
    assert len(model.feature_importances_) == 3


def test_codes_of_a_date_are_phase_sine_and_cosine_of_what_repeats_and_varies():
    days = pd.date_range("2020-01-01 06:00", periods=800, freq="D")
    schema = Schema.of(pd.DataFrame({"day": days}))
    assert schema.columns[0].cycles == ("weekday", "season")  # it is always six o'clock
    assert schema.describe() == ["date: day (by weekday, season)"]
    codes = Codes.of(schema)(pd.DataFrame({"day": [*days[:9], pd.NaT]}))
    np.testing.assert_array_equal(codes[0, 1:4], codes[7, 1:4])
    weekday = days[:9].day_of_week.to_numpy()  # 0 is Monday
    np.testing.assert_allclose(codes[:9, 1], weekday / 7)
    np.testing.assert_allclose(codes[:9, 2], np.sin(2 * np.pi * weekday / 7), atol=1e-8)
    np.testing.assert_array_equal(codes[9, 1:], 0)
    short = Schema.of(pd.DataFrame({"day": days[:5]}))
    assert short.columns[0].cycles == ()


def test_times_of_the_day_come_again_and_durations_do_not():
    clock = [f"{i % 24:02}:30" for i in range(60)]
    lasted = pd.to_timedelta(np.arange(60), "h")
    schema = Schema.of(pa.table({"clock": clock, "lasted": lasted}))
    assert [column.cycles for column in schema.columns] == [("time of day",), ()]


def test_dates_are_the_same_by_every_door(tmp_path, command):
    frame, y = deliveries()
    frame = frame.assign(size=np.arange(600.0) % 7)
    model = nb.NystroemRegressor(**QUICK).fit(frame, y)
    expected = model.predict(frame[:40])
    arrow = pa.Table.from_pandas(frame[:40])
    for table in (pl.from_pandas(frame[:40]), arrow, iter([frame[:9], frame[9:40]])):
        np.testing.assert_allclose(model.predict(table), expected, atol=1e-8)
    with dask.config.set(scheduler="synchronous"):
        lazy = model.predict(dd.from_pandas(frame[:40], npartitions=3)).compute()
    np.testing.assert_allclose(lazy, expected, atol=1e-8)
    nb.save(model, tmp_path / "m.nysboost")
    frame[:40].to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "o.csv"
    status, said, complained = command(
        "predict", str(tmp_path / "m.nysboost"), str(tmp_path / "t.csv"), "--out", str(out)
    )
    assert status == 0, said + complained
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected, rtol=1e-6)


def zoned_deliveries():
    frame, y = deliveries()
    berlin = frame["ordered_at"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    return frame, frame.assign(ordered_at=berlin), y


def tables_of(frame, folder):
    """Yield a data frame with a column of dates in other containers."""
    yield frame
    yield pl.from_pandas(frame)
    yield pa.Table.from_pandas(frame)
    yield frame.assign(ordered_at=frame["ordered_at"].astype(str))
    yield frame.assign(ordered_at=frame["ordered_at"].astype(object))
    yield iter([frame])
    yield dd.from_pandas(frame, npartitions=2)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.to_json(folder / "t.jsonl", orient="records", lines=True, date_format="iso")
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        yield pa.concat_tables(open_table(folder / name).batches())


@pytest.mark.parametrize("zoned", [False, True])
def test_dates_with_and_without_a_time_zone_are_not_mixed(zoned, tmp_path):
    naive, aware, y = zoned_deliveries()
    fitted, other = (aware, naive) if zoned else (naive, aware)
    model = nb.NystroemRegressor(**QUICK).fit(fitted, y)
    expected = model.predict(fitted[:9])
    advice = "add the time zone" if zoned else "drop the time zone"
    with dask.config.set(scheduler="synchronous"):
        for table in tables_of(fitted[:9], tmp_path):
            found = np.asarray(model.predict(table))
            np.testing.assert_allclose(found, expected, atol=1e-8)
        for table in tables_of(other[:9], tmp_path):
            with pytest.raises(ValueError, match=f"'ordered_at' was fitted with dates.*{advice}"):
                np.asarray(model.predict(table))


def test_dates_some_of_which_have_a_time_zone_are_told_of():
    naive, aware, _ = zoned_deliveries()
    mixed = [*naive["ordered_at"].astype(str)[:99], *aware["ordered_at"].astype(str)[:99]]
    with pytest.warns(UserWarning, match="Some of its dates have a time zone, others have none"):
        Schema.of(pa.table({"when": mixed, "x": range(198)}))
    parts = [pa.table({"when": frame["ordered_at"].array}) for frame in (naive, aware)]
    summaries = map(summarise_columns, parts)
    with pytest.raises(ValueError, match=r"dates in some parts and .* with a time zone in others"):
        Schema.from_summaries(summaries, "fill", named=True)


# Ids


def orders(n=200):
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.arange(7000, 7000 + n))
    return pd.DataFrame({"order": numbers, "size": rng.normal(size=n), "count": rng.poisson(9, n)})


@pytest.mark.filterwarnings("ignore:Column 'order' has a different")
def test_numbers_of_rows_are_left_out_unless_asked_for():
    frame = orders()
    with pytest.warns(UserWarning, match="'order' has a different whole number in each row"):
        schema = Schema.of(frame, ids="drop")
    assert [column.used for column in schema.columns] == [False, True, True]
    assert "id: order" in schema.describe()
    assert Schema.of(frame).columns[0].used
    # 4 of 5 rows still show it, measurements and few rows do not
    assert not Schema.of(frame[:160], ids="drop").columns[0].used
    rng = np.random.default_rng(1)
    measured = pd.DataFrame({"income": rng.integers(0, 10**6, 200), "x": rng.normal(size=200)})
    assert all(column.used for column in Schema.of(measured, ids="drop").columns)
    years = pd.DataFrame({"year": np.arange(1950, 2020), "x": rng.normal(size=70)})
    assert all(column.used for column in Schema.of(years, ids="drop").columns)
    # nothing else to learn from
    assert Schema.of(frame[["order"]], ids="drop").columns[0].used


@pytest.mark.filterwarnings("ignore:Column 'order_id' has a different")
def test_numbers_that_a_name_calls_ids_may_be_far_apart():
    rng = np.random.default_rng(0)
    numbers = rng.permutation(10**7)[:200]
    size = rng.normal(size=200)
    named = Schema.of(pd.DataFrame({"order_id": numbers, "size": size}), ids="drop")
    assert [column.kind for column in named.columns] == ["id", "number"]
    other = Schema.of(pd.DataFrame({"income": numbers, "size": size}), ids="drop")
    assert [column.kind for column in other.columns] == ["number", "number"]


def test_ids_of_groups_are_no_ids_of_rows_in_tables_of_which_some_rows_are_seen():
    groups = np.repeat(np.arange(100_000.0), 8)
    sizes = np.tile([0.5, 1.5], 400_000)
    schema = Schema.of(pd.DataFrame({"customer": groups, "size": sizes}), ids="drop")
    assert all(column.used for column in schema.columns)


def test_learners_leave_ids_out_and_say_so():
    frame = orders()
    y = frame["size"].to_numpy()
    with pytest.warns(UserWarning, match="'order'"):
        model = nb.NystroemRegressor(**QUICK).fit(frame, y)
    assert model.feature_importances_[0] == 0
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.assign(order=1)))
    model = nb.NystroemRegressor(**QUICK, ids="keep").fit(frame, y)
    assert model.schema_.columns[0].used


def test_sorted_dates_and_ids_in_several_rows_are_noted():
    n = 300
    frame = pd.DataFrame(
        {
            "sold": pd.date_range("2020-01-01", periods=n, freq="h"),
            "customer_id": np.arange(n) % 40,
            "paid": np.arange(n) % 40,
        }
    )
    by_date, by_group = Schema.of(frame).notes
    assert "sorted by 'sold'" in by_date
    assert "'customer_id' has 40 ids in 300 rows" in by_group
    assert not Schema.of(frame.sample(frac=1, random_state=0)[["sold", "paid"]]).notes

    # the last rows may be the oldest
    latest_first = Schema.of(frame[::-1]).notes[0]
    assert "sorted by 'sold', latest first" in latest_first
    assert "reverse the rows and hold out the last ones" in latest_first


# Gaps


def test_na_is_a_text_in_a_frame_and_a_gap_among_numbers_and_in_a_file():
    """Namibia is no gap."""
    countries = pa.table({"country": ["NA", "DE", None, "DE"] * 9})
    schema = Schema.of(countries)
    assert schema.columns[0].values == ("DE", "NA")
    assert schema.columns[0].gaps == 9
    np.testing.assert_array_equal(schema.read(countries)[0][:4], [1, 0, -1, 0])
    # where it is no value, it is a gap
    other = Schema.of(pa.table({"country": ["FR", "DE", None, "DE"] * 9}))
    np.testing.assert_array_equal(other.read(countries)[0][:4], [-1, 0, -1, 0])
    with pytest.warns(UserWarning, match=r"'x' holds numbers, and 9 times 'NA'"):
        assert Schema.of(pa.table({"x": ["1.5", "NA", "2.5"] * 9})).columns[0].gaps == 9
    days = ["2020-01-31", "NaT", "2020-02-29"] * 9
    with pytest.warns(UserWarning, match=r"'day' holds dates, and 9 times 'NaT'"):
        assert Schema.of(pa.table({"day": days})).columns[0].kind == "date"


def test_sparse_rows_with_gaps_are_filled_with_medians():
    X = np.random.default_rng(0).normal(size=(200, 3)) * (np.arange(200) % 2)[:, None] + [0, 0, 5]
    y = X[:, 0]
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    filled = np.where(np.isnan(gaps), np.nanmedian(gaps, axis=0), gaps)
    model = nb.NystroemRegressor(**QUICK).fit(csr_matrix(gaps), y)
    expected = nb.NystroemRegressor(**QUICK).fit(csr_matrix(filled), y).predict(filled)
    np.testing.assert_allclose(model.predict(csr_matrix(gaps)), expected, atol=1e-8)
    with pytest.raises(ValueError, match="NaN"):
        nb.NystroemRegressor(**QUICK, missing="raise").fit(csr_matrix(gaps), y)


# Categories with many values


def streets(n=1200):
    rng = np.random.default_rng(0)
    level = rng.normal(size=200)
    at = rng.integers(200, size=n)
    names = np.array([f"street {i}" for i in at], dtype=object)
    return pd.DataFrame({"street": names, "size": rng.normal(size=n)}), level[at]


def test_means_of_the_target_are_learned_from_lazy_tables_too():
    frame, y = streets()
    model = nb.NystroemRegressor(**QUICK).fit(frame, y)
    with dask.config.set(scheduler="synchronous"):
        lazy = nb.NystroemRegressor(**QUICK).fit(dd.from_pandas(frame, npartitions=4), y)
    np.testing.assert_allclose(lazy._table.means[0], model._table.means[0], atol=1e-9)
    np.testing.assert_allclose(lazy.predict(frame), model.predict(frame), atol=1e-6)


# Time


@pytest.mark.parametrize("text", ["1" * 32_000 + "x", "1" * 32_000 + ":", "1" + " " * 32_000 + "x"])
def test_long_cells_take_time_in_proportion_to_their_length(text):
    assert as_number(text) is None
    schema = Schema.of(pa.table({"x": ["45 %", "3 %", "7 %"] * 9}))
    with pytest.raises(ValueError, match="fitted with numbers"):
        schema.read(pa.table({"x": [text]}))
    assert Schema.of(pa.table({"x": [text, "a"]})).columns[0].kind == "category"


@pytest.mark.parametrize("form", ["%Y/%m/%d %H:%M", "%Y.%m.%d", "%Y/%m/%dT%H:%M:%S"])
def test_dates_with_the_year_first_are_dates(form):
    days = pd.date_range("2020-01-01 06:00", periods=40, freq="27h")
    written = pd.DataFrame({"day": [day.strftime(form) for day in days]})
    schema = Schema.of(written)
    assert schema.columns[0].kind == "date"
    expected = days if "%H" in form else days.normalize()
    np.testing.assert_array_equal(
        Codes.of(schema)(written)[:, 0],
        Codes.of(schema)(pd.DataFrame({"day": expected}))[:, 0],
    )


@pytest.mark.parametrize("mark", ["-", "?", "missing"])
@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%d.%m.%Y", "%H:%M"])
def test_marks_of_gaps_between_dates_are_gaps(form, mark):
    days = pd.date_range("2020-01-15 01:20", periods=40, freq="27h")
    written = pd.DataFrame({"day": [mark, *(day.strftime(form) for day in days)]})
    with pytest.warns(UserWarning, match=r"1 times .*read as missing values"):
        column = Schema.of(written).columns[0]
    assert column.kind == ("duration" if form == "%H:%M" else "date")
    assert column.gaps == 1
    codes = Codes.of(Schema.of(written.replace(mark, None)))
    np.testing.assert_array_equal(codes(written), codes(written.replace(mark, None)))
