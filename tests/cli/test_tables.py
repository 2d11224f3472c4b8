"""Tables in files: every form gives the same names, numbers and gaps."""

import gzip

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr

from nysboost.cli.choice import all_but, as_in, find_column
from nysboost.cli.errors import CommandError, DataError, ModelError, NoFileError
from nysboost.cli.tables import open_table

X = np.random.default_rng(0).normal(size=(50, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def write_csv(path):
    FRAME.to_csv(path / "t.csv", index=False)
    return path / "t.csv"


def write_indexed_csv(path):
    FRAME.to_csv(path / "t.csv")
    return path / "t.csv"


def write_packed_tsv(path):
    with gzip.open(path / "t.tsv.gz", "wt") as file:
        FRAME.to_csv(file, index=False, sep="\t")
    return path / "t.tsv.gz"


def write_parquet(path):
    FRAME.set_index(FRAME.index[::-1]).to_parquet(path / "t.parquet")
    return path / "t.parquet"


def write_parts(path):
    (path / "parts").mkdir()
    FRAME[:20].to_parquet(path / "parts" / "0.parquet", index=False)
    FRAME[20:].to_parquet(path / "parts" / "1.parquet", index=False)
    return path / "parts"


def write_npy(path):
    np.save(path / "t.npy", X)
    return path / "t.npy"


def write_npz(path):
    np.savez(path / "t.npz", X=X, y=X[:, 0])
    return path / "t.npz"


def write_hdf5(path):
    with h5py.File(path / "t.h5", "w") as file:
        file["group/table"] = X
    return path / "t.h5"


def write_zarr(path):
    array = zarr.create_array(str(path / "t.zarr"), shape=X.shape, chunks=(7, 3), dtype=X.dtype)
    array[:] = X
    return path / "t.zarr"


COLUMNS = [write_csv, write_indexed_csv, write_packed_tsv, write_parquet, write_parts]
ARRAYS = [write_npy, write_npz, write_hdf5, write_zarr]


@pytest.mark.parametrize("write", COLUMNS + ARRAYS)
@pytest.mark.parametrize("columns", [[0, 1, 2], [2, 0]])
def test_every_form_gives_the_same_numbers(write, columns, tmp_path):
    table = open_table(write(tmp_path))
    assert table.width == 3
    assert table.names == (None if write in ARRAYS else ("a", "b", "c"))
    assert table.n in (50, None)
    blocks = np.concatenate(list(table.blocks(columns)))
    np.testing.assert_allclose(blocks, X[:, columns], rtol=1e-15)
    np.testing.assert_allclose(table.labels(1), X[:, 1], rtol=1e-15)


def test_a_first_line_of_numbers_is_a_row_unless_pandas_wrote_it_as_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("5.1,3.5\n4.9,3.0\n")
    assert open_table(path).names == ("column 0", "column 1")
    assert np.concatenate(list(open_table(path).blocks([0, 1]))).shape == (2, 2)
    path.write_text("0,1\n4.9,3.0\n")
    assert open_table(path).names == ("0", "1")


def test_whole_numbers_may_have_fractions_further_down(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2.5,y\n,z\n")
    table = open_table(path)
    assert table.text == ("b",)
    np.testing.assert_array_equal(next(table.blocks([0]))[:, 0], [1, 2.5, np.nan])
    assert list(table.labels(1)) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.csv", None, "There is no file"),
        ("t.doc", b"x", "a form that is not known"),
        ("t.npy", b"nonsense", "no .npy file of numbers"),
        ("t.parquet", b"nonsense", "no Parquet file"),
        ("t.csv", b"", "cannot be read|no rows"),
        ("t.csv", b"a,b\n", "no rows"),
    ],
)
def test_what_is_no_table_is_named_in_a_sentence(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CommandError, match=message):
        open_table(tmp_path / name)


def test_several_arrays_need_a_name(tmp_path):
    np.savez(tmp_path / "t.npz", u=X, v=X)
    with pytest.raises(NoFileError, match=r"there are several\. Name one with --dataset"):
        open_table(tmp_path / "t.npz")
    assert open_table(tmp_path / "t.npz", "v").n == 50
    np.save(tmp_path / "t.npy", np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match="a table of numbers is needed"):
        open_table(tmp_path / "t.npy")


def test_rows_with_gaps_are_named_or_left_out(tmp_path):
    holes = FRAME.copy()
    holes.loc[7, "b"] = np.nan
    holes.to_csv(tmp_path / "t.csv", index=False)
    table = open_table(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"in row 7, 'b'\. --drop-missing leaves such rows out"):
        list(all_but(table, [], drop_missing=False).blocks())
    choice = all_but(table, [], drop_missing=True)
    np.testing.assert_allclose(np.concatenate(list(choice.blocks())), np.delete(X, 7, axis=0))
    assert choice.dropped_rows == 1


def test_columns_are_found_by_name_and_by_number(tmp_path):
    table = open_table(write_csv(tmp_path))
    assert find_column(table, "b") == find_column(table, "1") == find_column(table, "-2") == 1
    with pytest.raises(CommandError, match=r"has no column 'z'\. It has 3: a, b, c"):
        find_column(table, "z")
    with pytest.raises(CommandError, match="Nothing is left"):
        all_but(table, [0, 1, 2], drop_missing=False)


def test_a_models_columns_are_found_whatever_their_order(tmp_path):
    named, plain = open_table(write_csv(tmp_path)), open_table(write_npy(tmp_path))
    assert as_in(named, ["c", "a"], 2, drop_missing=False).columns == [2, 0]
    assert as_in(plain, ["c", "b", "a"], 3, drop_missing=False).columns == [0, 1, 2]
    with pytest.raises(ModelError, match="does not have: z"):
        as_in(named, ["a", "z"], 2, drop_missing=False)
    with pytest.raises(ModelError, match=r"fitted on 2 columns, but .* has 3"):
        as_in(plain, None, 2, drop_missing=False)
