"""Files and options that a person may give the command line."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hostile import RNG, Case
from nysboost import cli

ROWS = RNG.normal(size=(40, 3))
TABLE = "\n".join(",".join(f"{value:.6f}" for value in row) for row in ROWS)
QUICK = ("--components", "8", "--learners", "2", "--methods", "uniform", "--repeats", "1")
Outcome = tuple[int, str, str]


def command(*arguments: str, files: dict[str, str | bytes] | None = None) -> Outcome:
    """Run ``nysboost`` in a folder with these files; return its status, output and errors."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in (files or {}).items():
            raw = content if isinstance(content, bytes) else content.encode()
            Path(name).write_bytes(raw)
        return run(*arguments)


def run(*arguments: str) -> Outcome:
    """Run ``nysboost`` where we are; return its status, output and errors."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            cli.main(arguments)
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
    return status, said.getvalue(), complained.getvalue()


def complains(*words: str) -> Callable[[Outcome], bool]:
    """Return a check for a status and a complaint that has these words, and no traceback."""

    def right(outcome: Outcome) -> bool:
        status, _, err = outcome
        flat = " ".join(err.replace("│", " ").split())
        return status > 1 and "Traceback" not in err and all(word in flat for word in words)

    return right


def succeeds(*words: str) -> Callable[[Outcome], bool]:
    """Return a check for success, with these words in what was said."""
    return lambda outcome: outcome[0] == 0 and all(word in outcome[1] for word in words)


BAD_FILES: dict[str, tuple[str | bytes, str]] = {
    "empty.csv": ("", "empty"),
    "names.csv": ("a,b\n", "at least one row"),
    "infinite.csv": ("a,b\n1,inf\n2,3\n", "infinity"),
    "ragged.csv": ("a,b\n1,2\n1,2,3\n", "ragged"),
    "zeros.csv": (b"\x00" * 64, "nysboost"),
    "few.csv": ("a,b\n1,2\n3,4\n5,6\n", "has 3 rows"),
    "data.xyz": ("1,2\n", "form"),
    "bad.npy": ("nothing", ".npy"),
    "bad.npz": ("nothing", ".npz"),
    "bad.parquet": ("nothing", "Parquet"),
    "bad.libsvm": ("a b c", "LIBSVM"),
}

ON_FILES = [
    *(
        Case(
            f"compare of {name}",
            lambda n=name, c=content: command("compare", n, files={n: c}),
            complains(words),
        )
        for name, (content, words) in BAD_FILES.items()
    ),
    *(
        Case(
            f"compare of a table with {what}",
            lambda t=text: command("compare", "t.csv", *QUICK, files={"t.csv": t}),
            succeeds("40 rows", "3 columns", *said),
        )
        for what, text, said in (
            ("names", "a,b,c\n" + TABLE, ()),
            ("no names", TABLE, ()),
            ("numbers as names", "0,1,2\n" + TABLE, ("taken as names",)),
            (
                "an index",
                ",a,b,c\n" + "\n".join(f"{i},{r}" for i, r in enumerate(TABLE.splitlines())),
                ("index",),
            ),
            (
                "truth values",
                "a,b,c\n"
                + "\n".join(
                    f"{r.rpartition(',')[0]},{bool(i % 2)}"
                    for i, r in enumerate(TABLE.splitlines())
                ),
                (),
            ),
        )
    ),
    Case("no file", lambda: command("compare", "nowhere.csv"), complains("no file")),
    Case("a folder", lambda: command("compare", "."), complains("folder")),
    Case("an unknown command", lambda: command("comprae"), complains("comprae")),
    Case("an unknown option", lambda: command("compare", "--colums", "3"), complains("colums")),
    Case("a preset that is none", lambda: command("reproduce", "nothing"), complains("nothing")),
    Case(
        "a kernel that is none",
        lambda: command("compare", "t.csv", "--kernel", "rfb", files={"t.csv": TABLE}),
        complains("rfb", "rbf"),
    ),
    Case(
        "a method that is none",
        lambda: command("compare", "t.csv", "--methods", "jiont", files={"t.csv": TABLE}),
        complains("jiont", "joint"),
    ),
    Case(
        "sigma as a word",
        lambda: command("compare", "t.csv", "--sigma", "wide", files={"t.csv": TABLE}),
        complains("wide", "median"),
    ),
    Case(
        "more columns than rows",
        lambda: command("compare", "t.csv", "--components", "99", files={"t.csv": TABLE}),
        complains("only 40 rows"),
    ),
    Case(
        "a label that is none",
        lambda: command("compare", "t.csv", "--drop-column", "z", files={"t.csv": TABLE}),
        complains("no column 'z'"),
    ),
    Case("a model from nowhere", lambda: command("info", "nowhere"), complains("nowhere")),
    Case(
        "a model file that is something else",
        lambda: command("info", "letter", files={"letter": "Dear reader"}),
        complains("no model file"),
    ),
    Case("the version", lambda: command("--version"), succeeds("nysboost")),
    Case("help", lambda: command("--help"), succeeds("compare", "reproduce")),
]

IN_FIT: dict[str, tuple[str | bytes, str]] = {
    "empty.csv": ("", "empty"),
    "names.csv": ("a,b\n", "at least one row"),
    "gap.csv": ("a,b\n1,\n2,3\n", "--drop-missing"),
    "ragged.csv": ("a,b\n1,2\n1,2,3\n", "ragged"),
    "wide.csv": ("a,b".encode("utf-16"), "at least one row"),
    "data.xyz": ("1,2\n", "form"),
    "bad.npy": ("nothing", ".npy"),
    "bad.parquet": ("nothing", "Parquet"),
    "bad.npz": ("nothing", ".npz"),
    "bad.h5": ("nothing", ".h5"),
    "bad.zarr": ("nothing", ".zarr"),
}
FIT = ("fit", "t.csv", "--out", "m", "--method", "uniform", "--components", "5")
LEARN_FIT = ("fit", "t.csv", "--out", "m", "--target")
NAMED = "a,b,c\n" + TABLE
DATED = "a,b,day\n" + "\n".join(f"{i},{i % 7},2020-01-{i + 1:02}" for i in range(20))


def both(first: tuple[str, ...], second: tuple[str, ...], table: str) -> Outcome:
    """Run one command after another in the same folder, and return what the second did."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("t.csv").write_text(table)
        run(*first)
        return run(*second)


FITTED = [
    *(
        Case(
            f"fit of {name}",
            lambda n=name, c=content: command("fit", n, "--out", "m", files={n: c}),
            complains(words),
        )
        for name, (content, words) in IN_FIT.items()
    ),
    *(
        Case(
            f"fit, {what}",
            lambda a=arguments, t=table: command(*a, files={"t.csv": t}),
            complains(words),
        )
        for what, arguments, table, words in (
            ("a folder as output", ("fit", "t.csv", "--out", "."), NAMED, "is a folder"),
            ("no folder for the output", ("fit", "t.csv", "--out", "x/m"), NAMED, "no folder"),
            ("an array of a table", (*FIT, "--dataset", "Y"), NAMED, "is a table"),
            ("a target that is none", (*LEARN_FIT, "z"), NAMED, "no column 'z'"),
            ("a target of dates", (*LEARN_FIT, "day"), DATED, "dates"),
            ("a kernel for a learner", (*LEARN_FIT, "a", "--kernel", "linear"), NAMED, "--kernel"),
            ("a tolerance of 2", (*FIT, "--tol", "2"), NAMED, "between 0 and 1"),
            ("memory in words", (*FIT, "--max-memory", "lots"), NAMED, "lots"),
            ("no columns left", (*FIT, "--drop-column", "a", "--drop-column", "b",
                                 "--drop-column", "c"), NAMED, "Nothing is left"),
            ("a width below zero", (*FIT, "--sigma", "-1"), NAMED, "positive"),
        )
    ),
    *(
        Case(
            f"fit of a table with {what}",
            lambda t=table: command(*FIT, files={"t.csv": t}),
            succeeds("rows: 40", "columns: 3"),
        )
        for what, table in (
            ("semicolons", NAMED.replace(",", ";")),
            ("an index", ",a,b,c\n" + "\n".join(f"{i},{r}" for i, r in enumerate(TABLE.split()))),
            ("numbers as names", "0,1,2\n" + TABLE),
            ("no names", TABLE),
            ("a byte-order mark", "\ufeff" + NAMED),
            ("semicolons and decimal commas", NAMED.replace(",", ";").replace(".", ",")),
        )
    ),
    Case("predict by what has no target", lambda: both(FIT, ("predict", "m", "t.csv", "--out",
         "p.csv"), NAMED), complains("predicts nothing")),
    Case("transform into an unknown form", lambda: both(FIT, ("transform", "m", "t.csv", "--out",
         "p.xyz"), NAMED), complains("p.xyz")),
    Case("transform over a file that is there", lambda: both(FIT, ("transform", "m", "t.csv",
         "--out", "t.csv"), NAMED), complains("is an input")),
    Case("transform of other columns", lambda: both(FIT, ("transform", "m", "m", "--out",
         "p.npy"), NAMED), complains("form")),
    Case("info", lambda: both(FIT, ("info", "m"), NAMED), succeeds("Nystroem", "uniform")),
    *(
        Case(
            f"learn from {name}",
            lambda n=name, c=content: command("learn", n, "--target", "a", files={n: c}),
            complains(words),
        )
        for name, content, words in (
            ("empty.csv", "", "empty"),
            ("latin.csv", b"caf\xe9,b\n1,2\n", "no column 'a'"),
            ("ragged.csv", "a,b\n1,2\n1,2,3\n", "ragged"),
            ("twice.csv", "a,a\n1,2\n3,4\n", "two columns"),
            ("alone.csv", "a\n1\n2\n", "no column beside"),
            ("gap.csv", "a,b\nNA,2\n3,4\n", "no value"),
            ("few.csv", "a,b\n1,2\n3,4\n", "too few"),
            ("other.csv", "b,c\n1,2\n3,4\n", "no column 'a'"),
            ("table.npy", "nothing", ".npy"),
            ("bad.parquet", "nothing", "Parquet"),
            ("constant.csv", "a,b\n" + "1,2\n" * 20, "1.0 in every row"),
            ("one-class.csv", "a,b\n" + "x,2\n" * 20, "x in every row"),
            ("rare.csv", "a,b\ny,1\n" + "x,2\n" * 20, "label y of a is in 1 rows"),
            ("labels.csv", "a,b\n" + "".join(f"x{i},2\n" for i in range(20)), "is in 1 rows"),
            ("endless.csv", "a,b\ninf,1\n" + "1,2\n" * 20, "Column a of endless.csv"),
            ("huge.csv", "a,b\n3,1e200\n" + "1,2\n" * 20, "Column 'b' has the value 1e+200"),
            ("cell.csv", 'a,b\n"' + "x" * 200_000 + '",2\n', "too few"),
        )
    ),
    Case("nysboost learn, a folder", lambda: command("learn", ".", "--target", "a"),
         complains("folder")),
]  # fmt: skip

CASES = [replace(case, name=f"nysboost: {case.name}") for case in [*ON_FILES, *FITTED]]
