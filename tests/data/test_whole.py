"""Files that are whole or not there: what was there stays, and errors are sentences."""

import errno
import zipfile

import numpy as np
import pytest

import nysboost as nb
from nysboost.data.files import whole_file, whole_npz, whole_text, write_error


def test_bytes_and_text_arrive_whole_and_nothing_else_does(tmp_path):
    with whole_file(tmp_path / "a") as file:
        file.write(b"one\r\ntwo")
    with whole_text(tmp_path / "b") as text:
        text.write("σ = 1\n")
    assert (tmp_path / "a").read_bytes() == b"one\r\ntwo"
    assert (tmp_path / "b").read_bytes() == "σ = 1\n".encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
@pytest.mark.parametrize("opened", [whole_file, whole_text])
def test_what_was_there_stays_if_anything_goes_wrong(tmp_path, opened, error):
    path = tmp_path / "a"
    path.write_text("before")

    def fail():
        with opened(path) as file:
            file.write(b"half" if opened is whole_file else "half")
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
        with whole_text(tmp_path / "a", "The report"):
            raise OSError(code, "as the system puts it")

    with pytest.raises(OSError, match=said) as caught:
        fail()
    assert caught.value.errno == code
    assert list(tmp_path.iterdir()) == []


def test_no_place_is_a_sentence(tmp_path):
    def written(path):
        with whole_file(path):
            pass

    with pytest.raises(IsADirectoryError, match="give the name of a file in it"):
        written(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        written(tmp_path / "nowhere" / "a")


def test_an_error_keeps_its_kind_and_names_the_file_that_was_asked_for(tmp_path):
    found = write_error(tmp_path / "a", "The model", PermissionError(errno.EACCES, "Not allowed"))
    assert isinstance(found, PermissionError)
    assert f"The model could not be written to '{tmp_path / 'a'}': Not allowed." in str(found)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_npz_file_says_which_version_made_it_and_holds_the_arrays_alone(compressed, tmp_path):
    X, y = np.arange(12.0).reshape(4, 3)[:, ::-1], np.array(["a", "b"])
    whole_npz(tmp_path / "rows.npz", compressed=compressed, X=X, y=y)
    with np.load(tmp_path / "rows.npz", allow_pickle=False) as archive:
        assert archive.files == ["X", "y"]
        np.testing.assert_array_equal(archive["X"], X)
        np.testing.assert_array_equal(archive["y"], y)
    with zipfile.ZipFile(tmp_path / "rows.npz") as archive:
        assert archive.testzip() is None
        assert archive.comment.decode() == f"NysBoost {nb.__version__}"
    assert len(list(tmp_path.iterdir())) == 1
