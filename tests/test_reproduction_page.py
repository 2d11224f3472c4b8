"""The tool that puts the outcome of `nysboost reproduce` into its page."""

import importlib.util
from pathlib import Path

from PIL import Image

TOOL = Path(__file__).parents[1] / "tools" / "reproduction_page.py"


def test_what_was_written_by_hand_stays_and_the_rest_is_the_report(tmp_path):
    spec = importlib.util.spec_from_file_location("reproduction_page", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page, out = tmp_path / "docs" / "reproduction.md", tmp_path / "out"
    page.parent.mkdir()
    (out / "ijcnn").mkdir(parents=True)
    Image.new("RGB", (30, 20), "red").save(out / "ijcnn" / "ijcnn-figure-1.png")
    (out / "report.md").write_text("## Summary\n![a](ijcnn/ijcnn-figure-1.png)\nnew\n")
    page.write_text("# By hand\n\n## Summary\nold\n")
    text = tool.written(page, out)
    assert text == "# By hand\n\n## Summary\n![a](figures/ijcnn-figure-1.png)\nnew\n"
    with Image.open(page.parent / "figures" / "ijcnn-figure-1.png") as copied:
        assert copied.size == (30, 20)
        assert copied.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
