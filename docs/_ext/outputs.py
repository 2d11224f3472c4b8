"""Run the Python blocks of pages while the site is built, and show what they print."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from typing import Any

NOT_RUN = ("gpu",)
"""Pages whose blocks need a device."""

BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)


def with_outputs(page: str, text: str) -> str:
    """Return the text of a page with a block of output below each block that prints."""
    names: dict[str, Any] = {"__name__": page}

    def run(block: re.Match[str]) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block[1], page, "exec", dont_inherit=True), names)
        output = printed.getvalue().strip()
        return block[0] + (f"\n```text\n{output}\n```\n" if output else "")

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(run, text)


def show(app: Any, page: str, source: list[str]) -> None:
    """Run a page's blocks when Sphinx reads it."""
    if "```python" in source[0] and page not in NOT_RUN:
        source[0] = with_outputs(page, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Connect to the reading of pages."""
    app.connect("source-read", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
