"""Files as people write them: recognised, or refused with a sentence that names what is wrong."""

import bz2
import datetime as dt
import gzip
import io
import json
import lzma
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from nysboost.tables.categories import plain
from nysboost.tables.dates import as_seconds, as_span
from nysboost.tables.files import join_tables, open_table, without_index
from nysboost.tables.schema import Schema
from nysboost.tables.text_format import TextFormat
from nysboost.user_error import TableError

PLAIN = (
    "size,town,price,day,garden\n1.5,Köln,1234.5,2020-01-31,true\n"
    "-2.25,Ulm,2000.125,2021-02-28,false\n3.0,Köln,-12.5,1999-12-31,true\n"
)
EXPECTED = {
    "size": [1.5, -2.25, 3.0],
    "town": ["Köln", "Ulm", "Köln"],
    "price": [1234.5, 2000.125, -12.5],
    "day": ["2020-01-31", "2021-02-28", "1999-12-31"],
    "garden": ["true", "false", "true"],
}
SEMICOLONS = PLAIN.replace(",", ";")
COMMA = SEMICOLONS.replace(".", ",")
WRITTEN = {
    "commas": PLAIN,
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "semicolons": SEMICOLONS,
    "decimal comma": COMMA,
    "decimal comma, tabs": COMMA.replace(";", "\t"),
    "decimal comma, thousands": COMMA.replace("1234,5", "1.234,5").replace("2000,1", "2.000,1"),
    "thousands": PLAIN.replace("1234.5", '"1,234.5"').replace("2000.1", '"2,000.1"'),
    "thousands, semicolons": SEMICOLONS.replace("1234.5", "1,234.5").replace("2000.1", "2,000.1"),
    "quoted": PLAIN.replace("Köln", '"Köln"').replace("1.5", '"1.5"'),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "spaces around names": PLAIN.replace("size,town", " size , town"),
    "thousands and spaces": COMMA.replace("1234,5", "1 234,5").replace("2000,1", "2 000,1"),
    "thousands and apostrophes": SEMICOLONS.replace("1234.5", "1'234.5").replace("2000.", "2'000."),
    "spaces": PLAIN.replace(",", " "),
    "old line ends": PLAIN.replace("\n", "\r"),
    "empty lines": "\n\n" + PLAIN.replace("\n", "\n\n"),
    "what Excel says first": "sep=;\n" + SEMICOLONS,
}


def read_whole(file, columns=None):
    return join_tables(list(file.batches(columns)))


def read(path, **how):
    file = open_table(path, writing=TextFormat(**how))
    return read_whole(file), file


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"]
)
@pytest.mark.parametrize("written", WRITTEN)
def test_separators_decimals_and_encodings_are_recognised(written, encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes(WRITTEN[written].encode(encoding))
    table, _ = read(tmp_path / "t.csv")
    assert table.to_pydict() == EXPECTED


@pytest.mark.parametrize("pack", [gzip, bz2, lzma])
def test_packed_files_are_read_whatever_their_name_says(pack, tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(pack.compress(PLAIN.encode()))
    assert read(tmp_path / "t.csv.gz")[0].to_pydict() == EXPECTED


def test_what_is_given_is_not_guessed(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,234;2\n5,678;3\n")
    assert read(tmp_path / "t.csv")[0].to_pydict()["a"] == [1.234, 5.678]
    assert read(tmp_path / "t.csv", decimal=".")[0].to_pydict()["a"] == [1234.0, 5678.0]
    (tmp_path / "t.csv").write_bytes("a,b\nÄ,1\n".encode("cp437"))
    assert read(tmp_path / "t.csv", encoding="cp437")[0].to_pydict()["a"] == ["Ä"]


def test_a_zero_alone_before_a_mark_shows_that_decimals_follow(tmp_path):
    (tmp_path / "t.csv").write_text("a;part\n0.125;100.200.300\n0.250;100.200.400\n")
    assert read(tmp_path / "t.csv")[0].to_pydict()["a"] == [0.125, 0.25]


@pytest.mark.parametrize("mark", ["?", "-", "NA", "n/a", "none", ".", "#DIV/0!", "NULL", "", "NaN"])
def test_marks_of_gaps_among_numbers_are_gaps(mark, tmp_path):
    rows = [f"{i}.5,{i}" for i in range(1000)]
    rows[900] = f"{mark},900"
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]))
    table, file = read(tmp_path / "t.csv")
    assert table.column("x").null_count == 1
    assert table.column("x")[900].as_py() is None
    assert Schema.of(table).columns[0].gaps == 1
    said = "read as missing values" in " ".join(file.notes)
    assert said == (mark.lower() in ("?", "-", "none", ".", "#div/0!"))


def test_text_keeps_its_marks_but_for_gaps(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\nnone,1\n?,2\n,3\nNA,4\na,5\n")
    column = Schema.of(read(tmp_path / "t.csv")[0]).columns[0]
    assert (column.values, column.gaps) == (("?", "a", "none"), 2)


def test_the_types_of_columns_are_those_of_what_is_in_them(tmp_path):
    (tmp_path / "t.csv").write_text(
        "whole,truth,day,time,code\n1,true,2020-01-31,2020-01-31 10:00:00,007\n"
        "2,false,2020-02-01,2020-01-31 11:00:00.5,x8\n"
    )
    schema = Schema.of(read(tmp_path / "t.csv")[0])
    kinds = [column.kind for column in schema.columns]
    assert kinds == ["number", "boolean", "date", "date", "category"]
    assert schema.columns[4].values == ("007", "x8")


UNITS = {
    "percent": ("45%", "-3.5 %", [45.0, -3.5]),
    "currency before": ("$1,234.50", "-$3", [1234.5, -3.0]),
    "currency behind": ("1,234,567 €", "12 €", [1234567.0, 12.0]),
    "gaps": ("?", "12 %", [None, 12.0]),
}


@pytest.mark.parametrize("what", UNITS)
def test_numbers_with_one_unit_are_numbers_and_a_note_says_so(what, tmp_path):
    first, second, expected = UNITS[what]
    (tmp_path / "t.csv").write_text(f"x;y\n{first};1\n{second};2\n")
    table, file = read(tmp_path / "t.csv")
    assert table.to_pydict()["x"] == expected
    assert "Column 'x' has numbers written with" in " ".join(file.notes)
    schema = Schema.of(table).as_written(file)
    for cell, value in ((second, expected[1]), ("7", 7.0)):  # later files may leave it out
        (tmp_path / "t.csv").write_text(f"x;y\n{cell};1\n")
        part = read_whole(open_table(tmp_path / "t.csv", schema=schema))
        assert part.to_pydict()["x"] == [value]


def test_numbers_with_units_in_frames_and_units_that_differ():
    frame = pa.table({"x": ["45 %", "3%", "?"] * 9, "y": ["45%", "$3", "12"] * 9})
    with pytest.warns(UserWarning, match=r"'x' holds numbers, and 9 times '\?'"):
        schema = Schema.of(frame)
    assert [column.kind for column in schema.columns] == ["number", "category"]
    assert schema.describe()[0] == "number: x (in %, 9 gaps, written '?')"
    numbers = schema.read(pa.table({"x": ["7%", "8"], "y": ["$3", "12"]}))[0]
    assert numbers.tolist() == [7, 8]


ORDERS = {
    "month first": ["1/31/2020", "12/1/2019 9:30 PM"],
    "day first": ["31/1/2020", "1-12-2019 21:30"],
    "dotted": ["1.2.2020", "01.12.2019"],
}


@pytest.mark.parametrize("what", ORDERS)
def test_dates_in_the_order_of_a_country_are_dates_where_one_order_is_possible(what):
    texts = ORDERS[what]
    schema = Schema.of(pa.table({"day": texts}))
    assert schema.columns[0].kind == "date"
    assert schema.columns[0].form == what.replace("dotted", "day first")
    assert schema.columns[0].form in schema.describe()[0]
    usual = ["2020-01-31", "2019-12-01 21:30"]
    usual = ["2020-02-01", "2019-12-01"] if what == "dotted" else usual
    found = schema.read(pa.table({"day": texts}))[0]
    np.testing.assert_array_equal(found, [as_seconds(text) for text in usual])
    np.testing.assert_array_equal(schema.read(pa.table({"day": usual}))[0], found)


@pytest.mark.parametrize("days", ["1/2/2020 3/4/2021", "13/1/2020 1/13/2020", "40/1/2020", "% €"])
def test_dates_that_could_be_others_and_units_alone_stay_text(days):
    assert Schema.of(pa.table({"day": days.split()})).columns[0].kind == "category"


def test_a_column_of_dates_that_could_be_others_is_told_of_where_it_is_left_out():
    days = [f"{i % 12 + 1}/{i // 12 + 1}/2020" for i in range(60)]
    with pytest.warns(UserWarning, match=r"'day' is text .* Write dates as 2020-01-31"):
        Schema.of(pa.table({"day": days, "x": range(60)}))


def test_a_column_without_values_is_left_out_and_told_of():
    frame = pa.table({"x": [1.0, 2.0], "none": pa.array([None, None], pa.string())})
    with pytest.warns(UserWarning, match="'none' has no value in any of 2 rows, and is left out"):
        schema = Schema.of(frame)
    assert schema.describe() == ["number: x", "empty: none (2 gaps)"]
    assert len(schema.read(pa.table({"x": [3.0]}))[1]) == 0


def test_a_column_of_other_categories_than_in_fitting_is_told_of():
    schema = Schema.of(pa.table({"express": ["yes", "no"] * 10, "size": np.arange(20.0)}))
    later = pa.table({"express": [True, False] * 10, "size": np.arange(20.0)})
    with pytest.warns(UserWarning, match="'express' has none of the values of the fit"):
        schema.read(later)
    schema.read(later.slice(0, 9))  # a few may be new ones


@pytest.mark.parametrize("first", ["1,red,2.5", "red,small,low", "country,2020,2021"])
def test_a_first_line_that_may_be_a_row_is_told_of(first, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\n4,blue,3\n{first}\n")
    assert "is taken as names of columns. If it is a row" in open_table(path).notes[0]
    path.write_text("a,b,c\n4,blue,3\n5,red,4\n")
    assert open_table(path).notes == []


def test_categories_that_are_unknown_in_many_rows_are_told_of():
    schema = Schema.of(pa.table({"town": ["Bern", "Basel"] * 50}))
    towns = ["Bern"] * 79 + ["Genf", "Chur", "Genf"] * 7
    says = "not in the fit in 21 of 100 rows: 'Genf', 'Chur'. There, only the other columns"
    with pytest.warns(UserWarning, match=says):
        schema.read(pa.table({"town": towns}))
    # few rows, or a small share of them
    schema.read(pa.table({"town": towns[70:88]}))
    schema.read(pa.table({"town": towns + ["Bern"] * 200}))


def test_a_file_without_names_gets_some_unless_they_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("5.1,3.5\n4.9,3.0\n")
    table, _ = read(tmp_path / "t.csv")
    assert table.to_pydict() == {"column 0": [5.1, 4.9], "column 1": [3.5, 3.0]}
    (tmp_path / "t.csv").write_text("0,1\n4.9,3.0\n")
    table, file = read(tmp_path / "t.csv")
    assert table.to_pydict() == {"0": [4.9], "1": [3.0]}
    assert "taken as names of columns" in file.notes[0]


WRONG = {
    "empty": ("", "is empty"),
    "only names": ("a,b\n", "at least one row"),
    "ragged": ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, where 2 were expected"),
    "two of a name": ("a,a\n1,2\n", "two columns called 'a'"),
    "a word among numbers": (
        "\n".join(["a,b", *(f"{i},1" for i in range(50)), "abc,1"]),
        "Column 'a' of .* has 'abc' in line 52, which is not a number",
    ),
    "a word far down": (
        "\n".join(["a,b", *(f"{i}.25,1.{'5':0<70}" for i in range(240_000)), "abc,1"]),
        "Column 'a' of .* has 'abc' in line 240002, which is not a number",
    ),
    "another decimal": ("a;b\n" + "0,5;1.25\n" * 9, "'a' of .* has '0,5' in line 2"),
    "a hexadecimal number": (
        "a,b\n" + "".join(f"{i}.5,1\n" for i in range(20)) + "0x1F,1\n",
        "Column 'a' of .* has '0x1F' in line 22",
    ),
    "thousands apart elsewhere": (
        "a;b\n" + "1,234.5;1\n" * 20 + "1,23.4;1\n",
        "Column 'a' of .* has '1,23.4' in line 22",
    ),
    "an open quotation mark": ('a,b\n1,"x\n2,y\n3,z\n', "quotation mark in line 2"),
    "spaces alone": ("  \n \n", "is empty"),
    "no text": ("a,b\n\x00\x01,2\n", "NUL character in line 2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_text_file_is_named(what, tmp_path):
    text, sentence = WRONG[what]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match=sentence):
        read(tmp_path / "t.csv")


def test_what_is_wrong_is_named_as_it_is_written_in_other_encodings(tmp_path):
    text, sentence = (said.replace("abc", "äöü") for said in WRONG["a word among numbers"])
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        with pytest.raises(TableError, match=sentence):
            read(tmp_path / "t.csv")


def test_a_word_among_numbers_does_no_harm_where_the_column_is_left_out(tmp_path):
    (tmp_path / "t.csv").write_text(WRONG["a word among numbers"][0])
    file = open_table(tmp_path / "t.csv")
    assert read_whole(file, ["b"]).num_rows == 51
    file = open_table(tmp_path / "t.csv", categories=["a"])
    assert Schema.of(read_whole(file)).columns[0].kind == "category"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("no.csv", None, "There is no file"),
        ("t.doc", b"x", "The format of"),
        ("t.npy", b"nonsense", "not a .npy file of numbers"),
        ("t.parquet", b"nonsense", "not a Parquet file"),
        ("t.feather", b"nonsense", "not a Feather file"),
        ("t.jsonl", b"nonsense", "JSON objects"),
        ("t.json", b"[1, 2]", "JSON objects, one in each line or in a list: 1 is none"),
        ("t.jsonl", b'{"a": 1}\n[2]\n', r"JSON objects, .*: \[2\] is none"),
        ("t.xlsx", b"nonsense", "no Excel file"),
        ("t.xlsx", b"PK\x05\x06" + bytes(18), "no Excel file"),  # an empty archive
        ("t.libsvm", b"a b c", "LIBSVM"),
        ("t.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)[:30], "truncated or damaged"),
    ],
)
def test_what_is_no_table_is_a_sentence(name, content, sentence, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=sentence):
        open_table(tmp_path / name)


@pytest.mark.parametrize("listed", [False, True])
def test_json_values_of_several_types_are_a_column(tmp_path, listed):
    cells = [*range(9), "x", None]
    objects = [{"a": cell, "b": float(i)} for i, cell in enumerate(cells)]
    lines = json.dumps(objects) if listed else "\n".join(map(json.dumps, objects))
    (tmp_path / "t.json").write_text(lines)
    table = read_whole(open_table(tmp_path / "t.json"))
    assert table.column("a").to_pylist() == [*map(str, range(9)), "x", None]
    assert table.column("b").to_pylist() == [*range(11)]


def test_a_target_has_a_value_for_each_row(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.zeros((50, 2)), y=np.zeros(9))
    with pytest.raises(TableError, match=r"'y' of .* has shape \(9,\), .* each of the 50 rows"):
        open_table(tmp_path / "t.npz").beside("y")


def test_several_arrays_need_a_name(tmp_path):
    X = np.zeros((50, 2))
    np.savez(tmp_path / "t.npz", u=X, v=X)
    with pytest.raises(TableError, match=r"there are several\. Name one with --dataset"):
        open_table(tmp_path / "t.npz")
    assert open_table(tmp_path / "t.npz", dataset="v").n == 50
    for shape in ((2, 2, 2), (0, 2), (2, 0)):
        np.save(tmp_path / "t.npy", np.zeros(shape))
        with pytest.raises(TableError, match="a table of numbers is needed"):
            open_table(tmp_path / "t.npy")
    np.save(tmp_path / "t.npy", np.zeros((3, 1)))
    assert open_table(tmp_path / "t.npy").n == 3


def test_a_schema_says_how_a_part_of_a_file_is_read(tmp_path):
    """One line alone would be read as other kinds, and 1.234 as another number."""
    (tmp_path / "t.csv").write_text("x;code;y\n1.234,5;007;1,5\n2,25;A;2\n")
    file = open_table(tmp_path / "t.csv")
    table = read_whole(file)
    schema = Schema.of(table).as_written(file)
    (tmp_path / "part.csv").write_text("x;code;y\n1.234;7;2\n")
    part = read_whole(open_table(tmp_path / "part.csv", schema=schema))
    assert part.to_pydict() == {"x": [1234.0], "code": ["7"], "y": [2.0]}


UNNAMED = {
    "in the middle": ("a,,y\n1,5,2\n3,7,4\n", "column 1", [5, 7]),
    "at the end": ("a,y,\n1,2,0\n3,4,1\n", "column 2", [0, 1]),
    "at the beginning": (",a,y\n5,1,2\n7,3,4\n", "column 0", [5, 7]),
    "called by pandas": ("Unnamed: 0,a,y\n5,1,2\n7,3,4\n", "Unnamed: 0", [5, 7]),
    "several": ("a,,,y\n1,5,x,2\n3,7,y,4\n", "column 1", [5, 7]),
}


@pytest.mark.parametrize("form", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("what", UNNAMED)
def test_a_column_without_a_name_is_kept_and_gets_one(what, form, tmp_path):
    text, name, values = UNNAMED[what]
    titles, *rows = [line.split(",") for line in text.splitlines()]
    cells = [[int(cell) if cell.isdigit() else cell for cell in row] for row in rows]
    path = tmp_path / f"t.{form}"
    if form == "csv":
        path.write_text(text)
    elif form == "xlsx":
        pd.DataFrame([titles, *cells]).to_excel(path, index=False, header=False)
    else:  # as pandas reads the text
        pd.read_csv(io.StringIO(text)).to_parquet(path)
        name = name.replace("column ", "Unnamed: ")
    file = open_table(path)
    assert name in without_index(file)
    assert read_whole(file).column(name).to_pylist() == values
    said = "without a name are called 'column " in " ".join(file.notes)
    assert said == name.startswith("column")


@pytest.mark.parametrize("form", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("title", ["", "Unnamed: 0"])
def test_a_first_column_that_counts_rows_is_an_index(title, start, form, tmp_path):
    frame = pd.DataFrame({title: range(start, start + 9), "a": np.arange(9.0)[::-1]})
    path = tmp_path / f"t.{form}"
    write = {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}
    write[form](path, index=False)
    file = open_table(path)
    assert without_index(file) == ("a",)
    assert any(note.startswith(f"The index of {path}") for note in file.notes)


def test_a_column_without_a_name_that_a_model_was_fitted_on_is_no_index(tmp_path):
    (tmp_path / "t.csv").write_text(",a\n5,1.5\n8,2.5\n")
    schema = Schema.of(read(tmp_path / "t.csv")[0])
    (tmp_path / "t.csv").write_text(",a\n0,1.5\n1,2.5\n")
    file = open_table(tmp_path / "t.csv", schema=schema)
    np.testing.assert_array_equal(schema.read(read_whole(file))[0], [0, 1])


def test_columns_without_names_and_values_are_not_told_of(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;;\n1;2;;\n3;4;;\n")
    table, file = read(tmp_path / "t.csv")
    assert file.names == ("a", "b", "column 2", "column 3")
    assert table.column("column 3").to_pylist() == [None, None]
    assert "without a name" not in " ".join(file.notes)


def test_one_row_of_an_excel_file_is_enough(tmp_path):
    pa.table({"a": [1], "b": ["x"]}).to_pandas().to_excel(tmp_path / "t.xlsx", index=False)
    assert read_whole(open_table(tmp_path / "t.xlsx")).to_pydict() == {"a": [1], "b": ["x"]}


PARTS = {
    "another order": ({"a": [1.5], "b": ["x"]}, {"b": ["y"], "a": [2.5]}, {"a": [1.5, 2.5]}),
    "no values in one": ({"a": [None], "b": ["x"]}, {"a": ["u"], "b": ["y"]}, {"a": [None, "u"]}),
    "other numbers": ({"a": [1], "b": ["x"]}, {"a": [2.5], "b": ["y"]}, {"a": [1.0, 2.5]}),
    "a column that one lacks": ({"b": ["x"]}, {"a": [2], "b": ["y"]}, {"a": [None, 2]}),
}


def test_tables_beside_parquet_files_are_said_to_be_unread(tmp_path):
    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "p.parquet")
    (tmp_path / "t.csv").write_text("a\n3\n4\n")
    file = open_table(tmp_path)
    assert file.n == 2
    assert file.notes == [f"Only the Parquet files of {tmp_path} are read, not t.csv."]


def test_tables_in_folders_of_a_folder_are_said_to_be_unread(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "b.csv").write_text("a\n5\n")
    with pytest.raises(TableError, match="all Parquet files are read, or else the files"):
        open_table(tmp_path)
    (tmp_path / "a.csv").write_text("a\n3\n4\n")
    file = open_table(tmp_path)
    assert read_whole(file).to_pydict() == {"a": [3, 4]}
    unread = tmp_path.joinpath("inside", "b.csv").relative_to(tmp_path)
    note = f"Tables in folders inside {tmp_path} are not read, such as {unread}"
    assert file.notes[-1].startswith(note)


@pytest.mark.parametrize("what", PARTS)
def test_parts_of_one_table_may_differ(what, tmp_path):
    *parts, expected = PARTS[what]
    for i, part in enumerate(parts):
        parquet.write_table(pa.table(part), tmp_path / f"{i}.parquet")
    found = read_whole(open_table(tmp_path)).to_pydict()
    assert {name: found[name] for name in "ab"} == expected | {"b": ["x", "y"]}


def test_parts_that_do_not_go_together_are_refused_and_folders_may_be_columns(tmp_path):
    for i, part in enumerate(({"a": [1]}, {"a": ["x"]})):
        (tmp_path / f"year=202{i}").mkdir()
        parquet.write_table(pa.table(part), tmp_path / f"year=202{i}" / "0.parquet")
    with pytest.raises(TableError, match="do not go together"):
        open_table(tmp_path)
    parquet.write_table(pa.table({"a": [2]}), tmp_path / "year=2021" / "0.parquet")
    assert read_whole(open_table(tmp_path)).to_pydict() == {"a": [1, 2], "year": [2020, 2021]}


def test_dates_and_spans_are_seconds_and_digits_alone_are_no_date():
    table = pa.table({"day": [dt.date(1970, 1, 2)], "span": [dt.timedelta(minutes=2)]})
    np.testing.assert_array_equal(np.ravel(Schema.of(table).read(table)), [86_400, 120])
    assert as_seconds("20200131") is as_seconds("1-2") is None


SPANS = {
    "3 days 00:16:34": 260_194, "-1 days +23:59:00.5": -59.5, "1 day, 0:00:01": 86_401,
    "26:30": 95_400, "P3DT0H16M34S": 260_194, "PT1.5S": 1.5, "12:75": None, "P": None, "7": None,
}  # fmt: skip


def test_durations_are_read_as_programs_write_them():
    assert [as_span(text) for text in SPANS] == list(SPANS.values())


def test_a_category_keeps_numbers_texts_and_days_and_the_text_of_anything_else():
    kept = {Decimal("1.5"): 1.5, " a ": "a", dt.datetime(2020, 1, 2): "2020-01-02", (1,): "(1,)"}
    assert [plain(value) for value in kept] == list(kept.values())


def test_text_of_one_file_of_a_folder_is_text_in_all(tmp_path):
    """As it is in the whole table: 01 is not 1 where the column has text."""
    (tmp_path / "0.csv").write_text("code,n,gap\n01,01,\n1,1,\n")
    (tmp_path / "1.csv").write_text("code,n,gap\nx,2,3\n")
    found = read_whole(open_table(tmp_path)).to_pydict()
    assert found["code"] == ["01", "1", "x"]
    assert found["n"] == [1, 1, 2]
    (tmp_path / "1.csv").unlink()
    (tmp_path / "1.jsonl").write_text('{"code": "x", "n": 2, "gap": 3}\n')
    assert read_whole(open_table(tmp_path)).column("code").to_pylist() == ["01", "1", "x"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_only_folders_below_the_given_one_are_columns_that_files_lack(kind, tmp_path):
    folder = tmp_path / "run=7" / "data"
    (folder / "city=Rome" / "year=2020").mkdir(parents=True)
    table = pa.table({"city": pa.array(["Oslo", "Rome"], kind), "a": [1, 2]})
    parquet.write_table(table, folder / "city=Rome" / "year=2020" / "0.parquet")
    found = read_whole(open_table(folder)).to_pydict()
    assert found == {"city": ["Oslo", "Rome"], "a": [1, 2], "year": [2020, 2020]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_be_longer_than_the_beginning_that_is_examined(end, tmp_path):
    names = [f"{i:0300}n" for i in range(2000)]
    lines = [",".join(names), ",".join(["1.5"] * 2000), ",".join(["2.5"] * 2000)]
    (tmp_path / "t.csv").write_bytes(end.join([*lines, ""]).encode())
    table, _ = read(tmp_path / "t.csv")
    assert table.shape == (2, 2000)
    assert table.column(names[-1]).to_pylist() == [1.5, 2.5]
