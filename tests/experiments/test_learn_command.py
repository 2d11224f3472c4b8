"""``nysboost learn``: from a file and a target to a table and a report."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nysboost.experiments import learning
from nysboost.experiments.learn_command import Request, read, run
from nysboost.experiments.user_error import UserError


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=60), rng.choice(["red", "blue"], size=60)
    price = np.sin(2 * size) + (colour == "red")
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "colour", "age", "price"])
        for i in range(60):
            writer.writerow([size[i], colour[i], "" if i % 9 == 0 else i, price[i]])
    return path


@pytest.fixture(autouse=True)
def _without_lightgbm(monkeypatch):
    monkeypatch.setattr(learning, "find_spec", lambda _: None)


@pytest.mark.parametrize(("target", "error"), [("price", "RMSE"), ("colour", "wrong")])
def test_a_table_becomes_a_comparison_and_a_report(table, tmp_path, capsys, target, error):
    outcomes = run(Request(str(table), target, components=6, folds=2), tmp_path / "out")
    names = [outcome.name for outcome in outcomes]
    assert {"linear model", "gradient-boosted trees", learning.OURS, learning.UNIFORM} <= set(names)
    assert [o.error for o in outcomes] == sorted(o.error for o in outcomes)
    printed = capsys.readouterr().out
    assert error in printed
    page = (tmp_path / "out" / "report.html").read_text()
    for part in ("Landmarks", "Reliability", "What the metric looks at", "size"):
        assert part in page
    assert "https://" not in page


def test_other_libraries_take_part_where_they_are_installed(monkeypatch):
    monkeypatch.setattr(learning, "find_spec", lambda name: name == "xrfm")
    assert "xRFM" in learning.contestants(False, 100, 5, 0)
    assert "xRFM" not in learning.contestants(False, learning.XRFM_ROWS + 1, 5, 0)
    assert "LightGBM" not in learning.contestants(False, 100, 5, 0)


def test_parquet_and_csv_are_the_same_table(table, tmp_path):
    frame, y = read(table, "price")
    columns = {name: frame[name] for name in frame.columns} | {"price": y}
    columns["age"] = [None if np.isnan(v) else v for v in columns["age"]]
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "t.parquet")
    other, again = read(tmp_path / "t.parquet", "price")
    np.testing.assert_array_equal(other["age"], frame["age"])
    np.testing.assert_array_equal(other["colour"], frame["colour"])
    np.testing.assert_array_equal(again, y)


def test_gaps_in_words_and_an_index_are_known_as_such(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(',a,note,b\n0,NA,"two\nlines",1\n1,2.5,null,2\n', encoding="utf-8-sig")
    frame, y = read(path, "b")
    assert frame.columns == ("a", "note")
    np.testing.assert_array_equal(frame["a"], [np.nan, 2.5])
    assert list(frame["note"]) == ["two\nlines", ""]
    np.testing.assert_array_equal(y, [1, 2])


def test_an_earlier_report_is_kept(table, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("before")
    run(Request(str(table), "price", components=3, folds=2), tmp_path / "out")
    assert (tmp_path / "out" / "report.earlier.html").read_text() == "before"
    assert "The earlier report is kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "target", "sentence"),
    [
        ("a,b\n1,2\n3,4\n", "c", "no such target"),
        ("a,b\n1,2\n3\n", "b", "ragged"),
        ("a,a,b\n1,2,3\n4,5,6\n", "b", "two columns called 'a'"),
        ("a,b\n", "b", "at least one row"),
        ("a,b\n1,\n3,4\n", "b", "no value in 1 rows"),
        ("b\n1\n2\n", "b", "no column beside"),
        ("a,b\n1,2\n3,4\n", "b", "too few for 5 folds"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(tmp_path, text, target, sentence):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence):
        run(Request(str(path), target), tmp_path / "out")
    with pytest.raises(UserError, match="There is no file"):
        run(Request(str(tmp_path / "none.csv"), target), tmp_path / "out")
    path.write_text("a,b\n1,x\n3,y\n")
    with pytest.raises(UserError, match="is text"):
        run(Request(str(path), "b", task="regression"), tmp_path / "out")
