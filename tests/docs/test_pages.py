"""What the pages of the site say: their examples run, and they keep to their limits."""

import importlib
import importlib.util
import re
import sys
import tomllib
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
README_TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d*\.\d+")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EVIDENCE = {"accuracy", "benchmarks", "systems", "reproduction"}
"""Pages of measurements, which may be long."""


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def text_of(page):
    return read(f"docs/{page}")


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
def test_pages_that_are_no_evidence_and_cells_of_tables_are_short(page):
    if page.removesuffix(".md") not in EVIDENCE:
        assert len(text_of(page).split()) <= 1200
    for line in text_of(page).splitlines():
        if line.startswith("|"):
            assert max(len(cell.split()) for cell in line.split("|")) <= 60, line


@pytest.mark.parametrize("page", sorted(EVIDENCE))
def test_a_page_of_measurements_names_its_command_and_no_other_version(page):
    text = text_of(f"{page}.md")
    assert set(re.findall(r"\b0\.[1-9]\.0\b", text)) <= {nb.__version__}
    assert re.search(r"`make |python (benchmarks|tools)/|nysboost reproduce", text)


COMMAND = re.compile(r"python ((?:benchmarks|tools|docs)/[\w/]+\.py)([^`]*)")
TEXTS = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_scripts_options_and_targets_that_a_page_names_exist(path):
    text = path.read_text(encoding="utf-8")
    for script, options in COMMAND.findall(text):
        assert (ROOT / script).exists(), script
        source, shared = read(script), read("benchmarks/common.py")
        for option in re.findall(r"--[a-z][\w-]+", options):
            table = re.search(r"\b(benchmark|record_options)\(", source)  # or an argument
            made = table and f'"{option[2:]}": ' in source + shared
            assert f'"{option}"' in source + shared or made, f"{script} has no {option}"
    targets = re.findall(r"^([a-z-]+):", read("Makefile"), re.M)
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_file_and_module_of_ours_that_a_page_names_exists(path):
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|txt|json|md))`", text)
    places = (ROOT, ROOT / "src", ROOT / "src" / "nysboost")
    assert [name for name in named if not any((top / name).exists() for top in places)] == []
    rooms = "|".join(f.name for f in (ROOT / "src" / "nysboost").iterdir() if f.is_dir())
    for room, name, attribute in re.findall(rf"`({rooms})\.(\w+)(?:\.(\w+))?`", text):
        module = importlib.import_module(f"nysboost.{room}")
        if not attribute and importlib.util.find_spec(f"nysboost.{room}.{name}"):
            continue  # a module, which may need PyTorch: it is there
        found = getattr(module, name, None) or importlib.import_module(f"nysboost.{room}.{name}")
        assert not attribute or hasattr(found, attribute), (room, name, attribute)


def test_a_call_of_the_architecture_has_at_most_eight_steps_each_with_a_file():
    calls = read("ARCHITECTURE.md").partition("## Four calls")[2].partition("\n## ")[0]
    steps = re.findall(r"^(\d)\. ((?:.|\n(?=   ))*)", calls, re.M)
    assert [number for number, _ in steps].count("1") == 4
    assert max(int(number) for number, _ in steps) <= 8
    assert all(".py`" in step for _, step in steps)


def test_the_figures_of_the_readme_are_those_of_the_file_of_results():
    assert measured.readme() == README_TEXT


def test_all_pages_state_the_same_speed_of_trees():
    stated = measured.stored()["speed_of_trees"]
    pages = [README_TEXT, *(text_of(path.name) for path in DOCS.glob("*.md"))]
    found = [words for page in pages for words in re.findall(r"(\S+)\s+times as fast", page)]
    assert found
    assert set(found) == {str(stated["median"])}
    for slow in ("a fifth of the time or less", "take a tenth of the time", "tenths of a second"):
        assert not any(slow in page and "rees" in page for page in pages), slow


def test_the_page_of_evidence_and_its_figures_are_of_this_version():
    stored = measured.stored()
    assert f"version {nb.__version__}" in text_of("evidence.md")
    parts = ("evidence", "tables", "leaderboard", "distributions", "speed_of_trees")
    for part in (*parts, "systems", "zoo"):
        assert stored[part]["version"] == nb.__version__, part
    for script, report in stored["reports"].items():
        assert report["version"] == nb.__version__, script
    for sentence in measured.EVIDENCE:
        assert f"generated/{sentence.__name__}.md" in text_of("evidence.md")
        assert len(re.findall(r"\d[\d,.]*", sentence())) >= 2


def test_the_page_of_benchmarks_has_every_table_that_they_print():
    included = re.findall(r"generated/(report_[\w-]+)\.md", text_of("benchmarks.md"))
    assert sorted(included) == sorted(measured.reports())


def test_package_citation_changelog_and_results_name_the_same_version():
    newest = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE).group(1)
    assert newest == nb.__version__
    assert f"version: {nb.__version__}\n" in read("CITATION.cff")
    assert f"Version {nb.__version__} " in README_TEXT
    assert measured.stored()["version"] == nb.__version__


@pytest.mark.parametrize("number", [0, 1])
def test_an_example_of_the_readme_prints_what_stands_below_it(number, capsys):
    found = list(EXAMPLE.finditer(README_TEXT))[number]
    exec(compile(found["code"], "README.md", "exec"), {})
    printed, shown = capsys.readouterr().out, found["output"]
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", shown).split()
    errors = [float(error) for error in NUMBER.findall(printed)]
    assert errors == pytest.approx([float(error) for error in NUMBER.findall(shown)], rel=0.15)
    assert errors[-1] < errors[-2] / 3  # joint against mixtures, this learner against trees


def test_boosting_comes_first_in_the_readme():
    before = README_TEXT.partition('"URB-mean"')[0]
    assert before.count("\n") <= 20
    assert README_TEXT.index("## Approximate a") < README_TEXT.index("## Predict from")


@pytest.mark.parametrize(
    "link", [link for link in re.findall(r"\]\(([^)]+)\)", README_TEXT) if "://" not in link]
)
def test_every_link_of_the_readme_leads_to_a_file(link):
    assert (ROOT / link).exists()


def test_the_recipe_of_conda_forge_asks_for_what_the_wheel_asks_for():
    recipe = read("packaging/conda-forge/recipe.yaml")
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    asked = {line.split("- ")[1].replace(" ", "") for line in run.splitlines()}
    assert asked - {"python>=${{python_min}}"} == set(PROJECT["dependencies"])
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe


def test_all_is_every_extra_for_users():
    extras = PROJECT["optional-dependencies"]
    ours = {"all", "test", "coverage", "docs", "lint", "dev"}
    ours.add("gpu")  # PyTorch is larger than everything else together
    named = extras["all"][0].removeprefix("nysboost[").removesuffix("]").split(",")
    assert sorted(named) == sorted(set(extras) - ours)
