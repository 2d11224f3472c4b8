"""Try every hypothesis law with very many examples, and say how many each one had.

A law is a test function; its examples are shared out among its parameters. They are tried
in portions of half a minute, each with a seed and in a process of its own that is bounded in
memory; every law has its first portion before any has more, and cheap laws then come first.

    python tools/fuzz.py --examples 10000 --jobs 2 --seconds 3600 --seed 0

After every portion what each law has gone through is in fuzz.json of the output folder, and a
later run with the same folder goes on from there, with other seeds. What fails is kept as an
example in .hypothesis, which every later run tries first.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FIRST = 100
"""Examples of a law's first portion, which says what one of them costs."""

PORTION = 30.0
"""Seconds that a later portion may take, by what the examples before it took."""

PASSED = re.compile(r"- (\d+) passing")
NO_MORE = "Stopped because nothing left to do"


HELD, EXHAUSTED, FAILED, SKIPPED = "held", "every one there is", "FAILED", "skipped"


@dataclass
class Law:
    """A test function, its parameters, and what it went through."""

    name: str
    cases: int
    examples: int = 0
    seconds: float = 0.0
    state: str = ""
    seeds: list[int] = field(default_factory=list)

    def portion(self, goal: int) -> int:
        """Return how many examples come next: few at first, then what the time allows."""
        if not self.examples:
            return min(FIRST, goal)
        return min(goal, max(FIRST, int(PORTION * self.examples / self.seconds)))

    def take(self, said: str, seconds: float, status: int) -> None:
        """Add what a portion has gone through, by what pytest said."""
        passed = sum(map(int, PASSED.findall(said)))
        self.examples += passed
        self.seconds += seconds
        exhausted = said.count(NO_MORE) >= self.cases
        if self.state != FAILED:  # which another portion may have found at the same time
            state = EXHAUSTED if exhausted else HELD if passed else SKIPPED
            self.state = FAILED if status else state

    @property
    def open(self) -> bool:
        """Whether more examples would tell more."""
        return self.state in ("", HELD)

    def __str__(self) -> str:
        return f"{self.examples:8,}  {self.seconds:6.0f} s  {self.state}  {self.name}"


class Collected:
    """A plugin of pytest that counts the laws' cases, and imports what they import."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()

    def pytest_collection_finish(self, session: Any) -> None:
        """Remember what was found."""
        self.cases = Counter(item.nodeid.partition("[")[0] for item in session.items)


def laws() -> list[Law]:
    """Return every law, as pytest collects them."""
    files = [str(file) for file in sorted(ROOT.glob("tests/**/test_*.py"))
             if "@given" in file.read_text()]  # fmt: skip
    found = Collected()
    pytest.main(["-q", "-m", "hypothesis", "--collect-only", "--no-summary",
                 "--continue-on-collection-errors", *files], plugins=[found])  # fmt: skip
    return [Law(name, cases) for name, cases in found.cases.items()]


def try_out(law: str, each: int, seed: int, memory: int, said: Path) -> None:
    """In a process of its own: try a law, with what pytest says in a file."""
    os.environ |= {"NYSBOOST_PROFILE": "fuzz", "NYSBOOST_FUZZ_EXAMPLES": str(each)}
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for name, module in list(sys.modules.items()):
        # hypothesis reads the number of examples when a law is imported
        if str(getattr(module, "__file__", None) or "").startswith(str(ROOT / "tests")):
            del sys.modules[name]
    with (
        tempfile.TemporaryDirectory() as scratch,
        said.open("w") as file,
        redirect_stdout(file),
        redirect_stderr(file),
    ):
        shown = ["-m", "hypothesis", "--hypothesis-show-statistics", f"--hypothesis-seed={seed}"]
        status = pytest.main([*shown, f"--basetemp={scratch}/laws", law])
    sys.exit(int(status))


@dataclass
class Portion:
    """Examples of a law that are being tried."""

    law: Law
    count: int
    seed: int
    said: Path
    process: BaseProcess
    began: float


@dataclass
class Run:
    """Portions side by side, until every law has its examples or time is up."""

    found: list[Law]
    options: argparse.Namespace
    others: list[Law]
    running: list[Portion] = field(default_factory=list)

    def __call__(self) -> None:
        """Begin portions and end them; what is not done when time is up is not counted."""
        end = time.monotonic() + self.options.seconds
        while time.monotonic() < end:
            while len(self.running) < self.options.jobs and (law := self._next()):
                self._begin(law)
            if not self.running:
                return
            wait([one.process.sentinel for one in self.running], max(0, end - time.monotonic()))
            for portion in [one for one in self.running if not one.process.is_alive()]:
                self._end(portion)
        for portion in self.running:
            portion.process.kill()
            portion.process.join()
            portion.said.unlink(missing_ok=True)

    def _missing(self, law: Law) -> int:
        """Return how many examples nobody has tried nor is trying."""
        trying = [one.count for one in self.running if one.law is law]
        if not law.open or (trying and not law.examples):
            return 0
        return max(0, int(self.options.examples) - law.examples - sum(trying))

    def _next(self) -> Law | None:
        """Return the law whose examples cost least, but first those that have had none."""
        return min(
            filter(self._missing, self.found),
            key=lambda law: (law.examples > 0, law.seconds / max(1, law.examples)),
            default=None,
        )

    def _begin(self, law: Law) -> None:
        count = law.portion(self._missing(law))
        seeds = [*law.seeds, *(one.seed for one in self.running if one.law is law)]
        seed = max(self.options.seed, *(1 + seed for seed in seeds), 0)
        said = self.options.out / f"{law.name.rpartition('::')[2]}-{seed}.txt"
        task = law.name, -(-count // law.cases), seed, self.options.memory, said
        process = multiprocessing.get_context("fork").Process(
            target=try_out, args=task, daemon=True
        )
        process.start()
        self.running.append(Portion(law, count, seed, said, process, time.monotonic()))

    def _end(self, portion: Portion) -> None:
        self.running.remove(portion)
        portion.process.join()
        law, said = portion.law, portion.said
        law.take(said.read_text(), time.monotonic() - portion.began, portion.process.exitcode or 0)
        law.seeds.append(portion.seed)
        if law.state != FAILED:
            said.unlink()
        print(law, flush=True)
        write([*self.found, *self.others], self.options.out / "fuzz.json")


def write(found: list[Law], path: Path) -> None:
    """Write down what each law has gone through."""
    whole = path.with_suffix(".new")
    whole.write_text(json.dumps([asdict(law) for law in found], indent=1) + "\n")
    whole.replace(path)


def read(path: Path) -> dict[str, Law]:
    """Return what laws went through before; those that failed or were skipped try again."""
    if not path.exists():
        return {}
    known = [Law(**one) for one in json.loads(path.read_text())]
    return {law.name: replace(law, state=law.state * (law.state == EXHAUSTED)) for law in known}


def main() -> None:
    """Read the options, run the laws, and say how they stood."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="of each law")
    parser.add_argument("--seconds", type=float, default=12 * 3600, help="in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=16 * 2**30, help="bytes of each process")
    parser.add_argument("--only", default="", help="laws with this in their name")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz")
    options = parser.parse_args()
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and not leave portions behind
    options.out.mkdir(parents=True, exist_ok=True)
    before = read(options.out / "fuzz.json")
    found = [before.pop(law.name, law) for law in laws() if options.only in law.name]
    print(f"seed {options.seed}, {len(found)} laws, {len(before)} others known")
    Run(found, options, list(before.values()))()
    left = [law for law in found if law.state != EXHAUSTED and law.examples < options.examples]
    print(
        f"{len(found)} laws, {sum(law.examples for law in found):,} examples in all; "
        f"{len(found) - len(left)} laws had {options.examples:,} or every one there is."
    )
    failed = [law.name for law in found if law.state == FAILED]
    print(*left, *(f"failed: {name}" for name in failed), sep="\n")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
