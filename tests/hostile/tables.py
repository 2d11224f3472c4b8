"""Data frames of every library, with columns as people have them: one model, one answer."""

from __future__ import annotations

import datetime as dt
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case

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


@cache
def model(gaps: bool = True, **how: Any) -> Any:
    options: dict[str, Any] = {"landmarks": "uniform", "random_state": 0, "verbose": 0} | how
    return nb.NystroemRegressor(8, **options).fit(GAPS if gaps else FRAME, TARGET)


@cache
def expected(gaps: bool = False) -> Any:
    return model().predict(GAPS if gaps else FRAME)


def same(gaps: bool = False) -> Callable[[Any], bool]:
    return lambda found: bool(np.allclose(np.asarray(found), expected(gaps), rtol=1e-9, atol=1e-9))


def arrow(frame: pd.DataFrame) -> Any:
    plain = frame.assign(floor=frame["floor"].astype(object)) if "floor" in frame else frame
    return pa.Table.from_pandas(plain, preserve_index=False)


def lazily(frame: Any) -> Any:
    with dask.config.set(scheduler="synchronous"):
        return model().predict(dd.from_pandas(frame, npartitions=3)).compute()


DOORS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda f: model().predict(f),
    "pandas, nullable": lambda f: model().predict(f.convert_dtypes()),
    "pandas on Arrow": lambda f: model().predict(f.convert_dtypes(dtype_backend="pyarrow")),
    "polars": lambda f: model().predict(pl.from_arrow(arrow(f))),
    "polars, lazy": lambda f: model().predict(pl.from_arrow(arrow(f)).lazy()),
    "Arrow": lambda f: model().predict(arrow(f)),
    "an Arrow batch": lambda f: model().predict(arrow(f).combine_chunks().to_batches()[0]),
    "blocks": lambda f: model().predict(f[i : i + 7] for i in range(0, len(f), 7)),
    "Dask": lazily,
}

RIGHT: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as fitted": lambda f: f,
    "columns turned round": lambda f: f[f.columns[::-1]],
    "another column": lambda f: f.assign(other="x"),
    "truth values as 0 and 1": lambda f: f.assign(garden=f["garden"].astype(int)),
    "truth values as numbers": lambda f: f.assign(garden=f["garden"].astype(float)),
    "whole numbers as floats": lambda f: f.assign(count=f["count"].astype(float)),
    "categories as numbers": lambda f: f.assign(floor=f["floor"].astype(float)),
    "categories as text": lambda f: f.assign(floor=f["floor"].astype(str)),
    "text as a category": lambda f: f.assign(town=f["town"].astype("category")),
    "dates in nanoseconds": lambda f: f.assign(built=f["built"].astype("datetime64[ns]")),
    "dates in seconds": lambda f: f.assign(built=f["built"].astype("datetime64[s]")),
    "dates as text": lambda f: f.assign(built=f["built"].dt.strftime("%Y-%m-%d")),
    "spans in milliseconds": lambda f: f.assign(lasted=f["lasted"].astype("timedelta64[ms]")),
    "numbers as text": lambda f: f.assign(size=f["size"].map(repr)),
}
ODD: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "numbers as objects": lambda f: f.assign(size=f["size"].astype(object)),
    "numbers as Decimals": lambda f: f.assign(size=f["size"].map(lambda v: Decimal(repr(v)))),
    "dates as objects": lambda f: f.assign(built=pd.Series(list(f["built"].dt.date), dtype=object)),
    "truth as objects": lambda f: f.assign(garden=f["garden"].astype(object)),
    "another index": lambda f: f.set_index(f.index[::-1] + 100),
    "names of another type": lambda f: f.set_axis(pd.Index(f.columns, dtype=object), axis=1),
}
SERVED = [
    *(
        Case(f"{door}: {name}", lambda d=DOORS[door], c=change: d(c(FRAME)), same())
        for door in DOORS
        for name, change in RIGHT.items()
        if not (door in ("polars", "polars, lazy") and name == "spans in milliseconds")
    ),
    *(
        Case(f"{door}: {name}", lambda d=DOORS[door], c=change: d(c(FRAME)), same())
        for door in ("pandas", "pandas, nullable", "Dask", "blocks")
        for name, change in ODD.items()
        if (door, name) != ("Dask", "another index")  # it sorts rows by their index
    ),
    *(Case(f"{door}: gaps", lambda d=DOORS[door]: d(GAPS), same(gaps=True)) for door in DOORS),
    *(
        Case(
            f"{door}: {name} is missing everywhere",
            lambda d=DOORS[door], n=name: d(FRAME.assign(**{n: None})),
            lambda found, n=name: bool(
                np.allclose(found, model().predict(FRAME.assign(**{n: None})), atol=1e-9)
            ),
        )
        for door in ("polars", "Arrow", "blocks", "Dask")
        for name in ("size", "town", "floor", "built")
    ),
    *(
        Case(
            f"{door}: a town that is not known",
            lambda d=DOORS[door]: d(FRAME.assign(town="Rom")),
            lambda found: bool(np.isfinite(found).all() and np.ptp(found) > 0),
        )
        for door in DOORS
    ),
]

WRONG: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "a column that is not there": (lambda f: f.drop(columns="size"), "no column 'size'"),
    "a word among numbers": (
        lambda f: f.assign(size=[*map(str, f["size"][:-1]), "much"]),
        "'size' was fitted with numbers, but row [0-9]+ has 'much'",
    ),
    "a date in the place of a number": (
        lambda f: f.assign(size=f["built"]),
        "'size' was fitted with numbers, but row 0 has a date",
    ),
    "a number in the place of a date": (
        lambda f: f.assign(built=1.5),
        "'built' was fitted with dates, but row 0 has a number",
    ),
    "2 in the place of a truth value": (
        lambda f: f.assign(garden=2),
        "'garden' was fitted with truth values, but row 0 has 2",
    ),
    "a word in the place of a truth value": (
        lambda f: f.assign(garden="perhaps"),
        "'garden' was fitted with truth values, but row 0 has 'perhaps'",
    ),
    "a word in the place of a date": (
        lambda f: f.assign(built="once"),
        "'built' was fitted with dates, but row 0 has 'once'",
    ),
    "infinity": (
        lambda f: f.assign(size=np.where(np.arange(len(f)) == 3, np.inf, f["size"])),
        "'size' contains infinity",
    ),
    "a code for no data": (
        lambda f: f.assign(size=np.where(np.arange(len(f)) == 3, -3.4028234663852886e38, 1.0)),
        "'size' has the value -3.4.*e.38 in row 3, out of range",
    ),
    "1e160": (
        lambda f: f.assign(size=np.where(np.arange(len(f)) == 3, 1e160, 1.0)),
        "'size' has the value 1e.160 in row 3, out of range",
    ),
}
EMPTY = {
    "pandas": lambda: FRAME[:0],
    "polars": lambda: pl.from_arrow(arrow(FRAME))[:0],
    "Arrow": lambda: arrow(FRAME)[:0],
}
REFUSED = [
    *(
        Case(
            f"{door}: no rows to predict",
            lambda make=make: model().predict(make()),
            says=r"0 sample\(s\) \(shape=\(0, 7\)\).*NystroemRegressor",
        )
        for door, make in EMPTY.items()
    ),
    *(
        Case(f"{door}: {name}", lambda d=DOORS[door], c=change: d(c(FRAME)), says=says)
        for door in DOORS
        for name, (change, says) in WRONG.items()
    ),
    Case(
        "two columns of one name",
        lambda: model().predict(pd.concat([FRAME, FRAME[["size"]]], axis=1)),
        says="two columns called 'size'",
    ),
    Case(
        "a fit to two columns of one name",
        lambda: nb.NystroemRegressor(8).fit(pd.concat([FRAME, FRAME[["size"]]], axis=1), TARGET),
        says="two columns called 'size'",
    ),
    Case("no columns", lambda: nb.NystroemRegressor(8).fit(FRAME[[]], TARGET), says="0 feature"),
    Case("no rows", lambda: nb.NystroemRegressor(8).fit(FRAME[:0], TARGET), says="0 sample"),
    Case(
        "complex numbers",
        lambda: nb.NystroemRegressor(8).fit(FRAME.assign(z=1j), TARGET),
        says="Complex data not supported: column 'z'",
    ),
    Case(
        "lists in cells",
        lambda: nb.NystroemRegressor(8).fit(FRAME.assign(z=[[1, 2]] * N), TARGET),
        says="Column 'z' holds list objects",
    ),
    Case(
        "numbers, but a word",
        lambda: nb.NystroemRegressor(8).fit(
            FRAME.assign(z=[*map(str, range(N - 1)), "abc"]), TARGET
        ),
        says="Column 'z' holds numbers, but also 'abc'",
    ),
    Case(
        "a fit to a code for no data",
        lambda: nb.NystroemRegressor(8).fit(FRAME.assign(z=[-3.4e38, *range(1, N)]), TARGET),
        says="out of range",
    ),
    Case(
        "a fit to an array with 1e160",
        lambda: nb.NystroemRegressor(8).fit(np.c_[TARGET, [1e160, *range(1, N)]], TARGET),
        says="out of range",
    ),
    Case(
        "nothing but names",
        lambda: nb.NystroemRegressor(8, verbose=0).fit(
            pd.DataFrame({"name": [f"n{i}" for i in range(N)]}), TARGET
        ),
        says="no column that can be used",
    ),
    *(
        Case(
            f'missing="raise": {name}',
            lambda f=frame: model(gaps=False, missing="raise").predict(f),
            says=says,
        )
        for name, frame, says in (
            ("a gap", GAPS, "'size' has 1 missing value .*row 0"),
            ("a gap in text", FRAME.assign(town=None), "'town' has 60 missing values"),
            ("an unknown category", FRAME.assign(town="Rom"), "'Rom' in row 0, which was not"),
            ("a gap of polars", pl.from_arrow(arrow(GAPS)), "'size' has 1 missing value"),
            ("a gap of Arrow", arrow(GAPS), "'size' has 1 missing value"),
            ("a gap in blocks", iter([FRAME, GAPS]), "'size' has 1 missing value"),
        )
    ),
    Case(
        'missing="raise" in a fit',
        lambda: nb.NystroemRegressor(8, missing="raise").fit(GAPS, TARGET),
        says="'size' has 1 missing value",
    ),
]

FITS: dict[str, Callable[[], Any]] = {
    "whole numbers as a category, one missing": lambda: FRAME.assign(
        floor=pd.Categorical([None, *FRAME["floor"][1:]])
    ),
    "truth values with gaps": lambda: FRAME.assign(
        garden=pd.array([None, *FRAME["garden"][1:]], dtype="boolean")
    ),
    "a column without values": lambda: FRAME.assign(empty=np.nan),
    "a column of None": lambda: FRAME.assign(empty=None),
    "a constant": lambda: FRAME.assign(one="x"),
    "one long cell": lambda: FRAME.assign(text=["x" * 20_000, *(["y"] * (N - 1))]),
    "names that differ in every row": lambda: FRAME.assign(name=[f"n{i}" for i in range(N)]),
    "periods": lambda: FRAME.assign(p=pd.period_range("2020", periods=N, freq="D").astype(str)),
    "times with zones": lambda: FRAME.assign(built=FRAME["built"].dt.tz_localize("Europe/Berlin")),
    "text of Arrow that is viewed": lambda: pa.table(
        {
            "town": pa.array(list(FRAME["town"]), pa.string_view()),
            "size": list(FRAME["size"]),
            "garden": list(FRAME["garden"]),
            "count": list(FRAME["count"]),
        }
    ),
    "columns with numbers for names": lambda: FRAME.set_axis(range(7), axis=1),
    "very small numbers": lambda: FRAME.assign(size=FRAME["size"] * 1e-300),
    "very large numbers": lambda: FRAME.assign(size=FRAME["size"] * 1e200),
    "float32": lambda: FRAME.assign(size=FRAME["size"].astype(np.float32)),
    "polars with decimals and times": lambda: pl.from_pandas(
        FRAME.assign(floor=FRAME["floor"].astype(int))
    ).with_columns(
        pl.col("size").cast(pl.Decimal(20, 6)),
        noon=pl.lit(dt.time(12)),
        c=pl.col("town").cast(pl.Categorical),
    ),
}
FITTED = [
    Case(
        f"a fit to {name}",
        lambda make=make: _score(make()),
        lambda score: score > 0.5,
    )
    for name, make in FITS.items()
]


def _score(frame: Any) -> float:
    learner = nb.NystroemRegressor(30, landmarks="uniform", random_state=0, verbose=0)
    return float(learner.fit(frame, TARGET).score(frame, TARGET))


GROUP = RNG.integers(0, 4, 4 * N)
BY_GROUP = np.array([0.0, 5.0, -3.0, 9.0])[GROUP]
DAYS = [dt.datetime(2020, 1, 1 + i) for i in range(4)]
ODD_VALUES: dict[str, Any] = {
    "bytes": [b"a", b"b", b"c", b"d"],
    "tuples": [(1, 2), (1, 3), (2, 2), (3, 3)],
    "UUIDs": [uuid.UUID(int=i) for i in range(4)],
    "intervals": list(pd.interval_range(0, 4)),
    "periods": list(pd.period_range("2020-01", periods=4, freq="M")),
    "time zones": [dt.timezone(dt.timedelta(hours=i)) for i in range(4)],
    "text with spaces around it": [" a", "b ", " c ", "d"],
    "numbers and text": [1, 2.5, "x", "y"],
    "codes with zeros before them": ["007", "7", "07", "x"],
    "fractions": [Fraction(i, 3) for i in range(4)],
    "whole numbers of a hundred digits": [i * 10**100 for i in range(1, 5)],
    "truth and text": [True, False, "perhaps", "x"],
}
CATEGORIES: dict[str, Any] = {
    "dates": DAYS, "spans": [d - DAYS[0] for d in DAYS], "days": [d.date() for d in DAYS],
    "halves": [0.5, 1.0, 1.5, 2.0], "Decimals": [Decimal(i) / 4 for i in range(4)],
}  # fmt: skip


def _score_by_group(values: Any) -> float:
    """How much a column tells that has one of four values for each group."""
    frame = pd.DataFrame({"value": values, "other": RNG.normal(size=len(GROUP))})
    learner = nb.NystroemRegressor(30, landmarks="uniform", random_state=0, verbose=0)
    return float(learner.fit(frame, BY_GROUP).score(frame, BY_GROUP))


def _objects(values: Any) -> pd.Series:
    return pd.Series([values[i] for i in GROUP], dtype=object)


VALUES = [
    *(
        Case(f"values that are {what}", lambda v=v: _score_by_group(_objects(v)), lambda r: r > 0.9)
        for what, v in ODD_VALUES.items()
    ),
    *(
        Case(
            f"a category of {what}",
            lambda v=v: _score_by_group(pd.Categorical(_objects(v))),
            lambda r: r > 0.9,
        )
        for what, v in CATEGORIES.items()
    ),
    Case(
        "whole numbers of 64 bits in Arrow",
        lambda: (
            nb.NystroemRegressor(8, landmarks="uniform", random_state=0, verbose=0)
            .fit(pa.table({"id": pa.array([None, *range(2**62, 2**62 + N - 1)])}), TARGET)
            .predict(pa.table({"id": [2**63 - 1]}))
        ),
        lambda found: bool(np.isfinite(found).all()),
    ),
    Case(
        "a whole number of 400 digits",
        lambda: nb.NystroemRegressor(8).fit(FRAME.assign(z=[10**400, *range(N - 1)]), TARGET),
        says="too large for floating point",
    ),
    Case(
        "numbers in the digits of another script",
        lambda: nb.NystroemRegressor(8).fit(
            FRAME.assign(z=["\u0663", *map(str, range(N - 1))]), TARGET
        ),
        says="holds numbers, but also",
    ),
    Case(
        "a word among few numbers that are not whole",
        lambda: nb.NystroemRegressor(8).fit(
            FRAME[:12].assign(z=["abc", *(f"{i}.5" for i in range(11))]), TARGET[:12]
        ),
        says="holds numbers, but also 'abc'",
    ),
    Case(
        "labels of a hundred bits",
        lambda: nb.NystroemClassifier(8).fit(FRAME, np.array([2**99, 1] * (N // 2), dtype=object)),
        says="more than 64 bits",
    ),
    *(
        Case(
            f"an array with text, {what}",
            lambda m=make: (
                nb.NystroemRegressor(8, landmarks="uniform", random_state=0, verbose=0)
                .fit(m(FRAME[["size", "town"]]), TARGET)
                .predict(m(FRAME[["size", "town"]]))
            ),
            lambda found: bool(np.allclose(found, _of_frame(), atol=1e-9)),
        )
        for what, make in {
            "objects": lambda f: f.to_numpy(),
            "lists": lambda f: f.to_numpy().tolist(),
            "text alone": lambda f: f.to_numpy().astype(str),
        }.items()
    ),
    Case(
        "a frame's model and an array with text",
        lambda: model().predict(FRAME.to_numpy()),
        same(),
    ),
]


@cache
def _of_frame() -> Any:
    learner = nb.NystroemRegressor(8, landmarks="uniform", random_state=0, verbose=0)
    frame = FRAME[["size", "town"]]
    return learner.fit(frame, TARGET).predict(frame)


# Codes for "no data" where rows stay where they are


def _stores(table: np.ndarray) -> dict[str, Callable[[], Any]]:
    folder = Path(tempfile.mkdtemp())
    np.save(folder / "X.npy", table)
    return {
        "a memory map": lambda: np.load(folder / "X.npy", mmap_mode="r"),
        "HDF5": lambda: h5py.File(folder / "X.h5", "a").require_dataset(
            "X", table.shape, "f8", data=table
        ),
        "CSR": lambda: csr_matrix(table),
        "Dask": lambda: da.from_array(table, chunks=(20, 2)),
        "an array, two thirds of it": lambda: np.where(
            np.arange(N)[:, None] % 3 == 0, table, [table.min(), 1.0]
        ),
    }


NUMBERS = RNG.normal(size=(N, 2))
FAR = [
    *(
        Case(
            f"{value:g} in {what}, fitted",
            lambda make=make: nb.NystroemRegressor(8, landmarks="uniform").fit(make(), TARGET),
            says="Column '0' has the value .*, out of range",
        )
        for value in (-3.4028234663852886e38, 1e160)
        for what, make in _stores(np.r_[NUMBERS[:-1], [[value, 1.0]]]).items()
        if value < 0 or "two thirds" not in what
    ),
    *(
        Case(
            f"-3.4e38 in {what}, predicted",
            lambda make=make: (
                nb.NystroemRegressor(8, landmarks="uniform", verbose=0)
                .fit(NUMBERS, TARGET)
                .predict(make())
            ),
            says=f"Column '0' has the value .* in row ({N - 1}|0), out of range",
        )
        for what, make in {
            **_stores(np.r_[NUMBERS[:-1], [[-3.4e38, 1.0]]]),
            "blocks": lambda: iter([NUMBERS[:-1], [[-3.4e38, 1.0]]]),
        }.items()
        if what not in ("Dask", "an array, two thirds of it")
    ),
    Case(
        "p-values of all sizes",
        lambda: (
            nb.NystroemRegressor(8, landmarks="uniform", verbose=0)
            .fit(np.c_[10.0 ** -np.arange(N), NUMBERS], TARGET)
            .predict(np.c_[np.ones(N), NUMBERS])
        ),
        lambda found: bool(np.isfinite(found).all()),
    ),
]

SPARSE = csr_matrix(np.where(RNG.random((N, 3)) < 0.5, 0.0, RNG.normal(size=(N, 3))))
TWICE = csr_matrix(
    (
        np.repeat(SPARSE.data / 2, 2),
        np.repeat(SPARSE.indices, 2),
        SPARSE.indptr * 2,
    ),
    shape=SPARSE.shape,
)
LONG = csr_matrix(
    (SPARSE.data, SPARSE.indices.astype(np.int64), SPARSE.indptr.astype(np.int64)),
    shape=SPARSE.shape,
)


def _sparse(table: Any) -> Any:
    learner = nb.NystroemRegressor(8, landmarks="uniform", random_state=0, verbose=0)
    return learner.fit(table, TARGET).predict(SPARSE)


ARRAYS = [
    *(
        Case(
            f"CSR with {what}",
            lambda t=table: _sparse(t),
            lambda p: bool(np.allclose(p, _sparse(SPARSE.toarray()), atol=1e-6)),
        )
        for what, table in (("entries twice", TWICE), ("long indices", LONG))
    ),
]
# Blocks that differ


BLOCKS: dict[str, tuple[Callable[[], Any], str | None]] = {
    "types of polars": (lambda: [pl.from_arrow(arrow(b)) for b in DIFFER], None),
    "types of Arrow": (lambda: [arrow(b) for b in DIFFER], None),
    "types of pandas": (lambda: DIFFER, None),
    "libraries": (lambda: [pl.from_arrow(arrow(FRAME)), FRAME], None),
    "nothing, but are lazy": (lambda: [pl.from_arrow(arrow(b)).lazy() for b in DIFFER], None),
    "a column without values": (lambda: [arrow(FRAME.assign(town=None)), arrow(FRAME)], None),
    "columns": (lambda: [FRAME, FRAME.drop(columns="town")], "Block 1 .* no column 'town'"),
    "frames and arrays": (lambda: [FRAME, FRAME.to_numpy()], "data frames and arrays"),
    "numbers and text": (
        lambda: [arrow(FRAME), arrow(FRAME.assign(size="x"))], "do not go together"),
}  # fmt: skip
DIFFER = [FRAME, FRAME.assign(count=FRAME["count"] + 0.0)]


def _of_blocks(blocks: Any) -> float:
    learner = nb.NystroemRegressor(30, landmarks="uniform", random_state=0, verbose=0)
    return float(learner.fit(iter([(block, TARGET) for block in blocks])).score(FRAME, TARGET))


DIFFERENT = [
    Case(
        f"blocks that differ in {what}",
        lambda make=make: _of_blocks(make()),
        None if says else lambda score: score > 0.5,
        says or "",
    )
    for what, (make, says) in BLOCKS.items()
]

# Gaps as programs write them


def _gap(text: Any) -> Any:
    return model().predict(FRAME.assign(town=[text, *FRAME["town"][1:]]))


WRITTEN_GAPS = [
    Case(f"a gap in text, written {text!r}", lambda t=text: _gap(t), lambda found: bool(
        np.allclose(found, _gap(None), atol=1e-9)))
    for text in ("", " ", "NA", "nan", "NULL", "<NA>", "N/A", np.nan, pd.NA, pd.NaT)
]  # fmt: skip
CASES = [
    replace(case, name=f"tables, {case.name}")
    for case in (*SERVED, *REFUSED, *FITTED, *ARRAYS, *VALUES, *FAR, *DIFFERENT, *WRITTEN_GAPS)
]
