"""Put the outcome of `nysboost reproduce` into docs/reproduction.md, with its figures.

    python tools/reproduction_page.py out/reproduction

What was written by hand stands above "## Summary"; from there on the page is the folder's
`report.md`, and the figures that it names are copied to docs/figures.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
FIGURE = re.compile(r"\]\((?P<path>[\w./-]+\.png)\)")
BEGINS = "## Summary"


def written(page: Path, out: Path) -> str:
    """Return the new text of the page, and copy the figures beside it."""
    report = (out / "report.md").read_text(encoding="utf-8")
    figures = page.parent / "figures"
    figures.mkdir(exist_ok=True)
    for path in FIGURE.findall(report):
        _copy(out / path, figures / Path(path).name)
    by_hand = page.read_text(encoding="utf-8").partition(BEGINS)[0]
    return by_hand + FIGURE.sub(lambda m: f"](figures/{Path(m['path']).name})", report)


def _copy(picture: Path, to: Path) -> None:
    """Copy a picture with 64 colours, which is a third of its size and looks the same."""
    from PIL import Image

    with Image.open(picture) as image:
        image.convert("RGB").quantize(64).save(to, optimize=True)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE, Path(sys.argv[1])), encoding="utf-8")
