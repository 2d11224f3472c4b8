"""Break the numerical core on purpose, one small change at a time, and see which tests notice.

Each source file of the core is tested by the test file that mirrors it: a mutant that it
does not kill survives, whatever other tests would say. A seeded sample of all mutants is
tried until the time is up:

    python tools/mutate.py --seconds 600 --seed 0
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = (
    "numerics/linalg",
    "numerics/kmeans",
    "numerics/kmedoids",
    "numerics/descent",
    "numerics/checks",
    "numerics/memory",
    "gram/sample",
    "gram/landmarks",
    "engine/accuracy",
    "engine/factor",
    "engine/feature_map",
    "engine/blocks",
    "boosting/learner",
    "boosting/rules",
    "boosting/core",
    "boosting/validation",
    "boosting/pool",
    "boosting/selectors",
    "boosting/trajectory",
    "boosting/algorithm",
    "kernels/distances",
    "methods/cholesky",
    "methods/leverage",
    "methods/baselines",
)
SLOWEST = 3.0
"""A mutant that takes so many times as long as the tests themselves has lost its way: killed."""

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
    what: str

    def source(self) -> str:
        """Return the changed file."""
        tree = ast.parse(_path(self.name).read_text(encoding="utf-8"))
        _changed(list(ast.walk(tree))[self.place])
        return ast.unparse(tree)


def _path(name: str) -> Path:
    return ROOT / "src/nysboost" / f"{name}.py"


def mutants_of(name: str) -> Iterator[Mutant]:
    """Yield every mutant of a source file."""
    tree = ast.parse(_path(name).read_text(encoding="utf-8"))
    for place, node in enumerate(ast.walk(tree)):
        changed = copy.deepcopy(node)
        how = _changed(changed)
        if how:
            what = f"{ast.unparse(node)}  →  {ast.unparse(changed)}" if how == "here" else how
            yield Mutant(name, place, getattr(node, "lineno", 0), what)


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


def is_killed(mutant: Mutant, folder: Path, limit: float) -> bool:
    """Run the tests of the mutant's own file against it, in a copy of the sources."""
    file = folder / "nysboost" / f"{mutant.name}.py"
    original = file.read_text(encoding="utf-8")
    file.write_text(mutant.source(), encoding="utf-8")
    try:
        return not _tests_pass(mutant.name, folder, limit)
    finally:
        file.write_text(original, encoding="utf-8")


def _tests_pass(name: str, folder: Path, limit: float | None = None) -> bool:
    room, _, stem = name.rpartition("/")
    test = ROOT / "tests" / room / f"test_{stem}.py"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(test)]
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    """Try mutants until the time is up, and report the share killed and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--files", nargs="*", default=CORE)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    everything = [mutant for name in given.files for mutant in mutants_of(name)]
    random.Random(given.seed).shuffle(everything)
    with tempfile.TemporaryDirectory() as root:
        crews = queue.SimpleQueue()
        for worker in range(given.jobs):
            crews.put(_copied_sources(Path(root) / str(worker)))
        with ThreadPoolExecutor(given.jobs) as pool:
            outcomes = list(pool.map(lambda m: _outcome(m, crews, end), everything))
    killed, survived = outcomes.count(True), outcomes.count(False)
    share = 100 * killed / max(1, killed + survived)
    print(f"{killed} of {killed + survived} killed, {share:.1f} %, of {len(everything)} possible.")


def _copied_sources(folder: Path) -> Path:
    shutil.copytree(ROOT / "src/nysboost", folder / "nysboost")
    return folder


def _outcome(mutant: Mutant, crews: queue.SimpleQueue[Path], end: float) -> bool | None:
    """Return whether a mutant is killed; None where there is no time left to try it."""
    folder = crews.get()
    try:
        seconds = _seconds(mutant.name, folder)
        if seconds is None or time.monotonic() > end:
            return None
        killed = is_killed(mutant, folder, SLOWEST * seconds + 10)
    finally:
        crews.put(folder)
    if not killed:
        print(f"survived: {mutant.name}.py:{mutant.line}  {mutant.what}", flush=True)
    return killed


def _seconds(name: str, folder: Path) -> float | None:
    """Return how long the tests of a file take as it is; None where they do not pass."""
    with _locks[name]:
        if name not in _known:
            begun = time.monotonic()
            passed = _tests_pass(name, folder)
            _known[name] = time.monotonic() - begun if passed else None
            if not passed:
                print(f"left out: the tests of {name} fail without any change", flush=True)
    return _known[name]


_known: dict[str, float | None] = {}
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


if __name__ == "__main__":
    main()
