"""The report of the paper's experiments: verdicts in words, figures, Markdown."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import nysboost as nb
from nysboost.compare.page import render
from nysboost.paper import datasets, figures, ledger, presets, report
from nysboost.paper.presets import Reading
from nysboost.paper.report import About
from nysboost.paper.results import compare_means, correct
from nysboost.paper.statements import Side
from paper.helpers import good_boosting, level, made_up

COLUMNS = Reading("columns", "columns")
MNIST = datasets.Points("mnist", np.zeros((7, 784)), "a file")
ABOUT = About("nysboost reproduce simulation --seed 0", {"mnist": MNIST})


def make_page(results, **how):
    return report.make_page(results, ledger.decide_all(results), ABOUT, **how)


def test_every_statement_is_in_one_of_the_lists():
    results = {name: made_up(name, level) for name in ("simulation", "ijcnn")}
    said = " ".join(report.list_verdicts(ledger.decide_all(results)))
    assert sorted(map(int, re.findall(r"\[(\d+)\]", said))) == list(range(1, 27))


def test_the_headline_names_missing_data_and_too_few_replicates_apart():
    one = make_page({"simulation": made_up("simulation", good_boosting)}).headline
    assert "Data sets missing: " in one
    assert "ijcnn" in one
    everything = {name: made_up(name, good_boosting, noise=1e-6) for name in presets.ORDER}
    noisy = {name: made_up(name, lambda *_: 0.1, replicates=2, noise=0.5) for name in everything}
    headline = make_page(noisy).headline
    assert "Undecided ones need more replicates." in headline
    assert "presets" not in headline


def test_a_small_version_says_that_it_decides_nothing():
    small = {"simulation": made_up("simulation", level, n_points=400)}
    page = make_page(small)
    assert "decides none of the paper's statements" in page.headline
    assert "nysboost reproduce all --variants stated" in page.commands.values()
    assert len(set(page.commands.values())) == 2


def test_a_whole_run_offers_no_second_command():
    everything = {name: made_up(name, good_boosting) for name in presets.ORDER}
    assert list(make_page(everything).commands.values()) == [ABOUT.command]


def test_figures_come_first_then_the_verdicts_then_folded_details():
    page = make_page({"simulation": made_up("simulation", level)}, panels=False)
    shown, verdicts, _, _, details = page.sections[:5]
    assert [chart.file for chart in shown.charts] == ["figures/figure-1-columns-columns.png"]
    (table,) = verdicts.tables
    assert len(table.rows) == 26
    assert table.foot[1] == "in all"
    assert len(table.head) == len(table.foot) == 2 + 4
    assert all(one.folded for one in details.tables)
    text = render(page, ".md")
    assert text.index("![Figure 1. ") < text.index("| 1 | ")
    assert "data missing: runtime" in text
    assert text.index("| 26 | ") < text.index("| in all | ")


def test_an_undecided_verdict_says_how_many_replicates_would_decide():
    noisy = {"simulation": made_up("simulation", lambda *_: 0.1, replicates=5, noise=0.5)}
    decisions = ledger.decide_all(noisy)
    undecided = [d for d in decisions if d.verdict == "undecided"]
    assert undecided
    assert all(d.would_decide > 5 for d in undecided)
    assert re.search(r"undecided \((over )?[\d,]+ replicates\)", report.say_verdict(undecided[0]))


def test_panels_draw_means_of_errors_and_medians_of_times():
    for name, average in (("covertype", np.mean), ("runtime", np.median)):
        result = made_up(name, level, noise=0.3)
        axes = Figure().add_subplot()
        figures.draw_panel(axes, figures.Panel(name), result, COLUMNS)
        assert {line.get_label() for line in axes.lines} == set(result.preset.drawn)
        for line in axes.lines:
            expected = average(result.values[COLUMNS][line.get_label()], axis=0)
            assert line.get_ydata() == pytest.approx(expected)
        (ensemble,) = (one for one in axes.lines if one.get_label() == "ensemble-ridge")
        assert ensemble.get_linestyle() == "--"


def test_the_figures_are_the_papers_five_in_its_order():
    assert [figure.number for figure in figures.FIGURES] == [1, 2, 3, 4, 5]
    drawn = [panel.preset for figure in figures.FIGURES for panel in figure.panels]
    assert list(dict.fromkeys(drawn)) == list(presets.ORDER)


def test_a_preset_of_ones_own_has_a_figure_after_the_papers():
    made = made_up("simulation", level)
    mine = replace(made, preset=replace(made.preset, name="mine", title="My points"))
    results = {"mine": mine, "ijcnn": made_up("ijcnn", level)}
    numbers = [(figure.number, figure.caption) for figure in figures.available(results)]
    assert [number for number, _ in numbers] == [5, 6]
    assert numbers[1][1] == "My points"


def test_a_figure_is_drawn_under_each_reading_by_a_named_version_to_the_byte(tmp_path):
    results = {"covertype": made_up("covertype", good_boosting, validation_shapes=("columns",))}
    for name in "ab":
        figures.write_all(results, tmp_path / name)
    drawn = sorted(path.name for path in (tmp_path / "a").iterdir())
    names = [
        f"figure-5-{v}-columns.{kind}" for v in presets.SHAPES for kind in ("pdf", "png", "svg")
    ]
    assert drawn == sorted(names)
    for name in drawn:
        content = (tmp_path / "a" / name).read_bytes()
        assert content == (tmp_path / "b" / name).read_bytes()
        assert f"NysBoost {nb.__version__}".encode() in content


def test_equal_constants_give_no_evidence_and_a_sure_gap_gives_certainty():
    ones, twos = np.ones((5, 2)), np.full((5, 2), 2.0)
    for paired in (False, True):
        assert compare_means(ones, ones, paired)[1] == pytest.approx(0.5)
        assert compare_means(ones, twos, paired)[1] == pytest.approx(0)
        assert compare_means(twos, ones, paired)[1] == pytest.approx(1)


def test_one_replicate_decides_nothing():
    assert float(compare_means(np.array([1.0]), np.array([2.0]))[1]) == 0.5
    (summary, *_) = made_up("covertype", good_boosting, replicates=1).summaries(COLUMNS)
    assert np.isnan(summary.standard_error).all()


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_decreases():
    adjusted = correct(np.array([[0.01, 0.04, np.nan], [0.03, 0.5, np.nan]]))
    np.testing.assert_allclose(adjusted, [[0.04, 0.09, np.nan], [0.09, 0.5, np.nan]])


def test_the_numbers_are_means_standard_errors_and_p_values():
    results = made_up("covertype", good_boosting, noise=0.3)
    rows = {
        (row["method"], row["learners"]): row
        for row in results.records()
        if row["reading"] == "columns-columns"
    }
    row = rows["URB-mean", 20]
    ours = results.sample(COLUMNS, Side("URB-mean", 20))
    theirs = results.sample(COLUMNS, Side("ensemble-ridge", 20))
    test = stats.ttest_ind(ours, theirs, equal_var=False, alternative="less")
    assert row["mean"] == pytest.approx(ours.mean())
    assert row["standard_error"] == pytest.approx(stats.sem(ours))
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert row["holm"] >= row["p_value"]
    assert np.isnan(rows["ensemble-ridge", 20]["p_value"])
    assert row["replicates"] == 10


def test_learners_needed_are_counted_against_the_baseline_with_the_most():
    results = made_up("covertype", lambda m, p: 1 / p if m == "URB-mean" else 0.25, noise=1e-6)
    summaries = {s.method: s for s in results.summaries(COLUMNS)}
    assert summaries["URB-mean"].to_match in (4, 5)
    times = made_up("runtime", lambda *_: 1.0).summaries(COLUMNS)
    assert all(s.to_match is None for s in times)
