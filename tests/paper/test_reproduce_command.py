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
    assert "it decides none of the paper's statements" in out
    assert len(out.splitlines()) < 8
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {f"figure-1-columns-columns.{kind}" for kind in ("png", "svg", "pdf")} <= figures
    assert (folder / "simulation" / "simulation.csv").read_text().count("\n") > 20
    text = (folder / "report.md").read_text()
    for picture in re.findall(r"\]\((.*?\.png)\)", text):
        assert (folder / picture).is_file()
    assert "| URB-mean | " in text
    assert "reproduce simulation --replicates 2" in (folder / "report.html").read_text()


def test_again_and_as_a_report_alone_it_makes_no_records_and_the_same_files(command, made):
    folder, words, _ = made
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    (folder / "report.md").unlink()
    assert "0 of 6 records were computed now" in command(*words)[1]
    found = json.loads(command(*words, "--report-only", "--json")[1])
    assert "decides none" in found["outcome"]
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    status, _, err = command(*words, "--report-only", "--replicates", "3")
    assert status == 2
    assert "lacks 3 of 9 records" in err


def test_the_report_of_another_run_stays_without_force(command, made):
    _, words, _ = made
    status, _, err = command(*words, "--seed", "1")
    assert status != 0
    assert "the report of another run" in err


def test_records_can_be_made_without_a_report_up_to_a_time(command, tmp_path):
    words = ["reproduce", "simulation", *QUICK, "--reading", "columns", "--validation", "square"]
    words += ["--variants", "stated", "--out", tmp_path]
    status, out, _ = command(*words, "--records-only")
    assert status == 0
    assert "To write a report of them, use --report-only" in out
    assert not (tmp_path / "report.html").exists()
    status, _, _ = command(*words, "--report-only")
    assert status == 0
    assert (tmp_path / "figures" / "figure-1-columns-square.png").exists()


def test_replicates_can_differ_between_presets_and_stated_is_what_the_paper_speaks_of(
    command, tmp_path
):
    status, _, _ = command(
        "reproduce", "simulation", "runtime", *QUICK, "--replicates", "runtime=1",
        "--variants", "stated", "--reading", "columns", "--validation", "columns",
        "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    record = next((tmp_path / "runtime").glob("*.jsonl")).read_text()
    assert '"RRB-SF"' in record
    assert '"EEB-mean"' not in record
    counts = {
        name: next((tmp_path / name).glob("*.jsonl")).read_text().count('"made_with"')
        for name in ("simulation", "runtime")
    }
    assert counts == {"simulation": 4, "runtime": 2}


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


def test_a_figure_that_draws_an_unknown_method_is_a_sentence(command, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'title="Mine"\nmeasure="error"\ndata="digits"\nn_points=150\nkernel="linear"\n'
        "n_learners=2\nn_columns=10\nrank=5\nn_candidates=20\nn_fit=5\nn_tune=5\nreplicates=2\n"
        '[[figure]]\nlabel="Mine"\ndraws=["URB-men", "UUB-mean"]\n'
    )
    status, _, err = command("reproduce", tmp_path / "mine.toml", "--out", tmp_path / "out")
    assert status == 2
    assert "[[figure]] of mine: There is no method of the paper 'URB-men'" in err
    assert "'URB-mean'" in err


def test_a_preset_file_that_is_no_text_is_a_sentence(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xcb\xff")
    status, _, err = command("reproduce", path, "--out", tmp_path / "out")
    assert status == 2
    assert f"The preset file {path} is not text in UTF-8" in err


@pytest.mark.parametrize("more", [[], ["--force"]])
@pytest.mark.parametrize(
    "name",
    [
        "report.html", "report.md", "ledger.csv", "run.json", "simulation/simulation.csv",
        "figures/figure-1-columns-columns.png",
    ],
)  # fmt: skip
def test_a_file_of_ones_own_is_not_called_a_report(name, more, command, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("my notes")
    status, _, err = command("reproduce", "simulation", *QUICK, "--out", tmp_path, *more)
    assert status == 6
    assert f"{name} is not part of a report" in err
    assert (tmp_path / name).read_text() == "my notes"


def test_a_superscript_digit_is_no_number_of_replicates(command, tmp_path):
    status, _, err = command("reproduce", "simulation", "--replicates", "²", "--out", tmp_path)
    assert status == 2
    assert "--replicates takes N or PRESET=N" in err
