"""Break the numerical core on purpose, one small change at a time, and see which tests notice.

Each mutant first meets the test file that mirrors its source file, and if that misses it the other
tests of its room and the laws of the whole. Mutants are drawn with a seed; when the time is up no
other is begun, and each that was begun is tried to the end:

    python tools/mutate.py --seconds 1800 --seed 0
    python tools/mutate.py --files search/loss tables/codes

Survivors that were read and found to change nothing that is promised are listed, each with its
reason, in `tools/equivalent_mutants.txt`. The report gives the share killed with and without them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import multiprocessing
import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "tools/equivalent_mutants.txt"
ROOMS = (
    *("numerics", "kernels", "gram", "engine", "boosting", "joint", "methods", "search"),
    "tables",
)
"""The numerical core: every file of these rooms but `OTHERS`."""

OTHERS = ("__init__", "fused", "progress", "tuning")
"""Files without arithmetic of their own, or for a GPU."""

LAWS = {
    "search": ("learn/test_regression", "learn/test_classification"),
    "tables": ("learn/test_regression", "cli/test_source", "test_hostile"),
}
"""Tests of the whole library that say what the files of a room are for."""

USUAL_LAWS = ("test_settings", "test_stores", "test_asked_rows", "test_approximation",
              "test_catalogue", "test_certificate")  # fmt: skip
"""Those of every other room."""

SLOWEST = 3.0
"""A mutant that takes so many times as long as the tests themselves has lost its way: killed."""

PRELOADED = ("pytest", "hypothesis", "scipy.optimize", "scipy.stats", "sklearn.cluster", "pandas")
"""What every run of tests imports: each of them is a fork of a process that already has it."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "abs": "float"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: which node of its syntax tree, at which line, in words."""

    name: str
    place: int
    line: int
    code: str
    what: str

    @property
    def key(self) -> str:
        """Its name in the list of equivalent mutants, which outlives a change of line numbers."""
        return f"{self.name} | {self.code} | {self.what}"

    def compiled(self) -> object:
        """Return the changed module's code."""
        tree = ast.parse(_path(self.name).read_text(encoding="utf-8"))
        _changed(list(ast.walk(tree))[self.place])
        return compile(tree, str(_path(self.name)), "exec")


def _path(name: str) -> Path:
    return ROOT / "src/nysboost" / f"{name}.py"


def core() -> list[str]:
    """Return the files of the numerical core."""
    paths = (path for room in ROOMS for path in sorted(_path(room).with_suffix("").glob("*.py")))
    return [f"{path.parent.name}/{path.stem}" for path in paths if path.stem not in OTHERS]


def mutants_of(name: str) -> Iterator[Mutant]:
    """Yield every mutant of a source file."""
    source = _path(name).read_text(encoding="utf-8")
    lines = source.splitlines()
    for place, node in enumerate(ast.walk(ast.parse(source))):
        changed = copy.deepcopy(node)
        how = _changed(changed)
        if how:
            what = f"{ast.unparse(node)}  →  {ast.unparse(changed)}" if how == "here" else how
            line = getattr(node, "lineno", 0)
            yield Mutant(name, place, line, lines[line - 1].strip(), what)


def _changed(node: ast.AST) -> str | None:
    """Change a node in the one way that fits it, and say how; None where none does."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        node.op = ARITHMETIC[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Name) and node.id in NAMES:
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        before = ast.unparse(node)
        node.op = ARITHMETIC[type(node.op)]()
        return f"{before}  →  {ast.unparse(node)}"
    elif isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp):
        before = ast.unparse(node.test)
        node.test = node.test.operand
        return f"if {before}  →  if {ast.unparse(node.test)}"
    else:
        return None
    return "here"


def _passes(test: Path, mutant: Mutant | None, limit: float | None = None) -> bool:
    """Run a test file in a process of its own, where the mutant stands in place of its file."""
    run = _forks.Process(target=_run_test, args=(str(test), mutant))
    run.start()
    run.join(limit)
    if run.is_alive() and mutant is not None:
        print(f"out of time, which counts as killed: {mutant.key}", flush=True)
    run.kill()
    run.join()
    return run.exitcode == 0


def _run_test(test: str, mutant: Mutant | None) -> None:
    import pytest

    gc.freeze()  # what was preloaded is not looked through again and again
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    if mutant is not None:
        module, true_code = "nysboost." + mutant.name.replace("/", "."), SourceFileLoader.get_code
        SourceFileLoader.get_code = lambda self, name: (  # type: ignore[method-assign]
            mutant.compiled() if name == module else true_code(self, name)
        )
    preloaded = "ignore::pytest.PytestAssertRewriteWarning"
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-W", preloaded, test]))


def mirror(name: str) -> list[Path]:
    """Return the test file of a source file, if it has one."""
    room, _, stem = name.rpartition("/")
    own = ROOT / "tests" / room / f"test_{stem}.py"
    return [own] if own.exists() else []


def wider(name: str) -> list[Path]:
    """Return the other tests of its room, and the laws of the whole."""
    room, tests = name.partition("/")[0], ROOT / "tests"
    others = sorted(set((tests / room).glob("test_*.py")) - set(mirror(name)))
    return [*others, *(tests / f"{law}.py" for law in LAWS.get(room, USUAL_LAWS))]


def is_killed(mutant: Mutant, tests: list[Path]) -> bool:
    """Return whether a test file notices a mutant; files that fail without any change do not."""
    return any(
        not _passes(test, mutant, SLOWEST * seconds + 10)
        for test in tests
        if (seconds := _seconds(test)) is not None
    )


def _seconds(test: Path) -> float | None:
    """Return how long a test file takes as things are; None where it does not pass."""
    with _locks[test]:
        if test not in _known:
            begun = time.monotonic()
            passed = _passes(test, None)
            _known[test] = time.monotonic() - begun if passed else None
            if not passed:
                print(f"left out, for it fails without any change: {test.name}", flush=True)
    return _known[test]


def main() -> None:
    """Try mutants until the time is up, and report the share killed and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--files", nargs="*", default=core())
    given = parser.parse_args()
    os.environ |= {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # plugins of other packages take a second each
    os.environ |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "_hypothesis_pytestplugin",
    }
    _forks.set_forkserver_preload(list(PRELOADED))
    end, listed = time.monotonic() + given.seconds, equivalent_mutants()
    everything = [mutant for name in given.files for mutant in mutants_of(name)]
    for key in sorted(listed - {m.key for name in core() for m in mutants_of(name)}):
        print(f"listed as equivalent, but there is no such mutant: {key}")
    random.Random(given.seed).shuffle(everything)

    def outcome(mutant: Mutant) -> str:
        if time.monotonic() > end:
            return "not tried"
        if is_killed(mutant, mirror(mutant.name)):
            return "killed by its own"
        if mutant.key in listed:
            return "equivalent"
        if is_killed(mutant, wider(mutant.name)):
            return "killed"
        print(f"survived: {mutant.name}.py:{mutant.line} | {mutant.key}", flush=True)
        return "survived"

    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(zip(everything, pool.map(outcome, everything), strict=True))
    tried = [(mutant, how) for mutant, how in outcomes if how != "not tried"]
    report(tried, listed)
    print(f"\n{len(tried)} of {len(everything)} mutants were tried.")


def report(tried: list[tuple[Mutant, str]], listed: set[str]) -> None:
    """Print the shares killed, by file and in all, and what the list of equivalents got wrong."""
    print("\n| file | tried | killed by its own | by any | equivalent | survived | share |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in sorted({mutant.name for mutant, _ in tried}):
        print(_row(f"`{name}`", [how for mutant, how in tried if mutant.name == name]))
    print(_row("all", [how for _, how in tried]))
    for mutant, how in tried:
        if mutant.key in listed and how != "equivalent":
            print(f"listed as equivalent, but killed: {mutant.key}")


def _row(name: str, outcomes: list[str]) -> str:
    """Return a line of the table: the share is of those that are not equivalent."""
    own, wide, equivalent, survived = map(
        outcomes.count, ("killed by its own", "killed", "equivalent", "survived")
    )
    share = 100 * (own + wide) / max(1, len(outcomes) - equivalent)
    cells = [len(outcomes), own, own + wide, equivalent, survived, f"{share:.1f} %"]
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def equivalent_mutants() -> set[str]:
    """Return the keys of the mutants that change nothing promised; `#` begins a reason."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


_forks = multiprocessing.get_context("forkserver")
_known: dict[Path, float | None] = {}
_locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


if __name__ == "__main__":
    main()
