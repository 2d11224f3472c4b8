"""A report: one HTML file that needs nothing else, made of sentences, commands, charts, tables."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import platform
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.compare import charts
from nysboost.compare.charts import Chart
from nysboost.data.files import whole_text
from nysboost.user_error import UserError, need

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


@dataclass(frozen=True)
class Section:
    """A heading with its charts and tables."""

    title: str
    sentences: Sequence[str] = ()
    charts: Sequence[Chart] = ()
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


def write(page: Page, path: Path, *, keep: bool = True) -> None:
    """Write a page as one HTML file; an earlier one may be kept under another name."""
    text = render(page)
    if keep and path.exists():
        kept = path.with_name(f"{path.stem}.earlier{path.suffix}")
        path.replace(kept)
        print(f"The earlier report is kept as {kept}.")
    with whole_text(path, "The report") as file:
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
    need("rich", "experiments")
    from rich import box, console
    from rich import table as tables

    drawn = tables.Table(
        title=table.title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold"
    )
    for i, name in enumerate(table.head):
        drawn.add_column(name, overflow="fold", no_wrap=i == 0)
    for row in table.rows:
        drawn.add_row(*row)
    printer = console.Console(highlight=False)
    printer.width = printer.width if printer.is_terminal else PRINTED
    printer.print(drawn, markup=False)
    if table.note:
        print(table.note)


def make_writable(folder: Path) -> None:
    """Make a folder and check that files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        msg = f"The folder {folder} cannot be written ({error.strerror}): give another with --out."
        raise UserError(msg) from error


def render(page: Page) -> str:
    """Return a page as HTML text."""
    contents = "".join(
        f'<a href="#s{i}">{html.escape(s.title.partition(":")[0])}</a>'
        for i, s in enumerate(page.sections)
    )
    versions = {n: metadata.version(n) for n in ("nysboost", "numpy", "scipy", "scikit-learn")}
    environment = {"Python": platform.python_version(), **versions, "system": platform.platform()}
    return string.Template(_read("page.html")).substitute(
        software=SOFTWARE,
        title=html.escape(page.title),
        style=_read("page.css"),
        script=_read("page.js"),
        headline=html.escape(page.headline),
        notes="".join(f"<li>{html.escape(note)}</li>" for note in page.notes),
        commands="".join(
            f"<p>{html.escape(sentence)}</p><pre class=command>"
            # no word of a command is broken at a hyphen
            + " ".join(f"<span>{html.escape(word)}</span>" for word in command.split(" "))
            + "</pre>"
            for sentence, command in page.commands.items()
        ),
        downloads=_render_downloads(page),
        contents=contents,
        sections="".join(_render_section(i, s) for i, s in enumerate(page.sections)),
        settings=html.escape(json.dumps(page.settings, indent=2, ensure_ascii=False, default=str)),
        environment=html.escape(json.dumps(environment, indent=2)),
    )


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as CSV, and return the text; the last column names the version.

    CSV has no place for a comment that every reader skips, so it is a column as any other.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_csv(Path(folder, "t.csv"), ["method", "error"], [["joint", 0.01]])
    >>> text.partition(" ")[0]
    'method,error,software\njoint,0.01,NysBoost'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*columns, "software"))
    writer.writerows((*row, SOFTWARE) for row in rows)
    with whole_text(path, "The table") as file:
        file.write(text.getvalue())
    return text.getvalue()


def format_number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, or a dash."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _render_downloads(page: Page) -> str:
    links = [
        (name, "data:text/csv;base64," + base64.b64encode(text.encode()).decode())
        for name, text in page.downloads.items()
    ]
    links += [(Path(file).name, file) for file in page.files]
    found = [
        f'<a download="{html.escape(name)}" href="{html.escape(target)}">{html.escape(name)}</a>'
        for name, target in links
    ]
    return f"<p>Download: {', '.join(found)}</p>" if found else ""


def _render_section(number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{html.escape(section.title)}</h2>']
    parts += [f"<p>{html.escape(s)}</p>" for s in section.sentences]
    if section.charts:
        parts.append(f"<div class=charts>{''.join(map(charts.render, section.charts))}</div>")
    parts += [_render_table(t) for t in section.tables]
    return "".join([*parts, "</section>"])


def _render_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in table.head)
    rows = "".join(
        f"<tr{' class=marked' if i in table.marked else ''}>"
        + "".join(map(_render_cell, table.head, row))
        + "</tr>"
        for i, row in enumerate(table.rows)
    )
    note = f"<p class=note>{html.escape(table.note)}</p>" if table.note else ""
    long = any(len(cell) > LONG for row in table.rows for cell in row)
    kind = " class=wide" if long or len(table.head) >= WIDE else ""
    body = f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    body, title = f"<div class=scroll>{body}</div>{note}", html.escape(table.title)
    if table.folded:
        return f"<details><summary>{title}</summary>{body}</details>"
    return f"<h3>{title}</h3>{body}"


def _render_cell(head: str, text: str) -> str:
    kind = "words" if len(text) > LONG else text.replace(" ", "-") if text in VERDICTS else ""
    return f'<td data-head="{html.escape(head)}" class="{kind}">{html.escape(text)}</td>'
