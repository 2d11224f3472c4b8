"""``nysboost learn``: from a file and a target to a table and a report."""

import csv
import re
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nysboost.cli.errors import STOPPED
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


def stopped_after(monkeypatch, name, calls):
    """Let a function of `learning` be stopped when it has been called so often."""
    original, seen = getattr(learning, name), []

    def interrupted(*given):
        seen.append(given)
        if len(seen) > calls:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(learning, name, interrupted)


@pytest.mark.parametrize("target", ["price", "colour"])
@pytest.mark.parametrize(
    ("calls", "learners", "folds"), [(2, 2, "1"), (7, 5, "2")], ids=["first fold", "second fold"]
)
def test_ctrl_c_keeps_the_fits_that_are_done(
    table, tmp_path, capsys, monkeypatch, target, calls, learners, folds
):
    stopped_after(monkeypatch, "_errors", calls)
    with pytest.raises(KeyboardInterrupt):
        run(Request(str(table), target, components=6, folds=3), tmp_path / "out")
    printed = capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (printed, page):
        assert f"Stopped by Ctrl-C: {calls} of 15 fits were done" in text
    assert "Reliability" not in page
    shown = printed.partition("seconds")[2].partition("Stopped")[0].split("\n")
    measured = [line.split() for line in shown if re.search(r"\d", line)]
    assert len(measured) == learners
    assert [row[-2] for row in measured if row[0] == "linear"] == [folds]


def test_ctrl_c_in_the_closer_look_keeps_the_comparison(table, tmp_path, capsys, monkeypatch):
    stopped_after(monkeypatch, "look_closer", 0)
    with pytest.raises(KeyboardInterrupt):
        run(Request(str(table), "price", components=6, folds=2), tmp_path / "out")
    assert "Stopped by Ctrl-C after the comparison" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "times that of the best other learner" in page
    assert "Reliability" not in page


def test_ctrl_c_before_anything_is_measured_writes_nothing(table, tmp_path, monkeypatch):
    stopped_after(monkeypatch, "_errors", 0)
    with pytest.raises(KeyboardInterrupt):
        run(Request(str(table), "price", components=6, folds=2), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_learner_of_others_that_fails_is_left_out_and_ours_is_not(
    table, tmp_path, capsys, monkeypatch
):
    def broken(*_args, **_options):
        warnings.warn("what is theirs", RuntimeWarning, stacklevel=1)
        raise AttributeError("'NoneType' object has no attribute 'to'")

    monkeypatch.setattr(learning, "HistGradientBoostingRegressor", broken)
    outcomes = run(Request(str(table), "price", components=6, folds=2), tmp_path / "out")
    assert "gradient-boosted trees" not in [outcome.name for outcome in outcomes]
    for text in (capsys.readouterr().out, (tmp_path / "out" / "report.html").read_text()):
        assert "gradient-boosted trees was left out, because it failed: AttributeError" in text
    monkeypatch.setattr(learning, "NystroemRegressor", broken)
    with pytest.raises(AttributeError), pytest.warns(RuntimeWarning, match="theirs"):
        run(Request(str(table), "price", components=6, folds=2), tmp_path / "out")


SCRIPT = """
    from nysboost.cli import app
    from nysboost.experiments import learning

    learning.find_spec = lambda _: None
    original = learning._errors

    def counted(*given):
        found = original(*given)
        print("a fit is done", flush=True)
        return found

    learning._errors = counted
    app.app(["learn", {data!r}, "--target", "y", "--components", "60", "--out", {out!r}])
"""


def test_a_real_ctrl_c_ends_the_command_with_a_report_and_its_exit_code(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 6))
    table = np.column_stack([X, np.sin(X[:, 0] * X[:, 1])])
    data, out, script = tmp_path / "t.csv", tmp_path / "out", tmp_path / "run.py"
    np.savetxt(data, table, delimiter=",", header="a,b,c,d,e,f,y", comments="")
    script.write_text(textwrap.dedent(SCRIPT.format(data=str(data), out=str(out))))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background has it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for _ in range(2):  # when the second is said to be done, the first has been kept
        while "a fit is done" not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=100)
    assert process.returncode == STOPPED
    assert f"What was measured until then, if anything, is in {out}" in said
    assert "Traceback" not in said
    assert "of 25 fits were done" in printed
    assert "linear model" in printed
    assert "of 25 fits were done" in (out / "report.html").read_text()


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
