"""The decision picture of the guide: ``python docs/_ext/decision.py docs/figures/decision.svg``."""

from __future__ import annotations

import sys
from pathlib import Path

QUESTIONS = (
    (
        "Is there something to predict?",
        "NystroemRegressor\nNystroemClassifier",
        "landmarks trained on y",
    ),
    (
        "Only entries: precomputed,\nsparse, or your own function?",
        "JJB-mean",
        "or rpcholesky",
    ),
    ("Must the fit be fast?", "kmeans", "or uniform"),
    ("Many cheap features,\nno large eigenproblem?", "URB-mean", "a mixture, the paper's choice"),
)
LAST = ("joint", "the smallest error for its size")
STEP, WIDTH, LEFT, RIGHT, MARGIN = 92, 530, 255, 210, 10
"""Narrow enough that the letters can be read on a phone."""


def box(x: int, y: int, width: int, lines: list[tuple[str, str]], fill: str, edge: str) -> str:
    """Return a box with lines of text, each with its own style."""
    height = 26 + 19 * (len(lines) - 1) + 14
    parts = [
        f'<rect x="{x}" y="{y - height // 2}" width="{width}" height="{height}" rx="8" '
        f'fill="{fill}" stroke="{edge}"/>'
    ]
    top = y - 19 * (len(lines) - 1) / 2 + 5
    for i, (text, style) in enumerate(lines):
        parts.append(f'<text x="{x + width / 2}" y="{top + 19 * i:g}" {style}>{text}</text>')
    return "\n".join(parts)


def picture() -> str:
    """Return the picture: questions from top to bottom, answers to the right."""
    height = STEP * (len(QUESTIONS) + 1)
    plain, code = 'class="plain"', 'class="code"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Which method, when</title>",
        "<style>text{font:15px system-ui,sans-serif;text-anchor:middle;fill:#222}"
        ".code{font:600 15px ui-monospace,monospace}.note{font-size:13px;fill:#555}"
        ".edge{font-size:13px;fill:#555}path{stroke:#777;fill:none}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#fff"/>',
    ]
    for i, (question, answer, note) in enumerate(QUESTIONS):
        y = STEP // 2 + STEP * i
        parts.append(f'<path d="M{MARGIN + LEFT} {y} H{WIDTH - MARGIN - RIGHT}"/>')
        middle = (LEFT + WIDTH - RIGHT) // 2
        parts.append(f'<text class="edge" x="{middle}" y="{y - 7}">yes</text>')
        parts.append(f'<path d="M{MARGIN + LEFT // 2} {y} V{y + STEP}"/>')
        beside = MARGIN + 18 + LEFT // 2
        parts.append(f'<text class="edge" x="{beside}" y="{y + STEP // 2 + 5}">no</text>')
        asked = [(line, plain) for line in question.split("\n")]
        parts.append(box(MARGIN, y, LEFT, asked, "#eef3fa", "#9db4d3"))
        found = [(line, code) for line in answer.split("\n")] + [(note, 'class="note"')]
        parts.append(box(WIDTH - MARGIN - RIGHT, y, RIGHT, found, "#fdf1e7", "#e8b98c"))
    y = STEP // 2 + STEP * len(QUESTIONS)
    parts.append(
        box(MARGIN, y, LEFT, [(LAST[0], code), (LAST[1], 'class="note"')], "#fbe0c8", "#ee7733")
    )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
