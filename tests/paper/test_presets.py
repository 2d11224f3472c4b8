from dataclasses import replace
from pathlib import Path

import pytest

from nysboost.paper import presets
from nysboost.paper.datasets import DATASETS
from nysboost.paper.replicate import METHODS, settings_of
from nysboost.user_error import UserError


@pytest.mark.parametrize("name", presets.ORDER)
def test_presets_have_the_numbers_of_sections_3_1_and_3_2(name):
    p, real = presets.load(name), name not in ("simulation", "runtime")
    sizes = (4000, 120, 50, 600) if real else (1000, 10, 10, 100)
    assert (p.n_points, p.n_columns, p.rank, p.n_candidates) == sizes
    assert (p.n_fit, p.n_tune, p.n_learners, p.replicates, p.eta) == (20, 20, 20, 100, 0.01)
    gaussian = ("gaussian", 5.0 if real else 1.0)
    assert (p.kernel, p.sigma) == (("linear", None) if name.endswith("linear") else gaussian)


@pytest.mark.parametrize("name", presets.ORDER)
def test_every_preset_is_complete_and_runs_four_readings(name):
    p = presets.load(name)
    assert len(p.readings) == 4
    assert p.data in DATASETS
    assert set(p.drawn) <= set(METHODS)
    assert "ensemble-ridge" in p.drawn
    for version in (p, replace(p, **p.quick)):
        for reading in p.readings:
            settings_of(version, reading)
    settings = settings_of(p, p.readings[0])  # V is observed on as many rows as V1 and V2
    assert settings.residual_rows is None
    assert settings.row_cap >= p.n_points


def text_of(**changes):
    lines = {
        "title": '"t"', "measure": '"error"', "data": '"simulation"', "n_points": "100",
        "kernel": '"linear"', "n_learners": "3", "n_columns": "5", "rank": "5",
        "n_candidates": "10", "n_fit": "5", "n_tune": "5", "replicates": "2",
    }  # fmt: skip
    lines |= changes
    return "\n".join(f"{k} = {v}" for k, v in lines.items() if v)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (text_of(n_colums="5"), "n_colums.*n_columns"),
        (text_of(n_points='"many"'), "n_points.*wrong type"),
        (text_of(rank="0"), "at least 1"),
        (text_of(rank=""), "lacks rank"),
        (text_of(residual_shapes='["diagonal"]'), "diagonal"),
        (text_of(validation_shapes="[]"), "no shape"),
        (text_of(learner_counts="[50]"), "no number of learners"),
        (text_of() + "\n[quick]\nreplicatse = 1", "replicatse.*replicates"),
        (text_of() + '\n[[figure]]\nlable = "x"', "lable.*label"),
        (text_of() + '\n[[figure]]\nlabel = "x"', "label and draws"),
        ("title = ", "not TOML"),
    ],
)
def test_a_wrong_preset_file_is_a_sentence(text, says):
    with pytest.raises(UserError, match=says):
        presets.parse(text, "mine", "mine.toml")


def test_the_preset_of_the_how_to_page_is_one():
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    assert presets.parse(text, "mine", "mine.toml").drawn[-1] == "ensemble-ridge"
