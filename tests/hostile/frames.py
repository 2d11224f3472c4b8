"""Data frames of every library, with columns as people have them: one model, one answer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import nysboost as nb
from hostile import Case, cases, close_to, listed, refused

RNG = np.random.default_rng(1)
N = 60
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=N).round(3),
        "count": RNG.integers(0, 9, N),
        "town": RNG.choice(["Ulm", "Köln", "Trier"], N),
        "floor": pd.Categorical(RNG.integers(0, 4, N)),
        "garden": RNG.random(N) < 0.5,
        "built": pd.Timestamp("2000-01-01") + pd.to_timedelta(RNG.integers(0, 9000, N), unit="D"),
        "lasted": pd.to_timedelta(RNG.integers(0, 9000, N), unit="s"),
    }
)
TARGET = FRAME["size"] + 2.0 * FRAME["garden"] + 0.1 * FRAME["count"] + (FRAME["town"] == "Ulm")
GAPS = FRAME.copy()
for _j, _name in enumerate(("size", "town", "floor", "built", "lasted")):
    GAPS.loc[_j, _name] = None


def learner(count: int = 8, **how: Any) -> Any:
    usual: dict[str, Any] = {"landmarks": "uniform", "random_state": 0, "verbose": 0}
    return nb.NystroemRegressor(count, **usual | how)


@cache
def model(gaps: bool = True, **how: Any) -> Any:
    return learner(**how).fit(GAPS if gaps else FRAME, TARGET)


def same(frame: pd.DataFrame = FRAME) -> Callable[[Any], bool]:
    return lambda found: close_to(model().predict(frame))(found)


def arrow(frame: pd.DataFrame) -> Any:
    plain = frame.assign(floor=frame["floor"].astype(object)) if "floor" in frame else frame
    return pa.Table.from_pandas(plain, preserve_index=False)


def polars(frame: pd.DataFrame) -> Any:
    return pl.from_arrow(arrow(frame))


def lazily(frame: Any) -> Any:
    with dask.config.set(scheduler="synchronous"):
        return model().predict(dd.from_pandas(frame, npartitions=3)).compute()


def lazily_from_row_five() -> Any:
    parts = dd.from_pandas(FRAME, npartitions=20)  # of three rows each
    with dask.config.set(scheduler="synchronous"):
        return model().predict(parts.map_partitions(lambda part: part[part.index >= 5])).compute()


def convert(frame: pd.DataFrame, backend: Any) -> pd.DataFrame:
    """Return a frame with pandas' other types; pandas 2.2 warns of large numbers itself."""
    with np.errstate(invalid="ignore"):
        return frame.convert_dtypes(dtype_backend=backend)


Change = Callable[[pd.DataFrame], Any]
DOORS: dict[str, Change] = {
    "pandas": lambda f: model().predict(f),
    "pandas, nullable": lambda f: model().predict(convert(f, "numpy_nullable")),
    "pandas on Arrow": lambda f: model().predict(convert(f, "pyarrow")),
    "polars": lambda f: model().predict(polars(f)),
    "polars, lazy": lambda f: model().predict(polars(f).lazy()),
    "Arrow": lambda f: model().predict(arrow(f)),
    "an Arrow batch": lambda f: model().predict(arrow(f).combine_chunks().to_batches()[0]),
    "blocks": lambda f: model().predict(f[i : i + 7] for i in range(0, len(f), 7)),
    "Dask": lazily,
}
RIGHT: dict[str, Change] = {
    "as fitted": lambda f: f,
    "columns turned round": lambda f: f[f.columns[::-1]],
    "another column": lambda f: f.assign(other="x"),
    "truth values as 0 and 1": lambda f: f.assign(garden=f["garden"].astype(int)),
    "whole numbers as floats": lambda f: f.assign(count=f["count"].astype(float)),
    "categories as numbers": lambda f: f.assign(floor=f["floor"].astype(float)),
    "categories as text": lambda f: f.assign(floor=f["floor"].astype(str)),
    "text as a category": lambda f: f.assign(town=f["town"].astype("category")),
    "dates in milliseconds": lambda f: f.assign(built=f["built"].astype("datetime64[ms]")),
    "dates as text": lambda f: f.assign(built=f["built"].dt.strftime("%Y-%m-%d")),
    "spans in milliseconds": lambda f: f.assign(lasted=f["lasted"].astype("timedelta64[ms]")),
    "spans as text": lambda f: f.assign(lasted=f["lasted"].astype(str)),
    "numbers as text": lambda f: f.assign(size=f["size"].map(repr)),
}
ODD: dict[str, Change] = {
    "spans as ISO 8601 writes them": lambda f: f.assign(
        lasted=f["lasted"].map(pd.Timedelta.isoformat)
    ),
    "numbers as objects": lambda f: f.assign(size=f["size"].astype(object)),
    "numbers as Decimals": lambda f: f.assign(size=f["size"].map(lambda v: Decimal(repr(v)))),
    "dates as objects": lambda f: f.assign(built=pd.Series(list(f["built"].dt.date), dtype=object)),
    "truth as objects": lambda f: f.assign(garden=f["garden"].astype(object)),
    "another index": lambda f: f.set_index(f.index[::-1] + 100),
    "names of another type": lambda f: f.set_axis(pd.Index(f.columns, dtype=object), axis=1),
}
EVERYWHERE = {
    f"{name} is missing everywhere": lambda f, n=name: f.assign(**{n: None})
    for name in ("size", "town", "floor", "built")
}
NOT_SERVED = {
    ("polars", "spans in milliseconds"), ("polars, lazy", "spans in milliseconds"),
    ("Dask", "another index"),  # it sorts rows by their index
}  # fmt: skip
SERVED = [
    Case(f"{door}: {name}", lambda d=DOORS[door], c=change: d(c(FRAME)), same(expected))
    for changes, doors, as_fitted in (
        (RIGHT, DOORS, True),
        (ODD, ("pandas", "pandas, nullable", "Dask", "blocks"), True),
        ({"gaps": lambda _: GAPS}, DOORS, False),
        (EVERYWHERE, ("polars", "Arrow", "blocks", "Dask"), False),
        ({"a town that is not known": lambda f: f.assign(town="Rom")}, DOORS, False),
    )
    for door in doors
    for name, change in changes.items()
    for expected in [FRAME if as_fitted else change(FRAME)]
    if (door, name) not in NOT_SERVED
]

THIRD = np.arange(N) == 3
NUMBERS = FRAME[["size"]].to_numpy()
WITH_GAP = np.where(THIRD[:, None], np.nan, NUMBERS)
WRONG: dict[str, tuple[Change, str]] = {
    "a column that is not there": (lambda f: f.drop(columns="size"), "no column 'size'"),
    "a word among numbers": (
        lambda f: f.assign(size=[*map(str, f["size"][:-1]), "much"]),
        "'size' was fitted with numbers, but row [0-9]+ has 'much'"),
    "a date in the place of a number": (
        lambda f: f.assign(size=f["built"]), "'size' was fitted with numbers, .* row 0 has a date"),
    "a number in the place of a date": (
        lambda f: f.assign(built=1.5), "'built' was fitted with dates, but row 0 has a number"),
    "2 in the place of a truth value": (
        lambda f: f.assign(garden=2), "'garden' was fitted with truth values, but row 0 has 2"),
    "a word in the place of a truth value": (
        lambda f: f.assign(garden="perhaps"), "with truth values, but row 0 has 'perhaps'"),
    "a word in the place of a date": (
        lambda f: f.assign(built="once"), "'built' was fitted with dates, but row 0 has 'once'"),
    "infinity": (
        lambda f: f.assign(size=np.where(THIRD, np.inf, f["size"])), "'size' contains infinity"),
    "a code for no data": (
        lambda f: f.assign(size=np.where(THIRD, -3.4028234663852886e38, 1.0)),
        "'size' has the value -3.4.*e.38 in row 3, out of range"),
    "1e160": (
        lambda f: f.assign(size=np.where(THIRD, 1e160, 1.0)),
        "'size' has the value 1e.160 in row 3, out of range"),
}  # fmt: skip
NO_FITS: dict[str, tuple[Change, str]] = {
    "two columns of one name": (
        lambda f: pd.concat([f, f[["size"]]], axis=1), "two columns called 'size'"),
    "no columns": (lambda f: f[[]], "0 feature"),
    "no rows": (lambda f: f[:0], "0 sample"),
    "complex numbers": (lambda f: f.assign(z=1j), "Complex data not supported: column 'z'"),
    "lists in cells": (lambda f: f.assign(z=[[1, 2]] * N), "Column 'z' holds list objects"),
    "numbers, but a word": (
        lambda f: f.assign(z=[*map(str, range(N - 1)), "abc"]), "holds numbers, but also 'abc'"),
    "digits of another script": (
        lambda f: f.assign(z=["\u0663", *map(str, range(N - 1))]), "holds numbers, but also"),
    "a whole number of 400 digits": (
        lambda f: f.assign(z=pd.Series([10**400, *range(N - 1)], dtype=object)),
        "too large for floating point"),
    "a code for no data": (lambda f: f.assign(z=[-3.4e38, *range(1, N)]), "out of range"),
    "an array with 1e160": (lambda f: np.c_[TARGET, [1e160, *range(1, N)]], "out of range"),
    "numbers, but a long word": (
        lambda f: f.assign(z=[*map(str, range(N - 1)), "x" * 99]), "but also 'x+…: make it"),
    "nothing but names": (
        lambda f: pd.DataFrame({"name": [f"n{i}" for i in range(N)]}), "no column that can be"),
}  # fmt: skip
NOTHING_MISSING = {
    "a gap": (GAPS, "'size' has 1 missing value .*row 0"),
    "a gap in text": (
        FRAME.assign(town=np.where(THIRD, None, FRAME["town"])),
        "'town' has 1 missing value .*row 3",
    ),
    "an unknown category": (
        FRAME.assign(town=np.where(THIRD, "Rom", FRAME["town"])),
        "'Rom' in row 3, which was not",
    ),
    "a gap of polars": (polars(GAPS), "'size' has 1 missing value"),
    "a gap of Arrow": (arrow(GAPS), "'size' has 1 missing value"),
    "a gap in blocks": (iter([FRAME, GAPS]), "'size' has 1 missing value"),
}
FEW = FRAME[:12].assign(z=["abc", *(f"{i}.5" for i in range(11))])
SINGLE: dict[str, Any] = {
    "two columns of one name": (
        lambda: model().predict(NO_FITS["two columns of one name"][0](FRAME)),
        "two columns called 'size'"),
    "no fit to a word among few numbers that are not whole": (
        lambda: learner().fit(FEW, TARGET[:12]), "holds numbers, but also 'abc'"),
    'missing="raise": a gap in an array, fitted': (
        lambda: learner(missing="raise").fit(WITH_GAP, TARGET), "X contains NaN, first at row 3"),
    'missing="raise": a gap in an array, predicted': (
        lambda: learner(missing="raise").fit(NUMBERS, TARGET).predict(WITH_GAP),
        "X contains NaN, first at row 3"),
    'missing="raise" in a fit': (
        lambda: learner(missing="raise").fit(GAPS, TARGET), "'size' has 1 missing value"),
}  # fmt: skip
REFUSED = [
    *cases(
        "{}: no rows to predict",
        lambda make: model().predict(make(FRAME)[:0]),
        {"pandas": lambda f: f, "polars": polars, "Arrow": arrow},
        says=r"0 sample\(s\) \(shape=\(0, 7\)\).*NystroemRegressor",
    ),
    *(
        case
        for door, predict in DOORS.items()
        for case in refused(f"{door}: {{}}", lambda c, p=predict: p(c(FRAME)), WRONG)
    ),
    *refused("no fit to {}", lambda change: learner().fit(change(FRAME), TARGET), NO_FITS),
    *refused(
        'missing="raise": {}',
        lambda frame: model(gaps=False, missing="raise").predict(frame),
        NOTHING_MISSING,
    ),
    *listed(SINGLE),
]

FITS: dict[str, Change] = {
    "whole numbers as a category, one missing": lambda f: f.assign(
        floor=pd.Categorical([None, *f["floor"][1:]])
    ),
    "truth values with gaps": lambda f: f.assign(
        garden=pd.array([None, *f["garden"][1:]], dtype="boolean")
    ),
    "a column without values": lambda f: f.assign(empty=np.nan),
    "a column of None": lambda f: f.assign(empty=None),
    "a constant": lambda f: f.assign(one="x"),
    "numbers with a percent sign": lambda f: f.assign(size=f["size"].map("{}%".format)),
    "dates with the day first": lambda f: f.assign(built=f["built"].dt.strftime("%d/%m/%Y")),
    "one long cell": lambda f: f.assign(text=["x" * 20_000, *(["y"] * (N - 1))]),
    "names that differ in every row": lambda f: f.assign(name=[f"n{i}" for i in range(N)]),
    "periods": lambda f: f.assign(p=pd.period_range("2020", periods=N, freq="D").astype(str)),
    "times with zones": lambda f: f.assign(built=f["built"].dt.tz_localize("Europe/Berlin")),
    "text of Arrow that is viewed": lambda f: pa.table(
        {name: f[name].to_list() for name in ("size", "garden", "count")}
        | {"town": pa.array(list(f["town"]), pa.string_view())}
    ),
    "columns with numbers for names": lambda f: f.set_axis(range(7), axis=1),
    "float32": lambda f: f.assign(size=f["size"].astype(np.float32)),
    "polars with decimals and times": lambda f: polars(f).with_columns(
        pl.col("size").cast(pl.Decimal(20, 6)),
        noon=pl.lit(dt.time(12)),
        c=pl.col("town").cast(pl.Categorical),
    ),
}


def score(frame: Any, target: Any = TARGET) -> float:
    return float(learner(30).fit(frame, target).score(frame, target))


MONTHS = pd.date_range("2020-01-01", periods=N, freq="MS")
FITTED = [
    Case(
        "a fit to months",
        lambda: (
            learner()
            .fit(pd.DataFrame({"p": MONTHS.to_period("M")}), TARGET)
            .predict(pd.DataFrame({"p": MONTHS}))
        ),
        lambda found: close_to(
            learner().fit(pd.DataFrame({"p": MONTHS}), TARGET).predict(pd.DataFrame({"p": MONTHS}))
        )(found),
    )
]
FITTED += [Case("Dask: parts of no rows and of one", lazily_from_row_five, same(FRAME[5:]))]
FITTED += cases(
    "a fit to {}",
    lambda change: score(change(FRAME)),
    {**RIGHT, **ODD, **FITS},
    lambda _: lambda found: found > 0.5,
)
CASES = [replace(case, name=f"frames, {case.name}") for case in (*SERVED, *REFUSED, *FITTED)]
