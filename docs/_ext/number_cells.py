"""Keeps numbers on one line: in cells of tables, and beside their unit in sentences."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

NUMBER = re.compile(
    r"[≤≥<>~±−–+-]?\s*[\d.,]+(e[+-−]?\d+)?"  # 1,234, 0.31, 2.4e-06
    r"[\d.,()\s×·/%⁰¹²³⁴⁵⁶⁷⁸⁹⁻−–-]*"  # 0.3 – 0.5, 10⁶, (1,229 – 1,463)
    r"(\s(to|of|and)\s[\d.,]+)?"
    r"\s?(%|s|ms|rows|GB|MB|h|min)?"
)
"""What a cell with a number consists of: numbers, an interval, a unit."""

UNIT = re.compile(r"(?<=\d) (?=(%|s|ms|h|GB|MB|min)(?![\w%]))")
"""The space between a number and its unit."""

LONGEST = 24
"""Characters up to which a cell stays on one line."""


def mark(app: Any, doctree: nodes.document, page: str) -> None:
    """Give every cell with a number the class ``number``, and keep units beside their number."""
    for cell in doctree.findall(nodes.entry):
        text = cell.astext().strip()
        if len(text) <= LONGEST and NUMBER.fullmatch(text):
            cell["classes"].append("number")
    for text in list(doctree.findall(nodes.Text)):
        if UNIT.search(text) and not isinstance(text.parent, (nodes.literal, nodes.literal_block)):
            text.parent.replace(text, nodes.Text(UNIT.sub("\N{NO-BREAK SPACE}", text)))


def setup(app: Any) -> dict[str, bool]:
    """Connect to pages that are ready to be written."""
    app.connect("doctree-resolved", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
