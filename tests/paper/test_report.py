"""The report of the paper's experiments: verdicts in words, a ledger, Markdown."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import nysboost as nb
from nysboost.compare.page import render
from nysboost.paper import ledger, report
from nysboost.paper.ledger import compare_means, correct
from paper.helpers import good_boosting, level, made_up


def make_page(results):
    command = "nysboost reproduce x --seed 0"
    return report.make_page(results, ledger.decide_all(results), {"mnist": "7 × 784"}, command)


def test_every_statement_that_was_run_is_in_one_of_the_lists():
    results = {name: made_up(name, level) for name in ("simulation", "ijcnn")}
    decisions = ledger.decide_all(results)
    said = " ".join(report.list_verdicts(decisions))
    run = {d.claim.number for d in decisions if d.verdict != "not run"}
    assert sorted(re.findall(r"\[(\w+)\]", said)) == sorted(run)
    holds = next(s for s in report.list_verdicts(decisions) if s.startswith("Holds"))
    held = [mine for mine in ledger.group_by_claim(decisions).values()
            if {d.verdict for d in mine} == {"holds"}]  # fmt: skip
    assert held
    for mine in held:
        assert f"{mine[0].claim.gist} [{mine[0].claim.number}]" in holds


def test_the_headline_counts_what_replicates_are_too_few_to_decide():
    clear = {"simulation": made_up("simulation", level, noise=1e-6)}
    noisy = {"simulation": made_up("simulation", lambda *_: 0.1, replicates=2, noise=0.5)}
    # statement 13 is about other data too
    said = "10 replicates: too few to decide 1 of 6 statements under both readings of V; "
    assert make_page(clear).headline.startswith(said)
    said = "2 replicates: too few to decide 6 of 6 statements under both readings of V."
    assert make_page(noisy).headline == said
    fewer = {"simulation": made_up("simulation", lambda *_: 0.1, replicates=2, n_learners=8)}
    assert make_page(fewer).headline.startswith("2 replicates with up to 8 learners: too few")
    assert "nysboost reproduce simulation" in make_page(noisy).commands.values()


@pytest.mark.parametrize(
    ("replicates", "learners", "points", "minutes"), [(40, 20, 1000, 1), (2, 10, 500, 7)]
)
def test_the_time_for_all_of_it_is_told_from_the_pace(replicates, learners, points, minutes):
    """A replicate takes a second; its time grows as the number of points and of learners."""
    results = made_up("simulation", level)
    preset = replace(results.preset, replicates=replicates, n_learners=learners, n_points=points)
    made = {"simulation": replace(results, preset=preset)}
    said = say_time_for_all(made, ["simulation"], {"simulation": 1.0})
    expected = f"{minutes} min" if minutes > 1 else "60 s"
    assert said.startswith(f"All of it, up to 100 replicates, takes about {expected}: ")
    assert said.endswith(": nysboost reproduce simulation")


def test_the_notes_name_command_and_code_that_made_the_records():
    made = {"made_with": ("0.9 (abc)",), "libraries": {"numpy": "3.1", "scipy": "2"}}
    results = {name: replace(made_up(name, level), **made) for name in ("simulation", "ijcnn")}
    said = "Made with “x” by NysBoost 0.9 (abc) on numpy 3.1, scipy 2. Presets"
    assert report.say_origin(results, "x").startswith(said)


def test_statements_that_were_not_run_and_what_decides_the_others_are_folded_away():
    results = {"simulation": made_up("simulation", level)}
    run, why, not_run = make_page(results).sections[0].tables
    numbers = ["1", "2", "3a", "3b", "4", "13"]
    assert [row[0] for row in run.rows] == [row[0] for row in why.rows] == numbers
    assert why.rows[0] == ["1", "24 hold (Welch)", "24 hold (Welch)"]
    assert "; weakest: simulation: " in why.rows[-1][1]
    assert len(run.rows) + len(not_run.rows) == len(CLAIMS)
    assert not_run.rows[0] == ["5a", "Runtime: the UUB variants are the fastest.", "runtime"]
    assert (run.folded, why.folded, not_run.folded) == (False, True, True)
    text = render(make_page(results), ".md")
    assert "- Made with `nysboost reproduce x --seed 0`" in text
    first, second = text.split("<details>")[:2]
    assert re.search(r"^\| 1 \| .* \| \*\*holds\*\* \| \*\*holds\*\* \|$", first, re.M)
    assert "\n| 1 | 24 hold (Welch) | 24 hold (Welch) |\n" in second


def test_the_page_shows_every_figure_under_both_readings_and_all_methods():
    results = {"simulation": made_up("simulation", level)}
    _, section, data = make_page(results).sections
    assert len(section.charts) == 4
    for chart in section.charts:
        reading = "square" if "square" in chart.title else "columns"
        axes = Figure().add_subplot()
        chart.draw(axes)
        for line in axes.lines:
            means = results["simulation"].values[reading][line.get_label()].mean(axis=0)
            assert line.get_ydata() == pytest.approx(means)
    assert [len(table.rows) for table in section.tables] == [30, 30]
    assert data.tables[0].rows[0][2:4] == ["7 × 784", "70,000 × 784"]


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
    np.testing.assert_allclose(adjusted, [[0.04, 0.09, np.nan], [0.09, 0.5, np.nan]])


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
