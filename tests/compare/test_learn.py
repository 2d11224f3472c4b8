"""``nysboost learn``: from a file and a target to a table, a report and the next command."""

import csv
import html
import json
import re
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nysboost as nb
from nysboost.compare.learners import COMPACT, OURS, say_outcome
from nysboost.compare.outcomes import Outcome
from nysboost.compare.peers import CONSTANT, LINEAR, CodedRows, make_peers


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=40), rng.choice(["red", "blue"], size=40)
    price = np.sin(2 * size) + (colour == "red")
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["size", "colour", "age", "price", "note"])
        for i in range(40):
            writer.writerow([size[i], colour[i], "" if i % 9 == 0 else i, price[i], "x"])
    return path


SMALL = ("--components", "4", "--folds", "2", "--drop-column", "note", "--separator", ";")


@pytest.mark.parametrize(("target", "error"), [("price", "RMSE"), ("colour", "wrong")])
def test_a_table_becomes_a_comparison_a_report_and_a_command(command, table, target, error):
    out = table.parent / "out"
    arguments = ("learn", table, "--target", target, *SMALL, "--out", out)
    # as a table for the one, as JSON for the other
    status, printed, _ = command(*arguments, *(["--json"] if target == "colour" else []))
    assert status == 0
    with (out / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {LINEAR, CONSTANT, "gradient boosting", OURS} <= {row["learner"] for row in rows}
    errors = [float(row["error"]) for row in rows]
    assert errors == sorted(errors)
    page = (out / "report.html").read_text()
    for part in ("Error against time", "Calibration", "Importance", "Effect of", "comparison.csv"):
        assert part in page
    assert ("Residuals" in page) == (target == "price")
    if target == "price":
        assert error in printed
        next_command = next(line for line in printed.splitlines() if "nysboost fit" in line).strip()
    else:
        found = json.loads(printed)
        assert found["headline"].split(":")[0] in page
        assert OURS in [row["learner"] for row in found["learners"]]
        next_command = found["next"][0]
    assert next_command in html.unescape(re.sub("</?span>", "", page))
    words = shlex.split(next_command.replace("model.nysboost", str(out / "model.nysboost")))
    assert words[words.index("--drop-column") + 1] == "note"
    assert words[words.index("--separator") + 1] == ";"
    if target == "price":
        assert command(*words[1:], "--no-test")[0] == 0
        assert (out / "model.nysboost").exists()


LOW, HIGH, WIDE, EVEN = [1.0, 1.1, 1.2], [2.0, 2.2, 2.3], [1.0, 1.3, 1.2], [1.2, 1.1, 1.3]


@pytest.mark.parametrize(
    ("errors", "seconds", "says"),
    [
        ({OURS: LOW, "LightGBM": HIGH}, {},
         "NysBoost predicts y best: its RMSE is 1.1, 49% below that of LightGBM (2.17)."),
        ({"LightGBM": LOW, OURS: HIGH}, {},
         "LightGBM predicts y best: its RMSE is 1.1, 49% below that of NysBoost (2.17)."),
        ({LINEAR: LOW, OURS: HIGH}, {},
         "The linear model predicts y best: its RMSE is 1.1, 49% below that of NysBoost (2.17)."),
        ({OURS: WIDE, "LightGBM": EVEN}, {},
         "NysBoost and LightGBM predict y equally well: RMSE 1.17 and 1.2."),
        ({COMPACT: WIDE, "CatBoost": [1.15, 1.1, 1.3], LINEAR: EVEN}, {COMPACT: 30, LINEAR: 0.1},
         "equally well: RMSE 1.17 and 1.18. The linear model does as well, and fits 300"),
        ({OURS: WIDE, LINEAR: EVEN}, {OURS: 8, LINEAR: 2},
         "equally well: RMSE 1.17 and 1.2. The linear model fits 4 times faster than NysBoost."),
        ({OURS: WIDE, CONSTANT: EVEN}, {},
         "No learner predicts y better than a constant: RMSE 1.17 (NysBoost) and 1.2 differ by"),
        ({OURS: [10.4, 9.9], "Nystroem": [17.0, 21.2]}, {OURS: 8, "Nystroem": 0.1},
         "NysBoost predicts y best: its RMSE is 10.2, 47% below that of Nystroem (19.1)."),
        ({LINEAR: [1e-6, 1e-6], OURS: [0.01, 0.13]}, {}, "The linear model predicts y best"),
        ({LINEAR: [1.0]}, {}, "The linear model has the smallest RMSE, 1."),
        ({"LightGBM": [1.0]}, {}, "LightGBM has the smallest RMSE, 1."),
    ],
)  # fmt: skip
def test_the_headline_says_wins_ties_and_losses(errors, seconds, says):
    outcomes = [
        Outcome(name, {"error": found, "seconds": [seconds.get(name, 1.0)]})
        for name, found in errors.items()
    ]
    assert says in say_outcome(outcomes, "RMSE", "y")


def test_few_held_out_rows_decide_nothing_unless_they_agree():
    def say(theirs):
        rows = {OURS: np.array([1.0, 2.0, 1.5, 1.0] * 5), LINEAR: np.array(theirs * 5)}
        outcomes = [
            Outcome(name, {"error": [np.sqrt(losses.mean())], "seconds": [1.0]}, losses)
            for name, losses in rows.items()
        ]
        return say_outcome(outcomes, "RMSE", "y")

    assert say([1.5, 2.5, 2.0, 1.5]).startswith("NysBoost predicts y best")
    assert "20 rows are too few to decide whether NysBoost or the linear" in say(
        [9.0, 0.1, 0.1, 0.1]
    )


def test_categories_are_integers_and_gaps_are_nan():
    train = pa.table({"size": [1.0, None, 3.0, 4.0], "colour": ["red", "blue", None, "red"]})
    test = pa.table({"size": [None, 2.0], "colour": ["green", "blue"]})
    rows = CodedRows.of(train, test)
    np.testing.assert_array_equal(rows.train, [[1, 1], [np.nan, 0], [3, np.nan], [4, 1]])
    np.testing.assert_array_equal(rows.test, [[np.nan, np.nan], [2, 0]])
    assert rows.categories == [1]


@pytest.mark.filterwarnings("ignore")  # of theirs, as the command does
@pytest.mark.parametrize("classify", [False, True])
def test_every_peer_learns_a_table_with_categories_and_gaps(classify):
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=90), rng.choice(["red", "green", "blue"], size=90)
    table = pa.table({"size": np.where(size > 2, np.nan, size), "colour": colour})
    y = np.sin(size) + 2 * (colour == "red")
    y = np.where(y > 1, "high", "low") if classify else y
    rows = CodedRows.of(table.slice(0, 60), table.slice(60))
    for name, peer in make_peers(rows, classify, 0).items():
        found = np.ravel(peer.fit(rows.train, y[:60]).predict(rows.test))
        error = np.mean(found != y[60:]) if classify else np.mean((found - y[60:]) ** 2)
        allowed = 0.5 if classify else 1.5 * np.var(y)
        assert error < allowed, name


def test_after_a_tie_the_next_command_fits_the_simpler_model(command, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * [1.0, 100.0, 0.01]
    town = rng.choice(["Ulm", "Rom"], size=90)
    y = X @ [1.0, -0.02, 50.0] + (town == "Ulm") + 0.3 * rng.normal(size=90)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(town=town, y=y)
    frame.to_csv(tmp_path / "t.csv", index=False)

    words = ["--target", "y", "--components", "8", "--folds", "3", "--out", tmp_path / "out"]
    _, printed, _ = command("learn", tmp_path / "t.csv", *words)
    line = next(line for line in printed.splitlines() if "nysboost fit" in line)
    assert "linear model" in printed.partition(line)[0].splitlines()[-1]
    assert "--linear" in line
    words = shlex.split(line.replace("model.nysboost", str(tmp_path / "m")))
    status, printed, err = command(*words[1:])
    assert status == 0, err
    assert "The linear model has the smallest root mean squared error" in printed

    # the mean of predictions at two rows is that half way between them
    def predict(a, b, c):
        return nb.load(tmp_path / "m").predict(pd.DataFrame(
            {"a": [a], "b": [b], "c": [c], "town": ["Rom"]}))[0]  # fmt: skip

    ends = predict(-1, 50, 0.01), predict(2, -150, 0.01)
    np.testing.assert_allclose(predict(0.5, -50, 0.01), np.mean(ends), atol=0.02 * np.std(y))


def test_where_a_constant_predicts_as_well_nothing_is_offered(command, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": rng.normal(size=60)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "--components", "4", "--folds", "3", "--out", tmp_path / "out"]
    _, printed, _ = command("learn", tmp_path / "t.csv", *words)
    assert "No learner predicts y better than a constant" in printed
    assert "nysboost fit" not in printed
