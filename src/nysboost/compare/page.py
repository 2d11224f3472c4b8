"""A report: one HTML file that needs nothing else, made of sentences, commands, charts, tables."""

from __future__ import annotations

import base64
import csv
import io
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.compare import charts
from nysboost.data.files import atomic_text
from nysboost.user_error import UserError, import_optional

LONG = 40
"""Letters from which a cell is text that wraps."""
WIDE = 4
"""Columns from which a table becomes a list on a phone, as one with long cells does."""
VERDICTS = ("holds", "holds or ties", "fails only in size", "does not hold", "undecided", "not run")
"""Words of the paper's ledger that are coloured."""
PRINTED = 140
"""Letters in a line of a table that is printed to a file."""


@dataclass(frozen=True)
class Table:
    """A table; `folded` tables open with a click, `marked` rows are bold."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: bool = False
    marked: frozenset[int] = frozenset()

    @property
    def wide(self) -> bool:
        """Whether it becomes a list on a phone."""
        return len(self.head) >= WIDE or any(len(cell) > LONG for r in self.rows for cell in r)


@dataclass(frozen=True)
class Section:
    """A heading with its charts and tables."""

    title: str
    sentences: Sequence[str] = ()
    charts: Sequence[charts.Chart] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """A whole report: its outcome in plain words comes first.

    `commands` map a sentence to a command; `downloads`, from a name to a text, are kept inside the
    page; `files` lie beside it.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    notes: Sequence[str] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    downloads: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def render(page: Page) -> str:
    """Return a page as HTML text; the template escapes every text."""
    jinja2 = import_optional("jinja2", "experiments")
    loader = jinja2.PackageLoader(__package__, ".")
    templates = jinja2.Environment(
        autoescape=True, loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    inside = {
        name: "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
        for name, text in page.downloads.items()
    }
    versions = {n: metadata.version(n) for n in ("nysboost", "numpy", "scipy", "scikit-learn")}
    environment = {"Python": platform.python_version(), **versions, "system": platform.platform()}
    text: str = templates.get_template("page.html").render(
        page=page,
        software=SOFTWARE,
        links=inside | {Path(file).name: file for file in page.files},
        draw=charts.render,
        long=LONG,
        verdicts=VERDICTS,
        settings=json.dumps(page.settings, indent=2, ensure_ascii=False, default=str),
        environment=json.dumps(environment, indent=2),
    )
    return text


def write(page: Page, path: Path, *, keep: bool = True) -> None:
    """Write a page as one HTML file; an earlier one may be kept under another name."""
    text = render(page)
    if keep and path.exists():
        kept = path.with_name(f"{path.stem}.earlier{path.suffix}")
        path.replace(kept)
        print(f"The earlier report is kept as {kept}.")
    with atomic_text(path, "The report") as file:
        file.write(text)


def publish(page: Page, rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write a comparison as CSV and as a page, say what came of it and what to do next."""
    print_table(page.sections[0].tables[0])
    late = [n for n in page.notes if n.startswith("Stopped") or "was left out" in n]
    print(*late, page.headline, sep="\n")
    text = write_csv(out / "comparison.csv", list(rows[0]), (row.values() for row in rows))
    write(replace(page, downloads={"comparison.csv": text}), out / "report.html")
    for sentence, command in page.commands.items():
        print(f"{sentence}\n  {command}")
    print(f"The report is {out / 'report.html'}.")
    if any(note.startswith("Stopped") for note in page.notes):
        raise KeyboardInterrupt


def print_table(table: Table) -> None:
    """Print a table; one that goes to a file is as wide as its cells, up to a limit."""
    import_optional("rich", "experiments")
    from rich import box, console
    from rich import table as tables

    drawn = tables.Table(
        title=table.title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold"
    )
    for i, name in enumerate(table.head):
        drawn.add_column(name, overflow="fold", no_wrap=i == 0)
    for i, row in enumerate(table.rows):
        drawn.add_row(*row, style="bold" if i in table.marked else None)
    printer = console.Console(highlight=False)
    printer.width = printer.width if printer.is_terminal else PRINTED
    printer.print(drawn, markup=False)
    if table.note:
        print(table.note)


def make_writable(folder: Path) -> None:
    """Make a folder and check that files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".probe").write_text("")
        (folder / ".probe").unlink()
    except OSError as error:
        msg = f"The folder {folder} cannot be written ({error.strerror}): give another with --out."
        raise UserError(msg) from error


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as CSV, and return the text; the last column names the version.

    CSV has no place for a comment that every reader skips, so it is a column as any other.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*columns, "software"))
    writer.writerows((*row, SOFTWARE) for row in rows)
    with atomic_text(path, "The table") as file:
        file.write(text.getvalue())
    return text.getvalue()


def format_number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, thousands apart, or a dash."""
    return f"{float(f'{value:.{digits}g}'):,g}" if np.isfinite(value) else "–"
