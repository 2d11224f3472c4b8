"""The command line itself: help, errors as sentences, exit codes that stay the same."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nysboost.cli.commands import COMMANDS, make_parser, spell
from nysboost.cli.errors import explain_errors
from nysboost.cli.sinks import escape_formulas, refuse_existing
from nysboost.user_error import ExistsError, NoTableError, TableError, UserError, raise_as

CASES = [
    (UserError("Two of them."), 2, "Two of them."),
    (ExistsError("There already."), 6, "There already."),
    (NoTableError("No such form."), 3, "No such form."),
    (FileNotFoundError(errno.ENOENT, "not there", "rows.npy"), 3, "There is no file rows.npy."),
    (PermissionError(errno.EACCES, "no", "rows.npy"), 3, "Permission denied: rows.npy"),
    (TableError("No rows."), 4, "No rows."),
    (ValueError("A NaN."), 4, "A NaN."),
    (MemoryError("2 GB"), 7, "There is not enough memory: 2 GB. Try a smaller --max-memory."),
    (OSError(errno.ENOSPC, "No space"), 7, "The output could not be written: No space. Make room"),
    (OSError(errno.EIO, "I/O error"), 7, "I/O error."),
    (KeyboardInterrupt(), 130, "Stopped. Nothing was written."),
]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("error", "code", "says"), CASES)
def test_an_error_is_a_sentence_and_a_code(error, code, says, as_json, capsys):
    with pytest.raises(SystemExit) as ended, explain_errors(as_json=as_json):
        raise error
    assert ended.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    if as_json:
        said = json.loads(err)
        assert said["code"] == code
        assert says in said["error"]
    else:
        assert err.startswith(f"nysboost: {says}")


def test_an_error_of_the_program_itself_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), explain_errors(as_json=False):
        raise ZeroDivisionError


def test_a_value_that_an_option_gave_is_a_wrong_call():
    with pytest.raises(UserError, match="sigma must be positive"), raise_as(UserError):
        raise ValueError("sigma must be positive.")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["comprae"], "There is no command 'comprae'. Did you mean 'compare'"),
        (["--fit"], "There is no command '--fit'. Did you mean 'fit'"),
        (["list", "method"], "invalid choice: 'method'"),
        (["fit", "x.csv"], "required: --out. nysboost fit --help shows all options."),
        (["fit", "x.csv", "--out", "m", "--components", "0"], "a whole number of at least 1"),
        (["fit", "x.csv", "--out", "m", "--components", "²"], "a whole number of at least 1"),
        (
            ["learn", "x.csv", "--target", "y", "--folds", "one"],
            "of at least 2 is needed, not 'one'",
        ),
        (["predict", "m", "x.csv", "--out", "-", "--interval", "90"], "between 0 and 1"),
        (["fit", "x.csv", "--out", "m", "--compo", "3"], "'--compo'. Did you mean '--components'"),
    ],
)
def test_a_wrong_call_is_one_sentence_also_as_json(command, words, says):
    status, out, err = command(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert says in json.loads(command(*words, "--json")[2])["error"]


def test_help_names_every_command_and_option_and_nothing_at_all_is_help(command):
    status, out, _ = command()
    assert status == 0
    assert all(name in out for name in COMMANDS)
    for name, one in COMMANDS.items():
        out = command(name, "--help")[1]
        assert all(option in out for option in one.options.split())


def test_options_are_spelled_as_they_were_given():
    words = ["fit", "a b.csv", "--out", "m", "--drop-column", "x", "--drop-column", "y,z"]
    words += ["--components", "1", "--no-local", "--force", "--seed", "0"]
    options = make_parser().parse_args(words)
    names = "data --drop-column --components --local --test --force --seed --sigma"
    assert spell(options, names) == [
        "a b.csv", "--drop-column", "x", "--drop-column", "y,z", "--components", "1", "--no-local",
        "--force",
    ]  # fmt: skip


def test_values_that_begin_with_a_dash_are_spelled_as_they_can_be_read():
    words = ["fit", "d.csv", "--out", "m", "--target=-log10p", "--drop-column=-b"]
    options = make_parser().parse_args(words)
    spelled = spell(options, "data --out --target --drop-column")
    again = make_parser().parse_args(["fit", *spelled])
    assert (again.target, again.drop_column) == ("-log10p", ["-b"])


@pytest.mark.parametrize("name", ["fit", "learn", "compare"])
def test_a_seed_that_is_too_large_is_a_wrong_call(name, command, tmp_path):
    words = [name, "d.csv", "--target", "y", "--out", tmp_path, "--seed", 2**32]
    if name == "compare":
        words[2:4] = []
    status, _, err = command(*words)
    assert status == 2
    assert "a whole number of at most 4294967295 is needed, not '4294967296'" in err


def test_list_shows_methods_kernels_presets_and_where_data_were_found(
    command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # a long path would be broken
    np.savez("glove.npz", X=np.zeros((7, 300)))
    status, out, _ = command("list", "--data-dir", ".")
    assert status == 0
    for word in ("URB-mean", "ensemble-ridge", "laplacian", "mnist-gaussian", "pendigits"):
        assert word in out
    assert "400,000 × 300" in out
    assert "glove.npz" in out
    assert "URB-mean" in json.loads(command("list", "--json")[1])["methods"]


def test_a_missing_package_names_the_extra(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    status, _, err = command("list")
    assert status == 2
    assert "nysboost[all]" in err


def test_help_as_a_module_does_not_wait_for_scikit_learn():
    program = (
        "import runpy, sys; sys.argv = ['nysboost', '--help']\n"
        "try: runpy.run_module('nysboost', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "assert not {'sklearn', 'scipy', 'pandas', 'pyarrow', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def run_in_shell(line, folder):
    """Run a line in a shell, with `N` as the command; return its end as subprocess has it."""
    script = f'set -o pipefail; N() {{ "{sys.executable}" -m nysboost "$@"; }}; {line}'
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def write_table(folder, name="d.csv", rows=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    lines = [f"{a:.3f},{2 * a:.3f}" for a in x]
    (folder / name).write_text("a,y\n" + "\n".join(lines) + "\n")


def test_a_reader_that_leaves_does_not_end_a_fit(tmp_path):
    write_table(tmp_path)
    ended = run_in_shell("N fit d.csv --target y --out m.nysboost --no-test | head -c 1", tmp_path)
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert (tmp_path / "m.nysboost").exists()


def test_a_model_does_not_go_to_standard_output(tmp_path):
    write_table(tmp_path)
    ended = run_in_shell("N fit d.csv --target y --out -", tmp_path)
    assert ended.returncode == 2
    assert "A model cannot be written to standard output" in ended.stderr
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("N list methods >&-", 0, ""),
        ("N compare - --out r <&-", 3, "Standard input is closed"),
        ("N predict m d.csv --out - >&-", 3, "Standard output is closed"),
        pytest.param(
            "N list methods >/dev/full",
            7,
            "Standard output could not be written: No space left",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device"),
        ),
    ],
)
def test_closed_streams_are_a_sentence_where_they_are_needed(line, code, says, tmp_path):
    ended = run_in_shell(line, tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (code, int(code > 0))
    assert says in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        "fit d.csv --target y --out loop.csv",
        "fit d.csv --target y --out loop.csv --force",
        "predict d.csv d.csv --out loop.csv --force",
        "predict d.csv loop.csv --out p.csv",
        "predict loop.csv d.csv --out p.csv",
        "learn d.csv --target y --out loop.csv",
        "info loop.csv",
    ],
)
def test_a_loop_of_symbolic_links_is_one_sentence_and_stays(command, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    status, _, err = command(*line.split())
    assert status in (2, 3, 5)
    assert err.count("\n") == 1
    assert (tmp_path / "loop.csv").is_symlink()


def test_a_named_pipe_is_read_once(tmp_path):
    write_table(tmp_path)
    fit = "N fit d.csv --out m --method uniform --components 5"
    line = f"{fit} && mkfifo p.csv p && (cat d.csv > p.csv & cat d.csv > p & "
    ended = run_in_shell(
        line + "N transform m p.csv --out a.npy && N transform m p --out b.npy)", tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_control_characters_of_names_are_shown_and_not_sent(command, tmp_path):
    (tmp_path / "d.csv").write_text("a\x1b[31m,y\n" + "1,2\n" * 30)
    status, out, err = command("fit", tmp_path / "d.csv", "--target", "nope", "--out", "m.nysboost")
    assert status == 2
    assert "\x1b" not in out + err
    assert "\\x1b[31m" in err


def test_formulas_are_escaped_on_request(tmp_path):
    columns = {"=a": np.array(["=1+1", "plain"]), "b": np.array([-1.0, 2.0])}
    escaped = escape_formulas(columns)
    assert list(escaped) == ["'=a", "b"]
    assert list(escaped["'=a"]) == ["'=1+1", "plain"]
    assert list(escaped["b"]) == [-1.0, 2.0]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.binary(4),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_formulas_are_escaped_whatever_the_type_of_text(kind):
    text = ["=1+1", None]
    if pa.types.is_dictionary(kind):
        column = pa.array(text, kind.value_type).dictionary_encode()
    else:
        column = pa.array(text, kind)
    escaped = escape_formulas({"a": pa.chunked_array([column])})
    assert escaped["a"].to_pylist() == ["'=1+1", None]


def test_bytes_that_are_no_text_are_not_escaped_but_a_sentence():
    with pytest.raises(TableError, match="has bytes that are no text"):
        escape_formulas({"a": pa.array([b"\xff"])})


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    folder = tmp_path / "p.parquet"
    folder.mkdir()
    (folder / "part.0.parquet").write_bytes(b"")
    refuse_existing(folder, force=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="a folder that contains other files"):
        refuse_existing(folder, force=True)
