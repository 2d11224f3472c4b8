import os
import re
import subprocess
import sys

import numpy as np
import pytest

from nysboost import cli

QUICK = ["--quick", "--replicates", "2", "--max-learners", "3", "--jobs", "1"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; return its exit status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["nysboost", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).standard_normal((120, 3))
    rows = [f"{a},{b},{c},{'yes' if a > 0 else 'no'}" for a, b, c in X]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,kind\n" + "\n".join(rows))
    return path


def test_reproduce_writes_records_figures_ledger_and_report(run, tmp_path):
    status, out, _ = run("reproduce", "simulation", *QUICK, "--out", tmp_path)
    assert status == 0
    assert f"The report is {tmp_path / 'report.html'}" in out
    made = {p.suffix for p in (tmp_path / "simulation").iterdir()}
    assert {".jsonl", ".png", ".svg", ".csv"} <= made
    assert (tmp_path / "ledger.csv").read_text().count("\n") > 20
    text = (tmp_path / "report.md").read_text()
    for picture in re.findall(r"\]\((.*?\.png)\)", text):
        assert (tmp_path / picture).is_file()
    assert "| URB-mean | square |" in text
    assert "reproduce simulation --replicates 2" in (tmp_path / "report.html").read_text()


def test_reproducing_again_computes_nothing_and_gives_the_same_files(run, tmp_path):
    arguments = ("reproduce", "simulation", *QUICK, "--variants", "URB-mean", "--out", tmp_path)
    run(*arguments)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    _, _, err = run(*arguments)
    assert "4 of 4" in err
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_a_report_can_be_written_of_records_that_other_code_made(run, tmp_path, monkeypatch):
    arguments = ("reproduce", "simulation", *QUICK, "--variants", "URB-mean", "--out", tmp_path)
    run(*arguments)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    (tmp_path / "report.md").unlink()
    monkeypatch.setattr("nysboost.experiments.runner.code_digest", lambda: "other")
    assert run(*arguments, "--report-only")[0] == 0
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    status, _, err = run(*arguments, "--report-only", "--replicates", "3")
    assert status == 2
    assert "lacks 2 of 6 records" in err


def test_replicates_can_differ_between_presets(run, tmp_path):
    status, _, _ = run(
        "reproduce", "simulation", "runtime", *QUICK, "--replicates", "runtime=1",
        "--variants", "UUB-mean", "--reading", "columns", "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    counts = {
        name: len(next((tmp_path / name).glob("*.jsonl")).read_text().splitlines())
        for name in ("simulation", "runtime")
    }
    assert counts == {"simulation": 2, "runtime": 1}


def test_a_preset_file_of_ones_own_can_be_run(run, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'title="Mine"\nmeasure="error"\ndata="digits"\nn_points=150\nkernel="linear"\n'
        "n_learners=2\nn_columns=10\nrank=5\nn_candidates=20\nn_fit=5\nn_tune=5\nreplicates=2\n"
    )
    status, out, _ = run(
        "reproduce", tmp_path / "mine.toml", "--jobs", "1", "--out", tmp_path / "out"
    )
    assert status == 0
    assert "Mine" in out


def test_compare_prints_a_table_a_front_and_a_reason(run, table, tmp_path):
    status, out, _ = run(
        "compare", table, "--label", "kind", "--columns", "16", "--learners", "2",
        "--methods", "nystrom,URB-mean", "--repeats", "2", "--standardise", "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    assert "★" in out
    assert "Use " in out
    assert "120 rows, 3 columns, all of them used" in out
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "comparison.csv").read_text().startswith("method,columns,error")


def test_compare_announces_subsampling(run, table, tmp_path):
    _, out, _ = run(
        "compare", table, "--label", "kind", "--max-rows", "90", "--columns", "8",
        "--methods", "nystrom", "--out", tmp_path,
    )  # fmt: skip
    assert "has 120 rows: 90 of them, drawn at random" in out


def test_compare_takes_a_data_set_by_name(run, tmp_path):
    status, out, _ = run(
        "compare", "digits", "--columns", "16", "--max-rows", "200", "--methods", "nystrom",
        "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    assert "1,797 rows" in out


def test_list_shows_methods_kernels_presets_and_where_data_were_found(run, tmp_path):
    np.savez(tmp_path / "glove.npz", X=np.zeros((7, 300)))
    status, out, _ = run("list", "--data-dir", tmp_path)
    assert status == 0
    for word in ("URB-mean", "ensemble-ridge", "laplacian", "mnist-gaussian", "pendigits"):
        assert word in out
    assert "400,000 × 300" in out
    assert "glove.npz" in out.replace("\n", "").replace(" ", "")


BAD_FILES = {
    "empty.csv": "",
    "ragged.csv": "a,b\n1,2\n3\n",
    "text.csv": "a,city\n1,Paris\n2,Rome\n",
    "nan.csv": "a,b\n1,nan\n2,3\n",
    "few.csv": "a,b\n1,2\n3,4\n5,6\n",
}


@pytest.mark.parametrize(
    ("file", "options", "says"),
    [
        ("few.csv", ["--label", "c"], "no column 'c'"),
        ("text.csv", [], "is text"),
        ("empty.csv", [], "empty"),
        ("ragged.csv", [], "ragged"),
        ("nan.csv", [], "NaN"),
        ("few.csv", ["--columns", "10"], "only 3 rows"),
        ("nowhere.csv", [], "no file"),
        ("few.csv", ["--methods", "URB-men"], "URB-mean"),
        ("few.csv", ["--kernel", "gausian"], "gaussian"),
    ],
)
def test_bad_input_to_compare_is_a_sentence_and_status_2(run, tmp_path, file, options, says):
    for name, text in BAD_FILES.items():
        (tmp_path / name).write_text(text)
    status, _, err = run("compare", tmp_path / file, *options, "--out", tmp_path / "out")
    assert status == 2
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulatoin"], "simulation"),
        (["nowhere.toml"], "no preset file"),
        (["simulation", "--variants", "URB-men"], "URB-mean"),
        (["simulation", "--variants", ","], "names no method"),
        (["simulation", "--replicates", "none"], "N at least 1"),
        (["simulation", "--replicates", "mnist=3"], "no preset in this run"),
        (["simulation", "--max-learners", "500"], "need at least"),
        (["simulation", "--report-only"], "0 files with records of simulation"),
        (["simulation", "mnist-linear", "--data-dir", "/nowhere/at/all"], "does not exist"),
    ],
)
def test_bad_input_to_reproduce_is_a_sentence_and_status_2(run, tmp_path, arguments, says):
    status, _, err = run("reproduce", *arguments, "--jobs", "1", "--out", tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))
    assert status == 2
    assert says in err
    assert "Traceback" not in err


def test_a_preset_file_with_a_wrong_key_is_a_sentence_and_status_2(run, tmp_path):
    (tmp_path / "mine.toml").write_text('titel = "x"\n')
    status, _, err = run("reproduce", tmp_path / "mine.toml", "--out", tmp_path)
    assert status == 2
    assert "'title'" in err


@pytest.mark.parametrize("command", [["reproduce", "simulation", *QUICK], ["compare"]])
def test_an_output_folder_that_cannot_be_written_is_a_sentence_and_status_2(
    run, tmp_path, table, command
):
    (tmp_path / "taken").write_text("")
    if command == ["compare"]:
        command = ["compare", table, "--label", "kind", "--columns", "8"]
    status, _, err = run(*command, "--out", tmp_path / "taken" / "below")
    assert status == 2
    assert "cannot be written" in err


def test_a_missing_package_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    status, _, err = run("list")
    assert status == 2
    assert "nysboost[experiments]" in err


def test_importing_the_command_imports_no_heavy_package():
    """Some come with scikit-learn where they are installed: those are not ours to avoid."""
    heavy = "{'typer', 'rich', 'matplotlib', 'pandas', 'pooch', 'pyarrow'}"
    code = (
        f"import sys, nysboost; before = {heavy} & set(sys.modules); import nysboost.cli; "
        f"assert {heavy} & set(sys.modules) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_works_as_a_module():
    ended = subprocess.run(
        [sys.executable, "-m", "nysboost.cli", "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120"},
        check=True,
    )
    assert "reproduce" in ended.stdout


def test_the_version_is_told(run):
    import nysboost

    status, out, _ = run("--version")
    assert (status, out) == (0, f"nysboost {nysboost.__version__}\n")


def test_help_does_not_wait_for_scikit_learn():
    program = (
        "import sys; sys.argv = ['nysboost', '--help']\n"
        "import nysboost.cli\n"
        "try: nysboost.cli.main()\n"
        "except SystemExit: pass\n"
        "assert not {'sklearn', 'scipy', 'pandas', 'pyarrow'} & set(sys.modules), 'slow imports'"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_few_rows_are_said_to_be_few(run, tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    status, _, err = run("compare", tmp_path / "few.csv", "--out", tmp_path / "out")
    assert status == 2
    assert "has 3 rows" in err
    assert "columns are asked for" not in err


def test_ctrl_c_in_compare_keeps_what_was_compared_and_the_earlier_report(
    run, table, tmp_path, monkeypatch
):
    from nysboost.experiments import compare

    arguments = ("compare", table, "--label", "kind", "--columns", "16", "--learners", "2",
                 "--methods", "uniform,kmeans,greedy", "--out", tmp_path / "out")  # fmt: skip
    assert run(*arguments)[0] == 0
    first = (tmp_path / "out" / "report.html").read_bytes()
    original, calls = compare._run_once, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(compare, "_run_once", interrupted)
    status, out, _ = run(*arguments)
    assert status == 130
    assert "earlier report is kept" in out
    assert (tmp_path / "out" / "report.earlier.html").read_bytes() == first
    report = (tmp_path / "out" / "report.html").read_text()
    assert "2 of 3 methods" in report


def test_a_report_that_may_not_be_written_is_a_sentence(run, table, tmp_path, monkeypatch):
    from nysboost.experiments import report

    def refuse(page, path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(report, "write", refuse)
    status, _, err = run("compare", table, "--label", "kind", "--columns", "8", "--learners", "2",
                         "--methods", "uniform", "--out", tmp_path / "out")  # fmt: skip
    assert status == 2
    assert "Permission denied" in err
    assert "Traceback" not in err


def test_stated_runs_what_the_paper_draws_or_speaks_of(run, tmp_path):
    status, _, _ = run(
        "reproduce", "runtime", *QUICK, "--variants", "stated", "--reading", "columns",
        "--out", tmp_path,
    )  # fmt: skip
    assert status == 0
    record = next((tmp_path / "runtime").glob("*.jsonl")).read_text().splitlines()[0]
    assert '"RRB-SF"' in record
    assert '"EEB-mean"' not in record
