"""Files mapped into memory."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.data.files import find_map, give_back, reserve


@pytest.fixture
def file(tmp_path):
    values = np.arange(40_000.0).reshape(4000, 10)
    np.save(tmp_path / "a.npy", values)
    return tmp_path / "a.npy"


@pytest.mark.parametrize("view", [lambda A: A, lambda A: A[5:], np.asarray, lambda A: A[::2, 3:].T])
def test_a_view_of_a_memory_map_is_recognised(file, view):
    A = np.load(file, mmap_mode="r")
    assert find_map(view(A)) is A
    assert find_map(np.array(A)) is None
    assert find_map([1, 2]) is None


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
        give_back(part)
        np.testing.assert_array_equal(A, values)
        if mode == "r+":
            np.testing.assert_array_equal(np.load(path), values)


@pytest.mark.parametrize("view", [lambda A: A[::-1], lambda A: A[:0], lambda A: A[::3, 2:].T])
def test_views_of_every_kind_may_be_given_back(file, view):
    A = np.load(file, mmap_mode="r+")
    give_back(view(A))
    give_back(np.arange(3.0))
    np.testing.assert_array_equal(A, np.arange(40_000.0).reshape(4000, 10))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_without_room_gets_a_sentence(file, monkeypatch, code):
    def full(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"The features need 7\.0 MB, but the disk has .* free"):
        reserve(0, 7_000_000, file)


def test_a_file_system_that_cannot_reserve_is_left_alone(file, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "posix_fallocate", unsupported, raising=False)
    reserve(0, 7_000_000, file)
    monkeypatch.delattr(os, "posix_fallocate")
    reserve(0, 7_000_000, file)
