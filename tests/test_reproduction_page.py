"""The tool that puts the outcome of `nysboost reproduce` into its page."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "reproduction_page.py"


def test_what_was_written_by_hand_stays_and_the_rest_is_the_report(tmp_path):
    spec = importlib.util.spec_from_file_location("reproduction_page", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page, out = tmp_path / "docs" / "reproduction.md", tmp_path / "out"
    page.parent.mkdir()
    (out / "ijcnn").mkdir(parents=True)
    (out / "ijcnn" / "ijcnn-figure-1.png").write_bytes(b"new")
    (out / "report.md").write_text("## Summary\n![a](ijcnn/ijcnn-figure-1.png)\nnew\n")
    page.write_text("# By hand\n\n## Summary\nold\n")
    text = tool.written(page, out)
    assert text == "# By hand\n\n## Summary\n![a](figures/ijcnn-figure-1.png)\nnew\n"
    assert (page.parent / "figures" / "ijcnn-figure-1.png").read_bytes() == b"new"
