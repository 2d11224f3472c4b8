"""``nysboost reproduce``: from presets to records, figures, a ledger and a report."""

import io
import json
import re
from contextlib import redirect_stdout

import pytest

from nysboost import cli

QUICK = ["--quick", "--replicates", "2", "--max-learners", "3", "--jobs", "1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a run, the words that made it, and what it printed."""
    folder = tmp_path_factory.mktemp("made")
    words = ["reproduce", "simulation", *QUICK, "--reading", "columns", "--out", str(folder)]
    with redirect_stdout(io.StringIO()) as said:
        cli.main(words)
    return folder, words, said.getvalue()


def test_reproduce_writes_records_figures_ledger_and_report(made):
    folder, _, out = made
    assert f"The report is {folder / 'report.html'}" in out
    assert "2 replicates with up to 3 learners: too few to decide 1 of 1 statements" in out
    assert re.search(r"All of it, up to 100 replicates, takes about \d+ (s|min): nysboost", out)
    assert {".jsonl", ".png", ".svg", ".csv"} <= {p.suffix for p in folder.glob("simulation/*")}
    assert (folder / "ledger.csv").read_text().count("\n") > 20
    text = (folder / "report.md").read_text()
    for picture in re.findall(r"\]\((.*?\.png)\)", text):
        assert (folder / picture).is_file()
    assert "| URB-mean | " in text
    assert "reproduce simulation --replicates 2" in (folder / "report.html").read_text()


def test_again_and_as_a_report_alone_it_makes_no_records_and_the_same_files(command, made):
    folder, words, _ = made
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    (folder / "report.md").unlink()
    assert "0 of 2 records were made now" in command(*words)[1]
    found = json.loads(command(*words, "--report-only", "--json")[1])
    assert "too few to decide" in found["outcome"]
    assert {"statement": "4", "reading": "columns", "verdict": "undecided"} in found["verdicts"]
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    status, _, err = command(*words, "--report-only", "--replicates", "3")
    assert status == 2
    assert "lacks 1 of 3 records" in err


def test_replicates_can_differ_between_presets_and_stated_is_what_the_paper_speaks_of(
    command, tmp_path
):
    status, _, _ = command(
        "reproduce", "simulation", "runtime", *QUICK, "--replicates", "runtime=1",
        "--variants", "stated", "--reading", "columns", "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    record = next((tmp_path / "runtime").glob("*.jsonl")).read_text()
    assert '"RRB-SF"' in record
    assert '"EEB-mean"' not in record
    counts = {
        name: next((tmp_path / name).glob("*.jsonl")).read_text().count('"made_with"')
        for name in ("simulation", "runtime")
    }
    assert counts == {"simulation": 2, "runtime": 1}


def test_a_preset_file_of_ones_own_can_be_run(command, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'title="Mine"\nmeasure="error"\ndata="digits"\nn_points=150\nkernel="linear"\n'
        "n_learners=2\nn_columns=10\nrank=5\nn_candidates=20\nn_fit=5\nn_tune=5\nreplicates=2\n"
    )
    status, out, _ = command(
        "reproduce", tmp_path / "mine.toml", "--jobs", "1", "--out", tmp_path / "out"
    )
    assert status == 0
    assert "Mine" in out
