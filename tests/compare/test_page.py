"""Reports: what they hold, and how they look in a browser, on a desk and on a phone."""

import base64
import functools
import hashlib
import html
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from paper.helpers import level, made_up

import nysboost as nb
from nysboost.compare import charts, learn_report, methods, page
from nysboost.compare.charts import Curve, chart_bars, chart_curves, find_style
from nysboost.compare.learners import COMPACT, OURS, FirstFold, Problem
from nysboost.compare.methods import DEFAULT_METHODS
from nysboost.compare.outcomes import Outcome
from nysboost.compare.page import Page, ReportTable, Section
from nysboost.paper import ledger, report
from nysboost.paper.replicate import METHODS, MIXTURES
from nysboost.user_error import UserError


def outcome(name, errors, seconds):
    return Outcome(name, {"error": errors, "seconds": [seconds], "entries": [1e5],
                          "predict_seconds": [0.0], "log_loss": [np.nan]})  # fmt: skip


def compared() -> Page:
    """Nine methods, five of which lie close together."""
    crowd = [(0.071, 0.045), (0.069, 0.063), (0.068, 0.056), (0.063, 0.067), (0.060, 0.081)]
    places = [(0.00086, 0.31), (0.0057, 0.039), (0.0022, 0.048), (0.0027, 0.035), *crowd]
    outcomes = [
        outcome(name, [0.9 * error, 1.1 * error], seconds)
        for name, (error, seconds) in zip(DEFAULT_METHODS, places, strict=True)
    ]
    commands = {"Fit it:": "nysboost fit x.csv --out model.nysboost --method joint"}
    return methods.make_page(outcomes, 9, notes=["All rows used."], commands=commands)


class Model:
    """A learner of two columns, one of them text."""

    feature_importances_ = (0.7, 0.3)

    def predict(self, table, return_std=False):
        mean = np.asarray(table.column("size")) + 0.1
        return (mean, np.full(len(mean), 0.2)) if return_std else mean


def test_a_terminal_of_80_columns_breaks_no_word_and_no_number(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    monkeypatch.setenv("COLUMNS", "80")
    head = ["method", "family", "relative error", "± standard error", "seconds",
            "entries evaluated", "best"]  # fmt: skip
    row = ["ensemble-exponential", "sampling by importance", "0.00587", "3.32e-05", "0.0236",
           "5,450,872", "★"]  # fmt: skip
    page.print_table(ReportTable("Methods", head, [row]))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, printed.splitlines())) <= 80
    assert set(" ".join([*head, *row]).split()) <= set(printed.split())


@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are(tmp_path):
    name = "$x_{$ \N{CJK UNIFIED IDEOGRAPH-540D}"
    chart = chart_bars(name, name, {name: 1.0, "b": 2.0})
    assert "$x_{$" in charts.render(chart)
    charts.save(chart, tmp_path / "chart.png")


def learned() -> Page:
    names = (OURS, COMPACT, "LightGBM", "gradient boosting", "linear model")
    outcomes = [outcome(name, [1.0, 1.2], 3.0 + i) for i, name in enumerate(names)]
    x = np.linspace(-2, 2, 50)
    table = pa.table({"size": x, "colour": np.where(x > 0, "red", "blue")})
    first = FirstFold(Model(), table, x + 0.1 * np.sin(9 * x))
    commands = {"Fit it:": "nysboost fit x.csv --target price --out model.nysboost"}
    problem = Problem(None, None, False, "price")
    return learn_report.make_page(outcomes, first, problem, commands=commands)


def reproduced(preset: str) -> Page:
    results = {preset: made_up(preset, level, noise=0.9)}
    decisions = ledger.decide_all(results)
    about = report.About("nysboost reproduce x --seed 0", {})
    return report.make_page(results, decisions, about)


MAKE = {
    "compare": compared,
    "learn": learned,
    "simulation": lambda: reproduced("simulation"),
    "covertype": lambda: reproduced("covertype"),
}
make_page = functools.cache(lambda name: MAKE[name]())
render = functools.cache(lambda name: page.render(make_page(name)))


@pytest.mark.parametrize("name", MAKE)
def test_a_page_asks_for_nothing_from_outside(name):
    shown = render(name)
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", shown)
    assert not re.search(r"https?://|src=|@import|url\((?!#)", without_names)
    assert len(shown) < 600_000


@pytest.mark.parametrize("name", MAKE)
def test_the_outcome_and_the_next_command_come_before_the_charts(name):
    made = make_page(name)
    shown = re.sub("<[^>]*>", "", render(name).partition("<body>")[2].partition("<svg")[0])
    assert made.headline.split(":")[0] in shown
    assert next(iter(made.commands.values())) in shown


def test_names_in_chart_and_table_are_the_same():
    names = {row[0] for table in make_page("compare").sections[0].tables for row in table.rows}
    assert names == set(DEFAULT_METHODS)
    assert all(f">{name}</text>" in render("compare") for name in names)


def test_of_many_methods_those_of_the_front_are_shown_and_all_are_folded_below():
    outcomes = [outcome(m, [1.0 + i], 9.0 if i < 5 else 1.0) for i, m in enumerate(nb.METHODS)]
    first, every = methods.make_page(outcomes, 9).sections[0].tables
    assert [row[0] for row in first.rows] == [nb.METHODS[0], nb.METHODS[5]]
    assert every.folded
    assert {row[0] for row in every.rows} == set(nb.METHODS)


def test_curves_of_labels_can_be_told_apart():
    names = ["rot", "grün", "blau", "gelb"]
    colours = [find_style(name, number)["color"] for number, name in enumerate(names)]
    assert len(set(colours)) == 4
    chart = chart_curves("Effect", "x", "y", [Curve(name, [1, 2], [1, 2]) for name in names])
    drawn = charts.render(chart)
    assert all(colour.lower() in drawn for colour in colours)


def test_long_names_leave_room_for_the_axes():
    long = "very long name " * 12
    bars = chart_bars("Importance", "share", {f"{long} 1": 1.0, f"{long} 2": 2.0, "short": 3.0})
    curves = chart_curves("Effect", long, "y", [Curve(f"{long} {i}", [1, 2], [1, i]) for i in "12"])
    for chart in (bars, curves):
        drawn = charts.render(chart)  # a warning is an error
        assert "very long name very long name v…" in drawn.replace("very long name  ", "")
    assert charts.render(bars).count("very long name very long name v…") == 2


def test_characters_that_turn_the_direction_of_text_are_shown():
    shown = page.render(Page("a\u202eb", "c", [Section("d\u200b", ["é"])]))
    assert "a\\u202eb" in shown
    assert "d\\u200b" in shown
    assert "é" in shown


def test_nothing_that_the_user_wrote_becomes_markup():
    nasty = "</script><script>alert(1)</script><b>"
    curves = [Curve(nasty, [1, 2], [0.1, float("nan")])] * 2
    chart = chart_curves(nasty, nasty, nasty, curves)
    section = Section(nasty, [nasty], [chart], [ReportTable(nasty, [nasty], [[nasty]], nasty)])
    pair = {nasty: nasty}
    about = {"commands": pair, "settings": pair, "notes": [nasty], "files": [nasty]}
    shown = page.render(Page(nasty, nasty, [section], [pair], **about))
    assert "<script>alert" not in shown
    assert "<b>" not in shown


@pytest.mark.parametrize("name", [r"\1 onload=alert(1) x", r"a\d", '" onload="alert(1)'])
def test_a_title_is_no_template_and_no_attribute(name):
    svg = charts.render(chart_bars(name, name, {name: 1.0}))
    head = svg.partition(">")[0]
    attributes = re.sub('"[^"]*"', '""', head)
    assert "onload" not in attributes
    assert f'aria-label="{html.escape(name)}"' in head


def test_only_the_script_of_the_page_itself_may_run():
    shown = render("compare")
    script = re.search("<script>(.*?)</script>", shown, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in shown
    assert "script-src 'unsafe-inline'" not in shown


def test_a_report_replaces_no_input(tmp_path):
    table = tmp_path / "comparison.csv"
    table.write_text("a,b")
    (tmp_path / ".probe").write_text("mine")
    page.make_writable(tmp_path, ["report.html"])
    assert (tmp_path / ".probe").read_text() == "mine"
    with pytest.raises(UserError, match="is an input and would be replaced"):
        page.make_writable(tmp_path, inputs=[table])


@pytest.mark.parametrize("name", ["comparison.csv", "report.html", "error-against-time.svg"])
def test_a_report_replaces_reports_and_no_other_files(name, tmp_path):
    page.publish(compared(), tmp_path)
    page.make_writable(tmp_path)
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=f"{name} is not part of a report"):
        page.make_writable(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f"{name} is not part of a report"):
        page.make_writable(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("comparison.csv", "my notes\nlearner,error\nLightGBM,0.31\nNysBoost,0.29\n"),
        ("report.html", "<html><body>NysBoost 0.4 or LightGBM?</body></html>"),
    ],
)
def test_a_file_that_only_mentions_the_library_is_not_replaced(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=f"{name} is not part of a report"):
        page.make_writable(tmp_path)


def test_notes_under_the_numbers_of_a_report_are_not_replaced(tmp_path):
    page.publish(compared(), tmp_path)
    with (tmp_path / "comparison.csv").open("a") as file:
        file.write("my notes\n")
    with pytest.raises(UserError, match="is not part of a report"):
        page.make_writable(tmp_path)


@pytest.mark.parametrize(("largest", "expected"), [(6, 7), (60, 6), (6000, 4)])
def test_the_wider_a_logarithmic_axis_the_fewer_labels_in_a_power_of_ten(largest, expected):
    axes = Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(1, largest)
    charts.label_powers(axes.yaxis, 1, largest)
    shown = [place for place in axes.get_yticks() if 1 <= place <= largest]
    assert len(shown) == expected


def test_a_label_of_the_users_may_look_like_the_name_of_a_method():
    looks = [find_style(name, 1)["color"] for name in ("milk", "half-and-half-k")]
    assert looks[0] == looks[1]


def test_the_methods_of_a_family_share_a_colour_and_differ_in_mark_or_dash():
    assert len({str(find_style(method)) for method in MIXTURES}) == len(MIXTURES)
    assert find_style("URB-mean")["color"] == find_style("URB-SF")["color"]
    for family in ("cluster centres", "pivoted Cholesky", "CUR", "random features"):
        styles = [find_style(method) for method in nb.FAMILIES[family]]
        assert len({style["color"] for style in styles}) == 1
        assert len({style["marker"] for style in styles}) == len(styles)


WIDTHS = {"desk": 1400, "phone": 390}
FITS = """
document.querySelectorAll('details').forEach(fold => { fold.open = true; });
return [document.documentElement.scrollWidth - window.innerWidth,
        ...[...document.querySelectorAll('.scroll')].map(b => b.scrollWidth - b.clientWidth)]"""
TEXTS = """return [...document.querySelectorAll('.chart svg')].map(svg =>
    [...svg.querySelectorAll('text')].map(node => {
        const b = node.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }))"""
CONTRAST = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => (v / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const back = light(getComputedStyle(document.body).backgroundColor);
const ratio = c => {
    const fore = light(c); return (Math.max(fore, back) + .05) / (Math.min(fore, back) + .05); };
return [ratio(getComputedStyle(document.body).color),
    ...[...document.querySelectorAll('.chart text')].map(t => ratio(getComputedStyle(t).fill))]"""


@pytest.fixture(params=WIDTHS)
def look(request, browser, tmp_path):
    """Return a function that opens a page at some width, light or dark."""
    size = {"width": WIDTHS[request.param], "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def opened(name, scheme="light"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        (tmp_path / "report.html").write_text(render(name), encoding="utf-8")
        browser.get_log("browser")
        browser.get((tmp_path / "report.html").as_uri())
        assert browser.get_log("browser") == []
        return browser

    yield opened
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def overlaps(boxes):
    return [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if min(a[2], b[2]) > max(a[0], b[0]) + 1 and min(a[3], b[3]) > max(a[1], b[1]) + 1
    ]


@pytest.mark.parametrize("name", MAKE)
def test_in_a_browser_no_label_covers_another_and_nothing_is_cut_off(look, name):
    browser = look(name)
    assert max(browser.execute_script(FITS)) <= 0
    for labels in browser.execute_script(TEXTS):
        assert labels
        assert overlaps(labels) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_text_and_axes_can_be_read_in_light_and_dark(look, scheme):
    assert min(look("compare", scheme).execute_script(CONTRAST)) > 7


def test_in_a_browser_tables_sort(look):
    rows = """const fold = [...document.querySelectorAll('details')].find(
            f => f.textContent.startsWith('All methods'));
        fold.open = true;
        const table = fold.querySelector('table');
        table.querySelectorAll('th')[1].click();
        return [...table.tBodies[0].rows].map(row => row.cells[1].textContent)"""
    values = [float(text.split()[0]) for text in look("simulation").execute_script(rows)]
    assert len(values) == len(METHODS)
    assert values in (sorted(values), sorted(values, reverse=True))


def test_in_a_browser_totals_stay_below_the_rows_that_are_sorted(look):
    rows = """const heading = [...document.querySelectorAll('h3')].find(
            h => h.textContent === 'The statements');
        const table = heading.nextElementSibling.querySelector('table');
        const read = () => [...table.rows].slice(1).map(row => row.cells[1].textContent);
        const before = read(); table.querySelectorAll('th')[1].click(); return [before, read()]"""
    before, after = look("simulation").execute_script(rows)
    assert before != after
    assert sorted(before) == sorted(after)
    assert before[-1] == after[-1] == "in all"


def test_in_a_browser_the_numbers_can_be_downloaded(browser, tmp_path):
    page.write(Page("t", "h", [], [{"a": 1, "b": "ä"}]), tmp_path / "report.html")
    browser.get((tmp_path / "report.html").as_uri())
    text = browser.execute_script(
        "return decodeURIComponent(escape(atob(document.querySelector('a[download]')"
        ".href.split(',')[1])))"
    )
    assert text.startswith("a,b,software\n1,ä,NysBoost ")
    assert json.dumps("comparison.csv") in browser.page_source
