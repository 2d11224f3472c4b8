from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file

from nysboost.experiments import user_data
from nysboost.experiments.user_error import UserError

X = np.array([[1.0, 2.0], [3.0, 4.5], [5.0, 6.0]])


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("names", ["a,b\n", ""])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_file_is_read_with_and_without_names(tmp_path, names, delimiter):
    text = names + "1,2\n3,4.5\n5,6\n"
    table = user_data.read(write(tmp_path, text.replace(",", delimiter)))
    assert np.array_equal(table.X, X)
    assert table.columns == (("a", "b") if names else ("0", "1"))


def test_a_text_label_can_be_left_out_by_name_or_number(tmp_path):
    path = write(tmp_path, 'a,kind,b\n1,"cat",2\n3,dog,4.5\n5,"a,b",6\n')
    for label in ("kind", "1"):
        table = user_data.read(path, label)
        assert np.array_equal(table.X, X)
        assert table.columns == ("a", "b")


@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e9, 1e9)
    )
)
def test_numbers_survive_csv_exactly(values):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        path.write_text("\n".join(",".join(map(repr, row)) for row in values.tolist()))
        assert np.array_equal(user_data.read(path).X, values)


def test_parquet_npy_npz_and_libsvm_give_the_same_table(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    columns = {"a": X[:, 0], "b": X[:, 1], "kind": ["x", "y", "z"]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    np.save(tmp_path / "d.npy", X)
    np.savez(tmp_path / "d.npz", X=X, y=np.arange(3))
    np.savez(tmp_path / "one.npz", anything=X)
    dump_svmlight_file(X, np.arange(3), str(tmp_path / "d.libsvm"))
    assert np.array_equal(user_data.read(tmp_path / "d.parquet", "kind").X, X)
    for name in ("d.npy", "d.npz", "one.npz", "d.libsvm"):
        assert np.array_equal(user_data.read(tmp_path / name).X, X)


@pytest.mark.parametrize(
    ("text", "label", "says"),
    [
        ("a,b\n1,2\n", "c", "no column 'c'.*a, b"),
        ("a,city\n1,Paris\n", None, "column city .* is text \\('Paris' in line 2\\)"),
        ("a,b\n1,2\n3\n", None, "ragged: line 3 has 1 cells, where 2"),
        ("a,b\n1,2\n3,4,5\n", None, "ragged: line 3 has 3 cells"),
        ("a,b\n1,2,3\n3,4,5\n", None, "ragged: line 2 has 3 cells"),
        ("a,b,kind\n1,2,x\n3,4,y,z\n", "kind", "ragged: line 3 has 4 cells"),
        ("a,b\n1,\n", None, "column b .* no value in line 2"),
        ("a,b\n1,nan\n", None, "column b .* is NaN in row 1"),
        ("a,b\n1,2\n1,inf\n", None, "column b .* is infinite in row 2"),
        ("kind\nx\n", "kind", "no columns beside the label"),
    ],
)
def test_a_bad_csv_file_is_a_sentence(tmp_path, text, label, says):
    with pytest.raises(UserError, match=says):
        user_data.read(write(tmp_path, text), label)


def test_a_csv_file_with_names_alone_has_no_rows(tmp_path):
    with pytest.raises(UserError, match="no rows"):
        user_data.read(write(tmp_path, "a,b\n"))


def test_missing_empty_and_strange_files_are_sentences(tmp_path):
    cases = {"data.csv": "is empty", "data.xyz": "ending", "bad.npy": "npy", "bad.npz": "npz",
             "bad.parquet": "Parquet", "bad.svm": "LIBSVM"}  # fmt: skip
    for name, says in cases.items():
        write(tmp_path, "" if name == "data.csv" else "what, is; this?", name)
        with pytest.raises(UserError, match=says):
            user_data.read(tmp_path / name)
    with pytest.raises(UserError, match="There is no file"):
        user_data.read(tmp_path / "nowhere.csv")
    (tmp_path / "latin.csv").write_bytes(b"caf\xe9,b\n1,2\n")
    with pytest.raises(UserError, match="UTF-8"):
        user_data.read(tmp_path / "latin.csv")


@pytest.mark.parametrize(
    ("array", "says"),
    [(np.zeros(3), "matrix"), (np.array([["a"]]), "numbers"), (np.array([[object()]]), "npy")],
)
def test_arrays_that_are_no_table_are_sentences(tmp_path, array, says):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(UserError, match=says):
        user_data.read(tmp_path / "a.npy")


def test_an_npz_file_without_a_clear_matrix_is_a_sentence(tmp_path):
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(UserError, match="needs an array X"):
        user_data.read(tmp_path / "two.npz")


def test_a_number_sign_hides_no_row_of_a_csv_file(tmp_path):
    with pytest.raises(UserError, match="#3"):
        user_data.read(write(tmp_path, "a,b\n1,2\n#3,4.5\n5,6\n"))


def test_a_packed_csv_file_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="Unpack it first"):
        user_data.read(write(tmp_path, "1,2\n", "data.csv.gz"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("0,1\n1,2\n3,4.5\n5,6\n", ("0", "1")),
        (",0,1\n0,1,2\n1,3,4.5\n2,5,6\n", ("0", "1")),
        (",a,b\n0,1,2\n1,3,4.5\n2,5,6\n", ("a", "b")),
        ("Unnamed: 0,a,b\nx,1,2\ny,3,4.5\nz,5,6\n", ("a", "b")),
    ],
    ids=["numbers as names", "an index and numbers", "an index and names", "an index of text"],
)
def test_what_pandas_writes_is_read_as_meant_and_said(tmp_path, text, columns):
    table = user_data.read(write(tmp_path, text))
    assert np.array_equal(table.X, X)
    assert table.columns == columns
    assert table.notes


@pytest.mark.parametrize("name", [None, "when"])
def test_the_index_of_a_parquet_file_is_no_feature(tmp_path, name):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"], index=pd.Index([7, 3, 5], name=name))
    frame.to_parquet(tmp_path / "d.parquet")
    table = user_data.read(tmp_path / "d.parquet")
    assert np.array_equal(table.X, X)
    assert "index" in table.notes[0]


@pytest.mark.parametrize("cell", ["NA", "N/A", "null", "None", "<NA>", "#N/A"])
def test_what_stands_for_no_value_is_called_so(tmp_path, cell):
    with pytest.raises(UserError, match="no value in line 3"):
        user_data.read(write(tmp_path, f"a,b\n1,2\n3,{cell}\n"))


def test_truth_values_are_numbers(tmp_path):
    table = user_data.read(write(tmp_path, "a,b\n1,True\n3,FALSE\n5,true\n"))
    assert np.array_equal(table.X, [[1, 1], [3, 0], [5, 1]])


def test_several_columns_can_be_left_out(tmp_path):
    path = write(tmp_path, "a,kind,b,place\n1,x,2,y\n3,x,4.5,y\n5,x,6,y\n")
    assert np.array_equal(user_data.read(path, ("kind", "3")).X, X)


def test_a_file_that_may_not_be_read_is_a_sentence(tmp_path, monkeypatch):
    path = write(tmp_path, "a,b\n1,2\n")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(UserError, match="may not be read"):
        user_data.read(path)
