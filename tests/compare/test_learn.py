"""``nysboost learn``: from a file and a target to a table, a report and the next command."""

import csv
import json
import shlex

import numpy as np
import pytest

from nysboost.compare.learners import COMPACT, OURS, Outcome, say_outcome
from nysboost.compare.peers import CONSTANT, LINEAR
from nysboost.numerics.progress import reported
from nysboost.user_error import STOPPED


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
    assert {LINEAR, CONSTANT, "gradient-boosted trees", OURS} <= {row["learner"] for row in rows}
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
    assert next_command in page.replace("<span>", "").replace("</span>", "").replace("&#x27;", "'")
    words = shlex.split(next_command.replace("model.nysboost", str(out / "model.nysboost")))
    assert words[words.index("--drop-column") + 1] == "note"
    assert words[words.index("--separator") + 1] == ";"
    if target == "price":
        assert command(*words[1:], "--no-test")[0] == 0
        assert (out / "model.nysboost").exists()


def outcome(name, errors, seconds=1.0):
    return Outcome(name, errors, [np.nan] * len(errors), seconds)


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        (
            [outcome(OURS, [1.0, 1.1, 1.2]), outcome("LightGBM", [2.0, 2.2, 2.3])],
            "NysBoost predicts y best: its RMSE is 1.1, 49% below that of LightGBM (2.17).",
        ),
        (
            [outcome("LightGBM", [1.0, 1.1, 1.2]), outcome(OURS, [2.0, 2.2, 2.3])],
            "LightGBM predicts y best: its RMSE is 1.1, 49% below that of NysBoost (2.17).",
        ),
        (
            [outcome(LINEAR, [1.0, 1.1, 1.2]), outcome(OURS, [2.0, 2.2, 2.3])],
            "The linear model predicts y best: its RMSE is 1.1, 49% below that of NysBoost (2.17).",
        ),
        (
            [outcome(OURS, [1.0, 1.3, 1.2]), outcome("LightGBM", [1.2, 1.1, 1.3])],
            "NysBoost and LightGBM predict y equally well: RMSE 1.17 and 1.2.",
        ),
        (
            [
                outcome(COMPACT, [1.0, 1.3, 1.2], 30.0),
                outcome("CatBoost", [1.15, 1.1, 1.3]),
                outcome(LINEAR, [1.2, 1.1, 1.3], 0.1),
            ],
            "equally well: RMSE 1.17 and 1.18. A linear model does as well, and fits 300 times",
        ),
        (
            [outcome(OURS, [1.0, 1.3, 1.2], 8.0), outcome(LINEAR, [1.2, 1.1, 1.3], 2.0)],
            "equally well: RMSE 1.17 and 1.2. The linear model fits 4 times faster than NysBoost.",
        ),
        (
            [outcome(OURS, [1.0, 1.3, 1.2]), outcome(CONSTANT, [1.2, 1.1, 1.3])],
            "No learner predicts y better than a constant (RMSE 1.17).",
        ),
        (
            [outcome(OURS, [10.4, 9.9], 8.0), outcome("Nystroem", [17.0, 21.2], 0.1)],
            "NysBoost predicts y best: its RMSE is 10.2, 47% below that of Nystroem (19.1).",
        ),
        ([outcome("LightGBM", [1.0])], "So far LightGBM has the smallest RMSE, 1."),
    ],
)
def test_the_headline_says_wins_ties_and_losses(outcomes, says):
    assert says in say_outcome(outcomes, "RMSE", "y")


def test_ctrl_c_ends_the_command_with_a_report_of_what_is_done(command, table, tmp_path):
    def stop(work):
        if work.done == 3:
            raise KeyboardInterrupt

    with reported("a test", listen=stop):
        words = ("--target", "price", *SMALL, "--out", tmp_path / "out")
        status, printed, said = command("learn", table, *words)
    assert status == STOPPED
    assert f"is in {tmp_path / 'out'}" in said
    assert "Traceback" not in said
    assert "Stopped by Ctrl-C: 3 of " in printed
    assert "Stopped by Ctrl-C: 3 of " in (tmp_path / "out" / "report.html").read_text()
    assert LINEAR in (tmp_path / "out" / "comparison.csv").read_text()
