"""Where features go: whole, or marked as not."""

import errno
import os

import array_api_strict
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from peaks import peak_bytes
from scipy import sparse
from sklearn.base import clone

import nysboost as nb
from nysboost.rows import outputs


def points(n=1000, d=5, dtype=np.float32):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


@pytest.fixture(scope="module")
def fitted():
    return nb.StandardNystroem(n_columns=20, random_state=0).fit(points())


def blocks_of(X, size=300):
    return (X[i : i + size] for i in range(0, len(X), size))


def new_array(folder, shape):
    return np.full(shape, 7, dtype=np.float32)


def memory_map(folder, shape):
    return np.lib.format.open_memmap(folder / "map.npy", "w+", np.float32, shape)


def hdf5(folder, shape):
    return h5py.File(folder / "out.h5", "w").create_dataset("F", shape, "f4", chunks=(128, 20))


def zarr_array(folder, shape):
    return zarr.create_array(folder / "out.zarr", shape=shape, chunks=(128, 20), dtype="f4")


makes = pytest.mark.parametrize("make", [new_array, memory_map, hdf5, zarr_array])
sources = pytest.mark.parametrize("source", [lambda X: X, blocks_of], ids=["table", "iterator"])


@makes
@sources
def test_features_are_the_same_wherever_they_go(fitted, make, source, tmp_path):
    X = points()
    expected = fitted.transform(X)
    out = make(tmp_path, expected.shape)
    assert fitted.transform(source(X), out=out) is out
    np.testing.assert_allclose(out[...], expected, atol=1e-6)


@sources
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["text", "path"])
def test_a_path_becomes_a_file_that_numpy_reads(fitted, source, kind, tmp_path):
    X = points()
    result = fitted.transform(source(X), out=kind(tmp_path / "F.npy"))
    assert isinstance(result, np.memmap)
    assert not result.flags.writeable
    np.testing.assert_allclose(np.load(tmp_path / "F.npy"), fitted.transform(X), atol=1e-6)
    assert os.listdir(tmp_path) == ["F.npy"]
    assert (tmp_path / "F.npy").stat().st_size == 128 + 1000 * 20 * 4


def rows_and_then(fault):
    """600 rows, and then a block that is wrong, an error, or nothing."""
    yield points()[:600]
    if isinstance(fault, BaseException):
        raise fault
    if fault is not None:
        yield fault


THIN, GAPS = points()[:100, :3], np.full((100, 5), np.nan, dtype=np.float32)
FAULTS = {
    "another width": (THIN, ValueError, "Block 1 of X has 3 columns, but the blocks before it ha"),
    "a source that breaks": (RuntimeError("it broke"), RuntimeError, "it broke"),
    "Ctrl-C": (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    "NaN": (GAPS, ValueError, "X contains NaN, first at row 600, column 0"),
}
EARLY = {"an early end": (None, ValueError, "X ended after 600 rows, but out has 1000: the other")}


@makes
@pytest.mark.parametrize("fault", [*FAULTS, *EARLY])
def test_rows_that_were_not_reached_are_marked(fitted, make, fault, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "MARKED_ROWS", 150)  # fewer than there are to mark
    X = points()
    out = make(tmp_path, (1000, 20))
    then, error, message = (FAULTS | EARLY)[fault]
    with pytest.raises(error, match=message):
        fitted.transform(rows_and_then(then), out=out)
    np.testing.assert_allclose(out[:600], fitted.transform(X[:600]), atol=1e-6)
    assert np.isnan(out[600:]).all()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("before", [False, True], ids=["new", "replaced"])
def test_a_file_that_is_not_whole_never_appears(fitted, fault, before, tmp_path):
    path = tmp_path / "F.npy"
    if before:
        np.save(path, np.arange(3))
    then, error, message = FAULTS[fault]
    with pytest.raises(error, match=message):
        fitted.transform(rows_and_then(then), out=path)
    assert os.listdir(tmp_path) == ["F.npy"] * before
    if before:
        np.testing.assert_array_equal(np.load(path), np.arange(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: np.zeros((999, 20), np.float32), r"out has shape \(999, 20\), but"),
        (lambda f: np.zeros((1000, 21), np.float32), r"have shape \(1000, 20\)"),
        (lambda f: np.zeros(20_000, np.float32), r"out has shape \(20000,\)"),
        (lambda f: 3, r"out has shape \(\)"),
        (
            lambda f: sparse.csr_matrix((1000, 20), dtype=np.float32),
            "out is a csr_matrix; an array",
        ),
        (lambda f: np.zeros((1000, 20)), "out has dtype float64, but the features of float32 rows"),
        (lambda f: f / "F.txt", r"Features are written to a \.npy file, but out="),
        (lambda f: np.broadcast_to(np.float32(0), (1000, 20)), "out cannot be written to"),
        (lambda f: f / "nowhere" / "F.npy", r"There is no folder .*nowhere"),
        (lambda f: pd.DataFrame(np.zeros((1000, 20))), "out is a DataFrame; an array, an HDF5 or"),
        (
            lambda f: array_api_strict.zeros((1000, 20), dtype=array_api_strict.float32),
            "out is a array_api_strict array.*features are a NumPy",
        ),
    ],
)
def test_an_out_that_does_not_fit_is_named_and_left_alone(fitted, make, message, tmp_path):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        fitted.transform(points(), out=make(tmp_path))
    assert os.listdir(tmp_path) == []


def test_out_has_room_for_all_rows_and_may_not_lie_in_the_memory_of_x(fitted):
    with pytest.raises(ValueError, match="out has 500 rows, but X has more rows"):
        fitted.transform(blocks_of(points()), out=np.zeros((500, 20), dtype=np.float32))
    X = points(d=20)
    with pytest.raises(ValueError, match="out shares memory with X"):
        nb.StandardNystroem(n_columns=20, random_state=0).fit(X).transform(X, out=X)


def failing(monkeypatch, code=errno.ENOSPC):
    """Let the disk fail, whether space is claimed or rows are written."""

    def fail(*_):
        raise OSError(code, "worn out")

    if code == errno.ENOSPC:
        monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)
    monkeypatch.setattr(outputs, "to_host", fail)


@sources
@pytest.mark.parametrize(
    ("code", "says"),
    [(errno.ENOSPC, "The features need .*, but the disk has .* free"), (errno.EIO, "worn out")],
)
def test_a_disk_that_fails_leaves_what_was_there(fitted, source, code, says, tmp_path, monkeypatch):
    np.save(tmp_path / "F.npy", np.arange(3))
    failing(monkeypatch, code)
    with pytest.raises(OSError, match=says):
        fitted.transform(source(points()), out=tmp_path / "F.npy")
    assert os.listdir(tmp_path) == ["F.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "F.npy"), np.arange(3))
    if code == errno.ENOSPC and source is not blocks_of:  # a map is left as it was
        out = memory_map(tmp_path, (1000, 20))
        with pytest.raises(OSError, match=says):
            fitted.transform(points(), out=out)
        assert not np.any(out)


def test_a_store_that_cannot_be_written_says_which_rows(fitted):
    class Broken:
        shape, dtype, chunks = (1000, 20), np.dtype(np.float32), (100, 20)

        def __setitem__(self, *_):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"Rows 0 to \d+ could not be written to out: .*No space"):
        fitted.transform(points(), out=Broken())


@pytest.mark.parametrize("max_memory", [0, 1000, "1kB"])
def test_too_little_memory_is_said_before_anything_is_touched(max_memory, tmp_path):
    X = points()
    fitted = nb.StandardNystroem(n_columns=20, max_memory=max_memory, random_state=0).fit(X)
    out = memory_map(tmp_path, (1000, 20))
    out[...] = 7
    for where in (out, tmp_path / "F.npy", None):
        with pytest.raises(ValueError, match="is too small: one block of 64 rows needs"):
            fitted.transform(X, out=where)
    assert (out == 7).all()
    assert os.listdir(tmp_path) == ["map.npy"]


def test_blocks_of_another_dtype_are_taken_in_that_of_the_first(fitted):
    X = points()
    mixed = (part for part in (X[:300], X[300:600].astype(np.float64), X[600:]))
    found = fitted.transform(mixed)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, fitted.transform(X), atol=1e-6)


def test_wide_sparse_rows_need_the_memory_of_their_entries_alone():
    rng = np.random.default_rng(0)
    at = np.repeat(np.arange(300), 21), rng.integers(2**20, size=6300)
    X = sparse.csr_matrix((rng.random(6300), at), shape=(300, 2**20))
    fitted = nb.StandardNystroem(n_columns=20, max_memory="5MB", random_state=0).fit(X)
    assert fitted.transform(X).shape[0] == 300


def test_precomputed_values_may_come_from_anywhere(tmp_path):
    X = points(dtype=np.float64)
    K = nb.Gaussian(gamma=0.2)(X, X)
    fitted = nb.StandardNystroem("precomputed", n_columns=20, random_state=0).fit(K)
    np.save(tmp_path / "K.npy", K)
    stored = h5py.File(tmp_path / "K.h5", "w").create_dataset("K", data=K)
    for given in (np.load(tmp_path / "K.npy", mmap_mode="r"), blocks_of(K), stored):
        np.testing.assert_allclose(fitted.transform(given), fitted.transform(K), atol=1e-12)


@pytest.mark.parametrize("make", [hdf5, zarr_array, lambda folder, shape: folder / "F.npy"])
def test_features_for_a_disk_never_lie_in_memory_together(fitted, make, tmp_path):
    n, max_memory = 60_000, 600_000
    X = points(n)
    out = make(tmp_path, (n, 20))
    thrifty = clone(fitted).set_params(max_memory=max_memory, n_jobs=1).fit(points())
    thrifty.transform(X[:500])  # what is imported when it is first used
    peak = peak_bytes(lambda: thrifty.transform(X, out=out))
    # Zarr writes in a thread of its own: on a busy machine some pieces wait for it
    assert peak < max_memory + 900_000 < n * 20 * 4 / 3


def stored_twice(form, X, folder):
    """Return rows on disk, and the same place opened for writing."""
    if form == "h5":
        file = h5py.File(folder / "x.h5", "w")
        file["X"] = X
        return file.create_dataset("Y", data=X, chunks=(50, 5)), file["Y"]
    if form == "zarr":
        stored = zarr.create_array(folder / "x.zarr", data=X, chunks=(50, 5))
        return stored, zarr.open_array(folder / "x.zarr", mode="r+")
    np.save(folder / "x.npy", X)
    return [np.load(folder / "x.npy", mmap_mode=mode) for mode in ("r", "r+")]


@pytest.mark.parametrize("form", ["h5", "zarr", "npy"])
def test_rows_on_disk_are_not_overwritten_by_their_features(form, tmp_path):
    X = points()
    rows, out = stored_twice(form, X, tmp_path)
    fitted = nb.Nystroem(n_components=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="out shares memory with X"):
        fitted.transform(rows, out=out)
    if form == "npy":
        with pytest.raises(ValueError, match="out shares memory with X"):
            fitted.transform(rows, out=tmp_path / "x.npy")
    np.testing.assert_array_equal(rows[:], X)
