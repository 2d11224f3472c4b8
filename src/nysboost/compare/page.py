"""A report: one self-contained HTML file with sentences, commands, charts and tables."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import itertools
import json
import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias, TypedDict, Unpack

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.compare import charts
from nysboost.compare.outcomes import Outcome
from nysboost.numerics.messages import printable
from nysboost.rows.files import atomic_file
from nysboost.user_error import ExistsError, UserError, import_optional

LONG = 40
"""A cell with more letters is text that wraps."""
WIDE = 4
"""A table with more columns, or with long cells, becomes a list on a phone."""
PRINTED = 140
"""Largest number of letters in a line of a table printed to a file."""
PADDING = 2
"""Number of spaces between printed columns."""
Record: TypeAlias = Mapping[str, object]
"""A row of a table by name: text, numbers and truth values."""


class TableOptions(TypedDict, total=False):
    """Fields of a table besides its title, its head and its rows."""

    note: str
    folded: bool
    marked: Collection[str]


@dataclass(frozen=True)
class ReportTable:
    """A table. A `folded` table opens with a click, and rows with a `marked` first cell are bold.

    `foot` is a last row of totals, which stays in place when a column is sorted.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: bool = False
    marked: Collection[str] = ()
    foot: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        title: str,
        columns: Mapping[str, str],
        records: Iterable[Record],
        **how: Unpack[TableOptions],
    ) -> ReportTable:
        """Return a table of records; `columns` map a heading to the key of its values."""
        rows = []
        for record in records:
            cells = [_format_cell(record[key]) for key in columns.values()]
            rows.append(cells)
        return cls(title, list(columns), rows, **how)

    @property
    def all_rows(self) -> list[Sequence[str]]:
        """All rows, including the foot."""
        if not self.foot:
            return list(self.rows)
        return [*self.rows, self.foot]

    @property
    def n_long(self) -> int:
        """The number of columns with a long cell, which share the width for long cells."""
        columns = zip(*self.all_rows, strict=True)
        longest = [max(map(len, cells)) for cells in columns]
        return sum(length > LONG for length in longest)

    @property
    def wide(self) -> bool:
        """Whether the table becomes a list on a phone."""
        return len(self.head) >= WIDE or self.n_long > 0


@dataclass(frozen=True)
class Section:
    """A heading with its charts and tables."""

    title: str
    sentences: Sequence[str] = ()
    charts: Sequence[charts.Chart] = ()
    tables: Sequence[ReportTable] = ()


class AboutRun(TypedDict, total=False):
    """What a page says of the run that it reports; see `Page`."""

    notes: Sequence[str]
    commands: Mapping[str, str]
    settings: Mapping[str, object]


@dataclass(frozen=True)
class Page:
    """A whole report, which begins with its result in plain words.

    `commands` maps a sentence to a command. `records` are the measurements, which the page contains
    as ``comparison.csv``. `files` are files in the same folder.
    """

    title: str
    headline: str
    sections: Sequence[Section]
    records: Sequence[Record] = ()
    notes: Sequence[str] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


def _show(value: object) -> object:
    """Return text with hidden characters escaped; marks that turn its direction would mislead."""
    if type(value) is str:  # and not markup
        return printable(value)
    return value


def render(page: Page, suffix: str = ".html") -> str:
    """Return a page as HTML, with all texts escaped, or as Markdown (".md")."""
    # load the template; a missing value is an error
    jinja2 = import_optional("jinja2")
    templates = jinja2.Environment(
        autoescape=jinja2.select_autoescape(),
        loader=jinja2.PackageLoader(__package__, "."),
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=_show,
        undefined=jinja2.StrictUndefined,
    )

    # link the files beside the page, and embed the records
    links = {Path(file).name: file for file in page.files}
    if page.records:
        content = _encode(_format_csv(page.records))
        links[RECORDS] = f"data:text/csv;base64,{_as_base64(content)}"

    # the page's policy allows this script only, by its hash
    script_file = Path(__file__).parent / "page.js"
    script = script_file.read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()

    text: str = templates.get_template(f"page{suffix}").render(
        page=page,
        software=SOFTWARE,
        links=links,
        draw=charts.render,
        script=script,
        script_hash=_as_base64(digest),
        long=LONG,
        settings=json.dumps(page.settings, indent=2, ensure_ascii=False, default=str),
        environment=json.dumps(_describe_environment(), indent=2),
    )
    return text


def _describe_environment() -> dict[str, str]:
    """Return the versions of the software that writes a page."""
    environment = {"Python": platform.python_version()}
    for name in ("nysboost", "numpy", "scipy", "scikit-learn"):
        environment[name] = metadata.version(name)
    environment["system"] = platform.platform()
    return environment


def _as_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _encode(text: str) -> bytes:
    """Return text in UTF-8, with characters escaped that cannot be encoded."""
    return text.encode("utf-8", "backslashreplace")


def write(page: Page, path: Path) -> None:
    """Write a page as one HTML or Markdown file."""
    with atomic_file(path, "The report") as file:
        file.write(_encode(render(page, path.suffix)))


def write_csv(path: Path, records: Sequence[Record]) -> None:
    """Write records as CSV."""
    with atomic_file(path, "The table") as file:
        file.write(_encode(_format_csv(records)))


def _format_csv(records: Sequence[Record]) -> str:
    """Return records as CSV, with empty cells for NaN; the last column is the version."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*records[0], "software"])
    for record in records:
        cells = ["" if _is_nan(value) else value for value in record.values()]
        writer.writerow([*cells, SOFTWARE])
    return text.getvalue()


def _is_nan(value: object) -> bool:
    """Return whether a value is NaN, which alone is not equal to itself."""
    return value != value


REPORT = "report.html"
EARLIER = "report.earlier.html"
RECORDS = "comparison.csv"
CHART = "error-against-time.png"
CHART_FILES = tuple(CHART.replace(".png", suffix) for suffix in (".png", ".svg", ".pdf"))
WRITTEN = (REPORT, EARLIER, RECORDS, *CHART_FILES)
"""Files of a report in its folder."""


def chart_error_against_time(outcomes: Sequence[Outcome], seconds: str, error: str) -> charts.Chart:
    """Chart a point for each outcome, with these labels of the axes."""
    curves = [charts.Curve(one.name, [one.seconds], [one.error]) for one in outcomes]
    return charts.chart_curves("Error against time", seconds, error, curves, log="xy", file=CHART)


MARKS = {
    ".md": rb"(?m)^Made with NysBoost \d",
    ".json": rb'\A\{"max_learners": .*"presets": ',
    ".html": rb'<meta name="generator" content="NysBoost \d',
    ".csv": rb"(?s)\A[^\n]*,software\n.*,NysBoost \d[^\n,]*\n\Z",
    ".png": rb"Software\0NysBoost \d",
    ".svg": rb"<dc:title>NysBoost \d",
    ".pdf": rb"/Creator \(NysBoost \d",
}
"""Patterns of bytes in the files of a report, by extension, whatever the version."""


def publish(page: Page, out: Path) -> None:
    """Write a comparison as CSV, charts and a page; print the result and what to do next."""
    # print the outcome, and what was left out
    print_table(page.sections[0].tables[0])
    stopped = [note for note in page.notes if note.startswith("Stopped")]
    failed = [note for note in page.notes if "was left out" in note]
    for note in (*failed, *stopped):
        print(printable(note))
    print(printable(page.headline))

    # write numbers and charts
    write_csv(out / RECORDS, page.records)
    for chart in itertools.chain.from_iterable(section.charts for section in page.sections):
        if chart.file:
            charts.save(chart, out / chart.file)

    # write the page, and keep the earlier one
    report = out / REPORT
    if report.exists():
        report.replace(out / EARLIER)
        print(f"The earlier report is kept as {out / EARLIER}.")
    write(page, report)

    # say what to do next
    for sentence, command in page.commands.items():
        print(printable(f"{sentence}\n  {command}"))
    print(f"The report is {report}.")
    if stopped:
        raise KeyboardInterrupt


def print_table(table: ReportTable) -> None:
    """Print a table; in a file, it is as wide as its cells, up to a limit."""
    import_optional("rich")
    from rich import box, console
    from rich import table as tables

    # fit the width of the terminal, or a fixed width in a file
    printer = console.Console(highlight=False)
    if not printer.is_terminal:
        printer.width = PRINTED
    columns = list(zip(table.head, *table.all_rows, strict=True))
    room = printer.width - PADDING * len(columns)
    widths = _choose_widths(columns, room)

    # draw columns and rows
    drawn = tables.Table(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, PADDING - 1, 0, 0),
        pad_edge=False,
    )
    for name, width in zip(table.head, widths, strict=True):
        drawn.add_column(printable(name), overflow="fold", width=width)
    for row in table.all_rows:
        style = "none"
        if row[0] in table.marked:
            style = "bold"
        cells = [printable(cell) for cell in row]
        drawn.add_row(*cells, style=style)

    printer.print(drawn, markup=False)
    if table.note:
        print(table.note)


def _choose_widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return column widths whose sum is at most `room`.

    Columns with several words wrap first; words and numbers are broken only if necessary.
    """
    widths = np.array([max(map(len, texts)) for texts in columns])
    least = np.array([_longest_word(texts) for texts in columns])

    # shrink until it fits, or each column has one letter
    while widths.sum() > max(room, len(columns)):
        # shrink the column with most room to wrap, or else the widest
        spare = widths - least
        if spare.max() <= 0:
            spare = widths
        widths[np.argmax(spare)] -= 1
    return [int(width) for width in widths]


def _longest_word(texts: Sequence[str]) -> int:
    """Return the length of the longest word; a shape such as 400 × 30 is one word."""
    lengths = [1]
    for text in texts:
        words = text.replace(" × ", "_×_").split()
        lengths += map(len, words)
    return max(lengths)


def refuse_missing_packages() -> None:
    """Say which package draws or writes reports and is not installed, before any work is done."""
    for package in ("matplotlib", "jinja2"):
        import_optional(package)


def make_writable(
    folder: Path, names: Sequence[str] = WRITTEN, inputs: Sequence[Path] = ()
) -> None:
    """Create a folder for a report, and check that files with these names can be written.

    They may replace files of earlier reports, but neither an input nor other files.
    """
    # check that files can be made in the folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(b"")
    except OSError as error:
        msg = f"The folder {folder} cannot be written ({error.strerror}): give another with --out."
        raise UserError(msg) from error

    # check that existing files may be replaced
    for name in names:
        path = folder / name
        if not path.exists():
            continue
        if any(other.exists() and path.samefile(other) for other in inputs):
            msg = f"{path} is an input and would be replaced by the report: give another folder."
            raise ExistsError(msg)

        # refuse to replace a file of another program
        if not _is_of_a_report(path):
            msg = f"{path} is not part of a report and would be replaced: give another folder."
            raise ExistsError(msg)


def _is_of_a_report(path: Path) -> bool:
    """Whether a file says that this library made it, in the place for it."""
    mark = MARKS[path.suffix]
    return path.is_file() and re.search(mark, path.read_bytes()) is not None


def _format_cell(value: object) -> str:
    """Format a cell: text unchanged, a star for True, a count in full, or a number."""
    # test truth values first: they are integers in Python
    if value is True:
        return "★"
    if value is False:
        return ""

    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def format_number(value: float, digits: int = 3) -> str:
    """Format a number with this many digits and thousands separators, or a dash for NaN."""
    if not np.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,g}"
