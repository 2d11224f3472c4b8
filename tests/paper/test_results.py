"""Statistics of a preset, against SciPy, and the figures and tables that show them."""

import csv

import numpy as np
import pytest
from scipy import stats

import nysboost as nb
from nysboost.paper import report
from nysboost.paper.ledger import compare_means, correct
from paper.helpers import good_boosting, made_up


def test_equal_constants_give_no_evidence_and_a_sure_gap_gives_certainty():
    ones, twos = np.ones((5, 2)), np.full((5, 2), 2.0)
    for paired in (False, True):
        assert compare_means(ones, ones, paired)[1] == pytest.approx(0.5)
        assert compare_means(ones, twos, paired)[1] == pytest.approx(0)
        assert compare_means(twos, ones, paired)[1] == pytest.approx(1)


def test_one_replicate_decides_nothing():
    assert float(compare_means(np.array([1.0]), np.array([2.0]))[1]) == 0.5
    (summary, *_) = made_up("covertype", good_boosting, replicates=1).summaries("columns")
    assert np.isnan(summary.standard_error).all()


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_decreases():
    adjusted = correct(np.array([[0.01, 0.04, np.nan], [0.03, 0.5, np.nan]]))
    assert adjusted == pytest.approx(
        np.array([[0.04, 0.09, np.nan], [0.09, 0.5, np.nan]]), nan_ok=True
    )


def test_every_figure_is_drawn_under_both_readings_by_a_named_version_to_the_byte(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        report.write_figures(made_up("covertype", good_boosting), tmp_path / name)
    drawn = list((tmp_path / "a").glob("*.png"))
    assert len(drawn) == 2
    for path in drawn:
        for suffix in (".png", ".svg", ".csv"):
            content = path.with_suffix(suffix).read_bytes()
            assert f"NysBoost {nb.__version__}".encode() in content
            assert content == (tmp_path / "b" / path.name).with_suffix(suffix).read_bytes()


def test_the_numbers_are_means_standard_errors_and_p_values(tmp_path):
    results = made_up("covertype", good_boosting, noise=0.3)
    report.write_figures(results, tmp_path)
    with (tmp_path / "covertype-figure-1-columns.csv").open() as file:
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
