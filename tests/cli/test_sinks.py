"""Where results go: whole, or not there at all."""

import zipfile

import h5py
import numpy as np
import pyarrow.parquet as parquet
import pytest
import zarr

import nysboost as nb
from nysboost.cli.errors import CommandError, DataError, ExistsError, NoFileError
from nysboost.cli.sinks import SINKS, open_sink
from nysboost.cli.tables import open_table

BLOCKS = [np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)]


def write(path, blocks=BLOCKS, force=False):
    with open_sink(path, ["u", "v"], force=force) as sink:
        for block in blocks:
            sink.write(block)


@pytest.mark.parametrize("suffix", list(SINKS))
def test_blocks_come_back_as_one_table(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    write(path)
    table = open_table(path)
    np.testing.assert_array_equal(
        np.concatenate(list(table.blocks([0, 1]))), np.concatenate(BLOCKS)
    )
    assert table.names in (None, ("u", "v"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", list(SINKS))
def test_an_existing_output_is_replaced_only_by_force_and_only_when_whole(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    write(path)
    with pytest.raises(ExistsError, match="--force replaces it"):
        write(path, BLOCKS[:1])

    def interrupted():
        yield BLOCKS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, interrupted(), force=True)
    assert sum(len(block) for block in open_table(path).blocks([0])) == 7
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    write(path, BLOCKS[:1], force=True)
    assert sum(len(block) for block in open_table(path).blocks([0])) == 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_that_are_text_go_to_columns(suffix, tmp_path):
    labels = np.array([["cat"], ["dog"]], dtype=object)
    with open_sink(tmp_path / f"out{suffix}", ["label"], force=False) as sink:
        sink.write(labels)
    assert list(open_table(tmp_path / f"out{suffix}").labels(0)) == ["cat", "dog"]
    with (
        pytest.raises(CommandError, match=r"go to a \.csv or \.parquet file"),
        open_sink(tmp_path / "out.npy", ["label"], force=False) as sink,
    ):
        sink.write(labels)


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(NoFileError, match="a form that is not known"):
        write(tmp_path / "out.doc")
    with pytest.raises(NoFileError, match="There is no folder"):
        write(tmp_path / "none" / "out.npy")
    with pytest.raises(DataError, match="no rows to write"):
        write(tmp_path / "out.npy", [])
    assert list(tmp_path.iterdir()) == []


def software(path):
    """Return what a file says of who made it, read with the library of its own format."""
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            return archive.comment.decode()
    if path.suffix == ".zarr":
        return zarr.open_array(str(path), mode="r").attrs["software"]
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
