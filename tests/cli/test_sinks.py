"""Where results go: whole, or not there at all."""

import zipfile
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import zarr

import nysboost as nb
from nysboost.cli.commands import make_parser
from nysboost.cli.sinks import SINKS, open_sink, refuse_existing
from nysboost.cli.source import open_source
from nysboost.user_error import EXISTS, NO_FILE, WRONG_CALL, WRONG_DATA, UserError

BLOCKS = [np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)]


def write(path, blocks=BLOCKS, force=False):
    with open_sink(path, None, force=force) as sink:
        for block in blocks:
            sink.write({"u": block[:, 0], "v": block[:, 1]})


def opened(path):
    return open_source(make_parser().parse_args(["compare", str(path)]))


def read(path):
    return np.concatenate([np.asarray(part) for part in opened(path).parts()])


@contextmanager
def refused(code, match):
    with pytest.raises(UserError, match=match) as raised:
        yield
    assert raised.value.code == code


@pytest.mark.parametrize("suffix", list(SINKS))
def test_blocks_come_back_as_one_table(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    write(path)
    np.testing.assert_array_equal(read(path), np.concatenate(BLOCKS))
    assert tuple(opened(path).columns) in (("0", "1"), ("u", "v"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", list(SINKS))
def test_an_existing_output_is_replaced_only_by_force_and_only_when_whole(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    write(path)
    with refused(EXISTS, "--force replaces it"):
        write(path, BLOCKS[:1])

    def interrupted():
        yield BLOCKS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, interrupted(), force=True)
    assert len(read(path)) == 7
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    write(path, BLOCKS[:1], force=True)
    assert len(read(path)) == 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_that_are_text_go_to_columns(suffix, tmp_path):
    labels = np.array(["cat", "dog"], dtype=object)
    with open_sink(tmp_path / f"out{suffix}", None, force=False) as sink:
        sink.write({"label": labels})
    assert read(tmp_path / f"out{suffix}").ravel().tolist() == ["cat", "dog"]
    with (
        refused(WRONG_CALL, r"goes to a \.csv or \.parquet file"),
        open_sink(tmp_path / "out.npy", None, force=False) as sink,
    ):
        sink.write({"label": labels})


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_a_link_stays_a_link_and_permissions_stay(suffix, tmp_path):
    real, link = tmp_path / f"real{suffix}", tmp_path / f"link{suffix}"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    write(link, force=True)
    assert link.is_symlink()
    assert len(read(real)) == 7
    assert real.stat().st_mode & 0o777 == 0o640


def test_devices_and_inputs_are_refused(tmp_path):
    with refused(NO_FILE, "is a device"):
        refuse_existing(Path("/dev/null"), force=True)
    (tmp_path / "in.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    for name in ("in.csv", "link.csv"):
        with refused(EXISTS, "is an input of this command"):
            refuse_existing(tmp_path / name, True, [tmp_path / "in.csv"])
    with refused(EXISTS, "or would be one"):  # a table of the folder that is read
        refuse_existing(tmp_path / "new.csv", True, [tmp_path])
    (tmp_path / "parts.parquet").mkdir()
    with refused(EXISTS, "is an input"):  # a folder that holds what is read
        refuse_existing(tmp_path / "parts.parquet", True, [tmp_path / "parts.parquet" / "0.csv"])
    refuse_existing(tmp_path / "model.nysboost", False, [tmp_path])


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    with refused(NO_FILE, "a form that is not known"):
        write(tmp_path / "out.doc")
    with refused(NO_FILE, "There is no folder"):
        write(tmp_path / "none" / "out.npy")
    with refused(WRONG_DATA, "no rows to write"):
        write(tmp_path / "out.npy", [])
    kept = [{"kept": pa.array([[1, 2]])}], [{"kept": pa.array([1])}, {"kept": pa.array(["x"])}]
    for parts in kept:
        with (
            refused(WRONG_DATA, "A column to keep does not go into this .csv file"),
            open_sink(tmp_path / "out.csv", None, force=False) as sink,
        ):
            for part in parts:
                sink.write(part)
    assert list(tmp_path.iterdir()) == []


def software(path):
    """Return what a file says of who made it, read with the library of its own format."""
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            return archive.comment.decode()
    if path.suffix == ".zarr":
        return zarr.open_array(str(path), mode="r").attrs["software"]
    if path.suffix == ".feather":
        return pa.ipc.open_file(path).schema.metadata[b"software"].decode()
    if path.suffix == ".parquet":
        return parquet.read_schema(path).metadata[b"software"].decode()
    with h5py.File(path) as file:
        return file.attrs["software"]


@pytest.mark.parametrize("suffix", sorted({*SINKS} - {".npy", ".csv"}))
def test_a_file_says_which_version_wrote_it_where_its_format_has_a_place(suffix, tmp_path):
    write(tmp_path / f"out{suffix}")
    assert software(tmp_path / f"out{suffix}") == f"NysBoost {nb.__version__}"


def test_files_without_such_a_place_hold_the_table_alone(tmp_path):
    write(tmp_path / "out.csv")
    write(tmp_path / "out.npy")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == '"u","v"'
    expected = 128 + 8 * 14  # a header of NumPy's, and numbers
    assert (tmp_path / "out.npy").stat().st_size == expected
