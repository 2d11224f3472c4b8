"""Files that would hang, crash or lose rows and digits: each is right, or one sentence."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from threading import Thread
from zipfile import ZipFile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import nysboost as nb
from nysboost.numerics.messages import printable, unknown
from nysboost.tables.files import join_tables, open_table
from nysboost.tables.schema import Schema
from nysboost.tables.targets import read_target
from nysboost.tables.text_format import TextFormat
from nysboost.user_error import NoTableError, TableError


@pytest.mark.parametrize("lines", [True, False])
def test_brackets_within_brackets_are_a_sentence(lines, tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    path = tmp_path / ("t.jsonl" if lines else "t.json")
    path.write_text(f'{{"a": 1}}\n{{"a": {deep}}}\n' if lines else deep)
    with pytest.raises(TableError, match=r"has brackets 100,00[01] deep"):
        open_table(path)
    # brackets in text are none, and such that close nothing hide none
    path.write_text(json.dumps({"a": "[" * 500}))
    assert open_table(path).n == 1
    path.write_text("]" * 200_000 + "\n" + deep)
    with pytest.raises(TableError):
        open_table(path)


@pytest.mark.parametrize("text", ["null\n", 'null\n{"a": 1}\n', '{"a": 1}\nnull\n', "null null"])
def test_an_object_that_is_null_is_a_sentence(text, tmp_path):
    # in a process of its own: without the check, Arrow's reader ends it
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    command = [sys.executable, "-m", "nysboost", "fit", path, "--out", tmp_path / "m"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 3
    assert "one in each line or in a list: one is null" in run.stderr


def test_values_that_are_null_are_gaps(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": null, "b": "}null"}\n{"a": 1, "b":\tnull}\n')
    assert open_table(path).n == 2


@pytest.mark.parametrize("encoding", ["rot13", "zlib", "hex", "no such"])
def test_what_is_no_encoding_of_text_is_a_sentence(encoding, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"no encoding .* of text"):
        open_table(tmp_path / "t.csv", writing=TextFormat(encoding=encoding))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("name", ["t.csv", "63"])
def test_a_pipe_is_read_once(name, tmp_path):
    """As the shell's <(…) is, whose writer is gone when a file is opened again."""
    os.mkfifo(tmp_path / name)
    writer = Thread(target=(tmp_path / name).write_text, args=("x,y\n1,a\n2,b\n",), daemon=True)
    writer.start()
    table = join_tables(list(open_table(tmp_path / name).batches()))
    assert table.to_pydict() == {"x": [1, 2], "y": ["a", "b"]}
    with pytest.raises(TableError, match="is a device"):
        open_table("/dev/zero")


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_an_empty_line_of_one_column_is_a_row(end, tmp_path):
    (tmp_path / "t.csv").write_text(f'x\n1.5\n\n2.5\n""{end}')
    table = join_tables(list(open_table(tmp_path / "t.csv").batches()))
    assert table.column("x").to_pylist() == [1.5, None, 2.5, None]


def test_a_sparse_file_is_made_dense_where_memory_allows_it(tmp_path):
    (tmp_path / "t.libsvm").write_text("".join(f"1 {j}:1.5\n" for j in (1, 5, 20_000)))
    narrow = open_table(tmp_path / "t.libsvm", max_memory="100MB")
    assert isinstance(narrow.data, np.ndarray)
    wide = open_table(tmp_path / "t.libsvm", max_memory="2MB")
    assert wide.data.nnz == 3
    assert "stays sparse" in wide.notes[0]
    (block,) = wide.batches(["0", "4"])
    np.testing.assert_array_equal(block, [[1.5, 0], [0, 1.5], [0, 0]])
    (tmp_path / "t.libsvm").write_text("1 2147483646:1\n")
    with pytest.raises(TableError, match="has 2,147,483,646 columns"):
        open_table(tmp_path / "t.libsvm")


READ_SPARSE = """
import resource, sys
import nysboost.cli.commands, pyarrow.dataset, sklearn.datasets
from nysboost.tables.files import open_table
from nysboost.user_error import TableError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
said = ""
try:
    file = open_table(sys.argv[1], max_memory=sys.argv[2])
    for block in file.batches(file.names): pass
except TableError as error:
    said = str(error)
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(taken // 1000, said)
"""


@pytest.mark.parametrize("filled", [40, 2000])
def test_a_sparse_file_keeps_to_the_memory_allowed_or_is_refused(filled, tmp_path):
    """3,000 rows of 20,000 columns would take 480 MB as a dense table."""
    rng = np.random.default_rng(0)
    path = tmp_path / "t.libsvm"
    columns = np.sort(rng.choice(20_000, size=(30, filled)), axis=1) + 1
    lines = [" ".join(f"{j}:1.5" for j in np.unique(row)) for row in columns]
    path.write_text(
        "".join(f"{i % 2} {lines[i % 30]}\n" for i in range(3000 if filled == 40 else 900))
    )
    run = subprocess.run(
        [sys.executable, "-c", READ_SPARSE, path, "20MB"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    taken, _, said = run.stdout.partition(" ")
    assert int(taken) < 20
    if filled == 40:
        assert said == "\n"
    else:
        assert "numbers, which take" in said
        assert "but 20 MB are allowed" in said


def test_labels_of_a_sparse_file_are_learned_without_a_dense_table(tmp_path, command):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((100, 2000)) < 0.005, 1.0, 0.0)
    X[:, 0] = rng.normal(size=100)
    X[0, -1] = 1.0
    dump_svmlight_file(X, X[:, 0] > 0, str(tmp_path / "t.libsvm"))
    file = open_table(tmp_path / "t.libsvm", max_memory="10MB")
    assert sparse.issparse(file.data)
    np.testing.assert_array_equal(file.beside("label"), X[:, 0] > 0)
    fit = ("--target", "label", "--components", "20", "--max-memory", "10MB")
    status, said, _ = command("fit", tmp_path / "t.libsvm", "--out", tmp_path / "m", *fit)
    assert status == 0
    assert "NystroemClassifier" in said
    assert "columns: 2000" in said


LARGE = [2**60, 2**60 + 1]


def test_labels_keep_all_their_digits(tmp_path, command):
    table = pa.table({"label": LARGE})
    assert read_target(table.column("label"), "label", "t").tolist() == LARGE
    texts = pa.table({"label": [str(label) for label in LARGE]})
    assert read_target(texts.column("label"), "label", "t").tolist() == LARGE
    parts = [pa.table({"label": [2.0]}), table]
    assert join_tables(parts).column("label").to_pylist() == [2, *LARGE]

    x = np.linspace(-1, 1, 60)
    frame = pd.DataFrame({"x": x, "label": np.where(x > 0, *LARGE)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m", tmp_path / "o.csv"
    fit = ("--target", "label", "--task", "classification", "--no-test", "--components", "20")
    assert command("fit", tmp_path / "t.csv", "--out", model, *fit)[0] == 0
    assert command("predict", model, tmp_path / "t.csv", "--out", out)[0] == 0
    found = [int(text) for text in out.read_text().split()[1:]]
    assert set(found) == set(LARGE)
    assert np.mean(np.array(found) == frame["label"]) > 0.9


@pytest.mark.parametrize("least", [2**60, 10**18 + 1, 2**63 - 9, -(2**60), 2**63])
def test_categories_keep_all_their_digits(least, tmp_path):
    """In a frame and in a file, as numbers and as text."""
    codes = [least + i % 3 for i in range(30)]
    frame = pd.DataFrame({"code": codes})
    frame.to_csv(tmp_path / "t.csv", index=False)
    texts = frame.astype({"code": str})
    for fitted in (frame.astype({"code": "category"}), texts.astype({"code": "category"})):
        schema = Schema.of(fitted)
        known = schema.columns[0].values
        file = open_table(tmp_path / "t.csv", schema=schema)
        for table in (frame, texts, pl.from_pandas(frame), join_tables(list(file.batches()))):
            found = [str(known[position]) for position in schema.read(table)[0]]
            assert found == texts["code"].tolist()


@pytest.mark.parametrize("form", ["frame", "texts", "csv", "parquet"])
def test_whole_numbers_of_many_digits_are_ids_or_told_of(form, tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    ids = (2**60 + rng.permutation(n)).tolist()
    few = [2**60 + i % 3 for i in range(n)]
    table = pd.DataFrame({"order": ids, "code": few, "small": np.arange(n) % 7})
    if form == "texts":
        table = table.astype(str)
    elif form == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
    elif form == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
    if form in ("csv", "parquet"):
        table = join_tables(list(open_table(tmp_path / f"t.{form}").batches()))

    with pytest.warns(UserWarning, match="Column") as warned:
        schema = Schema.of(table, ids="drop")
    assert [column.kind for column in schema.columns] == ["id", "number", "number"]
    said = [str(each.message) for each in warned]
    assert len(said) == 2
    assert "'order' has a different whole number in each row" in said[0]
    assert "'code' has whole numbers such as 11529215046068469" in said[1]
    np.testing.assert_array_equal(schema.read(table)[1], np.full(n, 2.0**60))


def test_truth_values_of_a_text_file_come_back_as_they_were_written(tmp_path, command):
    x = np.linspace(-1, 1, 60)
    pd.DataFrame({"x": x, "yes": x > 0}).to_csv(tmp_path / "t.csv", index=False)
    fit = ("--target", "yes", "--no-test", "--components", "20")
    assert command("fit", tmp_path / "t.csv", "--out", tmp_path / "m", *fit)[0] == 0
    out = tmp_path / "o.csv"
    predict = ("predict", tmp_path / "m", tmp_path / "t.csv", "--out", out, "--proba")
    assert command(*predict)[0] == 0
    head, *rows = out.read_text().split("\n")
    assert "True" in head
    assert {row.split(",")[0].strip('"') for row in rows if row} == {"True", "False"}


def test_categories_of_large_files_have_means_of_the_target(tmp_path, command):
    rng = np.random.default_rng(0)
    level = rng.normal(size=150)
    at = rng.integers(150, size=3000)
    streets = [f"street {i} {'x' * 90}" for i in at]
    table = pa.table({"street": streets, "size": rng.normal(size=3000), "rent": level[at]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    fit = ("--target", "rent", "--no-test", "--components", "40", "--force")
    means = []
    for memory in ("1GB", "1MB"):
        fitted = command(
            "fit", tmp_path / "t.parquet", "--out", tmp_path / "m", *fit, "--max-memory", memory
        )
        assert fitted[0] == 0, fitted
        means.append(nb.load(tmp_path / "m")._table.means[0])
    small, large = (m - m.mean() for m in means)
    np.testing.assert_allclose(large / large.std(), small / small.std(), atol=1e-9)


def test_a_column_number_out_of_range_in_a_libsvm_file_is_a_sentence(tmp_path):
    (tmp_path / "t.libsvm").write_text("1 1000000000000:2\n")
    with pytest.raises(NoTableError, match="is not a LIBSVM file of numbers"):
        open_table(tmp_path / "t.libsvm")


def test_a_null_character_is_told_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,\x004\n")
    with pytest.raises(NoTableError, match="NUL character in line 3"):
        open_table(path)


def test_utf_32_is_recognised(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,ü\n", encoding="utf-32")
    (batch,) = open_table(path).batches()
    assert batch.to_pydict() == {"a": [1.0], "b": ["ü"]}


def test_a_row_without_end_is_a_sentence(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n" + b"0" * 2**26)
    file = open_table(path)
    with pytest.raises(TableError, match=r"a row of more than 16\.8 MB"):
        list(file.batches())


def test_of_many_names_the_first_are_known(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"a{i}" for i in range(3000)) + "\n" + "1," * 2999 + "1\n")
    with pytest.raises(ValueError, match=r"Choose one of .*a99, … \(3,000 in all\)\.") as found:
        raise ValueError(unknown("column", "", open_table(path).names))
    assert len(str(found.value)) < 800


def test_hidden_characters_are_shown():
    assert printable("\ufeffa\u200b\u202eb\x1b") == r"\ufeffa\u200b\u202eb\x1b"


@pytest.mark.parametrize("form", ["h5", "zarr"])
@pytest.mark.parametrize("shape", [(50, 3), (50,)])
def test_a_damaged_chunk_is_a_sentence(form, shape, tmp_path, command):
    X = np.random.default_rng(0).normal(size=shape)
    path = tmp_path / f"damaged.{form}"
    if form == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X, chunks=shape, compression="gzip")
        with h5py.File(path) as file:
            chunk = file["X"].id.get_chunk_info(0)
        at, damaged = chunk.byte_offset, path
    else:
        zarr = pytest.importorskip("zarr")
        zarr.create_array(str(path), data=X, chunks=shape)
        at, damaged = 0, next(part for part in path.rglob("c/**/0") if part.is_file())
    with damaged.open("r+b") as file:
        file.seek(at)
        file.write(b"damaged!" * 4)

    status, _, complained = command("fit", path, "--out", tmp_path / "m")
    assert status in (3, 4)
    assert "cannot be read" in complained or "is truncated" in complained
    if len(shape) == 2:
        store = h5py.File(path)["X"] if form == "h5" else zarr.open(str(path))
        with pytest.raises(TableError, match="Rows 0 to 49 of the stored array cannot be read"):
            nb.approximate(store, "nystrom", n_components=5)


def damage(content):
    """Return content with other bytes in the middle."""
    middle = len(content) // 2
    changed = bytes(byte ^ 255 for byte in content[middle : middle + 20])
    return content[:middle] + changed + content[middle + 20 :]


def cut(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("change", [damage, cut], ids=["damaged", "cut"])
@pytest.mark.parametrize("n", [100, 20_000])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_damaged_compressed_table_is_a_sentence(pack, change, n, form, tmp_path):
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 2)), columns=["x", "y"])
    if form == "csv":
        text = numbers.to_csv(index=False)
    else:
        text = numbers.to_json(orient="records", lines=True)
    path = tmp_path / f"t.{form}.gz"
    path.write_bytes(change(pack(text.encode())))
    with pytest.raises(NoTableError, match="is compressed, and truncated or damaged"):
        list(open_table(path).batches())


def test_what_follows_a_compressed_table_is_a_sentence(tmp_path, command):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 100) + b"garbage")
    status, _, err = command("fit", path, "--out", tmp_path / "m")
    assert status == 3
    assert err == f"nysboost: {path} is compressed, and truncated or damaged.\n"


def test_a_damaged_excel_file_is_a_sentence(tmp_path):
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"x": range(60)}).to_excel(path, index=False)
    with ZipFile(path) as archive:
        sheet = archive.getinfo("xl/worksheets/sheet1.xml")

    # its compressed bytes follow a header of 30 bytes and the name
    content = bytearray(path.read_bytes())
    content[sheet.header_offset + 30 + len(sheet.filename)] = 255
    path.write_bytes(content)
    with pytest.raises(NoTableError, match="no Excel file that openpyxl can read, or it is dam"):
        open_table(path)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_json_with_a_mark_and_a_long_row_is_read(listed, pack, tmp_path):
    objects = [{"x": i} for i in range(3)]
    objects.append({"x": 3, "note": "a" * 3_000_000})
    text = json.dumps(objects) if listed else "\n".join(map(json.dumps, objects))
    path = tmp_path / ("t.jsonl" if pack is bytes else "t.jsonl.gz")
    path.write_bytes(pack(text.encode("utf-8-sig")))
    assert join_tables(list(open_table(path).batches(["x"]))).to_pydict() == {"x": [0, 1, 2, 3]}


def test_compressed_json_passes_the_same_checks(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(f'{{"a": {"[" * 500}{"]" * 500}}}'.encode()))
    with pytest.raises(TableError, match="has brackets 501 deep"):
        open_table(path)
    ids = [10**19 + i for i in range(3)]
    path.write_bytes(gzip.compress("\n".join(json.dumps({"a": i}) for i in ids).encode()))
    table = join_tables(list(open_table(path).batches()))
    assert [int(cell) for cell in table.column("a").to_pylist()] == ids
