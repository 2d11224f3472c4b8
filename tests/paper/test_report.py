"""The report of the paper's experiments: verdicts in words, a ledger, Markdown."""

import re
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from nysboost.paper import ledger, report
from nysboost.paper.claims import CLAIMS
from nysboost.paper.reproduce_command import say_time_for_all
from paper.helpers import made_up


def level(method, p):
    return (0.1 if method.startswith("ensemble") else 0.05) * (1 + 1 / p) + 0.001 * len(method)


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
    assert (
        make_page(noisy).headline
        == "2 replicates: too few to decide 6 of 6 statements under both readings of V."
    )
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
    said = say_time_for_all(
        {"simulation": replace(results, preset=preset)}, ["simulation"], {"simulation": 1.0}
    )
    expected = f"{minutes} min" if minutes > 1 else "60 s"
    assert said == (
        f"All of it, up to 100 replicates, takes about {expected}: nysboost reproduce simulation"
    )


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
    text = report.render_markdown(make_page(results))
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
