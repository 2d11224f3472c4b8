"""Files mapped into memory, and files that are whole or not there: errors are sentences."""

import errno
import os
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.numerics.arrays import find_map, release_pages
from nysboost.rows import files
from nysboost.rows.files import atomic_file, reserve


@pytest.fixture
def file(tmp_path):
    values = np.arange(40_000.0).reshape(4000, 10)
    np.save(tmp_path / "a.npy", values)
    return tmp_path / "a.npy"


VIEWS = [lambda A: A, lambda A: A[5:], lambda A: A[::-1], lambda A: A[:0], lambda A: A[::2, 3:].T]


@pytest.mark.parametrize("view", [*VIEWS, np.asarray])
def test_a_view_of_a_memory_map_is_recognised_and_may_be_given_back(file, view):
    A = np.load(file, mmap_mode="r+")
    assert find_map(view(A)) is A
    assert find_map(np.array(A)) is None
    assert find_map([1, 2]) is None
    release_pages(view(A))
    release_pages(np.arange(3.0))
    np.testing.assert_array_equal(A, np.arange(40_000.0).reshape(4000, 10))


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@given(st.data())
def test_pages_that_are_given_back_keep_what_was_written(mode, data):
    values = np.arange(40_000.0).reshape(4000, 10)
    start, count = data.draw(st.integers(0, 3999)), data.draw(st.integers(0, 4000))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.npy"
        np.save(path, values)
        A = np.load(path, mmap_mode=mode)
        part = A[start : start + count]
        if mode != "r":
            values[start : start + count] = part[...] = -1.0
        release_pages(part)
        np.testing.assert_array_equal(A, values)
        if mode == "r+":
            np.testing.assert_array_equal(np.load(path), values)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_without_room_gets_a_sentence(file, monkeypatch, code):
    def full(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    says = r"The features need 7\.0 MB, but the disk has .* free"
    if code == errno.EFBIG:  # which the room on the disk has nothing to do with
        says = r"A limit on the size of a file stopped it: raise the limit \(ulimit -f\)"
    with pytest.raises(OSError, match=says):
        reserve(0, 7_000_000, file)
    code = errno.EOPNOTSUPP  # a file system that cannot reserve is left alone
    reserve(0, 7_000_000, file)
    monkeypatch.delattr(os, "posix_fallocate")
    reserve(0, 7_000_000, file)


def test_bytes_arrive_whole_and_nothing_else_does(tmp_path):
    with atomic_file(tmp_path / "a") as file:
        file.write(b"one\r\ntwo")
    assert (tmp_path / "a").read_bytes() == b"one\r\ntwo"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_what_was_there_stays_if_anything_goes_wrong(tmp_path, error):
    path = tmp_path / "a"
    path.write_text("before")

    def fail():
        with atomic_file(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.ENOSPC, "Make room or write to another disk"), (errno.EIO, "The report could not be")],
)
def test_a_fault_of_the_disk_is_a_sentence_and_leaves_nothing(tmp_path, code, said):
    def fail():
        with atomic_file(tmp_path / "a", "The report"):
            raise OSError(code, "as the system puts it")

    with pytest.raises(OSError, match=said) as caught:
        fail()
    assert caught.value.errno == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compressed", [False, True])
def test_an_npz_file_says_which_version_made_it_and_holds_the_arrays_alone(compressed, tmp_path):
    X, y = np.arange(12.0).reshape(4, 3)[:, ::-1], np.array(["a", "b"])
    files.write_npz(tmp_path / "rows.npz", compressed=compressed, X=X, y=y)
    with np.load(tmp_path / "rows.npz", allow_pickle=False) as archive:
        assert archive.files == ["X", "y"]
        np.testing.assert_array_equal(archive["X"], X)
        np.testing.assert_array_equal(archive["y"], y)
    with zipfile.ZipFile(tmp_path / "rows.npz") as archive:
        assert archive.testzip() is None
        assert archive.comment.decode() == f"NysBoost {nb.__version__}"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_path_with_a_null_character_is_refused_in_a_sentence():
    model = nb.Nystroem(n_components=3, random_state=0).fit(np.eye(9))
    for write in (
        lambda: nb.save(model, "a\0b"),
        lambda: nb.to_onnx(model, "a\0b"),
        lambda: model.transform(np.eye(9), out="a\0b.npy"),
    ):
        with pytest.raises(ValueError, match=r"'a.*b.*' has a null character"):
            write()
