"""What the pages of the site say, run from the top of each."""

import re
from pathlib import Path

import pytest

import nysboost as nb

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("start.md", "kernels.md", "sizes.md", "model_files.md", "extend.md")
"""The pages whose examples are complete; those on other pages speak of the reader's own X and y."""


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": page}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("name", nb.__all__)
def test_the_reference_has_every_public_name(name):
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert re.search(rf"^   {name}$|`{name}`", reference, re.MULTILINE), (
        f"Add {name} to docs/reference.md."
    )
