"""A report: one HTML file that needs nothing else, with curves to explore and tables.

A page is made of plain parts (sentences, charts, tables); what fills them is elsewhere.
"""

from __future__ import annotations

import html
import json
import platform
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.data.whole import whole_text
from nysboost.experiments.palette import style


@dataclass(frozen=True)
class Series:
    """One curve: values at some numbers of learners or columns, with what is known of each.

    Attributes
    ----------
    x, y : sequence of float
        The points.
    error : sequence of float or None
        A standard error for each point.
    p_value, holm : sequence of float or None
        The test against ensemble-ridge at each point.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    p_value: Sequence[float] | None = None
    holm: Sequence[float] | None = None


@dataclass(frozen=True)
class Chart:
    """Curves under one or more views (the readings of V), and selections to start from.

    Attributes
    ----------
    views : dict from label to series
        What can be looked at, the first one at the beginning.
    selections : dict from label to names
        Sets of curves that a button shows, the first one at the beginning.
    logarithmic, logarithmic_x : bool
        The axes; a reader may change the first.
    named : bool
        Whether each curve's name stands beside its last point.
    """

    title: str
    x_label: str
    y_label: str
    views: dict[str, list[Series]]
    selections: dict[str, Sequence[str]]
    logarithmic: bool = False
    logarithmic_x: bool = False
    named: bool = False


@dataclass(frozen=True)
class Table:
    """A table; ``folded`` tables open with a click, ``marked`` rows stand out."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: bool = False
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading with its chart and tables."""

    title: str
    sentences: Sequence[str] = ()
    chart: Chart | None = None
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """A whole report: the summary in plain words comes first."""

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]
    settings: dict[str, Any] = field(default_factory=dict)


def environment() -> dict[str, str]:
    """Return the versions that the numbers were made with."""
    names = ("nysboost", "numpy", "scipy", "scikit-learn")
    versions = {name: metadata.version(name) for name in names}
    return {
        "Python": platform.python_version(),
        **versions,
        "system": f"{platform.system()} {platform.machine()}",
    }


def write(page: Page, path: Path) -> None:
    """Write the page as one HTML file."""
    with whole_text(path, "The report") as file:
        file.write(render(page))


def render(page: Page) -> str:
    """Return the page as HTML text."""
    charts = {i: s.chart for i, s in enumerate(page.sections) if s.chart}
    return string.Template(_file("page.html")).substitute(
        software=SOFTWARE,
        title=html.escape(page.title),
        style=_file("page.css"),
        script=_file("page.js"),
        summary="".join(f"<p>{html.escape(s)}</p>" for s in page.summary),
        contents="".join(
            f'<a href="#s{i}">{html.escape(s.title.partition(":")[0])}</a>'
            for i, s in enumerate(page.sections)
        ),
        sections="".join(_section(i, s) for i, s in enumerate(page.sections)),
        settings=html.escape(json.dumps(page.settings, indent=2, ensure_ascii=False)),
        environment=html.escape(json.dumps(environment(), indent=2)),
        # "<" could end the script element.
        data=json.dumps({i: _chart(c) for i, c in charts.items()}, separators=(",", ":")).replace(
            "<", "\\u003c"
        ),
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _section(number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{html.escape(section.title)}</h2>']
    parts += [f"<p>{html.escape(s)}</p>" for s in section.sentences]
    if section.chart:
        parts.append(f'<div class="chart" data-chart="{number}"></div>')
    parts += [_table(t) for t in section.tables]
    return "".join([*parts, "</section>"])


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in table.head)
    rows = "".join(
        f"<tr{' class=marked' if i in table.marked else ''}>" + "".join(map(_cell, row)) + "</tr>"
        for i, row in enumerate(table.rows)
    )
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}"
    title = html.escape(table.title)
    if table.folded:
        return f"<details><summary>{title}</summary><div class=scroll>{body}</div></details>"
    return f"<h3>{title}</h3><div class=scroll>{body}</div>"


_SENTENCE = 40
"""Letters from which a cell is text that wraps."""
_CHIPS = {
    "holds": "yes",
    "holds or ties": "yes",
    "fails only in size": "no",
    "does not hold": "no",
    "undecided": "open",
    "not run": "none",
}


def _cell(text: str) -> str:
    if text in _CHIPS:
        return f'<td><span class="chip {_CHIPS[text]}">{text}</span></td>'
    kind = ' class="words"' if len(text) > _SENTENCE else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "x": chart.x_label,
        "y": chart.y_label,
        "log": chart.logarithmic,
        "log_x": chart.logarithmic_x,
        "named": chart.named,
        "selections": {label: list(names) for label, names in chart.selections.items()},
        "views": {view: [_series(s) for s in series] for view, series in chart.views.items()},
    }


def _series(series: Series) -> dict[str, Any]:
    look = style(series.name)
    entry = {
        "name": series.name,
        "family": look.family,
        "colour": look.colour,
        "mark": look.mark,
        "dash": look.dash,
        "x": [float(f"{v:g}") for v in series.x],
        "y": _rounded(series.y, 5),
    }
    extras = {"e": (series.error, 3), "p": (series.p_value, 2), "holm": (series.holm, 2)}
    entry |= {k: _rounded(v, digits) for k, (v, digits) in extras.items() if v is not None}
    return entry


def _rounded(values: Sequence[float], digits: int) -> list[float | None]:
    """Return the values with some significant digits; JSON has no NaN, so None for that."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values]
