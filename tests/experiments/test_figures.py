import csv

import pytest
from scipy import stats

import nysboost as nb
from experiments.helpers import made_up
from nysboost.experiments import figures

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def level(method, p):
    return (0.1 if method.startswith("ensemble") else 0.05) * (1 + 1 / p)


def test_every_figure_is_drawn_under_both_readings_with_its_numbers(tmp_path):
    drawn = figures.write_all(made_up("simulation", level), tmp_path)
    assert len(drawn) == 4
    for path in drawn:
        for suffix in (".png", ".svg", ".csv"):
            assert path.with_suffix(suffix).stat().st_size > 1000


def test_a_figure_says_which_version_drew_it(tmp_path):
    figures.write_all(made_up("covertype", level), tmp_path)
    for suffix in ("png", "svg"):
        for path in tmp_path.glob(f"*.{suffix}"):
            assert f"NysBoost {nb.__version__}".encode() in path.read_bytes()


def test_the_same_results_give_the_same_bytes(tmp_path):
    results = made_up("covertype", level)
    for name in "ab":
        (tmp_path / name).mkdir()
        figures.write_all(results, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_the_numbers_are_means_standard_errors_and_p_values(tmp_path):
    results = made_up("covertype", level, noise=0.3)
    (path, _) = figures.write_all(results, tmp_path)
    with path.with_suffix(".csv").open() as file:
        rows = {(r["method"], r["learners"]): r for r in csv.DictReader(file)}
    row = rows["URB-mean", "20"]
    ours = results.sample("columns", "URB-mean", 20)
    theirs = results.sample("columns", "ensemble-ridge", 20)
    test = stats.ttest_ind(ours, theirs, equal_var=False, alternative="less")
    assert float(row["mean"]) == pytest.approx(ours.mean())
    assert float(row["standard_error"]) == pytest.approx(stats.sem(ours))
    assert float(row["p_value"]) == pytest.approx(test.pvalue)
    assert float(row["holm"]) >= float(row["p_value"])
    assert rows["ensemble-ridge", "20"]["p_value"] == ""
    assert int(row["replicates"]) == 10


def test_learners_needed_are_counted_against_the_baseline_with_the_most():
    results = made_up("covertype", lambda m, p: 1 / p if m == "URB-mean" else 0.25, noise=1e-6)
    summaries = {s.method: s for s in results.summaries("columns")}
    assert summaries["URB-mean"].to_match in (4, 5)
    times = made_up("runtime", lambda *_: 1.0).summaries("columns")
    assert all(s.to_match is None for s in times)
