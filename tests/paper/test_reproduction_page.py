"""The page of the site and the front of the README, made from a folder of `nysboost reproduce`."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nysboost as nb
from nysboost.compare.page import render, write_csv
from nysboost.paper import ledger, presets, report
from nysboost.paper.datasets import Points
from nysboost.paper.report import About
from paper.helpers import level, made_up

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module("reproduction_page")


@pytest.fixture(scope="module")
def results():
    return {name: made_up(name, level) for name in presets.ORDER}


@pytest.fixture(scope="module")
def page(tool, results):
    mnist = Points("mnist", np.zeros((7, 784)), "a file")
    about = About("nysboost reproduce all", {"mnist": mnist})
    made = report.make_page(results, ledger.decide_all(results), about, panels=False)
    return tool.make_page(render(made, ".md"))


def test_the_page_starts_with_five_figures_and_26_verdicts_under_four_readings(page):
    shown = re.findall(r"!\[Figure (\d)\. [^]]+\]\(figures/reproduction-(\d)\.png\)", page)
    assert shown == [(number, number) for number in "12345"]
    verdicts = page.partition("## Which statements hold")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", verdicts, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 27))
    assert all(row.count(" | ") == 4 for _, row in rows)
    assert page.index("reproduction-5.png") < page.index("| 1 | ") < page.index("How to read it")


def test_the_page_is_short_and_names_its_version(page):
    assert len(page.split()) < 2500
    assert f"NysBoost {nb.__version__}" in page
    assert "<details>" not in page


def test_figures_are_copied_as_they_are(tool, tmp_path):
    (tmp_path / "figures").mkdir()
    drawn = tmp_path / "figures" / "figure-3-columns-columns.png"
    Image.new("RGB", (30, 20), (200, 10, 30)).save(drawn)
    (tmp_path / "report.md").write_text("![a](figures/figure-3-columns-columns.png)")
    tool.copy_figures(tmp_path, tmp_path / "docs")
    assert (tmp_path / "docs" / "reproduction-3.png").read_bytes() == drawn.read_bytes()


def test_the_sentence_of_the_readme_says_how_many_learners_reach_the_ensemble(tool, tmp_path):
    def error(method, p):
        return {"URB-mean": 1 / p, "ensemble-ridge": 4 / (p + 10)}.get(method, 1.0)

    made = made_up("simulation", error, noise=1e-6)
    write_csv(tmp_path / "simulation.csv", made.records())
    curves = tool.read_curves(tmp_path / "simulation.csv")
    sentence = tool.say_front(curves)
    shown = sentence.replace("\n", " ")
    assert "needs 8 learners (error 0.1250) to reach the error that the ensemble has with" in shown

    tool.draw_front(curves, tmp_path / "figure-1a.png")
    with Image.open(tmp_path / "figure-1a.png") as drawn:
        assert len(drawn.convert("RGB").getcolors(maxcolors=2**24)) > 256

    text = f"before\n{tool.BEGIN}\nold\n{tool.END}\nafter\n"
    assert tool.with_front(text, "new\n") == text.replace("old", "new")
