"""Files and options that a person may give the command line."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd

import nysboost as nb
from hostile import RNG, Case
from nysboost import cli

ROWS = RNG.normal(size=(40, 3))
LINES = [",".join(f"{value:.6f}" for value in row) for row in ROWS]
TABLE, SPACED = "\n".join(LINES), "\n".join(LINES).replace(",", ";")
INDEXED = ",a,b,c\n" + "\n".join(f"{i},{line}" for i, line in enumerate(LINES))
TRUTHS = "\n".join(f"{line.rpartition(',')[0]},{i % 2 == 0}" for i, line in enumerate(LINES))


def bytes_of(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a function writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def in_excel(*rows: list[object]) -> bytes:
    """A file of Excel without the values of its formulas, as programs write it."""
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    return bytes_of(book.save)


FILES: dict[str, str | bytes] = {
    "t.csv": "a,b,c\n" + TABLE,
    "bare.csv": TABLE,
    "numbers.csv": "0,1,2\n" + TABLE,
    "indexed.csv": INDEXED,
    "truths.csv": "a,b,c\n" + TRUTHS,
    "semicolons.csv": "a;b;c\n" + SPACED,
    "commas.csv": "a;b;c\n" + SPACED.replace(".", ","),
    "mark.csv": "\ufeffa,b,c\n" + TABLE,
    "dated.csv": "a,b,day\n" + "\n".join(f"{i},{i % 7},2020-01-{i + 1:02}" for i in range(20)),
    "latin.csv": b"caf\xe9,b\n1,2\n",
    "zeros.csv": b"\x00" * 64,
    "infinite.csv": "a,b\n1,inf\n2,3\n",
    "ragged.csv": "a,b\n1,2\n1,2,3\n",
    "gap.csv": "a,b\n1,\n2,3\n",
    "odd.csv": "\n".join(["a,b", *(f"{i}.5,1" for i in range(40)), "abc,2"]),
    "few.csv": "a,b\n1,2\n3,4\n5,6\n",
    "alone.csv": "a\n1\n2\n",
    "words.csv": "a,b\n1,x\n3,y\n",
    "constant.csv": "a,b\n" + "1,2\n" * 20,
    "one-class.csv": "a,b\n" + "x,2\n" * 20,
    "rare.csv": "a,b\ny,1\n" + "x,2\n" * 20,
    "endless.csv": "a,b\ninf,1\n" + "1,2\n" * 20,
    "huge.csv": "a,b\n3,1e200\n" + "1,2\n" * 20,
    "large.csv": "b,a\n" + "1,2\n" * 12 + "2,1e160\n",
    "cell.csv": 'a,b\n"' + "x" * 200_000 + '",2\n',
    "percent.csv": "a,b\n" + "".join(f"{i},{i % 7}%\n" for i in range(20)),
    "euro.csv": "b\n3 €\n4 €\n",
    "minus.csv": "a,b,c\n" + TABLE.replace("-", "\u2212"),
    "named.csv": "a,b,name\n" + "\n".join(f"{i},{i % 7},n{i}" for i in range(60)),
    "quotes.csv": "a,b,c\n" + "\n".join(f'"{line}' for line in LINES),
    "quoted.csv": "a,b\n" + '1,"x, y\n""z"""\n2,w\n' * 10,
    "formulas.xlsx": in_excel(
        ["a", "b", "c"], *([i, i % 5, f"=A{i}"] for i in range(20)), [], [1, None, 3]
    ),
    "formula.xlsx": in_excel(["a", "b"], *([i, i % 5] for i in range(20)), [1, "=A1"]),
    "beside.npz": bytes_of(
        lambda file: np.savez(file, X=ROWS, y=np.where(ROWS[:, 0] > 1, np.nan, ROWS[:, 0]))
    ),
    "nan.npy": bytes_of(
        lambda file: np.save(file, np.where(np.arange(120).reshape(40, 3) == 28, np.nan, ROWS))
    ),
    "thin.npy": bytes_of(lambda file: np.save(file, ROWS[:, :2])),
    "parts/1.parquet": bytes_of(pd.DataFrame(ROWS, columns=list("abc")).to_parquet),
    "mixed.xlsx": in_excel(
        ["a", "b"], *([i, dt.datetime(2020, 1, 1) if i < 5 else i % 7] for i in range(30))
    ),
    "units/1.csv": "a,b\n1,2%\n3,4%\n",
    "units/2.csv": "a,b\n1,2\n3,4\n",
    **dict.fromkeys(("parts/notes.txt", "notes.zarr/letter", "letter"), "Dear reader"),
    **dict.fromkeys(("bad.h5", "bad.zarr"), "a b c"),
    "wide.libsvm": "".join(f"{i} {i + 1}:1 25000:1\n" for i in range(40)),
}
FIT = "fit t.csv --out m --method uniform --components 5"
LEARN = "fit {} --target a --out m --components 5 --no-test --no-local"
QUICK = "--components 8 --learners 2 --methods uniform --repeats 1"
Outcome = tuple[int, str, str, set[str]]


def run(commands: str) -> Outcome:
    """Run commands beside all the files: the last one's status, output, errors, new files."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("nothing").mkdir()
        for name, content in FILES.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        for words in map(shlex.split, commands.split(" && ")):
            before = {str(path) for path in Path().rglob("*") if path.is_file()}
            said, complained, status = io.StringIO(), io.StringIO(), 0
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
                try:
                    cli.main(words)
                except SystemExit as ended:
                    status = int(ended.code or 0)
        made = {str(path) for path in Path().rglob("*") if path.is_file()} - before
        return status, said.getvalue(), complained.getvalue(), made


def complains(code: int, words: str) -> Callable[[Outcome], bool]:
    """Return a check for a status, a complaint that has these words, and nothing written."""

    def right(outcome: Outcome) -> bool:
        status, _, err, made = outcome
        return (status, made) == (code, set()) and words in err and "Traceback" not in err

    return right


def succeeds(*words: str) -> Callable[[Outcome], bool]:
    """Return a check for success, with these words in what was said."""
    return lambda outcome: outcome[0] == 0 and all(word in outcome[1] for word in words)


def predict_named(names: list[str], ending: str) -> float:
    """Fit a frame with these names; return how far predictions from its file are from its own."""
    frame = pd.DataFrame(np.round(ROWS, 6) * [1.0, 1.0, 2.0**60], columns=names).astype(
        {names[2]: int}
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        model = nb.NystroemRegressor(8, landmarks="uniform", random_state=0).fit(frame, ROWS[:, 0])
        nb.save(model, "m")
        write = {".csv": frame.to_csv, ".xlsx": frame.to_excel}[ending]
        write(f"t{ending}", index=False)
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(["predict", "m", f"t{ending}", "--out", "p.csv"])
        return float(np.abs(pd.read_csv("p.csv")["prediction"] - model.predict(frame)).max())


REFUSED: dict[str, tuple[int, str]] = {
    "info nowhere": (3, "nowhere"),
    "info letter": (5, "not a model file"),
    "compare infinite.csv": (4, "infinity"),
    "compare ragged.csv": (4, "ragged"),
    "compare zeros.csv": (3, "has a NUL character in line 1"),
    "compare few.csv": (2, "has 3 rows, but mixtures of 8 learners need at least 16"),
    "compare few.csv --max-rows 30000": (2, "at most 20000, not 30000"),
    "compare nothing": (3, "folder"),
    "compare t.csv --out letter/below": (2, "cannot be written"),
    "compare t.csv --colums 3": (2, "'--colums'"),
    "compare t.csv --methods jiont": (2, "Did you mean 'joint'"),
    "compare t.csv --sigma wide": (2, "--sigma is a number, median or scale"),
    "compare t.csv --components 99": (2, "only 40 rows"),
    "compare t.csv --components 3 --learners 4": (2, "too few for 4 learners"),
    "compare t.csv --components 40 --learners 4 --methods URB-mean": (2, "rows"),
    "compare t.csv --kernel linear --sigma 2": (2, "no sigma"),
    "compare t.csv --kernel precomputed": (4, "is not a kernel matrix, which would be square"),
    "compare words.csv --kernel precomputed": (4, "its column 'b' does not hold numbers"),
    "compare t.csv --sigma -1": (2, "sigma"),
    "fit gap.csv --out m": (4, "--drop-missing"),
    "fit odd.csv --out m": (4, "'abc' in line 42"),
    "fit bad.h5 --out m": (3, ".h5"),
    "fit bad.zarr --out m": (3, ".zarr"),
    "fit t.csv --out .": (3, "is a folder"),
    "fit t.csv --out x/m": (3, "no folder"),
    "fit t.csv --out t.csv --force": (6, "is an input"),
    "fit t.csv --out letter": (6, "--force replaces it"),
    f"{FIT} --dataset Y": (3, "is a table"),
    f"{FIT} --tol 2": (2, "between 0 and 1"),
    f"{FIT} --max-memory lots": (2, "'lots'"),
    "fit dated.csv --out m --target day": (4, "dates"),
    "fit t.csv --out m --target a --kernel linear": (2, "--kernel"),
    f"{FIT} && predict m t.csv --out p.csv": (5, "cannot predict"),
    f"{FIT} && transform m t.csv --out p.xyz": (3, "p.xyz"),
    f"{FIT} && transform m t.csv --out t.csv": (6, "is an input"),
    f"{FIT} && transform m m --out p.npy": (3, "form"),
    f"{FIT} && transform m thin.npy --out f.npy": (5, "on 3 columns"),
    f"{FIT} && transform m nan.npy --out f.npy": (4, "first in row 9"),
    "fit nan.npy --out n": (4, "nan.npy: contains NaN, first at row 9, column 1. Leave out"),
    "fit nan.npy --target 1 --out n": (
        4,
        "target contains NaN, first at row 9. Leave out",
    ),
    "transform t.csv t.csv --out f.npy": (5, "not a model file"),
    f"{LEARN.format('t.csv')} && predict m t.csv --out p.csv --proba": (5, "is for classification"),
    f"{LEARN.format('t.csv')} && predict m few.csv --out p.csv": (5, "no column 'c'"),
    f"{LEARN.format('rare.csv')} && predict m t.csv --out p.csv --std": (5, "is for regression"),
    f"{LEARN.format('percent.csv')} && predict m euro.csv --out p.csv": (4, "'3 €' in line 2"),
    "transform none t.csv --out p.npy": (3, "There is no model none"),
    "list methods --json --data-dir nowhere": (2, "does not exist"),
    "fit t.csv --category nope --out p": (2, "t.csv has no column 'nope'"),
    "transform . t.csv --out p.npy": (3, "is a folder or a pipe: give the name of a model file"),
    "transform m '' --out p.npy": (2, "the name of a file or folder is needed"),
    "learn latin.csv --target a": (2, "no column 'a'"),
    "learn alone.csv --target a": (2, "no columns left besides"),
    "learn gap.csv --target b": (4, "no value in 1 row, first in row 0. Leave out such rows"),
    "learn few.csv --target a": (2, "too few for 5 folds"),
    "learn words.csv --target b --task regression": (2, "is text"),
    "learn constant.csv --target a": (2, "1.0 in every row: there is nothing to learn"),
    "learn one-class.csv --target a": (2, "x in every row"),
    "learn rare.csv --target a": (2, "label y of a has 1 row, fewer than the 5 folds"),
    "learn endless.csv --target a": (2, "The target 'a' has the value inf"),
    "learn huge.csv --target a": (4, "Column 'b' has the value 1e+200"),
    "learn large.csv --target a": (2, "out of range"),
    "learn cell.csv --target a": (2, "too few"),
    f"{FIT} && transform m t.csv --out notes.zarr --force": (6, "contains other files"),
    "fit t.csv --target a --out m --separator ;;": (
        2,
        "one ASCII character, or the word",
    ),
    "fit beside.npz --target y --out m --category 0": (4, "have no names"),
    "fit units --target a --out m": (4, "'b' is written with '%' in units"),
    "fit quotes.csv --target a --out m": (4, "quotation mark in line 2 that is not closed"),
    "fit beside.npz --target y --out m": (4, "--drop-missing"),
    "reproduce simulatoin": (2, "Did you mean 'simulation'"),
    "reproduce simulation --quick --out letter/below": (2, "cannot be written"),
    "reproduce nowhere.toml": (2, "no preset file"),
    "reproduce simulation --variants URB-men": (2, "URB-mean"),
    "reproduce simulation --variants ,": (2, "names no method"),
    "reproduce simulation --replicates none": (2, "N at least 1"),
    "reproduce simulation --replicates mnist=3": (2, "no preset in this run"),
    "reproduce simulation --max-learners 500 --jobs 1": (2, "need at least"),
    "reproduce simulation mnist-linear --data-dir /nowhere/at/all": (2, "does not exist"),
}
ACCEPTED = {
    "--version": [f"nysboost {nb.__version__}"],
    "--help": ["compare", "reproduce"],
    f"{FIT} && info m": ["Nystroem", "uniform", "written by: nysboost 0."],
    LEARN.format("formulas.xlsx"): ["1 empty rows", "Cell C2", "as have 19 more", "c (20 gaps)"],
    LEARN.format("formula.xlsx"): ["Cell B22", "without its result: these are"],
    f"{LEARN.format('formulas.xlsx')} --category b": ["category: b (5 values"],
    LEARN.format("mixed.xlsx"): ["category: b (8 values)"],
    LEARN.format("parts"): ["40 rows, 2 columns"],
    f"{FIT.replace('t.csv', 'wide.libsvm')} && transform m wide.libsvm --out f.npy": ["rows: 40"],
    f"{LEARN.format('quoted.csv')}": ["20 rows, 1 column"],
    "fit beside.npz --target y --out m --components 5 --drop-missing": ["dropped rows:"],
    "fit beside.npz --target y --out m --components 5 --drop-missing-target": ["dropped rows:"],
    f"compare truths.csv {QUICK}": ["40 rows", "3 columns"],
    **{
        FIT.replace("t.csv", f"{name}.csv"): ["rows: 40", "columns: 3", *said]
        for name, said in {
            "semicolons": [], "indexed": ["index"], "numbers": ["taken as names"], "bare": [],
            "mark": [], "commas": [], "minus": [],
        }.items()
    },
}  # fmt: skip

CHECKS = {words: complains(*says) for words, says in REFUSED.items()}
CHECKS |= {words: succeeds(*says) for words, says in ACCEPTED.items()}
CASES = [
    *(Case(f"nysboost {words}", lambda w=words: run(w), right) for words, right in CHECKS.items()),
    *(
        Case(f"a model of {what}", lambda n=n, e=e: predict_named(n, e), lambda far: far < 1e-6)
        for what, n, e in (
            ("names with spaces, served from CSV", ["a", " b", "c "], ".csv"),
            ("names that are years, served from CSV", ["2019", "2020", "2021"], ".csv"),
            ("whole numbers of 60 bits, served from Excel", ["a", "b", "c"], ".xlsx"),
        )
    ),
    Case(
        "nysboost says once how a file is written",
        lambda: run(f"compare semicolons.csv {QUICK}"),
        lambda outcome: outcome[1].count("semicolons.csv is separated by") == 1,
    ),
    Case(
        "nysboost says once that a column is left out",
        lambda: run("fit named.csv --target b --out m --components 5 --no-local --no-test"),
        lambda outcome: outcome[2].count("'name' is text") == 1,
    ),
]
