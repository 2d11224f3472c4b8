"""Parts of the reference that the library itself can say: its methods, and its commands' help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nysboost

WIDTH = 88
"""Columns of the help text: what a page of this site shows without scrolling."""


def methods() -> str:
    """Return the methods, family by family, as a table."""
    lines = ["| family | `method=` |", "|---|---|"]
    for family, names in nysboost.FAMILIES.items():
        lines.append(f"| {family} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines) + "\n"


def kernels() -> str:
    """Return the names of the kernels, in a sentence."""
    return ", ".join(f"`{name}`" for name in nysboost.KERNELS) + ".\n"


def commands() -> str:
    """Return the help of the command line and of each of its commands."""
    overview = help_of()
    names = re.findall(r"^│ (\w+) ", overview.partition("─ Commands ─")[2], re.MULTILINE)
    shown = {"nysboost": overview} | {f"nysboost {name}": help_of(name) for name in names}
    return "\n".join(f"## {title}\n\n```text\n{text}\n```\n" for title, text in shown.items())


def help_of(*command: str) -> str:
    """Return what a command says about itself, as a user at a plain terminal sees it."""
    plain = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    ran = subprocess.run(
        [sys.executable, "-m", "nysboost.cli", *command, "--help"],
        env=os.environ | plain,
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in ran.stdout.strip().splitlines())


def write(app: Any) -> None:
    """Write the parts where pages include them, and leave those alone that are as they were."""
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    for part in (methods, kernels, commands):
        path, text = folder / f"{part.__name__}.md", part()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the parts before the first page is read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
