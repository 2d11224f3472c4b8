"""What packages say of themselves agrees with the code."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_recipe_of_conda_forge_asks_for_what_the_wheel_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    asked = {line.split("- ")[1].replace(" ", "") for line in run.splitlines()}
    assert asked - {"python>=${{python_min}}"} == set(project["dependencies"])
    assert f'python_min: "{project["requires-python"].removeprefix(">=")}"' in recipe


def test_all_is_every_extra_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = {"all", "test", "coverage", "docs", "lint", "dev"}
    named = extras["all"][0].removeprefix("nysboost[").removesuffix("]").split(",")
    assert sorted(named) == sorted(set(extras) - ours)
