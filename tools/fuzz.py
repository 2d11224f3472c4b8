"""Try every hypothesis law with very many examples, and say how many each one had.

A law is a test function; its examples are shared out among its parameters. Each law runs in
processes of its own, with bounds of memory and time: first a tenth of its examples, so that
all laws have some when the time is up, then the rest.

    python tools/fuzz.py --examples 10000 --jobs 2 --seconds 3600 --seed 0

What fails is kept as an example in .hypothesis, which every later run tries first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARES = (0.1, 0.9)
"""Of the examples: the first round reaches every law, the second takes what time there is."""

PYTEST = [sys.executable, "-m", "pytest", "-m", "hypothesis"]
PASSED = re.compile(r"- (\d+) passing")
INTERRUPTED = 2  # pytest's exit status
EXHAUSTED = "Stopped because nothing left to do"


@dataclass
class Law:
    """A test function, its parameters, and what it went through."""

    name: str
    cases: int
    examples: int = 0
    seconds: float = 0.0
    exhausted: bool = False
    state: str = "not run"

    def run(self, count: int, seed: int, end: float, memory: int) -> str:
        """Try about so many more examples, and return what pytest printed if it failed."""
        each = -(-count // self.cases)
        environment = os.environ | {
            "NYSBOOST_PROFILE": "fuzz",
            "NYSBOOST_FUZZ_EXAMPLES": str(each),
            "NYSBOOST_MEMORY": str(memory),
        }
        options = ["--hypothesis-show-statistics", f"--hypothesis-seed={seed}"]
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as scratch:
                done = subprocess.run(
                    [*PYTEST, *options, f"--basetemp={scratch}/laws", self.name],
                    cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
                    timeout=max(1.0, end - began),
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.state = "stopped by the clock" if self.examples else "not run"
            return ""
        self.seconds += time.monotonic() - began
        self.examples += sum(map(int, PASSED.findall(done.stdout)))
        self.exhausted = done.stdout.count(EXHAUSTED) >= self.cases
        if done.returncode == INTERRUPTED:
            self.state = "stopped"
            return ""
        self.state = "held" if done.returncode == 0 else f"failed with seed {seed}"
        return "" if done.returncode == 0 else done.stdout[-6000:] + done.stderr[-2000:]


def laws() -> list[Law]:
    """Return every law, as pytest collects them."""
    listed = subprocess.run(
        [*PYTEST, "-q", "--collect-only"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    names = [line.partition("[")[0] for line in listed.stdout.splitlines() if "::" in line]
    return [Law(name, cases) for name, cases in Counter(names).items()]


def fuzz(options: argparse.Namespace) -> list[Law]:
    """Run all laws round by round, and write what each has gone through as it is known."""
    found, end = laws(), time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)

    def work(task: tuple[Law, int, int]) -> None:
        law, count, seed = task
        if time.monotonic() >= end or law.exhausted or law.state.startswith("failed"):
            return
        said = law.run(count, seed, end, options.memory)
        print(f"{law.examples:8d}  {law.seconds:6.0f} s  {law.state}  {law.name}", flush=True)
        if said:
            failure = options.out / f"failure-{law.name.rpartition('::')[2]}.txt"
            failure.write_text(said)
        text = json.dumps({"seed": options.seed, "laws": [asdict(one) for one in found]}, indent=1)
        (options.out / "fuzz.json").write_text(text + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        for number, share in enumerate(SHARES):
            # what took longest before comes first, so that no law is left for the end
            order = sorted(found, key=lambda law: -law.seconds)
            tasks = [(law, int(share * options.examples), options.seed + number) for law in order]
            list(pool.map(work, tasks))
    return found


def main() -> None:
    """Read the options, run the laws, and say how they stood."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="of each law")
    parser.add_argument("--seconds", type=float, default=12 * 3600, help="in all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=16 * 2**30, help="bytes of each process")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    found = fuzz(options)
    full = sum(law.examples >= options.examples or law.exhausted for law in found)
    least = min((law.examples for law in found if not law.exhausted), default=0)
    print(
        f"{len(found)} laws, {sum(law.examples for law in found):,} examples in all; {full} laws "
        f"had {options.examples:,} or every one there is; the fewest are {least:,}."
    )
    failed = [law.name for law in found if law.state.startswith("failed")]
    print(*(f"failed: {name}" for name in failed), sep="\n")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
