import json
import re
from dataclasses import replace

import numpy as np
import pytest

from experiments.helpers import made_up
from nysboost.experiments import datasets, ledger, report
from nysboost.experiments import learning as learners
from nysboost.experiments.claims import CLAIMS
from nysboost.experiments.compare import DEFAULT_METHODS, Outcome
from nysboost.experiments.palette import FAMILIES, style
from nysboost.experiments.replicate import METHODS
from nysboost.experiments.report import (
    Chart,
    Page,
    Section,
    Series,
    Table,
    comparison,
    learning,
    markdown,
)
from nysboost.experiments.report import reproduction as pages


def level(method, p):
    return (0.1 if method.startswith("ensemble") else 0.05) * (1 + 1 / p) + 0.001 * len(method)


@pytest.fixture(scope="module")
def html():
    results = {name: made_up(name, level) for name in ("simulation", "mnist-gaussian")}
    return report.render(pages.page(results, datasets.table(), "nysboost reproduce x --seed 0"))


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.S).group(1))


def test_the_report_holds_every_mean_of_every_method_and_reading(html):
    chart = data_of(html)["0"]
    expected = made_up("simulation", level)
    assert list(chart["views"]) == ["V read as whole columns", "V read as a square block"]
    for (view, series), reading in zip(chart["views"].items(), expected.values, strict=True):
        assert [s["name"] for s in series] == list(METHODS), view
        for s in series:
            means = expected.values[reading][s["name"]].mean(axis=0)
            assert s["y"] == pytest.approx(means, rel=1e-4)


def test_the_summary_comes_before_the_charts_and_names_the_command(html):
    assert html.index("nysboost reproduce x --seed 0") < html.index('class="chart"')


def test_the_summary_says_in_three_sentences_what_the_paper_got_right_and_what_not():
    results = {name: made_up(name, level) for name in ("simulation", "ijcnn")}
    decisions = ledger.ledger(results)
    _, right, wrong, between = pages.summary(results, decisions, "nysboost reproduce x")
    said = {d.claim.number for d in decisions if d.verdict != "not run"}
    assert set(re.findall(r"\[(\w+)\]", right + wrong + between)) == said
    held = [mine for mine in ledger.by_claim(decisions).values() if mine[0].verdict == "holds"]
    assert held
    for mine in held:
        assert f"{mine[0].claim.gist} [{mine[0].claim.number}]" in right


def test_the_summary_names_the_code_that_made_the_records():
    made = {"made_with": ("0.9 (abc)",), "libraries": {"numpy": "3.1", "scipy": "2"}}
    results = {name: replace(made_up(name, level), **made) for name in ("simulation", "ijcnn")}
    said = "Made with “x” by NysBoost 0.9 (abc) on numpy 3.1, scipy 2. Presets"
    assert pages.summary(results, [], "x")[0].startswith(said)


def test_statements_that_were_not_run_are_folded_away(html):
    results = {"simulation": made_up("simulation", level)}
    run, not_run = pages.ledger_rows(ledger.ledger(results))
    assert [row[0] for row in run] == ["1", "2", "3a", "3b", "4", "13"]
    assert len(run) + len(not_run) == len(CLAIMS)
    assert all("not run" in row and "needs" in row[-1] for row in not_run)
    folded = html.index("<summary>Statements that were not run")
    assert html.index("Covertype, IJCNN, Pendigits: they need fewer learners") > folded
    text = markdown.page(results, [])
    assert "Not run: 5a (needs runtime)" in text
    assert "| not run |" not in text


def test_in_markdown_verdicts_are_a_table_and_what_decides_them_is_folded_below_it():
    results = {"simulation": made_up("simulation", level)}
    text = markdown.page(results, ["Made with “nysboost reproduce x --seed 0”."])
    assert "- Made with `nysboost reproduce x --seed 0`." in text
    table, folded = text.split("<details>")[0], text.split("<details>")[1].split("</details>")[0]
    assert re.search(r"^\| 1 \| .* \| \*\*holds\*\* \| \*\*holds\*\* \|$", table, re.M)
    assert "\n| 1 | 24 hold (Welch) | 24 hold (Welch) |\n" in folded
    assert "; weakest: simulation: " in folded


def test_the_report_names_the_papers_figures_and_asks_for_nothing_from_outside(html):
    assert 'Figure \\"sim\\" (a)' in html
    without_svg = html.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|src=|@import|url\(", without_svg)
    assert len(html) < 400_000


def test_nothing_that_the_user_wrote_becomes_markup():
    nasty = "</script><script>alert(1)</script><b>"
    series = Series(nasty, [1, 2], [0.1, float("nan")])
    page = Page(
        nasty,
        [nasty],
        [
            Section(
                nasty,
                [nasty],
                Chart(nasty, nasty, nasty, {nasty: [series]}, {nasty: [nasty]}),
                [Table(nasty, [nasty], [[nasty]], nasty)],
            )
        ],
        {nasty: nasty},
    )
    html = report.render(page)
    assert "<script>alert" not in html
    assert "<b>" not in html
    assert data_of(html)["0"]["views"][nasty][0]["y"] == [0.1, None]


def test_each_family_has_a_colour_of_its_own():
    assert len(set(FAMILIES.values())) == len(FAMILIES)
    looks = {(style(m).colour, style(m).mark, style(m).dash) for m in METHODS}
    assert len(looks) == len(METHODS)
    assert style("URB-mean").colour == style("URB-SF").colour


@pytest.fixture
def opened(browser, html, tmp_path):
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get((tmp_path / "report.html").as_uri())
    return browser


def first(browser, selector):
    return browser.find_element("css selector", selector)


def curves(browser):
    found = browser.find_elements("css selector", '[data-chart="0"] [data-curve]')
    return {c.get_attribute("data-curve"): c.get_attribute("innerHTML") for c in found}


def test_in_a_browser_it_loads_without_console_message_or_network_request(opened):
    assert opened.get_log("browser") == []
    events = [json.loads(e["message"])["message"] for e in opened.get_log("performance")]
    requests = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    mine = [r["request"]["url"] for r in requests if r["documentURL"] == opened.current_url]
    assert opened.current_url in mine
    assert all(url.startswith(("file://", "data:")) for url in mine)


def test_in_a_browser_toggling_a_method_changes_the_curves(opened):
    before = curves(opened)
    assert "URB-mean" in before
    assert "EUB-SF" not in before
    first(opened, '[data-chart="0"] input[data-method="URB-mean"]').click()
    assert set(curves(opened)) == set(before) - {"URB-mean"}
    first(opened, '[data-chart="0"] input[data-method="EUB-SF"]').click()
    assert set(curves(opened)) == set(before) - {"URB-mean"} | {"EUB-SF"}


def test_in_a_browser_axis_and_reading_redraw_the_curves(opened):
    before = curves(opened)["URB-mean"]
    first(opened, '[data-chart="0"] [data-option="logarithmic"]').click()
    logarithmic = curves(opened)["URB-mean"]
    first(opened, '[data-chart="0"] [data-option="V read as a square block"]').click()
    assert len({before, logarithmic, curves(opened)["URB-mean"]}) == 3


def test_in_a_browser_all_and_none_can_be_shown(opened):
    first(opened, '[data-chart="0"] [data-option="all"]').click()
    assert set(curves(opened)) == set(METHODS)
    first(opened, '[data-chart="0"] [data-option="none"]').click()
    assert curves(opened) == {}
    assert "No method is shown" in first(opened, '[data-chart="0"] svg').text


def test_in_a_browser_hovering_shows_values_and_standard_errors(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(opened).move_to_element(first(opened, '[data-chart="0"] .plot svg')).perform()
    tip = first(opened, '[data-chart="0"] .tip').text
    assert re.search(r"URB-mean\s+0\.\d+ ± ", tip)
    shown = re.search(r"number of learners p: (\d+)", tip).group(1)
    expected = made_up("simulation", level).sample("columns", "URB-mean", int(shown)).mean()
    assert float(re.search(r"URB-mean\s+(\S+)", tip).group(1)) == pytest.approx(expected, rel=1e-3)


def test_in_a_browser_the_table_of_tests_opens_with_every_method(opened):
    from selenium.webdriver.support.ui import WebDriverWait

    fold = first(opened, '[data-chart="0"] ~ details')
    fold.find_element("css selector", "summary").click()
    # the table is filled when the page hears that it was opened, a little later
    wait = WebDriverWait(opened, 30)
    rows = wait.until(lambda _: fold.find_elements("css selector", "tbody tr"))
    assert len(rows) == len(METHODS) - 1


def test_in_a_browser_a_comparison_of_ones_own_data_works_too(browser, tmp_path):
    outcomes = [
        Outcome("URB-mean", 0.1, 0.01, 1.0, 1e5, ((10, 0.3), (20, 0.1))),
        Outcome("nystrom", 0.2, np.nan, 0.5, 1e4, ((20, 0.2),)),
    ]
    path = tmp_path / "comparison.html"
    report.write(comparison.page(outcomes, ["All rows used."], {"data": "x.csv"}), path)
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    assert set(curves(browser)) == {"URB-mean", "nystrom"}
    assert "Use URB-mean" in first(browser, "#summary").text


def compared() -> Page:
    """Nine methods, five of which lie close together, and ticks that would run together."""
    crowd = [(0.071, 0.045), (0.069, 0.063), (0.068, 0.056), (0.063, 0.067), (0.060, 0.081)]
    places = [(0.00086, 0.31), (0.0057, 0.039), (0.0022, 0.048), (0.0027, 0.035), *crowd]
    outcomes = [
        Outcome(name, error, error / 20, seconds, 1e5, ((17, 2 * error), (120, error)))
        for name, (error, seconds) in zip(DEFAULT_METHODS, places, strict=True)
    ]
    return comparison.page(outcomes, ["All rows used."], {})


def learned() -> Page:
    outcomes = [
        learners.Outcome(name, [1.0, 1.2], [np.nan] * 2, 3.0)
        for name in (learners.OURS, learners.UNIFORM, "gradient-boosted trees")
    ]
    curve = {learners.UNIFORM: [(2, 3.0), (256, 1.0)], learners.OURS: [(2, 2.0), (256, 0.5)]}
    insight = learners.Insight(
        curve, [(-23.83, -20.0), (31.5, 30.0)], [(0.5, 0.4), (0.99, 0.98)], [("a", 1.0)]
    )
    return learning.page(outcomes, insight, False, ["All rows used."], {})


def reproduced(preset: str) -> Page:
    return pages.page({preset: made_up(preset, level, noise=0.9)}, datasets.table(), "x")


PAGES = {
    "compare": compared,
    "learn": learned,
    "simulation": lambda: reproduced("simulation"),
    "covertype": lambda: reproduced("covertype"),
}
BOXES = """return [...document.querySelectorAll(arguments[0])].map(chart =>
    [...chart.querySelectorAll(arguments[1])].map(node => {
        const b = node.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }))"""
GAP = 3
LINES = "svg line.axis:not(.guide)"


def overlapping(boxes):
    return [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if min(a[2], b[2]) + GAP > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])
    ]


@pytest.fixture(params=[1200, 390], ids=["desk", "phone"])
def look(request, browser, tmp_path):
    """Return a function that opens a page at some width."""
    size = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def opened(name):
        report.write(PAGES[name](), tmp_path / "report.html")
        browser.get((tmp_path / "report.html").as_uri())
        return browser

    yield opened
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("name", PAGES)
def test_in_a_browser_no_label_covers_another_and_nothing_is_cut_off(look, name):
    browser = look(name)
    for axis in ("linear", "logarithmic"):
        for button in browser.find_elements("css selector", f'[data-option="{axis}"]'):
            browser.execute_script("arguments[0].click()", button)
        for labels in browser.execute_script(BOXES, ".plot", "text"):
            assert labels
            assert overlapping(labels) == []
        for bands, frame in zip(
            browser.execute_script(BOXES, ".plot", ".band"),
            browser.execute_script(BOXES, ".plot", LINES),
            strict=True,
        ):
            top, bottom = min(b[1] for b in frame), max(b[3] for b in frame)
            assert all(band[1] >= top and band[3] <= bottom for band in bands)
    width = "return document.documentElement.scrollWidth - window.innerWidth"
    assert browser.execute_script(width) <= 0
    folds = "document.querySelectorAll('details').forEach(fold => { fold.open = true; })"
    browser.execute_script(folds)
    boxes = (
        "return [...document.querySelectorAll('.scroll')].map(b => b.scrollWidth - b.clientWidth)"
    )
    assert set(browser.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done((() => {" + boxes + "})()), 200)"
    )) <= {0}  # fmt: skip


def test_in_a_browser_every_method_is_named_beside_its_point(look):
    browser = look("compare")
    names = browser.find_elements("css selector", '[data-chart="0"] .name')
    assert sorted(name.text for name in names) == sorted(DEFAULT_METHODS)
    labels = browser.find_elements("css selector", '[data-chart="0"] .legend label')
    assert sorted(label.get_attribute("title") for label in labels) == sorted(DEFAULT_METHODS)
    hidden = (
        "const box = document.querySelector('.legend'); return box.scrollHeight - box.clientHeight"
    )
    assert browser.execute_script(hidden) == 0


def test_the_curves_of_a_chart_can_be_told_apart():
    for make in (compared, learned):
        charts = data_of(report.render(make())).values()
        for series in (s for chart in charts for s in chart["views"].values()):
            looks = {(s["colour"], s["mark"], s["dash"]) for s in series}
            assert len(looks) == len(series)
