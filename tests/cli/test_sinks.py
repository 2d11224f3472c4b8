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
from nysboost.user_error import ExistsError, NoFileError, TableError, UserError

BLOCKS = [np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)]


def write(path, blocks=BLOCKS, force=False):
    with open_sink(path, None, force=force) as write_rows:
        for block in blocks:
            named = {"u": block[:, 0], "v": block[:, 1]} if hasattr(block, "shape") else block
            write_rows(named)


def opened(path):
    return open_source(make_parser().parse_args(["compare", str(path)]))


def read(path):
    return np.concatenate([np.asarray(part) for part in opened(path).parts()])


@contextmanager
def refused(kind, match):
    with pytest.raises(UserError, match=match) as raised:
        yield
    assert raised.type is kind


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


@pytest.mark.parametrize("suffix", list(SINKS))
def test_blocks_come_back_as_one_table_that_only_force_replaces_and_only_when_whole(
    suffix, tmp_path
):
    path = tmp_path / f"out{suffix}"
    write(path)
    np.testing.assert_array_equal(read(path), np.concatenate(BLOCKS))
    assert tuple(opened(path).columns) in (("0", "1"), ("u", "v"))
    if suffix not in (".npy", ".csv"):  # which hold the table alone
        assert software(path) == f"NysBoost {nb.__version__}"
    with refused(ExistsError, "--force replaces it"):
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
    with refused(NoFileError, "is a device"):
        refuse_existing(Path("/dev/null"), force=True)
    (tmp_path / "in.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    (tmp_path / "parts.parquet").mkdir()
    for name, read_from in (
        ("in.csv", "in.csv"),
        ("link.csv", "in.csv"),
        ("new.csv", "."),  # a table of the folder that is read
        ("parts.parquet", "parts.parquet/0.csv"),  # a folder that holds what is read
    ):
        with refused(ExistsError, "is an input of this command, or in its folder"):
            refuse_existing(tmp_path / name, True, [tmp_path / read_from])
    refuse_existing(tmp_path / "model.nysboost", False, [tmp_path])


TEXT = {"label": np.array(["cat", "dog"], dtype=object)}


@pytest.mark.parametrize(
    ("name", "blocks", "kind", "says"),
    [
        ("out.doc", BLOCKS, NoFileError, "The format of"),
        ("none/out.npy", BLOCKS, NoFileError, "There is no folder"),
        ("out.npy", [], TableError, "no rows to write"),
        ("out.npy", [TEXT], UserError, "cannot hold text"),
        ("out.csv", [{"kept": pa.array([[1, 2]])}], TableError, "cannot be written to a .csv file"),
        (
            "out.csv",
            [{"kept": pa.array([1])}, {"kept": pa.array(["007"])}],
            TableError,
            "'kept' of --id or --keep has text after values of type int64",
        ),
    ],
)
def test_what_cannot_be_written_is_a_sentence(name, blocks, kind, says, tmp_path):
    with refused(kind, says):
        write(tmp_path / name, blocks)
    assert list(tmp_path.iterdir()) == []
