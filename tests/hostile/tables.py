"""Values of every kind, stores, and blocks that differ: one model, one answer, or a sentence."""

from __future__ import annotations

import datetime as dt
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import nysboost as nb
from hostile import Case, cases, close_to, finite, listed, refused
from hostile.frames import FRAME, RNG, TARGET, N, arrow, learner, model, polars, same, score

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
    "text and whole numbers of 400 digits": [10**400, 10**401, "a", "b"],
    "truth and text": [True, False, "perhaps", "x"],
}
CATEGORIES: dict[str, Any] = {
    "dates": DAYS, "spans": [d - DAYS[0] for d in DAYS], "days": [d.date() for d in DAYS],
    "halves": [0.5, 1.0, 1.5, 2.0], "Decimals": [Decimal(i) / 4 for i in range(4)],
}  # fmt: skip


def tensor(values: Any, **options: Any) -> Any:
    """A PyTorch tensor; a case that makes one is skipped where PyTorch is not installed."""
    return pytest.importorskip("torch").tensor(values, **options)


def _score_by_group(values: Any, make: Callable[[Any], Any] = pd.Series) -> float:
    """How much a column tells that has one of four values for each group."""
    column = make(pd.Series([values[i] for i in GROUP], dtype=object))
    return score(pd.DataFrame({"value": column, "other": RNG.normal(size=len(GROUP))}), BY_GROUP)


def _of_table(table: Any) -> Any:
    return learner().fit(table, TARGET).predict(table)


TEXT_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "objects": lambda f: f.to_numpy(),
    "lists": lambda f: f.to_numpy().tolist(),
    "text alone": lambda f: f.to_numpy().astype(str),
}
VALUES = [
    *cases("values that are {}", _score_by_group, ODD_VALUES, lambda _: lambda r: r > 0.9),
    *cases(
        "a category of {}",
        lambda values: _score_by_group(values, pd.Categorical),
        CATEGORIES,
        lambda _: lambda r: r > 0.9,
    ),
    *cases(
        "an array with text, {}",
        lambda make: _of_table(make(FRAME[["size", "town"]])),
        TEXT_ARRAYS,
        lambda _: lambda found: close_to(_of_table(FRAME[["size", "town"]]))(found),
    ),
]


# Codes for "no data" where rows stay where they are


def _stores(value: float) -> dict[str, Callable[[], Any]]:
    """The same numbers, one of them far out, in memory, on disk and on a cluster."""
    folder, table = Path(tempfile.mkdtemp()), np.r_[NUMBERS[:-1], [[value, 1.0]]]
    np.save(folder / "X.npy", table)
    return {
        "a memory map": lambda: np.load(folder / "X.npy", mmap_mode="r"),
        "HDF5": lambda: h5py.File(folder / "X.h5", "a").require_dataset(
            "X", table.shape, "f8", data=table
        ),
        "an array": lambda: table,
        "an array of single precision": lambda: table.astype(np.float32 if value < 0 else float),
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
            lambda make=make: learner().fit(make(), TARGET),
            says="Column '0' has the value .*, out of range",
        )
        for value in (-3.4028234663852886e38, 1e160)
        for what, make in _stores(value).items()
        if value < 0 or "two thirds" not in what
    ),
    *(
        Case(
            f"-3.4e38 in {what}, predicted",
            lambda make=make: learner().fit(NUMBERS, TARGET).predict(make()),
            says=f"Column '0' has the value .* in row ({N - 1}|0), out of range",
        )
        for what, make in {
            **_stores(-3.4e38),
            "blocks": lambda: iter([NUMBERS[:-1], [[-3.4e38, 1.0]]]),
        }.items()
        if what not in ("Dask", "an array, two thirds of it")
    ),
]

SPARSE = csr_matrix(np.where(RNG.random((N, 3)) < 0.5, 0.0, RNG.normal(size=(N, 3))))
HALVES = np.repeat(SPARSE.data / 2, 2), np.repeat(SPARSE.indices, 2), SPARSE.indptr * 2
LONG = SPARSE.data, SPARSE.indices.astype(np.int64), SPARSE.indptr.astype(np.int64)


def _of_sparse(table: Any) -> Any:
    return learner().fit(table, TARGET).predict(SPARSE)


ARRAYS = cases(
    "CSR with {}",
    lambda parts: _of_sparse(csr_matrix(parts, shape=SPARSE.shape)),
    {"entries twice": HALVES, "long indices": LONG},
    lambda _: lambda found: close_to(_of_sparse(SPARSE.toarray()), 1e-6)(found),
)

# Blocks that differ

BLOCKS: dict[str, tuple[Callable[[], Any], str | None]] = {
    "types of polars": (lambda: [polars(b) for b in DIFFER], None),
    "types of Arrow": (lambda: [arrow(b) for b in DIFFER], None),
    "types of pandas": (lambda: DIFFER, None),
    "libraries": (lambda: [polars(FRAME), FRAME.astype({"floor": int})], None),
    "a category and numbers": (lambda: [polars(FRAME), FRAME], "cannot be combined"),
    "nothing, but are lazy": (lambda: [polars(b).lazy() for b in DIFFER], None),
    "a column without values": (lambda: [arrow(FRAME.assign(town=None)), arrow(FRAME)], None),
    "columns": (lambda: [FRAME, FRAME.drop(columns="town")], "Block 1 .* no column 'town'"),
    "frames and arrays": (lambda: [FRAME, FRAME.to_numpy()], "data frames and arrays"),
    "numbers and text": (
        lambda: [arrow(FRAME), arrow(FRAME.assign(size="x"))], "cannot be combined"),
}  # fmt: skip
DIFFER = [FRAME, FRAME.assign(count=FRAME["count"] + 0.0)]


def _of_blocks(blocks: Any) -> float:
    fitted = learner(30).fit(iter([(block, TARGET) for block in blocks]))
    return float(fitted.score(FRAME, TARGET))


DIFFERENT = [
    Case(
        f"blocks that differ in {what}",
        lambda make=make: _of_blocks(make()),
        None if says else lambda found: found > 0.5,
        says or "",
    )
    for what, (make, says) in BLOCKS.items()
]

# Gaps as programs write them


def _first_town(text: Any) -> Any:
    return FRAME.assign(town=[text, *FRAME["town"][1:]])


WRITTEN_GAPS = cases(
    "a gap in text, written {}",
    lambda text: model().predict(_first_town(text)),
    {repr(gap): gap for gap in ("", " ", "NA", "nan", "NULL", "<NA>", "N/A", pd.NA, pd.NaT)}
    | {"NaN": np.nan},
    lambda _: same(_first_town(None)),
)
LARGE = pd.DataFrame({"id": 2**53 + 1 + 2 * GROUP, "size": RNG.normal(size=len(GROUP))})
LARGE_MODEL = learner().fit(LARGE.astype({"id": "category"}), BY_GROUP)
IDENTIFIERS = cases(
    "categories of 54 bits as {}",
    lambda make: LARGE_MODEL.predict(make(LARGE)),
    {
        "whole numbers": lambda f: f,
        "nullable whole numbers": lambda f: f.astype({"id": "Int64"}),
        "whole numbers of polars": pl.from_pandas,
        "text": lambda f: f.astype({"id": str}),
    },
    lambda _: close_to(LARGE_MODEL.predict(LARGE.astype({"id": "category"}))),
)


def _mapped(table: Any) -> Any:
    """How far features by the map that a file has kept are from an approximation's own."""
    found = nb.approximate(FRAME, "uniform", n_components=5, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        nb.save(found, f"{folder}/m")
        return np.abs(nb.load(f"{folder}/m").feature_map()[0](table) - found.features()).max()


MAPPED = [
    *cases(
        "features of {}",
        _mapped,
        {"a frame turned round": FRAME[FRAME.columns[::-1]], "polars": polars(FRAME)},
        lambda _: lambda far: far < 1e-9,
    ),
    *refused(
        "features of {}",
        _mapped,
        {
            "another frame": (FRAME[["size"]], "no column 'count'"),
            "an array of another width": (NUMBERS, "has 2 columns of numbers, but the fit"),
            "one column": (NUMBERS[:, :1], "has 1 columns of numbers, but the fit"),
            "one row without its table": (NUMBERS[0], "shape"),
            "nothing": (None, "NoneType"),
        },
    ),
]


def _saved(value: str) -> Any:
    """Predictions of a model with such a value among its categories, after save and load."""
    frame = FRAME.assign(town=FRAME["town"].astype(object).replace("Ulm", value))
    fitted = learner().fit(frame, TARGET)
    with tempfile.TemporaryDirectory() as folder:
        nb.save(fitted, f"{folder}/m")
        return nb.load(f"{folder}/m").predict(frame) - fitted.predict(frame)


SAVED = cases(
    "a category {} in a model file",
    _saved,
    {"of no encoding": "\udcff", "of many lines": "a\n\x00b", "of signs": "\u200d\U0001f600"},
    lambda _: close_to(0.0),
)
LONG_WHOLE = pa.table({"id": pa.array([None, *range(2**62, 2**62 + N - 1)])})
PERCENT = FRAME.assign(size=FRAME["size"].map("{}%".format))
WORDS = NUMBERS.astype(str).astype(object)
WORDS[3, 1] = "?"
SINGLE: dict[str, Any] = {
    "another unit than that of the fit": (
        lambda: learner().fit(PERCENT, TARGET).predict(PERCENT.replace(r"%", "$", regex=True)),
        r"'size' was fitted with numbers, but row 0 has '.*\$'"),
    "a mark in an array of text": (
        lambda: learner().fit(NUMBERS, TARGET).predict(WORDS),
        lambda found: close_to(learner().fit(NUMBERS, TARGET).predict(
            np.where(WORDS == "?", np.nan, NUMBERS)))(found)),
    "a word in an array of text": (
        lambda: learner().fit(NUMBERS, TARGET).predict(np.where(WORDS == "?", "abc", WORDS)),
        "'1' was fitted with numbers, but row 3 has 'abc'"),
    "a tensor with gradients": (
        lambda: learner().fit(NUMBERS, TARGET).predict(tensor(NUMBERS, requires_grad=True)),
        "X is a PyTorch array"),
    "a sparse tensor": (
        lambda: learner().fit(tensor(NUMBERS).to_sparse(), TARGET), "X is a sparse tensor"),
    "what Dask has yet to make": (
        lambda: learner().fit(NUMBERS, TARGET).predict(dask.delayed(NUMBERS)), "dask.delayed"),
    "two samples, dates and numbers": (
        lambda: nb.mmd_test(FRAME[["built"]], FRAME[["size"]].set_axis(["built"], axis=1)),
        "'built' holds dates in some parts and numbers in others"),
    "two samples, text and numbers": (
        lambda: nb.mmd_test(FRAME[["town"]], FRAME[["size"]].set_axis(["town"], axis=1)),
        "'town' holds numbers, but also '"),
    "labels of which one is empty": (
        lambda: nb.NystroemClassifier(8).fit(FRAME, ["", *FRAME["town"][1:]]), "no label in row 0"),
    "labels of text and numbers in a list": (
        lambda: nb.NystroemClassifier(8).fit(FRAME, [1, "a"] * (N // 2)), "y mixes text"),
    "whole numbers of 64 bits in Arrow": (
        lambda: learner().fit(LONG_WHOLE, TARGET).predict(pa.table({"id": [2**63 - 1]})), finite),
    "labels of a hundred bits": (
        lambda: nb.NystroemClassifier(8).fit(FRAME, np.array([2**99, 1] * (N // 2), dtype=object)),
        "more than 64 bits"),
    "years that Python has not, for a category": (
        lambda: model().predict(FRAME.assign(town=np.full(N, 10**13).astype("M8[s]"))),
        lambda found: same(FRAME.assign(town="Rom"))(found)),
    "a frame's model and an array with text": (lambda: model().predict(FRAME.to_numpy()), same()),
    "p-values of all sizes": (
        lambda: learner().fit(np.c_[10.0 ** -np.arange(N), NUMBERS], TARGET)
        .predict(np.c_[np.ones(N), NUMBERS]), finite),
    "targets beside an iterator that has its own": (
        lambda: learner().fit(iter([(FRAME, TARGET)]), TARGET), "leave y out"),
}  # fmt: skip
EVERY = ARRAYS, VALUES, FAR, DIFFERENT, WRITTEN_GAPS, IDENTIFIERS, MAPPED, SAVED, listed(SINGLE)
CASES = [replace(case, name=f"tables, {case.name}") for cases in EVERY for case in cases]
