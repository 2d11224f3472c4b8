"""Break the numerical core on purpose, one small change at a time, and see which tests notice.

A first run of the tests writes down which functions each of them calls (`--calls`, a folder that
later runs use again). A mutant then meets the tests that call its function: those of the file that
mirrors its own, and if they miss it the others, quick ones first, for so long as `LONGEST` allows.
Mutants are drawn with a seed; when the time is up no other is begun:

    python tools/mutate.py --seconds 1500 --seed 0
    python tools/mutate.py --files learn/search/loss tables/codes

Survivors that were read and found to change nothing that is promised are listed, each with its
reason, in `tools/equivalent_mutants.txt`. The report gives the share killed without them.
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
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

from record_calls import Calls

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "tools/equivalent_mutants.txt"
ROOMS = (
    *("numerics", "kernels", "gram", "features", "boosting", "joint", "methods", "certificates"),
    *("learn/search", "tables"),
)
"""The numerical core: every file of these rooms but `OTHERS`."""

OTHERS = ("__init__", "fused", "progress", "tuning")
"""Files without arithmetic of their own, or for a GPU."""

TESTS = (*ROOMS, "test_approximation.py", "test_asked_rows.py", "test_backends.py",
         "test_catalogue.py", "test_certificate.py", "test_settings.py", "test_stores.py",
         "learn/test_regression.py", "learn/test_classification.py", "cli/test_source.py",
         "test_hostile.py")  # fmt: skip
"""What mutants meet: the tests of their rooms and the laws of the whole."""

LONGEST = 60.0
"""Seconds of tests that a mutant meets at most, of its own file and of others."""

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
HARMLESS = ("copy", "strict", "repr", "eq", "frozen", "stacklevel")
"""Keywords whose values change memory, texts or what is refused."""

NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "abs": "float"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: which node of its syntax tree, at which line, in words."""

    name: str
    place: int
    line: int
    function: str
    code: str
    what: str

    @property
    def key(self) -> str:
        """Its name in the list of equivalent mutants, which outlives a change of line numbers."""
        return f"{self.name} | {self.code} | {self.what}"

    @property
    def mirror(self) -> str:
        """The test file of its source file."""
        room, _, stem = self.name.rpartition("/")
        return f"tests/{room}/test_{stem}.py"

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
    lines, tree = source.splitlines(), ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    harmless = {id(part) for value in _harmless(tree) for part in ast.walk(value)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in harmless:
            continue
        changed = copy.deepcopy(node)
        how = _changed(changed)
        if how:
            what = f"{ast.unparse(node)}  →  {ast.unparse(changed)}" if how == "here" else how
            line = getattr(node, "lineno", 0)
            around = [f for f in functions if f.lineno <= line <= (f.end_lineno or 0)]
            inner = max(around, key=lambda f: f.lineno, default=None)
            first = min([inner.lineno, *(d.lineno for d in inner.decorator_list)]) if inner else ""
            yield Mutant(name, place, line, f"{name}.py:{first}", lines[line - 1].strip(), what)


def _harmless(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is not mutated: values of `HARMLESS` keywords, shapes, numbers after `or`.

    In a shape any negative number stands for the length that is left; `or` replaces a zero, by
    which nothing but zeros is divided.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (word.value for word in node.keywords if word.arg in HARMLESS)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
                yield from node.args
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            yield from (node.values[-1:] if isinstance(node.values[-1], ast.Constant) else ())


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


def _passes(tests: list[str], mutant: Mutant, limit: float) -> bool:
    """Run tests in a process of their own, where the mutant stands in place of its file."""
    run = _forks.Process(target=_run_tests, args=(tests, mutant))
    run.start()
    run.join(limit)
    if run.is_alive():
        print(f"out of time, which counts as killed: {mutant.key}", flush=True)
    run.kill()
    run.join()
    return run.exitcode == 0


def _run_tests(tests: list[str], mutant: Mutant) -> None:
    import pytest

    gc.freeze()  # what was preloaded is not looked through again and again
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    module, true_code = "nysboost." + mutant.name.replace("/", "."), SourceFileLoader.get_code
    SourceFileLoader.get_code = lambda self, name: (  # type: ignore[method-assign]
        mutant.compiled() if name == module else true_code(self, name)
    )
    preloaded = "ignore::pytest.PytestAssertRewriteWarning"
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-W", preloaded, *tests]))


def main() -> None:
    """Try mutants until the time is up, and report the share killed and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--files", nargs="*", default=core())
    parser.add_argument("--calls", type=Path, default=ROOT / "out" / "calls")
    given = parser.parse_args()
    os.environ |= {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    calls = Calls.read(given.calls, TESTS)
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

    def is_killed(mutant: Mutant, tests: list[str]) -> bool:
        limit = SLOWEST * sum(map(calls.seconds.__getitem__, tests)) + 20
        return bool(tests) and not _passes(tests, mutant, limit)

    def outcome(mutant: Mutant) -> str:
        if time.monotonic() > end:
            return "not tried"
        own, others = calls.meet(mutant.function, mutant.mirror, LONGEST)
        if is_killed(mutant, own):
            return "killed by its own"
        if mutant.key in listed:
            return "equivalent"
        if is_killed(mutant, others):
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


if __name__ == "__main__":
    main()
