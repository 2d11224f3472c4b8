"""What the README says, run from the top."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
LINE = re.compile(r"(\w+) +error on 1,000 new rows: ([\d.]+)")


def test_the_ten_lines_print_what_stands_below_them(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block, str(README), "exec"), {})
    printed = dict(LINE.findall(capsys.readouterr().out))
    shown = dict(LINE.findall(re.search(r"```text\n(.*?)```", TEXT, re.DOTALL).group(1)))
    assert printed.keys() == shown.keys()
    for name, error in printed.items():
        assert float(error) == pytest.approx(float(shown[name]), rel=0.15)
    assert float(printed["NystroemRegressor"]) < float(printed["HistGradientBoostingRegressor"]) / 3


@pytest.mark.parametrize(
    "link", [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in link]
)
def test_every_link_of_the_readme_leads_to_a_file(link):
    assert (README.parent / link).exists()
