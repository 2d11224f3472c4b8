"""The benchmarks at tiny sizes, on synthetic data: that they run, not how fast."""

import importlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from common import Report, compare, table, time_in_turn
from sklearn.linear_model import LinearRegression

SYNTHETIC = ["--data", "synthetic", "--rounds", "1"]
SIZES = {
    "transform": "--rows 300 --landmarks 96 --dimensions 8 54 --calls 2",
    "fit": "--only joint rows pivots versions --rows 2000 2500 --few 300 "
    "--landmarks 8 --pivots 8 --sets covertype gaussian --against SOURCE",
    "certificates": "--seeds 1 --small 60 --rows 300 --tables 1 --landmarks 6 --images 500 "
    "--clusters 6 --methods uniform --searched wine --tolerances 0.3",
    "uses": "--rows 200 --cluster-rows 150 --train-rows 120 --test-rows 50 --many-rows 1000 "
    "--landmarks 20 --machine-landmarks 5 --seeds 1 --null-runs 5 --power-runs 2 "
    "--classified pendigits --places kmeans --only pca hinge process two-samples",
    "learning": "--tables pol mnist concrete --components 5 --learners NysBoost exact~process",
}
SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(name, *more):
    sizes = SIZES[name].replace("SOURCE", str(SOURCE))
    words = [word.replace("~", " ") for word in sizes.split()]
    importlib.import_module(name).main([*SYNTHETIC, *words, *more])


@pytest.mark.parametrize("name", SIZES)
def test_a_benchmark_prints_its_table_and_writes_it(name, tmp_path, capsys):
    run(name)
    report = Report.load(tmp_path / "out" / f"{name}.json")
    printed = capsys.readouterr().out
    assert all(row.what in printed for row in report.rows)
    assert any(row.goal is not None for row in report.rows)
    assert report.machine["processor"] in printed
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("informed", [False, True])
def test_a_year_of_departures_has_more_to_learn_than_lines_of_its_columns(informed):
    found = importlib.import_module("large_table").simulate(4000, 0, informed)
    counts = [found.frame[name].dtype.categories.size for name in found.frame.columns[8:11]]
    assert counts == [3, 16, 105]

    # what is expected is right on average, and better than a linear model that has seen all rows
    noise = found.delay - found.expected
    assert abs(noise.mean()) < 4 * noise.std() / 4000**0.5
    X = pd.get_dummies(found.frame).to_numpy(float)
    linear = LinearRegression().fit(X, found.delay)
    missed = found.delay - linear.predict(X)
    assert noise.std() < 0.9 * missed.std() < 0.9 * found.delay.std()


def test_many_rows_are_learned_beside_lightgbm(capsys):
    pytest.importorskip("lightgbm")
    benchmark = importlib.import_module("large_table")
    benchmark.main(["--rows", "400", "--only", "informed"])
    assert "informed, error" in capsys.readouterr().out


def test_a_part_that_is_measured_again_replaces_its_rows_alone(tmp_path):
    for part in ("memory", "row", "row"):
        run("transform", "--only", part)
    report = Report.load(tmp_path / "out" / "transform.json")
    assert [row.part for row in report.rows].count("row") == 3
    assert [row.part for row in report.rows].count("memory") == 8  # two shapes, precisions, others


def test_the_summary_counts_the_goals_of_all_files(tmp_path, capsys):
    met, missed = compare("a", "b", [1.0], [2.0], 0.6), compare("c", "d", [3.0], [2.0], 0.6)
    for name, row in (("one", met), ("two", missed)):
        Report(name, rows=[row, compare("no goal", "", [1.0], 1.0)]).save(tmp_path / name)
    importlib.import_module("results").main(["goals", "one", "two", "--markdown"])
    printed = capsys.readouterr().out
    assert "1 of 2 goals met, 1 missed" in printed
    assert "no goal" not in printed


def test_a_row_is_the_median_of_the_ratios_within_the_rounds():
    row = compare("ours", "theirs", [1.0, 4.0, 9.0], [2.0, 2.0, 3.0], 2.0)
    assert (row.low, row.ratio, row.high) == (0.5, 2.0, 3.0)
    assert (row.ours, row.theirs, row.verdict) == (4.0, 2.0, "met")


def test_all_are_timed_in_turn_and_each_begins_a_round():
    order, results = [], []
    runners = {name: lambda number, name=name: order.append((name, number)) for name in "ab"}
    times = time_in_turn(runners, 2, warm_up=False, after=lambda name, _: results.append(name))
    assert order == [("a", 0), ("b", 0), ("b", 1), ("a", 1)]
    assert results == [name for name, _ in order]
    assert [len(t) for t in times.values()] == [2, 2]


def test_a_table_leaves_out_its_empty_columns():
    rows = [["a", "1", ""], ["bb", "22", ""]]
    assert table(["x", "y", "z"], rows, markdown=False) == "x   y\na   1\nbb  22"
    assert table(["x", "y", "z"], rows, markdown=True).splitlines()[1] == "| -- | -- |"


def test_the_gpu_benchmark_runs_wherever_pytorch_is(tmp_path):
    pytest.importorskip("torch")
    sizes = "--device cpu --rows 3000 --landmarks 6 --dimension 4"
    importlib.import_module("gpu").main([*SYNTHETIC, *sizes.split()])
    assert len(Report.load(tmp_path / "out" / "gpu.json").rows) == 9


def test_the_zoo_runs_goes_on_and_prints_its_tables(tmp_path, capsys, monkeypatch):
    zoo = importlib.import_module("zoo")
    rows = np.random.default_rng(0).normal(size=(200, 4))
    (tmp_path / "uci").mkdir()
    np.savez(tmp_path / "uci" / "solar.npz", X=rows)
    words = ["--data-dir", str(tmp_path), "--sets", "solar", "--kernels", "g1", "laplacian"]
    for _ in range(2):
        zoo.main([*words, "--rows", "80", "--sizes", "8", "12"])
    runs = (tmp_path / "out" / "zoo.jsonl").read_text().splitlines()
    assert len(runs) == 2 * 2 * 8  # the second run found them done
    printed = capsys.readouterr().out
    assert "joint / optimum" in printed
    assert "| solar | " in printed
    known: dict[str, object] = {}
    importlib.import_module("results").put_zoo(known, [json.loads(run) for run in runs])
    assert set(known["zoo"]["cells"]["solar"]) == {"g1", "laplacian"}


def test_runs_of_learners_become_the_figures_of_the_pages():
    results = importlib.import_module("results")
    errors = {
        "NysBoost": {("a", 0): 1.0, ("a", 1): 3.0, ("b", 0): 0.1, ("b", 1): 0.1},
        "LightGBM": {("a", 0): 4.0, ("a", 1): 4.0, ("b", 0): 0.2, ("b", 1): 0.2},
        "random forest": {("a", 0): 5.0, ("a", 1): 5.0, ("b", 0): 0.3, ("b", 1): 0.3},
        "TabM": {("a", 0): 0.5},  # one of two splits
        "EBM": {("a", 0): 6.0, ("a", 1): 6.0},  # one of two tables
    }
    runs = [
        {
            "table": table,
            "split": split,
            "learner": learner,
            "nysboost": "0.4.0",
            "error": error,
            "metric": "RMSE",
            "rows": 100,
            "test_rows": 10,
            "fit_s": 8.0 if learner == "NysBoost" else 2.0,
            "predict_s": 1.0,
        }
        for learner, cells in errors.items()
        for (table, split), error in cells.items()
    ]
    known: dict[str, object] = {}
    results.put_leaderboard(known, runs)
    found = known["tables"]["of"]["a"]["error"]
    assert found == {"NysBoost": 2.0, "LightGBM": 4.0, "random forest": 5.0, "EBM": 6.0}
    assert set(known["leaderboard"]["learners"]) == {"NysBoost", "LightGBM", "random forest"}
    assert known["speed_of_trees"]["median"] == 4
    with pytest.raises(SystemExit, match="several versions"):
        results.put_leaderboard(known, [*runs, runs[0] | {"nysboost": "0.3.0"}])


def test_the_leaderboard_resumes_and_takes_a_learner_from_anywhere(tmp_path, capsys):
    board = importlib.import_module("leaderboard")
    words = ["--splits", "2", "--only", "random forest", "linear model", "DummyRegressor"]
    words += ["--learner", "sklearn.dummy:DummyRegressor"]
    board.main(words)
    runs = (tmp_path / "out" / "leaderboard.jsonl").read_text().splitlines()
    assert len(runs) == 10  # a regressor takes no part in classification
    first = capsys.readouterr().out
    assert "synthetic False 0 DummyRegressor" in first
    board.main(words)
    again = capsys.readouterr().out
    assert again.startswith("# Leaderboard")
    assert again.strip() in first
    assert "| DummyRegressor | " in (tmp_path / "out" / "leaderboard.md").read_text()
    assert (tmp_path / "out" / "leaderboard.png").exists()


def test_elo_of_two_learners_is_the_logarithm_of_their_odds():
    page = importlib.import_module("leaderboard")
    errors = np.array([[1.0, 1.0, 1.0, 3.0], [2.0, 2.0, 2.0, 2.0]])
    ratings = page.elo(errors, np.array([1.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(ratings[0] - ratings[1], 400 * np.log10(3), rtol=1e-4)


def test_the_evidence_is_measured_once_and_becomes_curves(tmp_path, monkeypatch):
    evidence, results = (importlib.import_module(name) for name in ("evidence", "results"))
    monkeypatch.setattr(evidence, "EXACT_ROWS", 120)
    monkeypatch.setattr(evidence, "LEARNED_ROWS", 120)
    words = ["--only", "boosting", "scale", "--replicates", "1", "--sizes", "120", "150"]
    for _ in range(2):
        evidence.main(words)
    lines = (tmp_path / "out" / "evidence.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert len(runs) == 5 + 2 + 2 + 2  # mixtures; features of both; a learner and exact of one
    known: dict[str, object] = {}
    results.put_evidence(known, runs)
    assert len(known["evidence"]["boosting"]["URB-mean"]) == 20
    assert [rows for rows, _ in known["evidence"]["scale"]["Nystroem"]] == [120, 150]


def test_the_rows_of_a_report_become_a_table_of_each_part(tmp_path):
    rows = [
        compare("a", "b", [1.0], [2.0], unit="s"),
        compare("c", "at most", [3.0], 4.0, unit="%"),
    ]
    report = Report(
        "", rows=[replace(row, part=part) for row, part in zip(rows, "xy", strict=True)]
    )
    report.save(tmp_path / "fit.json")
    known: dict[str, object] = {}
    importlib.import_module("results").put_reports(known, [tmp_path / "fit.json"])
    stored = known["reports"]["fit"]["parts"]
    assert stored == {
        "x": [["a", "b", "s", 1.0, 2.0, 0.5]],
        "y": [["c", "at most", "%", 3, 4, 0.75]],
    }


def test_means_of_records_become_a_curve_for_each_pair():
    results = importlib.import_module("results")
    run = {"part": "matrix", "data": "a", "method": "joint"}
    runs = [run | {"columns": c, "error": e} for c, e in ((40, 0.1), (20, 0.4), (20, 0.2))]
    found = results._curves(results._means(runs, "matrix", ("data", "method", "columns"), "error"))
    assert found == [{"of": ["a", "joint"], "values": [0.3, 0.1]}]


def test_quantiles_are_compared_once_and_become_a_row_for_each_table(tmp_path, capsys):
    distributions = importlib.import_module("distributions")
    words = ["--tables", "one", "--splits", "0", "1", "--only", "NysBoost"]
    for _ in range(2):
        distributions.main(words)
    lines = (tmp_path / "out" / "distributions.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert [run["split"] for run in runs] == [0, 1]
    assert all(0.7 < run["inside"] <= 1 for run in runs)  # 30 rows of 90 % intervals


def test_conformal_intervals_cover_the_rows_that_they_were_made_on():
    conformal = importlib.import_module("distributions").conformal
    rng = np.random.default_rng(0)
    truth = rng.standard_t(3, size=199)
    quantiles = np.tile([-0.5, -0.1, 0.0, 0.1, 0.5], (199, 1))
    moved = conformal(quantiles, quantiles, truth)
    inside = [np.mean((moved[:, i] <= truth) & (truth <= moved[:, -1 - i])) for i in (0, 1)]
    np.testing.assert_allclose(inside, [180 / 199, 100 / 199])  # 200 · 0.9, and 200 · 0.5
    assert (moved[:, 2] == 0).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["LightGBM", "CatBoost", "XGBoost"])
@pytest.mark.parametrize("classify", [False, True])
def test_a_library_of_trees_predicts_a_table_with_gaps(library, classify):
    pytest.importorskip(library.lower())
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=500), "b": rng.choice(["red", "blue"], size=500)})
    y = 2 * (X["a"] > 0).to_numpy(int) + rng.integers(2, size=500)
    X.loc[::7, "a"] = np.nan
    X.loc[::5, "b"] = None
    X["b"] = X["b"].astype("category")
    model = importlib.import_module("peers").learners(1)[library](classify)
    predicted = model.fit(X[:400], y[:400]).predict(X[400:])
    assert np.std(np.ravel(predicted) - y[400:]) < 0.9 * np.std(y)
