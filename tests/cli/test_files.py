"""fit, transform and info from file to file, with exit codes that scripts can rely on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import nysboost as nb
from nysboost import cli
from nysboost.cli.errors import (
    EXISTS,
    NO_FILE,
    NO_ROOM,
    STOPPED,
    WRONG_CALL,
    WRONG_DATA,
    WRONG_MODEL,
)

X = np.random.default_rng(0).normal(size=(300, 3))
SMALL = ["--components", "15"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; return its exit status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["nysboost", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv("rows.csv", index=False)
    frame.assign(town="x").to_parquet("rows.parquet")
    return tmp_path


def test_a_model_goes_from_file_to_file(run, folder):
    status, out, _ = run("fit", "rows.npy", "--out", "m.nysboost", *SMALL, "--json")
    assert status == 0
    said = json.loads(out)
    assert (said["rows"], said["columns"], said["model"]) == (300, 3, "Nystroem")
    status, out, _ = run("transform", "m.nysboost", "rows.npy", "--out", "f.npy", "--json")
    assert status == 0
    assert json.loads(out)["rows"] == 300
    expected = nb.Nystroem(
        kernel_params={"sigma": "median"}, n_components=15, random_state=0
    ).fit_transform(X)
    np.testing.assert_allclose(np.load("f.npy"), expected, atol=1e-12)
    status, out, _ = run("info", "m.nysboost")
    assert status == 0
    assert "landmarks: 15" in out
    assert "columns in: 3" in out


def test_names_are_kept_and_other_columns_and_orders_do_no_harm(run, folder):
    assert run("fit", "rows.csv", "--out", "m.nysboost", *SMALL)[0] == 0
    assert json.loads(run("info", "m.nysboost", "--json")[1])["names_in"] == ["a", "b", "c"]
    shuffled = pd.read_parquet("rows.parquet")[["town", "c", "a", "b"]]
    shuffled.to_parquet("shuffled.parquet")
    for number, name in enumerate(["rows.csv", "shuffled.parquet"]):
        assert run("transform", "m.nysboost", name, "--out", f"{number}.parquet")[0] == 0
    first, second = (pd.read_parquet(f"{number}.parquet") for number in range(2))
    assert list(first.columns[:2]) == ["feature_0", "feature_1"]
    np.testing.assert_allclose(first, second)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "no.csv", "--out", "n.nysboost"], NO_FILE, "There is no file no.csv"),
        (["fit", "rows.parquet", "--out", "n.nysboost"], WRONG_DATA, "--drop-column 'town'"),
        (["fit", "rows.csv", "--target", "z", "--out", "n"], WRONG_CALL, "has no column 'z'"),
        (["fit", "rows.npy", "--out", "rows.csv"], EXISTS, "--force replaces it"),
        (["fit", "rows.npy", "--out", "n", "--sigma", "wide"], WRONG_CALL, "--sigma is a number"),
        (["fit", "rows.npy", "--out", "n", "--kernel", "nix"], WRONG_CALL, "no kernel 'nix'"),
        (["fit", "rows.npy", "--out", "n", "--method", "nix"], WRONG_CALL, "no method 'nix'"),
        (["fit", "rows.npy", "--out", "n", "--max-memory", "much"], WRONG_CALL, "'much'"),
        (
            ["transform", "m.nysboost", "rows.npy", "--out", "f.npy", "--max-memory", "much"],
            WRONG_CALL,
            "'much'",
        ),
        (
            ["fit", "nan.npy", "--out", "n"],
            WRONG_DATA,
            "nan.npy has a missing or infinite value in row 9, column 1. --drop-missing",
        ),
        (["transform", "m.nysboost", "junk.npy", "--out", "f.npy"], NO_FILE, "is no .npy file"),
        (["transform", "m.nysboost", "thin.npy", "--out", "f.npy"], WRONG_MODEL, "on 3 columns"),
        (["transform", "rows.npy", "rows.npy", "--out", "f.npy"], WRONG_MODEL, ""),
        (["predict", "m.nysboost", "rows.npy", "--out", "f.npy"], WRONG_MODEL, "predicts nothing"),
        (
            ["transform", "m.nysboost", "nan.npy", "--out", "f.npy"],
            WRONG_DATA,
            "row 9, column 1",
        ),
        (["transform", "m.nysboost", "rows.npy"], WRONG_CALL, "--out"),
    ],
)
def test_every_error_is_a_sentence_with_its_exit_code(run, folder, arguments, code, message):
    run("fit", "rows.npy", "--out", "m.nysboost", *SMALL)
    np.save("thin.npy", X[:, :2])
    (folder / "junk.npy").write_text("junk")
    np.save("nan.npy", np.where(np.arange(900).reshape(300, 3) == 28, np.nan, X))
    before = sorted(os.listdir())
    status, _, err = run(*arguments)
    assert status == code
    assert message in err
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before
    if code != WRONG_CALL:
        assert json.loads(run(*arguments, "--json")[2])["code"] == code


def test_rows_with_gaps_can_be_left_out(run, folder):
    holes = X.copy()
    holes[5, 1] = np.nan
    np.save("holes.npy", holes)
    assert run("fit", "holes.npy", "--out", "m.nysboost", "--drop-missing", *SMALL)[0] == 0
    status, out, _ = run(
        "transform", "m.nysboost", "holes.npy", "--out", "f.npy", "--drop-missing", "--json"
    )
    assert status == 0
    assert json.loads(out)["dropped_rows"] == 1
    assert len(np.load("f.npy")) == 299


def test_ctrl_c_leaves_nothing(run, folder):
    run("fit", "rows.npy", "--out", "m.nysboost", *SMALL)
    np.save("many.npy", np.zeros((400_000, 3)))
    before = sorted(os.listdir())
    command = [sys.executable, "-m", "nysboost.cli", "transform", "m.nysboost", "many.npy"]
    process = subprocess.Popen(
        [*command, "--out", "features.csv"], stderr=subprocess.PIPE, text=True
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


def test_a_learner_takes_text_and_gaps_as_they_are(run, folder):
    frame = pd.read_csv("rows.csv").assign(town=np.where(X[:, 0] > 0, "north", "south"))
    frame["price"] = X[:, 1] + (frame.town == "north")
    frame.loc[3, "b"] = np.nan
    frame.to_parquet("train.parquet")
    fitting = ["fit", "train.parquet", "--target", "price", "--out", "m.nysboost", *SMALL]
    status, out, _ = run(*fitting, "--json")
    assert status == 0
    assert json.loads(out)["model"] == "NystroemRegressor"
    status, _, err = run("predict", "m.nysboost", "train.parquet", "--out", "p.csv")
    assert status == 0, err
    predicted = pd.read_csv("p.csv")
    assert list(predicted.columns) == ["prediction"]
    assert np.corrcoef(predicted.prediction, frame.price)[0, 1] > 0.9
    status, _, err = run(*fitting, "--force", "--max-memory", "1kB")
    assert status == NO_ROOM
    assert "takes more than --max-memory" in err


def test_labels_are_classified_and_come_back_as_text(run, folder):
    frame = pd.read_csv("rows.csv").assign(kind=np.where(X[:, 0] > 0, "up", "down"))
    frame.to_csv("train.csv", index=False)
    assert run("fit", "train.csv", "--target", "kind", "--out", "m.nysboost", *SMALL)[0] == 0
    assert json.loads(run("info", "m.nysboost", "--json")[1])["classes"] == ["down", "up"]
    assert run("predict", "m.nysboost", "train.csv", "--out", "p.parquet")[0] == 0
    assert (pd.read_parquet("p.parquet").prediction == frame.kind).mean() > 0.95
    np.savez("pair.npz", X=X, y=np.where(X[:, 0] > 0, 1.0, 2.0))
    learning = ["--target", "y", "--task", "classification", "--out", "n.nysboost", *SMALL]
    assert run("fit", "pair.npz", *learning)[0] == 0
    assert nb.load("n.nysboost").classes_.tolist() == [1, 2]
