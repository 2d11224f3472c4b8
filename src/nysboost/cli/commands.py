"""All commands and all options, each defined once."""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypedDict

from nysboost._version import __version__
from nysboost.user_error import UserError


class Spec(TypedDict, total=False):
    """The arguments of `ArgumentParser.add_argument` for one option."""

    action: str | type[Action]
    type: Callable[[str], object]
    choices: Sequence[str]
    default: object
    nargs: str
    required: bool
    metavar: str
    help: str


@dataclass(frozen=True)
class Count:
    """Read a whole number of at least `least` and at most `most`."""

    least: int
    most: float = float("inf")

    def __call__(self, text: str) -> int:
        """Return the number that a text is."""
        if not text.isdecimal() or int(text) < self.least:
            raise ArgumentTypeError(
                f"a whole number of at least {self.least} is needed, not {text!r}"
            )
        if int(text) > self.most:
            raise ArgumentTypeError(
                f"a whole number of at most {self.most:.0f} is needed, not {text!r}"
            )
        return int(text)


@dataclass(frozen=True)
class Number:
    """Reads a number above 0 and below `most`; `what` says so in a sentence."""

    most: float
    what: str

    def __call__(self, text: str) -> float:
        """Return the number that a text is."""
        with suppress(ValueError):
            number = float(text)
            if 0 < number < self.most:
                return number
        raise ArgumentTypeError(f"{self.what} is needed, not {text!r}")


_share = Number(1, "a number between 0 and 1")
_seconds = Number(float("inf"), "a positive number of seconds")


def _path(text: str) -> Path:
    """Return a path; an empty text would be the current folder."""
    if not text:
        raise ArgumentTypeError("the name of a file or folder is needed, not ''")
    path = Path(text)

    # ./-x as the next command can be given it: a path loses its dot
    if text != "-" and str(path).startswith("-"):
        return path.absolute()
    return path


def _levels(text: str) -> list[float]:
    """Return distinct numbers between 0 and 1 from a text with commas, in increasing order."""
    return sorted({_share(part) for part in text.split(",")})


def _separator(text: str) -> str:
    """Return a separator; a quotation mark or the end of a line is none."""
    is_one_character = len(text) == 1 and text.isascii() and text not in '"\r\n'
    if is_one_character or text in ("tab", "\\t"):
        return text
    raise ArgumentTypeError(f"one ASCII character, or the word tab, is needed, not {text!r}")


def _count(least: int, default: int | None = None, metavar: str = "N") -> Spec:
    return {"type": Count(least), "default": default, "metavar": metavar}


def _choice(*choices: str) -> Spec:
    return {"choices": choices, "default": choices[0]}


LARGEST_SEED = 2**32 - 1
"""The largest seed that scikit-learn takes."""

FLAG: Spec = {"action": "store_true"}
AGAIN: Spec = {"action": "append", "default": [], "metavar": "COLUMN"}
FILE: Spec = {"type": _path, "required": True, "metavar": "FILE"}
FOLDER: Spec = {"type": _path, "metavar": "FOLDER"}
SWITCH: Spec = {"action": BooleanOptionalAction, "default": True}
FORMS = (
    "a file: CSV, Parquet, Feather, JSON lines, Excel, .npy, .npz, HDF5, Zarr or LIBSVM; or a "
    "folder of tables; or - for standard input"
)

OPTIONS: dict[str, Spec] = {
    "data": {"type": _path, "help": FORMS},
    "model": {"type": _path, "help": "a model file written by nysboost fit or nb.save"},
    "--target": {"help": "the column to predict: name or number"},
    "--task": _choice("auto", "regression", "classification") | {
        "help": "default auto: classification if the target is text or has two whole numbers, "
        "else regression",
    },
    "--components": _count(1) | {
        "help": "largest number of landmarks; default 256 with --target, else 240",
    },
    "--method": {"default": "joint", "help": "a method from nysboost list; default joint"},
    "--kernel": {"default": "rbf", "help": "a kernel from nysboost list; default rbf"},
    "--sigma": {"help": "width of the kernel: a number, median (default) or scale"},
    "--tol": {
        "type": _share, "help": "largest acceptable error; sets the number of landmarks",
    },
    "--test": SWITCH | {"help": "measure the error on held-out rows first, then fit all rows"},
    "--local": SWITCH | {
        "help": "predict from all training rows (default), or from the landmarks alone",
    },
    "--linear": FLAG | {"help": "fit a linear model instead"},
    "--proba": FLAG | {"help": "also write the probability of each class"},
    "--std": FLAG | {"help": "also write the standard deviation of each prediction"},
    "--interval": {"type": _share, "help": "also write an interval with this coverage: 0.9"},
    "--quantiles": {
        "type": _levels, "metavar": "LEVELS",
        "help": "also write quantiles of these levels, separated by commas: 0.05,0.5,0.95",
    },
    "--id": AGAIN | {"help": "a column to copy to the output, first; repeatable"},
    "--keep": AGAIN | {"help": "another column to copy to the output; repeatable"},
    "--escape-formulas": FLAG | {
        "help": "put an apostrophe before text that a spreadsheet would run as a formula",
    },
    "--dataset": {"help": "which array of an .npz, HDF5 or Zarr file; default X"},
    "--drop-column": AGAIN | {"help": "leave out a column: name or number; repeatable"},
    "--drop-missing": FLAG | {"help": "leave out rows with missing values"},
    "--drop-missing-target": FLAG | {"help": "leave out only rows whose target is missing"},
    "--ids": {
        "choices": ("drop", "keep"), "default": "drop",
        "help": "leave out (default) or keep columns with a different whole number in each row",
    },
    "--category": AGAIN | {"help": "treat this column as a category; repeatable"},
    "--separator": {
        "type": _separator, "help": "separator of a text file: one character, or tab",
    },
    "--decimal": {
        "choices": (".", ","), "metavar": "CHARACTER",
        "help": "decimal mark of a text file: . or , ; default: detected",
    },
    "--encoding": {"help": "encoding of a text file, such as latin-1; default: detected"},
    "--folds": _count(2, 5) | {"help": "number of folds of the cross-validation; default 5"},
    "--methods": {
        "default": "", "help": "names separated by commas, or all; default: nine usual methods",
    },
    "--learners": _count(1, 8, "P") | {"help": "learners of each mixture; default 8"},
    "--rank": _count(1, None, "K") | {
        "help": "rank of each learner; default: its number of columns",
    },
    "--standardise": {
        "action": BooleanOptionalAction,
        "help": "scale columns to mean 0 and standard deviation 1; default for a table of several "
        "columns, but not for an array",
    },
    "--cv": _choice("random", "time") | {
        "help": "hold out random rows (default), or the last rows of a table in order of time",
    },
    "--groups": {
        "metavar": "COLUMN",
        "help": "a column such as customer: all rows with the same value are held out together; "
        "the column is not used as a feature",
    },
    "--repeats": _count(1, 3) | {"help": "number of seeds for each method; default 3"},
    "--max-rows": _count(2) | {"help": "largest number of rows; more are sampled at random"},
    "presets": {"nargs": "+", "help": "names of presets, all, or .toml files of your own"},
    "--replicates": {
        "action": "append", "default": [], "metavar": "N",
        "help": "number of replicates; PRESET=N for one preset; repeatable",
    },
    "--max-learners": _count(1, None, "P") | {"help": "largest number of learners p"},
    "--variants": {
        "default": "all",
        "help": "methods, separated by commas; or all; or stated, those that the paper draws or "
        "mentions; ensemble-ridge always runs",
    },
    "--reading": _choice("both", "columns", "square") | {
        "help": "how to read V: as whole columns, as a square block, or both",
    },
    "--validation": _choice("both", "columns", "square") | {
        "help": "the same for V1 and V2, on which weights are fitted and tuned",
    },
    "--jobs": _count(1, os.cpu_count() or 1) | {
        "help": "number of processes; default: one per core",
    },
    "--quick": FLAG | {"help": "run a small version, in a minute"},
    "--device": {"default": "", "help": "PyTorch device for the matrices, such as cuda"},
    "--report-only": FLAG | {
        "help": "compute nothing: report the records in --out, from any version",
    },
    "--records-only": FLAG | {
        "help": "compute records without a report; needs neither matplotlib nor Jinja",
    },
    "--max-time": {
        "type": _seconds, "metavar": "SECONDS",
        "help": "end the fit after about this many seconds, with the best model so far",
    },
    "--max-minutes": _count(1, None, "MINUTES") | {
        "help": "stop after this many minutes; the same command continues",
    },
    "--data-dir": FOLDER | {
        "help": "folder of the data sets' .npz files; default NYSBOOST_DATA, else downloads",
    },
    "what": _choice("all", "methods", "kernels", "presets", "data") | {
        "nargs": "?", "help": "what to show; data lists the data sets of the paper",
    },
    "--out": FILE | {"help": "the file to write"},
    "--max-memory": {
        "default": "1GiB", "metavar": "SIZE", "help": "working memory, such as 500MB; default 1GiB",
    },
    "--scheduler": {"metavar": "ADDRESS", "help": "a Dask scheduler, such as tcp://10.0.0.1:8786"},
    "--seed": {
        "type": Count(0, LARGEST_SEED), "default": 0, "metavar": "SEED",
        "help": "seed of all random numbers; default 0",
    },
    "--force": FLAG | {"help": "replace the output if it exists"},
    "--json": FLAG | {"help": "print one JSON object on standard output, and nothing else"},
}  # fmt: skip

READING = "--dataset --drop-missing --separator --decimal --encoding "
CHOOSING = f"{READING} --drop-column --category "
WRITING = " --max-memory --scheduler --force --json"


def _folder(name: str) -> Spec:
    says = f"folder for the report; default {name}"
    return FOLDER | {"default": Path(name), "required": False, "help": says}


@dataclass(frozen=True)
class Command:
    """The description of a command, the function that it runs, and its options.

    `own` changes options of the table; `kept` says what remains after Ctrl-C; `elsewhere` has a
    sentence for each option that only another command has.
    """

    says: str
    runs: str
    options: str
    own: Mapping[str, Spec] = field(default_factory=dict)
    kept: str = "Nothing was written."
    elsewhere: Mapping[str, str] = field(default_factory=dict)


OR_OUTPUT: dict[str, Spec] = {"--out": {"help": "the file to write; - for standard output"}}
MEASURED = "Any results so far are in {out}."
COMMANDS = {
    "fit": Command(
        "Fit a model to a table and save it. With --target, the model predicts this column; "
        "without, it approximates the kernel matrix.",
        "nysboost.cli.fit:run",
        "data --out --target --task --components --method --kernel --sigma --tol --test --local "
        "--linear --cv --groups --max-time --drop-missing-target "
        f"{CHOOSING} --ids --seed {WRITING}",
    ),
    "predict": Command(
        "Predict every row of a table.",
        "nysboost.cli.apply:run",
        "model data --out --proba --std --interval --quantiles --id --keep --escape-formulas "
        f"{READING} {WRITING}",
        OR_OUTPUT,
    ),
    "transform": Command(
        "Compute the features of every row of a table.",
        "nysboost.cli.apply:run",
        f"model data --out --escape-formulas {READING} {WRITING}",
        OR_OUTPUT,
    ),
    "info": Command("Describe a model file.", "nysboost.cli.show:describe", "model --json"),
    "learn": Command(
        "Compare learners on your table by cross-validation, and write a report.",
        "nysboost.cli.learn_command:learn",
        "data --target --task --components --folds --cv --groups --max-rows --drop-missing-target "
        f"{CHOOSING} --seed --out --json",
        {
            "--target": {"required": True},
            "--max-rows": {
                "default": 20_000,
                "help": "largest number of rows; more are sampled at random; default 20,000",
            },
            "--out": _folder("learned"),
        },
        MEASURED,
    ),
    "compare": Command(
        "Compare approximations of the kernel matrix on your table, and recommend one.",
        "nysboost.cli.compare_command:compare",
        "data --kernel --sigma --components --methods --learners --rank --standardise --max-rows "
        f"--repeats {CHOOSING} --data-dir --seed --out --json",
        {
            "data": {
                "help": f"{FORMS}; or a data set of the paper, by name; or a kernel matrix, with "
                "--kernel precomputed",
            },
            "--components": {
                "help": "number of landmarks; default 480, at most a quarter of the rows",
            },
            "--max-rows": {
                "default": 4000,
                "help": "largest number of rows; more are sampled at random; default 4,000",
            },
            "--out": _folder("comparison"),
        },
        MEASURED,
        {
            "--target": "compare approximates the kernel matrix and has no target. To compare "
            "learners that predict a target, use nysboost learn. To leave the column out here, use "
            "--drop-column.",
        },
    ),
    "reproduce": Command(
        "Run the experiments of the paper, and write a report with figures, statistical tests and "
        "a ledger of its claims. If a run was stopped, the same command continues it.",
        "nysboost.paper.reproduce_command:run",
        "presets --replicates --max-learners --variants --reading --validation --jobs --quick "
        "--device --records-only --report-only --max-minutes --data-dir --seed --out --force "
        "--json",
        {"--out": _folder("results")},
        "Results so far are kept in {out}: the same command continues.",
    ),
    "list": Command(
        "Show methods, kernels, presets and data sets, and where each data set was found.",
        "nysboost.cli.show:list_all",
        "what --data-dir --json",
    ),
}


def spell(options: Namespace, names: str) -> list[str]:
    """Return some options as they were given, without those that have their default."""
    words: list[str] = []
    for name in names.split():
        value = getattr(options, name.strip("-").replace("-", "_"))
        usual = OPTIONS[name].get("default", False)
        if value is None or value == usual:
            continue

        # a switch takes no value
        if value is True:
            words.append(name)
            continue
        if value is False:
            words.append(f"--no-{name[2:]}")
            continue

        # an option that may be given again has a list
        values = [value]
        if isinstance(value, list):
            values = value
        for one in values:
            words += _spell_value(name, str(one))
    return words


def _spell_value(name: str, value: str) -> list[str]:
    """Return a value as the parser takes it, after the name of its option if it has one."""
    is_positional = not name.startswith("-")
    if is_positional:
        return [value]

    # a value that begins with a dash would be taken for an option
    if value.startswith("-"):
        return [f"{name}={value}"]
    return [name, value]


class Parser(ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise an error that the command line prints as one sentence."""
        raise UserError(f"{message}. {self.prog} --help shows all options.")


def make_parser() -> ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        "nysboost",
        description="Approximate kernel matrices by boosting Nyström and other methods, and learn "
        "from tables.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"nysboost {__version__}")

    every = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        # the help shows the first sentence and the positional arguments
        brief = command.says.partition(". ")[0].rstrip(".")
        options = command.options.split()
        positional = [option.upper() for option in options if option[0] != "-"]
        one = every.add_parser(
            name,
            help=brief,
            description=command.says,
            usage=f"nysboost {name} {' '.join(positional)} [options]",
            allow_abbrev=False,
        )

        # a command may override what the table says of an option
        for option in options:
            spec = OPTIONS[option] | command.own.get(option, {})
            one.add_argument(option, **spec)
    return parser
