"""Tables in files: every form gives the same names, numbers and gaps."""

import gzip

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from sklearn.datasets import dump_svmlight_file

from nysboost.cli.commands import make_parser
from nysboost.cli.source import open_source
from nysboost.tables.schema import Schema
from nysboost.user_error import UserError

X = np.random.default_rng(0).normal(size=(50, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def write_packed_tsv(path):
    with gzip.open(path, "wt") as file:
        FRAME.to_csv(file, index=False, sep="\t")


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file["group/table"] = X


def write_zarr(path):
    zarr.create_array(str(path), shape=X.shape, chunks=(7, 3), dtype=X.dtype)[:] = X


def write_parts(path):
    path.mkdir()
    FRAME[:20].to_parquet(path / "0.parquet", index=False)
    FRAME[20:].to_parquet(path / "1.parquet", index=False)


def write_folder(path):
    path.mkdir()
    FRAME[:20].to_csv(path / "0.csv", index=False)
    FRAME[["c", "a", "b"]][20:].to_csv(path / "1.csv", index=False)


COLUMNS = {
    "t.csv": lambda path: FRAME.to_csv(path, index=False),
    "indexed.csv": FRAME.to_csv,
    "t.tsv.gz": write_packed_tsv,
    "t.parquet": FRAME.set_index(FRAME.index[::-1]).to_parquet,
    "parquet-parts": write_parts,
    "t.feather": FRAME.to_feather,
    "t.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True, double_precision=15),
    "t.xlsx": lambda path: FRAME.to_excel(path, index=False),
    "folder": write_folder,
}
ARRAYS = {
    "t.npy": lambda path: np.save(path, X),
    "t.npz": lambda path: np.savez(path, X=X, y=X[:, 0]),
    "t.libsvm": lambda path: dump_svmlight_file(X, X[:, 0], str(path)),
    "t.h5": write_hdf5,
    "t.zarr": write_zarr,
}


def opened(folder, name, *words):
    if not (folder / name).exists():
        (COLUMNS | ARRAYS)[name](folder / name)
    return open_source(make_parser().parse_args(["compare", str(folder / name), *words]))


def numbers(source):
    return np.concatenate([np.asarray(part) for part in source.parts()])


@pytest.mark.parametrize("name", [*COLUMNS, *ARRAYS])
def test_every_form_gives_the_same_numbers(name, tmp_path):
    source = opened(tmp_path, name)
    assert list(source.columns) == (["0", "1", "2"] if name in ARRAYS else ["a", "b", "c"])
    assert source.file.n in (50, None)
    np.testing.assert_allclose(numbers(source), X, rtol=1e-12)
    fewer = opened(tmp_path, name, "--drop-column", source.columns[1])
    np.testing.assert_allclose(numbers(fewer), X[:, [0, 2]], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(fewer.read().X), X[:, [0, 2]])


@pytest.mark.parametrize("name", ["t.csv", "t.npy", "nan.parquet"])
def test_rows_with_gaps_are_left_out_and_counted(name, tmp_path):
    holes = FRAME.copy()
    holes.loc[7, "b"] = np.nan
    holes.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", holes)
    pl.DataFrame(holes.to_numpy(), schema=["a", "b", "c"]).write_parquet(tmp_path / "nan.parquet")
    source = opened(tmp_path, name, "--drop-missing")
    np.testing.assert_allclose(numbers(source), np.delete(X, 7, axis=0))
    assert source.dropped_rows == 1


@pytest.mark.parametrize("name", ["t.csv", "t.npy"])
def test_rows_without_a_target_are_left_out_and_no_others(name, tmp_path):
    holes = FRAME.copy()
    holes.loc[7, "c"] = holes.loc[9, "a"] = np.nan
    holes.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", holes)
    command = ["fit", str(tmp_path / name), "--out", "m", "--target", "2"]
    source = open_source(make_parser().parse_args([*command, "--drop-missing-target"]))
    assert [part.shape[0] for part in source.parts()] == [49]
    assert source.dropped_rows == 1


def test_a_column_that_is_text_in_one_file_of_a_folder_is_text_in_all(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    FRAME[:20].assign(a="x").to_csv(folder / "0.csv", index=False)
    FRAME[20:].assign(a=7, b=np.nan).to_csv(folder / "1.csv", index=False)
    source = opened(tmp_path, "folder")
    table = source.read().X
    assert table.column("a").to_pylist() == ["x"] * 20 + ["7"] * 30
    numbers = Schema.of(table.select(["b", "c"])).read(table.select(["b", "c"]))
    np.testing.assert_allclose(numbers[0][:20], X[:20, 1], rtol=1e-12)
    assert np.isnan(numbers[0][20:]).all()


def test_hidden_files_of_a_folder_are_no_tables(tmp_path):
    write_folder(tmp_path / "folder")
    (tmp_path / "folder" / "._0.csv").write_bytes(b"\x00\x05")
    np.testing.assert_allclose(numbers(opened(tmp_path, "folder")), X, rtol=1e-12)


@pytest.mark.parametrize("given", ["b", "1", "-2"])
def test_columns_are_found_by_name_and_by_number(given, tmp_path):
    assert list(opened(tmp_path, "t.csv", "--drop-column", given).columns) == ["a", "c"]
    assert list(opened(tmp_path, "t.csv", "--drop-column", f"a,{given}").columns) == ["c"]
    with pytest.raises(UserError, match=r"no column 'z'\. Choose one of a, b, c"):
        opened(tmp_path, "t.csv", "--drop-column", "z")
    with pytest.raises(UserError, match="has no columns left besides the target"):
        opened(tmp_path, "t.csv", "--drop-column", f"a,{given},c")


def test_files_of_a_folder_have_the_same_columns(tmp_path):
    opened(tmp_path, "folder")
    (tmp_path / "folder" / "2.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"2\.csv lacks columns that .*0\.csv has: c"):
        opened(tmp_path, "folder")


def test_names_with_blanks_are_taken_as_they_are(tmp_path):
    FRAME.rename(columns={"b": " a", "c": "c, d"}).to_parquet(tmp_path / "t.parquet")
    assert opened(tmp_path, "t.parquet", "--drop-column", " a").columns == ["a", "c, d"]
    assert opened(tmp_path, "t.parquet", "--drop-column", "a").columns == [" a", "c, d"]
    assert opened(tmp_path, "t.parquet", "--drop-column", "a, a").columns == ["c, d"]
    assert opened(tmp_path, "t.csv", "--drop-column", "a, b").columns == ["c"]


def test_a_superscript_digit_is_no_number_of_a_column(tmp_path):
    with pytest.raises(UserError, match="no column '²'"):
        opened(tmp_path, "t.csv", "--drop-column", "²")


@pytest.mark.parametrize("name", ["t.csv", "indexed.csv", "t.parquet", "t.xlsx"])
def test_numbers_of_columns_count_those_that_are_used(name, tmp_path):
    assert opened(tmp_path, name, "--drop-column", "0").columns == ["b", "c"]
    assert opened(tmp_path, name, "--drop-column", "-1").columns == ["a", "b"]
