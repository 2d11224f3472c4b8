"""``nysboost compare``: from a file to a table, a recommendation and a report."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
import sklearn.preprocessing

import nysboost as nb
from nysboost.cli.errors import STOPPED
from nysboost.numerics.progress import report_progress


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 3))
    rows = [f"{a},{'' if i % 9 == 0 else b},{c},{'xyz'[i % 3]}" for i, (a, b, c) in enumerate(X)]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,kind\n" + "\n".join(rows))
    return path


SMALL = ("--components", "16", "--learners", "2", "--repeats", "1")


def test_compare_prints_a_table_a_front_and_a_reason(command, table, tmp_path):
    status, out, _ = command(
        "compare", table, *SMALL, "--methods", "nystrom,URB-mean", "--standardise", "--out",
        tmp_path,
    )  # fmt: skip
    assert status == 0
    assert "★" in out
    assert "Use " in out
    assert "all 60 rows are used." in out
    assert "category: kind (3 values)" in out
    assert "number: a, b (7 gaps), c" in out
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "comparison.csv").read_text().startswith("method,family,landmarks,error")
    assert "nb.approximate(sklearn.preprocessing.scale(X)" in out


def test_compare_takes_a_data_set_by_name(command, tmp_path):
    words = ["compare", "digits", "--components", "16", "--max-rows", "200"]
    status, out, _ = command(*words, "--methods", "nystrom", "--out", tmp_path)
    assert status == 0
    assert "digits has 1,797 rows: a random sample of 200 rows" in out
    assert "nb.approximate(X" in out


def test_the_next_command_fits_the_recommended_method_to_the_same_columns(command, table, tmp_path):
    words = ("--methods", "kmeans", "--drop-column", "kind", "--sigma", "2", "--no-standardise")
    _, printed, _ = command("compare", table, *SMALL, *words, "--out", tmp_path / "out")
    line = next(line for line in printed.splitlines() if line.startswith("  nysboost fit"))
    words = shlex.split(line.replace("model.nysboost", str(tmp_path / "model.nysboost")))
    assert command(*words[1:])[0] == 0
    model = nb.load(tmp_path / "model.nysboost")
    assert (model.method, model.n_components) == ("kmeans", 16)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.approximation_.shape[0] == 53  # without the gaps, which a fit would refuse


def test_json_has_the_recommendation_and_every_method_and_an_earlier_report_is_kept(
    command, table, tmp_path
):
    before = '<meta name="generator" content="NysBoost 0.3.0">'
    (tmp_path / "report.html").write_text(before)
    words = (*SMALL, "--methods", "uniform,kmeans", "--out", tmp_path, "--json")
    status, printed, _ = command("compare", table, *words)
    found = json.loads(printed)
    assert status == 0
    assert found["recommended"] in found["reason"]
    assert {row["method"] for row in found["methods"]} == {"uniform", "kmeans"}
    assert found["methods"][0]["standard_error"] is None
    assert (tmp_path / "report.earlier.html").read_text() == before


STOPPED_AFTER_TWO = {
    ("compare", *SMALL, "--methods", "uniform,kmeans,greedy"): (
        "the results are from 2 of 3 fits", "kmeans"),
    ("learn", "--target", "a", "--components", "4", "--folds", "2"): (
        "the results are from 2 of ", "linear model"),
}  # fmt: skip


@pytest.mark.parametrize("words", STOPPED_AFTER_TWO, ids=lambda words: words[0])
def test_ctrl_c_ends_a_command_with_a_report_of_what_is_done(command, table, tmp_path, words):
    def stop(work):
        if work.done == 2:
            raise KeyboardInterrupt

    with report_progress("a test", listen=stop):
        status, printed, said = command(words[0], table, *words[1:], "--out", tmp_path / "out")
    assert status == STOPPED
    assert f"are in {tmp_path / 'out'}" in said
    assert "Traceback" not in said
    sentence, done = STOPPED_AFTER_TWO[words]
    assert f"Stopped by Ctrl-C: {sentence}" in printed
    assert f"Stopped by Ctrl-C: {sentence}" in (tmp_path / "out" / "report.html").read_text()
    assert done in (tmp_path / "out" / "comparison.csv").read_text()


def test_a_kernel_matrix_is_compared_on_some_of_its_rows_and_columns(command, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    np.save(tmp_path / "G.npy", nb.Gaussian(sigma=1.0)(X, X))
    words = ("--kernel", "precomputed", "--max-rows", "60", "--repeats", "1", "--components", "16")
    status, out, _ = command("compare", tmp_path / "G.npy", *words, "--out", tmp_path / "out")
    assert status == 0
    assert "nb.approximate(G" in out
    assert {path.suffix for path in (tmp_path / "out").glob("error-against-time.*")} == {
        ".png", ".svg", ".pdf",
    }  # fmt: skip


def test_a_target_belongs_to_learn(command, table, tmp_path):
    status, _, err = command("compare", table, "--target", "a", "--out", tmp_path)
    assert status == 2
    assert "nysboost learn" in err


@pytest.mark.parametrize("words", [["--standardise"], ["--no-standardise", "--sigma", "2"]])
def test_the_line_of_python_repeats_what_was_compared(command, table, tmp_path, words):
    call = ["compare", table, *SMALL, "--methods", "URB-mean", *words]
    _, printed, _ = command(*call, "--drop-column", "b,kind", "--out", tmp_path)
    line = next(line for line in printed.splitlines() if "nb.approximate(" in line)
    X = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 2))
    approximation = eval(line, {"nb": nb, "sklearn": sklearn, "X": X})
    record = pd.read_csv(tmp_path / "comparison.csv").iloc[0]
    assert approximation.relative_error() == pytest.approx(record.error, rel=1e-6)


def test_a_kernel_matrix_is_compared_on_and_nothing_else_is_one(command, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    G = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    files = {
        "square.csv": pd.DataFrame(G),
        "wide.csv": pd.DataFrame(G[:, :4]),
        "words.csv": pd.DataFrame(G).assign(town="Ulm"),
        "skewed.csv": pd.DataFrame(G + np.triu(G)),
    }
    for name, frame in files.items():
        frame.to_csv(tmp_path / name, index=False, header=[f"c{i}" for i in range(frame.shape[1])])
    words = [*SMALL, "--kernel", "precomputed", "--methods", "nystrom", "--out", tmp_path / "out"]
    status, out, _ = command("compare", tmp_path / "square.csv", *words, "--max-rows", "40")
    assert status == 0
    assert "60 rows: a random sample of 40 rows" in out
    assert "nb.approximate(G, \"nystrom\", 'precomputed'" in out

    for name, says in (
        ("wide.csv", "is not a kernel matrix, which would be square: it has 60 rows and 4 columns"),
        ("words.csv", "is not a kernel matrix: its column 'c60' does not hold numbers"),
        ("skewed.csv", "must be symmetric, but"),
    ):
        for more in ((), ("--max-rows", "20")):
            status, out, err = command("compare", tmp_path / name, *words, *more)
            assert (status, err.count("\n")) == (4, 1)
            assert says in err
            assert "landmarks" not in out

    status, _, err = command("compare", tmp_path / "square.csv", *words, "--sigma", "3")
    assert status == 2
    assert "--sigma would have no effect" in err
