"""What the pages of the site say: their examples run, and they keep to their limits."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import nysboost as nb

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
import measured  # noqa: E402
import outputs  # noqa: E402

PAGES = sorted(
    path.name
    for path in DOCS.glob("*.md")
    if "```python" in path.read_text(encoding="utf-8") and path.name != "gpu.md"  # needs one
)
EVIDENCE = {
    "accuracy", "benchmarks", "zoo", "systems", "uses", "trust", "scale", "reproduction",
}  # fmt: skip
"""Pages of measurements, which may be long."""


def text_of(page):
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page}
    for block in re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL):
        exec(compile(block, page, "exec"), names)


def test_a_tutorial_shows_what_its_blocks_print():
    page = "a\n\n```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\nb\n"
    shown = outputs.with_outputs("page", page)
    assert shown == page.replace("```\nb", "```\n\n```text\n3\n```\nb")


@pytest.mark.parametrize("name", nb.__all__)
def test_the_reference_has_every_public_name(name):
    assert re.search(rf"^   {name}$|`{name}`", text_of("reference.md"), re.MULTILINE), (
        f"Add {name} to docs/reference.md."
    )


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_page_that_is_no_evidence_has_at_most_1200_words(page):
    if page.removesuffix(".md") not in EVIDENCE:
        assert len(text_of(page).split()) <= 1200


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_a_cell_of_a_table_has_at_most_60_words(page):
    for line in text_of(page).splitlines():
        if line.startswith("|"):
            assert max(len(cell.split()) for cell in line.split("|")) <= 60, line


@pytest.mark.parametrize("page", sorted(EVIDENCE))
def test_an_evidence_page_names_its_version_and_its_command(page):
    text = text_of(f"{page}.md")
    assert "0.3" in text
    assert re.search(r"`make |python (benchmarks|tools)/|nysboost reproduce", text)


COMMAND = re.compile(r"python ((?:benchmarks|tools|docs)/[\w/]+\.py)([^`]*)")
TEXTS = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_scripts_options_and_targets_that_a_page_names_exist(path):
    text = path.read_text(encoding="utf-8")
    for script, options in COMMAND.findall(text):
        assert (ROOT / script).exists(), script
        source = (ROOT / script).read_text(encoding="utf-8")
        shared = (ROOT / "benchmarks" / "common.py").read_text(encoding="utf-8")
        for option in re.findall(r"--[a-z][\w-]+", options):
            made = 'f"--{name}"' in source and f'"{option.strip("-")}"' in source
            assert f'"{option}"' in source + shared or made, f"{script} has no {option}"
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_file_of_ours_that_a_page_names_exists(path):
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|txt|json|md))`", path.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "src", ROOT / "src" / "nysboost")
    assert [name for name in named if not any((top / name).exists() for top in places)] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_module_of_ours_that_a_page_names_exists(path):
    text = path.read_text(encoding="utf-8")
    rooms = "|".join(f.name for f in (ROOT / "src" / "nysboost").iterdir() if f.is_dir())
    for room, name, attribute in re.findall(rf"`({rooms})\.(\w+)(?:\.(\w+))?`", text):
        module = importlib.import_module(f"nysboost.{room}")
        found = getattr(module, name, None) or importlib.import_module(f"nysboost.{room}.{name}")
        assert not attribute or hasattr(found, attribute), (room, name, attribute)


def test_a_journey_of_the_architecture_has_at_most_eight_steps_each_with_a_file():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    journeys = text.partition("## Four journeys")[2].partition("\n## ")[0]
    steps = re.findall(r"^(\d)\. ((?:.|\n(?=   ))*)", journeys, re.M)
    assert [number for number, _ in steps].count("1") == 4
    assert max(int(number) for number, _ in steps) <= 8
    assert all(".py`" in step for _, step in steps)


def test_the_figures_of_the_readme_are_those_of_the_file_of_results():
    assert measured.readme() == (ROOT / "README.md").read_text(encoding="utf-8")


def test_package_citation_changelog_and_results_name_the_same_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changelog, re.MULTILINE).group(1) == nb.__version__
    assert f"version: {nb.__version__}\n" in citation
    assert f"Version {nb.__version__} " in (ROOT / "README.md").read_text(encoding="utf-8")
    assert measured.stored()["version"] == nb.__version__
