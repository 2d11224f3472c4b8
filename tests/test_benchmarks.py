"""The benchmarks at tiny sizes, on synthetic data: that they run, not how fast."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
from common import Report, compare, race, table

SYNTHETIC = ["--data", "synthetic", "--rounds", "1"]
SIZES = {
    "transform": "--rows 300 --landmarks 96 --dimensions 8 54",
    "same_error": "--rows 600 --sample 100 --components 6 --landmarks 6 --more 9 --curve-rounds 1",
    "fit_scaling": "--rows 2000 3000 --columns 8",
    "joint_time": "--rows 600 700 --landmarks 6 --images 300 --clusters 4",
    "boosting_time": "--n 600 --columns 10 --rank 5 --errors",
    "certificates": "--seeds 1 --small 60 --rows 300 --tables 1 --landmarks 6 --images 500 "
    "--clusters 6 --large 400 --methods uniform --searched wine --tolerances 0.3",
    "large_transform": "--rows 2000 3000 --landmarks 16",
    "uses": "--rows 200 --cluster-rows 150 --train-rows 120 --test-rows 50 --many-rows 1000 "
    "--landmarks 20 --machine-landmarks 5 --seeds 1 --splits 1 --null-runs 5 --power-runs 2 "
    "--classified pendigits --places kmeans --only pca hinge process two-samples",
    "learning_predict": "--rows 300 --fitted 60 --components 3",
    "learning_scale": "--rows 3100 --components 3",
    "classification": "--tables mnist --components 100",
    "learning": "--tables pol --splits 0 --components 5 --only "
    "ours uniform quantile auto exact~process",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(name, *more):
    words = [word.replace("~", " ") for word in SIZES[name].split()]
    importlib.import_module(name).main([*SYNTHETIC, *words, *more])


@pytest.mark.parametrize("name", SIZES)
def test_a_benchmark_prints_its_table_and_writes_it(name, tmp_path, capsys):
    more = ["--folder", str(tmp_path)] if name == "large_transform" else []
    run(name, *more)
    report = Report.load(tmp_path / "out" / f"{name}.json")
    printed = capsys.readouterr().out
    assert all(row.what in printed for row in report.rows)
    assert any(row.goal is not None for row in report.rows)
    assert report.machine["processor"] in printed
    assert (tmp_path / "out" / f"{name}.png").exists() == bool(report.curves)
    assert os.listdir(tmp_path) == ["out"]


def test_an_earlier_run_is_shown_again_without_measuring(tmp_path, capsys):
    run("same_error")
    first, picture = capsys.readouterr().out, tmp_path / "out" / "same_error.png"
    picture.unlink()
    run("same_error", "--plot", "out/same_error.json")
    assert capsys.readouterr().out == first
    assert picture.exists()


def test_the_summary_counts_the_goals_of_all_files(tmp_path, capsys):
    met, missed = compare("a", "b", [1.0], [2.0], 0.6), compare("c", "d", [3.0], [2.0], 0.6)
    for name, row in (("one", met), ("two", missed)):
        Report(name, rows=[row, compare("no goal", "", [1.0], 1.0)]).save(tmp_path / name)
    importlib.import_module("summary").main(["one", "two", "--markdown"])
    printed = capsys.readouterr().out
    assert "1 of 2 goals met, 1 missed" in printed
    assert "no goal" not in printed


def test_a_row_is_the_median_of_the_ratios_within_the_rounds():
    row = compare("ours", "theirs", [1.0, 4.0, 9.0], [2.0, 2.0, 3.0], 2.0)
    assert (row.low, row.ratio, row.high) == (0.5, 2.0, 3.0)
    assert (row.ours, row.theirs, row.verdict) == (4.0, 2.0, "met")


def test_a_race_runs_everyone_in_turn_and_lets_each_begin_a_round():
    order, results = [], []
    runners = {name: lambda number, name=name: order.append((name, number)) for name in "ab"}
    times = race(runners, 2, warm_up=False, after=lambda name, _: results.append(name))
    assert order == [("a", 0), ("b", 0), ("b", 1), ("a", 1)]
    assert results == [name for name, _ in order]
    assert [len(t) for t in times.values()] == [2, 2]


@pytest.mark.parametrize("needed", [1, 37, 240, 999, 5000])
def test_the_smallest_size_that_reaches_an_error_is_found_to_within_a_step(needed):
    smallest = importlib.import_module("same_error").smallest_reaching
    found = smallest(0.5, lambda c: 0.4 if c >= needed else 0.6, start=240, most=2000, step=10)
    assert min(needed, 2000) <= found < min(needed, 2000) + 10


def test_a_table_leaves_out_its_empty_columns():
    rows = [["a", "1", ""], ["bb", "22", ""]]
    assert table(["x", "y", "z"], rows, markdown=False) == "x   y\na   1\nbb  22"
    assert table(["x", "y", "z"], rows, markdown=True).splitlines()[1] == "| -- | -- |"


def test_the_gpu_benchmark_runs_wherever_pytorch_is(tmp_path):
    pytest.importorskip("torch")
    sizes = "--device cpu --rows 3000 --curve-rows 2000 --landmarks 8 --sample 100"
    importlib.import_module("gpu").main([*SYNTHETIC, *sizes.split()])
    assert len(Report.load(tmp_path / "out" / "gpu.json").curves) == 5


def test_the_zoo_runs_goes_on_and_draws_its_map(tmp_path, capsys, monkeypatch):
    zoo = importlib.import_module("zoo")
    X = np.random.default_rng(0).normal(size=(200, 3))
    monkeypatch.setattr(zoo, "table", lambda name, data_dir: X)
    sizes = ["--rows", "80", "--sizes", "8", "12"]
    arguments = ["--seeds", "1", "--jobs", "1", "--sets", "solar", "--kernels", "g1", *sizes]
    for _ in range(2):
        zoo.main(arguments)
    out = tmp_path / "out" / "zoo.jsonl"
    assert len(out.read_text().splitlines()) == 1  # the second run found it done
    printed = capsys.readouterr().out
    assert "joint / best peer" in printed
    assert "solar" in printed
    assert out.with_suffix(".png").exists()


def test_the_distance_from_the_optimum_is_told_with_its_goal(capsys, monkeypatch):
    zoo = importlib.import_module("zoo")
    X = np.random.default_rng(0).normal(size=(90, 5))
    monkeypatch.setattr(zoo, "table", lambda name, data_dir: X)
    sizes = ["--rows", "60", "--landmarks", "8", "12", "--seeds", "1"]
    importlib.import_module("optimum").main(sizes)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(float(line.split("optimum ")[1].split()[0]) >= 0.999 for line in lines[:4])


def test_two_versions_fit_in_turn_and_a_version_is_as_good_as_itself(tmp_path, capsys, monkeypatch):
    zoo, versions = (importlib.import_module(name) for name in ("zoo", "versions"))
    X = np.random.default_rng(0).normal(size=(220, 3))
    monkeypatch.setattr(zoo, "table", lambda name, data_dir: X)
    source = str(Path(versions.__file__).parent.parent / "src")
    sizes = ["--sets", "kin40k", "--sizes", "9", "--rounds", "1", "--out", str(tmp_path)]
    versions.main(["--against", source, *sizes])
    assert "= 1.0000" in capsys.readouterr().out
