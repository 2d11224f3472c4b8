"""Print the lowest version of every dependency in pyproject.toml, for pip to install exactly."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,-]+\])?(?:>=(?P<lowest>[\w.]+))?")


def floors(extra: str = "test") -> list[str]:
    """Return "name==lowest" for what the package and one of its extras need."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *_flat(extra, project)]
    pinned = set()
    for requirement in needed:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None or match["lowest"] is None:
            msg = f"{requirement!r} in pyproject.toml has no lowest version."
            raise ValueError(msg)
        pinned.add(f"{match['name']}{match['extras'] or ''}=={match['lowest']}")
    return sorted(pinned)


def _flat(extra: str, project: dict[str, object]) -> Iterator[str]:
    """Yield what an extra needs, with the extras of our own that it names."""
    for requirement in project["optional-dependencies"][extra]:  # type: ignore[index]
        match = REQUIREMENT.fullmatch(requirement)
        if match is not None and match["name"] == project["name"]:
            for other in (match["extras"] or "[]")[1:-1].split(","):
                yield from _flat(other, project)
        else:
            yield requirement


if __name__ == "__main__":
    print("\n".join(floors()))
