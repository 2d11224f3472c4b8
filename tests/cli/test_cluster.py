"""The commands on a cluster: every form that workers read and write, and what they do not."""

import dask
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
import zarr
from distributed import Client, LocalCluster

import nysboost as nb
from nysboost.cli import cluster
from nysboost.cli.commands import make_parser
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


@pytest.fixture(scope="module")
def address():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        dask.config.set(scheduler=None),  # what it was, afterwards
        LocalCluster(1, processes=False, dashboard_address=None) as local,
        Client(local),
    ):
        yield local.scheduler_address


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".zarr"])
def test_workers_read_the_chosen_columns_of_every_form(suffix, tmp_path):
    table = written(tmp_path, suffix)
    with dask.config.set(scheduler="synchronous"):
        found = cluster.dask_table(Source(table, [table.names[2], table.names[0]]))
        np.testing.assert_array_equal(np.asarray(found.compute()), X[:, [2, 0]])
        column = cluster.dask_target(Source(table, [], target=table.names[1]))
        np.testing.assert_array_equal(column.compute(), X[:, 1])


def test_parts_of_a_text_file_are_read_as_the_whole(tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {"a": np.arange(99.0), "town": ["Ulm", "", "7"] * 33, "code": [1, 2, 3] * 33}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(cluster, "CHUNK_BYTES", 200)
    source = Source(open_table(tmp_path / "t.csv", categories=["code"]), ["code", "a", "town"])
    with dask.config.set(scheduler="synchronous"):
        table = cluster.dask_table(source)
        assert table.npartitions > 4
        here, there = Schema.of(source.join(list(source.parts()))[0]), table.compute()
    assert here.describe() == Schema.of(there).describe()
    np.testing.assert_array_equal(there["a"], frame["a"])


def test_workers_read_numbers_with_units(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n"1,234 €",45%\n?,3.5 %\n')
    with dask.config.set(scheduler="synchronous"):
        found = cluster.dask_table(Source(open_table(tmp_path / "t.csv"), ["a", "b"])).compute()
    np.testing.assert_array_equal(found, [[1234, 45], [np.nan, 3.5]])
    with (tmp_path / "t.csv").open("a") as file:
        table = open_table(tmp_path / "t.csv")
        file.write("abc,1%\n")
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match="'abc' in line 4"),
    ):
        cluster.dask_table(Source(table, ["a"])).compute()


def test_other_forms_and_rows_left_out_are_sentences(tmp_path):
    with pytest.raises(UserError, match=r"On a cluster \.zarr.*but rows\.npz was given"):
        cluster.dask_table(Source(written(tmp_path, ".npz"), ["0"]))
    with pytest.raises(UserError, match="--drop-missing and --scheduler"):
        cluster.dask_table(Source(written(tmp_path, ".npy"), ["0"], drop_missing=True))


def test_where_no_scheduler_answers_there_is_a_sentence():
    with (
        pytest.raises(UserError, match="No Dask scheduler answers at 'nowhere'"),
        cluster.connect("nowhere"),
    ):
        pass


def double(source, out, address):
    words = ["transform", "m", "x", "--out", str(out), "--scheduler", address]
    options = make_parser().parse_args(words)
    return cluster.write("feature", lambda rows: rows * 2, source, options)


@pytest.mark.parametrize("suffix", [".parquet", ".zarr"])
def test_results_arrive_whole_and_say_which_version_wrote_them(suffix, address, tmp_path):
    source = Source(written(tmp_path, ".npy"), ["0", "1", "2"])
    out = tmp_path / f"out{suffix}"
    assert double(source, out, address) == (8, 3)
    if suffix == ".zarr":
        np.testing.assert_array_equal(zarr.open_array(str(out))[:], 2 * X)
        software = zarr.open_array(str(out)).attrs["software"]
    else:
        np.testing.assert_array_equal(pd.read_parquet(out), 2 * X)
        part = next(out.glob("*.parquet"))
        software = parquet.read_schema(part).metadata[b"software"].decode()
    assert software == f"NysBoost {nb.__version__}"


def test_results_of_other_forms_are_a_sentence(tmp_path):
    source = Source(written(tmp_path, ".npy"), ["0"])
    with pytest.raises(UserError, match=r"results go to \.zarr or \.parquet, but out\.csv"):
        double(source, tmp_path / "out.csv", "nowhere")
