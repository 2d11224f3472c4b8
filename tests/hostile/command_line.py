"""Files and options that a person may give the command line."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

from hostile import RNG, Case
from nysboost import cli

ROWS = RNG.normal(size=(40, 3))
TABLE = "\n".join(",".join(f"{value:.6f}" for value in row) for row in ROWS)
QUICK = ("--columns", "8", "--learners", "2", "--methods", "uniform", "--repeats", "1")
Outcome = tuple[int, str, str]


def command(*arguments: str, files: dict[str, str | bytes] | None = None) -> Outcome:
    """Run ``nysboost`` in a folder with these files; return its status, output and errors."""
    said, complained = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in (files or {}).items():
            raw = content if isinstance(content, bytes) else content.encode()
            Path(name).write_bytes(raw)
        with (
            mock.patch.object(sys, "argv", ["nysboost", *arguments]),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(complained),
        ):
            try:
                cli.main()
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
    "names.csv": ("a,b\n", "no rows"),
    "text.csv": ("a,b\n1,x\n2,y\n", "text"),
    "gap.csv": ("a,b\n1,\n2,3\n", "no value"),
    "missing.csv": ("a,b\n1,NA\n2,3\n", "no value"),
    "infinite.csv": ("a,b\n1,inf\n2,3\n", "infinite"),
    "ragged.csv": ("a,b\n1,2\n1,2,3\n", "ragged"),
    "latin.csv": (b"caf\xe9,b\n1,2\n", "UTF-8"),
    "zeros.csv": (b"\x00" * 64, "nysboost"),
    "few.csv": ("a,b\n1,2\n3,4\n5,6\n", "has 3 rows"),
    "data.xyz": ("1,2\n", "ending"),
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
    Case("a folder", lambda: command("compare", "."), complains("is a folder")),
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
        lambda: command("compare", "t.csv", "--columns", "99", files={"t.csv": TABLE}),
        complains("only 40 rows"),
    ),
    Case(
        "a label that is none",
        lambda: command("compare", "t.csv", "--label", "z", files={"t.csv": TABLE}),
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

CASES = [replace(case, name=f"nysboost: {case.name}") for case in ON_FILES]
