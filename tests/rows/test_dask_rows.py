"""Rows of Dask collections: taken, mapped and folded like those in memory, and read little."""

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from containers import CountedChunks

from nysboost.rows.dask_survey import survey_rows
from nysboost.rows.driver import BlockTask
from nysboost.rows.recognise import make_rows, scan_rows

pytestmark = pytest.mark.usefixtures("_in_this_thread")


@pytest.fixture
def X():  # noqa: N802
    return np.random.default_rng(0).normal(size=(100, 3))


UNEVEN = (40, 0, 25, 35)


def chunked(X, chunks=UNEVEN):
    return da.from_array(X, chunks=(chunks, X.shape[1]))


@pytest.mark.parametrize("wanted", [[3], [99, 0, 41, 41, 40], [], slice(38, 45), slice(99, 0, -20)])
def test_rows_are_taken_in_the_order_asked_for(X, wanted):
    wanted = wanted if isinstance(wanted, slice) else np.array(wanted, dtype=np.intp)
    np.testing.assert_array_equal(make_rows(chunked(X)).take(wanted), X[wanted])


def scaled(factor, block, other):
    return factor * block + other


def test_map_is_lazy_and_has_the_chunks_of_the_rows(X):
    source, V = CountedChunks(X, 10), X[:, ::-1]
    mapped = make_rows(source.array).map(BlockTask("scaled", scaled, 2.0), 3, V)
    assert not source.reads
    assert mapped.chunks == source.array.chunks
    assert mapped.dtype == np.float64
    assert isinstance(mapped._meta, np.ndarray)
    assert next(iter(mapped.__dask_keys__()))[0][0].startswith("scaled-")
    np.testing.assert_allclose(mapped.compute(), 2 * X + V)


def by_sign(_, block, other):
    kept = np.flatnonzero(block[:, 0] > -1)
    return (block[kept, 1] > 0) + 2 * (block[kept, 2] > 9), np.hstack([block, other])[kept]


def test_rows_of_a_group_meet_in_their_order_and_groups_may_have_none(X):
    both, task = np.hstack([X, X[:, :1]])[X[:, 0] > -1], BlockTask("sign", by_sign, size=7)
    expected = [both[both[:, 1] <= 0], both[both[:, 1] > 0]]
    for table in (X, chunked(X), chunked(X, (100,))):
        found = make_rows(table).group(task, lambda item, part: (item, part), "abc", X[:, :1])
        assert [part and part[0] for part in found] == ["a", "b", None]
        for part, rows in zip(found, expected, strict=False):
            np.testing.assert_array_equal(part[1], rows)


def test_all_rows_at_once_are_refused():
    rows = make_rows(da.zeros((10**9, 2), chunks=(10**6, 2)))
    with pytest.raises(ValueError, match="rows of Dask stay on their workers"):
        rows.take(slice(None))


def test_only_chunks_with_wanted_rows_are_read_one_at_a_time(X):
    source = CountedChunks(X, 10)
    make_rows(source.array).take(np.array([12, 17, 95]))
    assert source.reads == {10: 1, 90: 1}
    source = CountedChunks(X, 20)
    pieces = make_rows(source.array).pieces(15)
    np.testing.assert_array_equal(next(pieces), X[:15])
    assert source.reads == {0: 1}
    assert [len(piece) for piece in pieces] == [5, *[15, 5] * 4]


def test_other_collections_and_columns_of_text_are_refused_with_a_sentence():
    with pytest.raises(TypeError, match="only arrays and data frames are supported"):
        make_rows(db.from_sequence([1, 2]))
    frame = pd.DataFrame({"size": [1.0, 2.0], "town": ["a", "b"]})
    with pytest.raises(ValueError, match=r"not numbers: town\. Drop them, X.drop"):
        make_rows(dd.from_pandas(frame, npartitions=1))


def test_unknown_sizes_are_counted_and_empty_partitions_count_as_none():
    frame = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10)})
    parts = dd.from_pandas(frame, npartitions=4)
    some = parts[parts.a > 4]
    rows = make_rows(some)
    assert np.isnan(rows.data.shape[0])
    known = rows.count()
    assert known.data.chunks == ((0, 1, 2, 2), (2,))
    np.testing.assert_array_equal(known.take(np.arange(5)), frame[frame.a > 4].to_numpy())
    assert np.isnan(rows.data.shape[0])  # what the user passed in is as it was


def test_missing_values_of_nullable_columns_are_nan_and_float32_stays_float32():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    rows = make_rows(dd.from_pandas(frame, npartitions=1)).count()
    expected = [[1, 1], [np.nan, 0], [3, 1]]
    np.testing.assert_array_equal(rows.take(np.arange(3)), expected)
    frame = pd.DataFrame(np.ones((4, 2), dtype=np.float32))
    assert make_rows(dd.from_pandas(frame, npartitions=2)).template.dtype == np.float32


@pytest.mark.parametrize(("row", "what"), [(0, np.nan), (57, np.inf), (99, -np.inf)])
def test_the_first_entry_that_is_not_finite_is_named(row, what):
    X = np.ones((100, 3))
    X[row:, 1] = what
    with pytest.raises(ValueError, match=rf"X contains .*, first at row {row}, column 1\."):
        scan_rows(da.from_array(X, chunks=((40, 0, 17, 43), (2, 1))))


def test_rows_that_every_fit_asks_for_come_with_the_first_look(chunks_are_read):
    source = CountedChunks(np.arange(200.0)[:, None], 50)
    rows = survey_rows(make_rows(source.array), (3, 7))
    for wanted in ([0, 99, 199], [0, 33, 66, 99, 132, 165, 199]):
        np.testing.assert_array_equal(rows.take(np.array(wanted))[:, 0], wanted)
    assert source.reads == {0: 1, 50: 1, 100: 1, 150: 1}
    np.testing.assert_array_equal(rows.take(np.array([1, 99]))[:, 0], [1, 99])
    assert source.reads.total() == 6


def test_few_rows_all_come_with_the_first_look():
    X = np.arange(30.0).reshape(10, 3)
    rows = scan_rows(da.from_array(X, chunks=(4, 3)))
    assert rows.lazy
    np.testing.assert_array_equal(rows.take(slice(2, 9, 3)), X[2:9:3])
    np.testing.assert_array_equal(np.concatenate(list(rows.pieces(3))), X)
    assert [len(piece) for piece in rows.pieces(4)] == [4, 4, 2]


def test_chunks_that_are_no_numpy_arrays_although_dask_says_so_are_refused():
    torch = pytest.importorskip("torch")
    X = da.from_array(np.ones((10, 2)), chunks=(5, 2))
    tensors = X.map_blocks(torch.asarray, dtype=X.dtype, meta=np.empty((0, 2)))
    with pytest.raises(ValueError, match="but one is a PyTorch array on cpu"):
        scan_rows(tensors)
    assert scan_rows(tensors.map_blocks(np.asarray, meta=np.empty((0, 2)))).n == 10
