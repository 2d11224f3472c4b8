"""Parts of pages that the library says itself: methods, defaults, exit codes, commands' help."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measured

import nysboost
from nysboost.cli.commands import COMMANDS
from nysboost.cli.errors import EXIT_CODES

WIDTH = 88
"""Columns of the help text: what a page of this site shows without scrolling."""


def methods() -> str:
    """Return the methods, family by family, as a table."""
    families = nysboost.FAMILIES.items()
    rows = [[family, ", ".join(f"`{name}`" for name in names)] for family, names in families]
    return measured.make_table(["family", "`method=`"], rows)


def kernels() -> str:
    """Return the names of the kernels, in a sentence."""
    return ", ".join(f"`{name}`" for name in nysboost.KERNELS) + ".\n"


LEARNERS = (nysboost.NystroemRegressor, nysboost.NystroemClassifier)
TRANSFORMERS = (nysboost.Nystroem, nysboost.KernelPCA, nysboost.SpectralClustering)
SIZES = {2**30: '"1 GB"'}
"""Defaults as people write them."""


def defaults() -> str:
    """Return every parameter of the main estimators with its default."""
    head = ["parameter", "learners", "Nystroem", "Kernel PCA", "Spectral clustering"]
    found = [dict(inspect.signature(c).parameters) for c in LEARNERS + TRANSFORMERS]
    found = [found[0] | found[1], *found[2:]]  # the classifier has some more than the regressor
    names = dict.fromkeys(name for parameters in found for name in parameters)
    rows = (
        [f"`{name}`", *(_default(p[name].default) if name in p else "" for p in found)]
        for name in names
    )
    return measured.make_table(head, rows)


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return f"`{SIZES.get(value, repr(value)) if isinstance(value, int) else repr(value)}`"


def exit_codes() -> str:
    """Return what each exit code of the command line means."""
    rows = [[str(code), meaning] for code, meaning in EXIT_CODES.items()]
    return measured.make_table(["exit code", "meaning"], rows)


def commands() -> str:
    """Return the help of the command line and of each of its commands."""
    shown = {"nysboost": help_of()} | {f"nysboost {name}": help_of(name) for name in COMMANDS}
    return "\n".join(f"### {title}\n\n```text\n{text}\n```\n" for title, text in shown.items())


def help_of(*command: str) -> str:
    """Return what a command says about itself, as a user at a plain terminal sees it."""
    plain = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    ran = subprocess.run(
        [sys.executable, "-m", "nysboost", *command, "--help"],
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
    tables = (
        *(measured.regression_tables, measured.class_tables, measured.where_others_win),
        measured.gpu_tables,
        *(measured.protocol, measured.leaderboard, measured.pairs, measured.distributions),
        *(measured.fit_times, measured.speed_of_trees, measured.systems, measured.zoo),
        *measured.EVIDENCE,
    )
    parts = (methods, kernels, commands, defaults, exit_codes, *tables)
    texts = {part.__name__: part() for part in parts} | measured.reports()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the parts before the first page is read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
