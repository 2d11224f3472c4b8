"""The commands on a cluster: every form that workers read and write, and what they do not."""

import numpy as np
import pandas as pd
import pytest
import zarr

import nysboost as nb
from nysboost.cli import cluster
from nysboost.cli.source import Source
from nysboost.tables.files import open_table
from nysboost.tables.schema import Schema
from nysboost.user_error import UserError

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

X = np.arange(24.0).reshape(8, 3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
WRITE = {
    ".csv": lambda path: FRAME.to_csv(path, index=False),
    ".parquet": FRAME.to_parquet,
    ".npy": lambda path: np.save(path, X),
    ".zarr": lambda path: zarr.save(str(path), X),
    ".npz": lambda path: np.savez(path, X=X),
}


def written(folder, suffix):
    WRITE[suffix](folder / f"rows{suffix}")
    return open_table(folder / f"rows{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".zarr"])
@pytest.mark.usefixtures("_in_this_thread")
def test_workers_read_the_chosen_columns_of_every_form(suffix, tmp_path):
    table = written(tmp_path, suffix)
    found = cluster.dask_table(Source(table, [table.names[2], table.names[0]]))
    np.testing.assert_array_equal(np.asarray(found.compute()), X[:, [2, 0]])
    column = cluster.dask_target(Source(table, [], target=table.names[1]))
    np.testing.assert_array_equal(column.compute(), X[:, 1])


@pytest.mark.usefixtures("_in_this_thread")
def test_an_array_of_one_axis_is_one_column(tmp_path):
    np.save(tmp_path / "v.npy", X[:, 0])
    found = cluster.dask_table(Source(open_table(tmp_path / "v.npy"), ["0"]))
    np.testing.assert_array_equal(found.compute(), X[:, :1])


@pytest.mark.usefixtures("_in_this_thread")
def test_parts_of_a_text_file_are_read_as_the_whole(tmp_path):
    frame = pd.DataFrame(
        {"a": np.arange(99.0), "town": ["Ulm", "", "7"] * 33, "code": [1, 2, 3] * 33}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = Source(open_table(tmp_path / "t.csv", categories=["code"]), ["code", "a", "town"])
    table = cluster.dask_table(source, chunk_bytes=200)
    assert table.npartitions > 4
    there = table.compute()
    assert Schema.of(source.read().X).describe() == Schema.of(there).describe()
    np.testing.assert_array_equal(there["a"], frame["a"])


@pytest.mark.usefixtures("_in_this_thread")
def test_workers_read_numbers_with_units(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n"1,234 €",45%\n?,3.5 %\n')
    found = cluster.dask_table(Source(open_table(tmp_path / "t.csv"), ["a", "b"])).compute()
    np.testing.assert_array_equal(found, [[1234, 45], [np.nan, 3.5]])
    with (tmp_path / "t.csv").open("a") as file:
        table = open_table(tmp_path / "t.csv")
        file.write("abc,1%\n")
    with pytest.raises(ValueError, match="'abc' in line 4"):
        cluster.dask_table(Source(table, ["a"])).compute()


def test_what_a_cluster_cannot_do_is_a_sentence(command, tmp_path):
    with pytest.raises(
        UserError, match=r"On a cluster, a table is \.zarr.*but rows\.npz was given"
    ):
        cluster.dask_table(Source(written(tmp_path, ".npz"), ["0"]))
    with pytest.raises(UserError, match="--drop-missing and --scheduler"):
        cluster.dask_table(Source(written(tmp_path, ".npy"), ["0"], drop_missing=True))
    nb.save(nb.StandardNystroem(n_components=2, random_state=0).fit(X), tmp_path / "m")
    words = ["transform", tmp_path / "m", tmp_path / "rows.npy", "--scheduler", "nowhere", "--out"]
    assert "No Dask scheduler answers at 'nowhere'" in command(*words, tmp_path / "f.zarr")[2]
    assert "write results to .zarr or .parquet, but f.csv" in command(*words, tmp_path / "f.csv")[2]
