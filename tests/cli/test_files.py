"""fit, transform, predict and info from file to file, with exit codes to rely on."""

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from scipy.sparse import csr_matrix, save_npz

import nysboost as nb
from nysboost import cli
from nysboost.cli.errors import STOPPED

X = np.random.default_rng(0).normal(size=(120, 3))
SMALL = ["--components", "8"]
TOWN = np.where(X[:, 0] > 0, "north", "south")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TABLE = FRAME.assign(
    town=TOWN, price=X[:, 1] + (TOWN == "north"), kind=np.where(X[:, 2] > 0, "up", "down"),
    id=[f"r{i}" for i in range(len(X))],
)  # fmt: skip
TABLE.loc[3, "b"] = np.nan


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with tables, a transformer, a regressor and a classifier."""
    folder = tmp_path_factory.mktemp("made")
    np.save(folder / "rows.npy", X)
    FRAME.to_csv(folder / "rows.csv", index=False)
    TABLE.to_csv(folder / "table.csv", index=False)
    TABLE.to_parquet(folder / "table.parquet")
    leaves_out = ["--drop-column", "id", "--drop-column"]
    fits = {
        "rows": ["rows.npy"],
        "named": ["rows.csv"],
        "price": ["table.csv", "--target", "price", *leaves_out, "kind"],
        "kind": ["table.parquet", "--target", "kind", *leaves_out, "price", "--json"],
    }
    for name, words in fits.items():
        with redirect_stdout(io.StringIO()) as said, contextlib.chdir(folder):
            cli.main(["fit", *words, *SMALL, "--out", f"{name}.nysboost"])
        (folder / f"{name}.txt").write_text(said.getvalue())
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_goes_from_file_to_file(command, folder):
    status, out, _ = command("fit", "rows.npy", "--out", "m.nysboost", *SMALL, "--json")
    assert status == 0
    said = json.loads(out)
    assert (said["rows"], said["columns"], said["model"]) == (120, 3, "Nystroem")
    status, out, _ = command("transform", "m.nysboost", "rows.npy", "--out", "f.npy", "--json")
    assert status == 0
    assert json.loads(out)["rows"] == 120
    kernel = {"kernel_params": {"sigma": "median"}}
    expected = nb.Nystroem(**kernel, n_components=8, random_state=0).fit_transform(X)
    np.testing.assert_allclose(np.load("f.npy"), expected, atol=1e-12)
    status, out, _ = command("info", "m.nysboost")
    assert status == 0
    assert "landmarks: 8" in out
    assert "columns in: 3" in out


def test_the_target_of_an_array_is_one_of_its_columns_or_an_array_beside_it(command, folder):
    y = X[:, 0] * X[:, 1]
    np.save("rows.npy", np.column_stack([X, y]))
    np.savez("rows.npz", X=X, y=y)
    for name, target in (("rows.npy", "3"), ("rows.npy", "-1"), ("rows.npz", "y")):
        words = ["fit", name, "--target", target, *SMALL, "--no-local", "--out", "m", "--force"]
        assert command(*words)[0] == 0
        assert nb.load("m").n_features_in_ == 3
        assert nb.load("m").score(X, y) > 0.5
    assert command("fit", "rows.npz", "--drop-column", "1", "--out", "m", "--force", *SMALL)[0] == 0
    assert nb.load("m").n_features_in_ == 2


def test_ctrl_c_leaves_nothing(folder):
    np.save("many.npy", np.zeros((400_000, 3)))
    before = sorted(os.listdir())
    command = [sys.executable, "-m", "nysboost", "transform", "rows.nysboost", "many.npy"]
    process = subprocess.Popen(
        [*command, "--out", "features.csv"],
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background has it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not any(name.endswith(".partial.csv") for name in os.listdir()):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == STOPPED
    assert "Stopped. Nothing was written." in err
    assert sorted(os.listdir()) == before


def test_a_learner_takes_text_and_gaps_as_they_are_and_says_how_good_it_is(folder):
    said = (folder / "price.txt").read_text()
    assert "120 rows, 4 columns" in said
    assert "number: a, b (1 gap), c" in said
    assert "task: regression of 'price', because it holds numbers" in said
    assert "Root mean squared error on 24 held-out rows: " in said
    assert "next: nysboost predict price.nysboost new.csv --interval 0.9 --out predictions" in said
    assert nb.load("price.nysboost").approximation_.shape[0] == 120  # in the end all rows count
    found = json.loads((folder / "kind.txt").read_text())
    assert found["held_out"]["rows"] == 24
    assert found["held_out"]["NysBoost"] < found["held_out"]["constant"]
    assert "kind" in found["held_out"]["sentence"]


def test_tables_beyond_the_memory_are_fitted_from_a_file_of_numbers(command, folder):
    pd.concat([TABLE] * 30).to_csv("train.csv", index=False)
    words = ["fit", "train.csv", "--target", "price", "--drop-column", "id,kind"]
    status, out, err = command(*words, "--out", "m", *SMALL, "--max-memory", "300kB", "--json")
    assert status == 0, err
    assert json.loads(out)["rows"] == 3600
    assert "held_out" not in json.loads(out)
    model = nb.load("m")
    predicted = model.predict(TABLE[["town", "c", "b", "a"]])
    assert np.corrcoef(predicted, TABLE.price)[0, 1] > 0.9
    assert len(model.feature_importances_) == 4


def test_labels_are_classified_and_come_back_with_probabilities(command, folder):
    assert json.loads(command("info", "kind.nysboost", "--json")[1])["classes"] == ["down", "up"]
    assert command("predict", "kind.nysboost", "table.csv", "--out", "p.parquet")[0] == 0
    assert (pd.read_parquet("p.parquet").prediction == TABLE.kind).mean() > 0.9
    words = ["predict", "kind.nysboost", "table.parquet", "--out", "p.csv", "--proba"]
    assert command(*words)[0] == 0
    found = pd.read_csv("p.csv")
    assert list(found) == ["prediction", "probability_down", "probability_up"]
    np.testing.assert_allclose(found.probability_down + found.probability_up, 1)
    assert ((found.probability_up > 0.5) == (found.prediction == "up")).all()


@pytest.mark.parametrize(
    ("labels", "words", "says", "classes"),
    [
        (["a", "b"], [], "classification of 'y', because it has 2 labels\n", ["a", "b"]),
        ([1.0, 2.0], [], "it has 2 labels (to change this: --task regression)\n", [1, 2]),
        (
            [0, 1, 2],
            [],
            "regression of 'y', because it holds numbers (to change this: --task",
            None,
        ),
        ([1.0, 2.0, 3.0], ["--task", "classification"], "4 columns", [1, 2, 3]),
    ],
)
def test_the_task_follows_from_the_target_and_is_told(
    command, folder, labels, words, says, classes
):
    FRAME.assign(y=np.resize(labels, len(X)), k=1.0).to_csv("y.csv", index=False)
    words = ["fit", "y.csv", "--target", "y", "--no-test", "--no-local", *words, *SMALL]
    assert says in command(*words, "--out", "m")[1]
    assert getattr(nb.load("m"), "classes_", np.array(None)).tolist() == classes


def test_predictions_come_with_intervals_and_columns_of_the_table(command, folder):
    words = ["predict", "price.nysboost", "table.csv", "--out", "p.csv", "--interval", ".9"]
    assert command(*words, "--std", "--id", "id", "--keep", "a,kind")[0] == 0
    found = pd.read_csv("p.csv", converters={"a": float})  # to the last digit, in every pandas
    assert list(found) == ["id", "a", "kind", "prediction", "std", "lower", "upper"]
    assert list(found.id) == list(TABLE.id)
    np.testing.assert_allclose(found.a, TABLE.a, rtol=1e-15)
    model = nb.load("price.nysboost")
    lower, upper = model.predict_interval(TABLE, 0.9)
    np.testing.assert_allclose(found.lower, lower, atol=1e-9)
    np.testing.assert_allclose(found.upper, upper, atol=1e-9)
    expected = model.predict(TABLE)
    np.testing.assert_allclose(found.prediction, expected, atol=1e-9)
    assert np.corrcoef(expected, TABLE.price)[0, 1] > 0.9


def test_several_id_columns_are_copied(command, folder):
    words = ["predict", "price.nysboost", "table.csv", "--out", "p.csv"]
    assert command(*words, "--keep", "a", "--id", "id", "--id", "kind")[0] == 0
    assert list(pd.read_csv("p.csv")) == ["id", "kind", "a", "prediction"]


WRONG_INPUTS = {
    "empty": b"",
    "ragged": b"a,price\n1,2\n3\n",
    "semicolons": b"price;a\n1;2\n3;4\n",
    "quote": b'a,price\n"1,2\n3,4\n',
    "Excel": b"PK\x03\x04zip",
    "Parquet": b"PAR1 and no more",
    "NumPy": b"\x93NUMPY and no more",
    "JSON": b'{"price": ',
    "a list": b"[1, 2]",
}


@pytest.mark.parametrize("what", WRONG_INPUTS)
def test_messages_name_standard_input_and_not_its_copy(what, command, folder, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(WRONG_INPUTS[what]))
    monkeypatch.setattr(sys, "stdin", stream)
    status, said, complained = command("fit", "-", "--target", "price", "--out", "m")
    assert status in (0, 3, 4)
    assert "standard input" in said + complained
    assert "/nysboost-" not in said + complained


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_kept_columns_are_written_as_they_were(form, command, folder):
    big = 2**53 + 1
    kept = {"id": [big, big + 1], "code": ["00501", "-7"], "day": ["2026-05-27", "2026-05-28"]}
    kept["hash"] = [2**63, 2**63 + 1]
    table = pd.DataFrame({**kept, "x": [1.0, 2.0]})
    table.to_csv("new.csv", index=False)
    table.to_json("new.jsonl", orient="records", lines=True)
    table.to_parquet("new.parquet")

    # as numbers, a number and a date for the model
    days = pd.date_range("2026-05-01", periods=40).strftime("%Y-%m-%d")
    numbers = pd.DataFrame({"id": range(40), "code": range(40), "day": days, "x": np.ones(40)})
    numbers.to_csv("fit.csv", index=False)
    words = ["fit", "fit.csv", "--target", "x", "--ids", "keep", "--no-test", *SMALL]
    assert command(*words, "--out", "ids.nysboost")[0] == 0
    words = ["predict", "ids.nysboost", f"new.{form}", "--out", "p.csv", "--escape-formulas"]
    status, _, said = command(*words, "--keep", "id,code,day,hash")
    assert status == 0, said
    found = pd.read_csv("p.csv", dtype=str)
    for name, values in kept.items():
        assert found[name].tolist() == [str(value) for value in values]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_kept_durations_are_written_to_csv_as_text_that_can_be_read_back(unit, command, folder):
    """With all digits of their unit; and to Parquet as durations."""
    spans = pd.array(np.array([0, -1, 93_784, "NaT", 10**9 + 1], dtype=f"m8[{unit}]"))
    TABLE.head(5).assign(wait=spans).to_parquet("new.parquet")
    for out in ("p.csv", "p.parquet"):
        words = ["predict", "price.nysboost", "new.parquet", "--keep", "wait", "--out", out]
        status, _, said = command(*words)
        assert status == 0, said
    texts = pd.read_csv("p.csv").wait
    assert texts.str.contains("days", na=False).tolist() == [True, True, True, False, True]
    assert pd.to_timedelta(texts).tolist() == pd.Series(spans).tolist()
    assert pd.read_parquet("p.parquet").wait.tolist() == pd.Series(spans).tolist()


def test_numbers_of_any_size_are_compared_with_a_linear_model(command, folder):
    """And targets whose squares are out of range are refused."""
    pd.DataFrame({"x": 1e200 * X[:, 0], "y": X[:, 1]}).to_csv("huge.csv", index=False)
    status, said, complained = command("fit", "huge.csv", "--target", "y", *SMALL, "--out", "h")
    assert status == 0, complained
    assert "linear model" in said
    assert complained == ""
    status, _, complained = command("fit", "huge.csv", "--target", "x", *SMALL, "--out", "h2")
    assert status == 2
    assert "'x' has the value" in complained
    assert "out of range" in complained


def test_close_levels_of_quantiles_have_columns_of_their_own(command, folder):
    words = ["predict", "price.nysboost", "table.csv", "--out", "p.csv"]
    assert command(*words, "--quantiles", "0.1234561,0.1234563")[0] == 0
    assert list(pd.read_csv("p.csv"))[1:] == ["quantile_0.1234561", "quantile_0.1234563"]


def test_names_that_begin_with_a_dash_are_given_again_as_they_can_be_read(command, folder):
    words = ["fit", "table.csv", "--target", "a", "--drop-column", "id", *SMALL]
    status, said, _ = command(*words, "--out=./-x")
    assert status == 0
    words = shlex.split(said.rpartition("next: ")[2].splitlines()[0])
    table = words.index("new.csv")
    words[table] = "table.csv"
    assert command(*words[1:])[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("learn {} --target y --folds 2", "has 3 rows, too few for 2 folds: give at least 4"),
        ("fit {} --target y --drop-missing-target --out m", "no rows with a value of 'y'"),
    ],
)
def test_tables_without_enough_rows_are_told_what_they_need(words, says, command, folder):
    y = [1.0, 2.0, 3.0] if words.startswith("learn") else [None] * 3
    pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": y}).to_csv("few.csv", index=False)
    status, _, complained = command(*words.format("few.csv").split())
    assert status in (2, 4)
    assert says in complained


def test_a_list_in_json_is_the_one_asked_for(command):
    assert list(json.loads(command("list", "kernels", "--json")[1])) == ["kernels", "software"]


@pytest.mark.skipif(os.name != "posix", reason="no signals")
def test_sigterm_removes_temporary_files(folder, tmp_path):
    copies = tmp_path / "copies"
    copies.mkdir()
    words = ["predict", "price.nysboost", "-", "--out", "p.csv"]
    before = set(os.listdir(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "nysboost", *words],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(copies)},
    )
    while not any(copies.glob("*/*")):  # the copy of standard input
        time.sleep(0.05)
    process.terminate()
    _, complained = process.communicate(timeout=30)
    assert process.returncode == STOPPED
    assert complained == b"nysboost: Stopped. Nothing was written.\n"
    assert list(copies.iterdir()) == []
    assert set(os.listdir(folder)) == before


def test_quantiles_stand_in_columns_of_their_levels(command, folder):
    words = ["predict", "price.nysboost", "table.csv", "--out", "p.csv"]
    assert command(*words, "--quantiles", "0.95,0.05,0.5")[0] == 0
    found = pd.read_csv("p.csv")
    assert list(found) == ["prediction", "quantile_0.05", "quantile_0.5", "quantile_0.95"]
    expected = nb.load("price.nysboost").predict_quantiles(TABLE, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(found.iloc[:, 1:], expected, atol=1e-9)
    status, _, err = command("predict", "kind.nysboost", "table.csv", "--out", "q.csv",
                             "--quantiles", "0.5")  # fmt: skip
    assert status == 5
    assert "--quantiles is for regression, but this is a NystroemClassifier" in err


def _customers(per_customer=6):
    """Return a table whose target is, but for noise, a number of its own for each customer."""
    rng = np.random.default_rng(1)
    customer = np.repeat(np.arange(20), per_customer)
    of_customer = rng.normal(size=(20, 2))
    x = of_customer[customer, 0] + 1e-3 * rng.normal(size=len(customer))
    y = of_customer[customer, 1] + 1e-3 * rng.normal(size=len(customer))
    return pd.DataFrame({"x": x, "customer": [f"c{i}" for i in customer], "y": y})


def _held_out(command, *words):
    status, out, err = command("fit", *words, "--out", "m", "--force", "--json", *SMALL)
    assert status == 0, err
    return json.loads(out)["held_out"]["NysBoost"]


def test_rows_of_a_group_are_held_out_together_and_the_group_is_no_feature(command, folder):
    _customers().to_csv("c.csv", index=False)
    words = ["c.csv", "--target", "y", "--no-local"]
    at_random = _held_out(command, *words, "--drop-column", "customer")
    by_customer = _held_out(command, *words, "--groups", "customer")
    assert list(nb.load("m").feature_names_in_) == ["x"]
    assert by_customer > 2 * at_random


def test_groups_of_arrays_and_of_tables_beyond_the_memory_are_used(command, folder):
    table = pd.concat([_customers(60)])
    table.assign(note="a text that takes memory" * 4).to_csv("large.csv", index=False)
    words = ["--groups", "customer", "--target", "y", "--no-local", *SMALL]
    status, out, err = command("fit", "large.csv", "--out", "m", "--max-memory", "300kB", *words)
    assert status == 0, err
    assert "held out" not in out
    at_random = ["fit", "large.csv", "--target", "y", "--no-local", "--drop-column", "customer"]
    assert command(*at_random, "--out", "r", "--max-memory", "300kB", *SMALL)[0] == 0
    assert nb.load("m").validation_error_ > 2 * nb.load("r").validation_error_

    np.save("c.npy", table.assign(customer=pd.factorize(table.customer)[0]).to_numpy(float))
    words[1] = "1"
    words[3] = "2"
    assert command("fit", "c.npy", "--out", "a", *words)[0] == 0
    assert nb.load("a").n_features_in_ == 1
    assert nb.load("a").validation_error_ > 2 * nb.load("r").validation_error_


def test_the_latest_rows_are_held_out(command, folder):
    time = np.arange(200.0)
    y = np.sin(time / 3) + (time > 150) * 5
    pd.DataFrame({"phase": np.sin(time / 3), "y": y}).to_csv("t.csv", index=False)
    words = ["t.csv", "--target", "y", "--no-local"]
    assert _held_out(command, *words, "--cv", "time") > 1.5 * _held_out(command, *words)


def test_a_fit_ends_at_its_time_with_a_model(command, folder):
    words = ["fit", "rows.csv", "--target", "a", "--out", "m", "--max-time", "0.001", *SMALL]
    status, _, err = command(*words)
    assert status == 0, err
    assert nb.load("m").max_time == 0.0005  # half for the test on held-out rows


def test_hints_on_held_out_rows_name_the_options_until_one_is_given(command, folder):
    days = pd.date_range("2024-01-01", periods=200, freq="7h")
    pd.DataFrame({"when": days, "x": X[:100, 0].repeat(2), "y": np.arange(200.0)}).to_csv(
        "days.csv", index=False
    )
    words = ["fit", "days.csv", "--target", "y", "--no-test", "--no-local", *SMALL, "--out", "m"]
    out = command(*words)[1]
    assert "The rows are sorted by 'when'" in out
    assert "--cv time to hold out the last rows" in out
    assert "sorted" not in command(*words, "--force", "--cv", "time")[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--max-time", "0", "--target", "a"], "a positive number of seconds is needed, not '0'"),
        (["--max-time", "2"], "--max-time cannot be given without --target"),
        (["--cv", "time", "--groups", "a"], "--cv, --groups cannot be given without --target"),
        (["--target", "a", "--groups", "a"], "--groups and --target both name the column 'a'"),
        (["--target", "a", "--groups", "none"], "no column 'none'"),
        (["--target", "a", "--linear", "--components", "9"], "--components cannot be given with"),
        (["--target", "a", "--linear", "--no-local"], "--no-local cannot be given with"),
    ],
)
def test_options_of_learners_that_make_no_sense_are_one_sentence(command, folder, words, says):
    status, _, err = command("fit", "rows.csv", "--out", "m", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert says in err


def test_info_names_the_kernel_of_a_linear_model(command, folder):
    command("fit", "rows.csv", "--target", "a", "--linear", "--no-test", "--out", "m")
    assert "kernel: linear\n" in command("info", "m")[1]


def test_a_group_without_a_name_is_an_error(command, folder):
    pd.DataFrame({"x": X[:, 0], "g": ["a", ""] * 60, "y": X[:, 1]}).to_csv("g.csv", index=False)
    status, _, err = command("fit", "g.csv", "--target", "y", "--groups", "g", "--out", "m")
    assert status == 4
    assert "groups has no value in row 1" in err


@pytest.mark.parametrize(
    ("n_groups", "folds", "says"),
    [
        (2, 2, "has 2 different values: give at least three groups"),
        (3, 2, "With 2 folds, learners would be fitted to a single group: use --folds 3"),
        (3, 4, "has 3 different values, fewer than the 4 folds: lower --folds"),
    ],
)
def test_too_few_groups_for_the_folds_are_told_how_to_go_on(n_groups, folds, says, command, folder):
    groups = np.arange(len(X)) % n_groups
    pd.DataFrame({"x": X[:, 0], "g": groups, "y": X[:, 1]}).to_csv("g.csv", index=False)
    words = ["learn", "g.csv", "--target", "y", "--groups", "g", "--folds", str(folds), *SMALL]
    status, _, err = command(*words, "--out", "report")
    assert status == 2, err
    assert says in err


def test_two_groups_are_fitted_without_held_out_rows(command, folder):
    groups = np.arange(len(X)) % 2
    pd.DataFrame({"x": X[:, 0], "g": groups, "y": X[:, 1]}).to_csv("g.csv", index=False)
    words = ["fit", "g.csv", "--target", "y", "--groups", "g", "--out", "m", *SMALL]
    status, out, err = command(*words)
    assert status == 0, err
    assert "not measured: there are too few groups" in out


def test_tables_go_through_pipes(folder, monkeypatch, capfdbinary):
    """One line from a CSV to predictions, without a file between."""

    def piped(*words, table="table.csv"):
        with open(table, "rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            cli.main(words)
        return capfdbinary.readouterr().out.decode()

    piped("fit", "-", "--out", "m", "--drop-column", "id", "--drop-missing", *SMALL)
    assert nb.load("m").approximation_.shape[0] == 119
    lines = piped("predict", "price.nysboost", "-", "--out", "-").splitlines()
    assert lines[0] == '"prediction"'
    assert len(lines) == 121
    written = pd.read_csv("table.csv")
    written.to_json("table.json", orient="records", double_precision=15)
    written.to_excel("table.xlsx", index=False)
    for table in ("table.json", "table.xlsx"):
        again = piped("predict", "price.nysboost", "-", "--out", "-", table=table).splitlines()
        np.testing.assert_allclose([*map(float, again[1:])], [*map(float, lines[1:])], rtol=1e-9)


def test_models_made_in_python_answer_as_they_do_there(command, folder):
    models = {
        "a": nb.approximate(X, "uniform", n_components=5, random_state=0),
        "c": nb.SpectralClustering(2, n_landmarks=10, random_state=0).fit(X),
    }
    for name, model in models.items():
        nb.save(model, name)
    assert command("transform", "a", "rows.npy", "--out", "f.parquet")[0] == 0
    found = pd.read_parquet("f.parquet")
    assert list(found) == [f"feature_{i}" for i in range(5)]
    np.testing.assert_allclose(found, models["a"].features(), atol=1e-12)
    assert "SpectralClustering has no features" in command(
        "transform", "c", "rows.npy", "--out", "g.npy")[2]  # fmt: skip
    assert command("predict", "c", "rows.npy", "--out", "p.npy")[0] == 0
    np.testing.assert_array_equal(np.load("p.npy")[:, 0], models["c"].predict(X))


def test_a_models_columns_are_found_whatever_their_order(command, folder):
    model = nb.StandardNystroem(n_components=5, random_state=0)
    nb.save(model.fit(FRAME[["c", "a"]]), "two")
    assert command("transform", "two", "rows.csv", "--out", "f.npy")[0] == 0
    np.testing.assert_allclose(np.load("f.npy"), model.transform(FRAME[["c", "a"]]), atol=1e-9)
    nb.save(model.fit(FRAME.assign(z=1.0)), "four")
    for name, table, says in (
        ("two", "rows.npy", "fitted on 2 columns, but rows.npy has 3"),
        ("four", "rows.csv", "rows.csv has no column 'z', which the model was fitted on"),
    ):
        status, _, err = command("transform", name, table, "--out", "g.npy")
        assert status == 5
        assert says in err


def test_names_that_are_no_utf_8_are_written(command, folder):
    name = os.fsdecode(b"p\xff.csv")
    assert command("predict", "price.nysboost", "table.csv", "--out", name)[0] == 0
    assert len(pd.read_csv(name)) == len(TABLE)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("predict price.nysboost table.csv --out - --id ", "There is no column ''"),
        ("fit table.csv --out m --task regression", "--task cannot be given without --target"),
        ("fit table.csv --out m --drop-missing-target", "--drop-missing-target cannot be given"),
        ("fit rows.csv --out m --target a --task classification", "--category=a says so"),
        ("fit table.csv --out m --target a --separator §", "one ASCII character"),
        ("compare rows.csv --methods ,", "names no method"),
        ("compare rows.csv --components 5", "raise --components or lower --learners"),
    ],
)
def test_options_that_cannot_be_followed_are_sentences(words, says, command, folder):
    status, _, err = command(*words.split(" "))
    assert status == 2
    assert says in err


def test_names_of_places_are_sentences(command, folder):
    status, _, err = command("predict", "price.nysboost", "table.csv", "--out", "n" * 300 + ".csv")
    assert status == 3
    assert "File name too long: nnn" in err
    (folder / "closed").mkdir(mode=0o500)
    if os.access("closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    for words in ("fit table.csv --target a", "predict price.nysboost table.csv"):
        status, _, err = command(*words.split(), "--out", "closed/p.csv")
        assert status == 3
        assert err == "nysboost: Nothing may be written to the folder 'closed': write to another.\n"


def test_notes_on_a_file_are_told_beside_a_table_on_standard_output(command, folder):
    TABLE.to_csv("table.csv", index=False, sep=";", decimal=",")
    status, out, err = command("predict", "price.nysboost", "table.csv", "--out", "-")
    assert status == 0
    assert out.startswith('"prediction"\n')
    assert "separated by semicolons, decimal comma" in err


def test_small_results_take_small_chunks_of_stores(command, folder):
    assert command("predict", "price.nysboost", "table.csv", "--out", "p.h5")[0] == 0
    assert (folder / "p.h5").stat().st_size < 100_000


def test_an_unreadable_model_is_no_damaged_one(command, folder):
    (folder / "price.nysboost").chmod(0)
    if os.access("price.nysboost", os.R_OK):
        pytest.skip("this user may read anything")
    status, _, err = command("predict", "price.nysboost", "table.csv", "--out", "-")
    assert (status, err) == (3, "nysboost: Permission denied: price.nysboost.\n")


def test_reports_ask_for_their_packages_first(command, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = command("learn", "rows.csv", "--target", "a")
    assert status == 2
    assert "needs the package matplotlib" in err
    assert "smallest error first" not in out


def test_arrays_of_other_writers_are_read_and_answered(command, folder):
    def features(name):
        words = ("transform", "rows.nysboost", name, "--out", "-")
        status, out, _ = command(*words)
        assert status == 0
        return np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1)

    expected = features("rows.npy")
    np.save("big.npy", X.astype(">f8"))
    np.testing.assert_allclose(features("big.npy"), expected, atol=1e-9)
    save_npz("sparse.npz", csr_matrix(X))
    np.testing.assert_allclose(features("sparse.npz"), expected, atol=1e-9)


def test_labels_of_a_libsvm_file_are_known(command, folder):
    (folder / "t.libsvm").write_text("1 1:2\n2 1:3\n")
    status, _, err = command("fit", "t.libsvm", "--target", "y", "--out", "m")
    assert status == 2
    assert "Choose one of 0, label." in err


def test_an_error_says_how_rows_are_counted_where_some_are_left_out(command, folder):
    cells = [None, None, "1", "bad"]
    frame = pd.DataFrame({"a": cells, "b": "1", "c": "1"})
    frame.to_parquet("gaps.parquet")
    words = ("transform", "named.nysboost", "gaps.parquet", "--out", "f.csv")
    _, _, err = command(*words)
    assert "row 3 has 'bad'" in err
    assert "counted" not in err
    _, _, err = command(*words, "--drop-missing")
    assert "row 1 has 'bad'" in err
    assert "counted from row 0 of gaps.parquet, without those that are left out" in err


def test_the_next_command_can_be_given_whatever_the_name_of_the_model(command, folder):
    status, out, _ = command("fit", "rows.csv", *SMALL, "--out", "my model.nysboost")
    assert status == 0
    assert "next: nysboost transform 'my model.nysboost' new.csv" in out


@pytest.mark.parametrize("dtype", [">i4", ">f4", ">f8", "<f2"])
@pytest.mark.parametrize("form", ["npy", "h5"])
def test_the_target_of_an_array_is_read_whatever_its_type(dtype, form, command, folder):
    table = np.random.default_rng(0).integers(0, 50, size=(100, 3)).astype(dtype)
    table[:, 2] = table[:, 0] + 2 * table[:, 1]
    if form == "npy":
        np.save("t.npy", table)
    else:
        with h5py.File("t.h5", "w") as file:
            file["X"] = table
    fit = ("--target", "2", "--linear", "--no-test", "--out", "m")
    status, _, err = command("fit", f"t.{form}", *fit)
    assert (status, err) == (0, "")
    np.save("new.npy", table[:, :2])
    _, out, _ = command("predict", "m", "new.npy", "--out", "-")
    predicted = np.loadtxt(out.splitlines()[1:])
    np.testing.assert_allclose(predicted, table[:, 2].astype(float), atol=1)


def test_a_zarr_array_without_a_name_is_a_table_with_its_target_in_a_column(command, folder):
    table = np.column_stack([X, X[:, 0] * X[:, 1]])
    zarr.save("table.zarr", table)
    fit = ["fit", "table.zarr", "--target", "3", *SMALL, "--no-local", "--out", "m"]
    assert command(*fit)[0] == 0
    assert nb.load("m").n_features_in_ == 3
    status, _, err = command(*fit, "--force", "--dataset", "X")
    assert status == 3
    assert "holds one array, which has no name: leave --dataset X out" in err


@pytest.mark.parametrize("dtype", ["S9", object])
def test_labels_of_hdf5_are_text(dtype, command, folder):
    with h5py.File("t.h5", "w") as file:
        file["X"] = X
        file["town"] = TOWN.astype(dtype)
    fit = ("fit", "t.h5", "--target", "town", *SMALL, "--no-local", "--out", "m")
    assert command(*fit)[0] == 0
    assert nb.load("m").classes_.tolist() == ["north", "south"]


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (TOWN.astype(object), "has an array of Python objects, which is not read"),
        (np.arange(120).astype("M8[D]"), "has dtype datetime64[D]: a target needs numbers"),
    ],
)
def test_a_target_beside_an_array_that_cannot_be_used_is_a_sentence(y, says, command, folder):
    np.savez("t.npz", X=X, y=y)
    status, _, err = command("fit", "t.npz", "--target", "y", "--out", "m")
    assert status == 4
    assert says in err


def test_a_target_of_one_column_is_taken_without_a_word(command, folder):
    np.savez("t.npz", X=X, y=X[:, :1])
    fit = ("fit", "t.npz", "--target", "y", *SMALL, "--no-local", "--out", "m")
    status, _, err = command(*fit)
    assert (status, err) == (0, "")
    assert nb.load("m").predict(X).shape == (120,)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "xlsx", "feather"])
def test_labels_that_are_text_keep_their_leading_zeros(suffix, command, folder):
    labels = np.array(["1", "01", "001"])[np.arange(120) % 3]
    frame = FRAME.assign(code=labels)
    writers = {
        "parquet": frame.to_parquet,
        "jsonl": lambda path: frame.to_json(path, orient="records", lines=True),
        "xlsx": lambda path: frame.to_excel(path, index=False),
        "feather": frame.to_feather,
    }
    table = f"codes.{suffix}"
    writers[suffix](table)
    fit = ("fit", table, "--target", "code", *SMALL, "--no-local", "--no-test", "--out", "m")
    assert command(*fit)[0] == 0
    assert nb.load("m").classes_.tolist() == ["001", "01", "1"]


def test_a_model_reads_the_decimal_mark_of_its_fit_again(command, folder):
    """A column of text with commas says nothing about the numbers."""
    kilograms = np.random.default_rng(0).integers(1000, 20_000, size=100) / 1000
    rows = [f'{kg:.3f},"{i % 2 + 38},5",{2 * kg:.3f}' for i, kg in enumerate(kilograms)]
    (folder / "kg.csv").write_text("kg,note,y\n" + "\n".join(rows) + "\n")
    fit = ("fit", "kg.csv", "--target", "y", "--decimal", ".", "--category", "note")
    assert command(*fit, "--linear", "--no-test", "--out", "m")[0] == 0
    _, out, _ = command("predict", "m", "kg.csv", "--out", "-")
    np.testing.assert_allclose(np.loadtxt(out.splitlines()[1:]), 2 * kilograms, atol=0.1)


def test_dates_that_come_again_are_not_called_sorted(command, folder):
    rng = np.random.default_rng(0)
    months = np.array(["2026-01-01", "2026-02-01", "2026-03-01"])
    mixed = np.concatenate([months, rng.choice(months, 117)])
    fit = ("fit", "months.csv", "--target", "a", "--linear", "--no-test", "--out", "m", "--force")
    FRAME.assign(month=mixed).to_csv("months.csv", index=False)
    assert "sorted" not in command(*fit)[1]
    FRAME.assign(month=np.sort(mixed)).to_csv("months.csv", index=False)
    assert "The rows are sorted by 'month'" in command(*fit)[1]


@pytest.mark.parametrize("name", ["n" * 230 + ".csv", "ü" * 115 + ".npy"])
def test_a_name_as_long_as_the_system_takes_it_is_written(name, command, folder):
    assert command("transform", "rows.nysboost", "rows.npy", "--out", name)[0] == 0
    assert (folder / name).stat().st_size > 0


def test_the_advice_for_a_target_with_gaps_in_an_array_can_be_followed(command, folder):
    gaps = X.copy()
    gaps[7, 2] = np.nan
    np.save("gaps.npy", gaps)
    words = ("fit", "gaps.npy", "--target", "2", "--linear", "--no-test", "--out", "m")
    status, _, err = command(*words)
    assert status == 4
    assert "Leave out such rows with --drop-missing-target, or with --drop-missing.\n" in err
    assert command(*words, "--drop-missing-target")[0] == 0


def test_two_folds_are_not_advised_to_be_fewer(command, folder):
    pd.DataFrame({"x": range(20), "c": ["a", "b"] * 9 + ["a", "rare"]}).to_csv("t.csv")
    status, _, err = command("learn", "t.csv", "--target", "c", "--folds", "2", "--out", "r")
    assert status == 2
    assert "fewer than the 2 folds: remove such rows.\n" in err


@pytest.fixture
def parts(folder):
    """Return a function that writes lines to all.csv, and halves of them to a folder."""

    def write(head, rows):
        (folder / "parts").mkdir()
        half = len(rows) // 2
        places = {"all.csv": rows, "parts/1.csv": rows[:half], "parts/2.csv": rows[half:]}
        for name, lines in places.items():
            (folder / name).write_text("\n".join([head, *lines]) + "\n")

    return write


def predict_after_fits(command, table):
    """Return the predictions of a table after a fit to the file, and to the folder."""
    found = []
    for name in ("all.csv", "parts"):
        fit = ("--target", "y", "--linear", "--no-test", "--force", "--out", "m")
        assert command("fit", name, *fit)[0] == 0
        status, out, err = command("predict", "m", table, "--out", "-")
        assert status == 0, err
        found.append(np.loadtxt(out.splitlines()[1:]))
    return found


def test_a_folder_keeps_the_marks_of_its_numbers_for_later_files(command, folder, parts):
    numbers = np.random.default_rng(0).integers(1000, 9000, size=80)
    parts("x;y", [f"{n // 1000}.{n % 1000:03},5;{n}" for n in numbers])
    (folder / "new.csv").write_text("x;y\n1.234;0\n8.000;0\n")
    of_file, of_folder = predict_after_fits(command, "new.csv")
    np.testing.assert_allclose(of_folder, of_file)
    np.testing.assert_allclose(of_file, [1234, 8000], rtol=0.05)


def test_a_folder_keeps_the_units_of_its_numbers_for_later_files(command, folder, parts):
    rng = np.random.default_rng(0)
    parts("x,y", [f"{x:.1f}%,{x:.3f}" for x in rng.normal(size=80)])
    of_file, of_folder = predict_after_fits(command, "all.csv")
    np.testing.assert_allclose(of_folder, of_file)


def test_a_decimal_comma_in_one_file_of_a_folder_is_one_in_all(command, folder, parts):
    numbers = np.random.default_rng(0).integers(1000, 9000, size=80)
    written = [f"{n // 1000}.{n % 1000:03}" for n in numbers]
    with_decimals = [f"{text},5;{n}" for text, n in zip(written[:40], numbers, strict=False)]
    without = [f"{text};{n}" for text, n in zip(written[40:], numbers[40:], strict=True)]
    parts("x;y", with_decimals + without)
    of_file, of_folder = predict_after_fits(command, "all.csv")
    np.testing.assert_allclose(of_folder, of_file)
    np.testing.assert_allclose(of_file, numbers, rtol=0.05)


def test_a_part_of_a_sparse_file_has_the_columns_of_the_model(command, folder):
    lines = [f"{i} 1:{i} 2:1" + " 3:2" * (i < 5) for i in range(1, 60)]
    (folder / "all.libsvm").write_text("\n".join(lines) + "\n")
    (folder / "end.libsvm").write_text("\n".join(lines[30:]) + "\n")
    fit = ("--target", "label", "--linear", "--no-test", "--out", "m")
    assert command("fit", "all.libsvm", *fit)[0] == 0
    _, of_all, _ = command("predict", "m", "all.libsvm", "--out", "-")
    status, of_end, _ = command("predict", "m", "end.libsvm", "--out", "-")
    assert status == 0
    expected = np.loadtxt(of_all.splitlines()[31:])
    np.testing.assert_allclose(np.loadtxt(of_end.splitlines()[1:]), expected)


@pytest.mark.parametrize("name", ["[a]", "{a}"])
def test_a_table_on_standard_input_may_begin_with_a_bracket(name, command, folder, monkeypatch):
    text = FRAME.rename(columns={"a": name}).to_csv(index=False)
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert command("fit", "-", "--target", name, "--linear", "--no-test", "--out", "m")[0] == 0


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("lines", [True, False])
def test_json_on_standard_input_is_recognised(lines, mark, command, folder, monkeypatch):
    text = mark + FRAME.to_json(orient="records", lines=lines)
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert command("fit", "-", "--target", "a", "--linear", "--no-test", "--out", "m")[0] == 0


def test_kept_text_of_polars_is_written_to_csv(command, folder):
    table = pl.from_pandas(FRAME).with_columns(name=pl.format("n{}", pl.int_range(pl.len())))
    table.write_ipc("t.feather")
    fit = ("--target", "a", "--drop-column", "name", "--linear", "--no-test", "--out", "m")
    assert command("fit", "t.feather", *fit)[0] == 0
    status, out, _ = command("predict", "m", "t.feather", "--id", "name", "--out", "-")
    assert status == 0
    assert out.splitlines()[1].startswith('"n0",')
