"""What the README says, run from the top."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_python_blocks_run_one_after_the_other(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    explained, error, accuracy = map(float, capsys.readouterr().out.split())
    assert explained > 0.98
    assert error < 0.02
    assert accuracy > 0.9
    assert names["features"].shape == (100_000, 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features.npy", "rows.bin"]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8")))
def test_every_link_of_the_readme_leads_to_a_file(link):
    assert (README.parent / link).exists()
