"""Try every hypothesis law with very many examples, and say how many each one had.

A law is a test function; its examples are shared out among its parameters. Rounds go over all
laws, each with a portion of the examples and a seed of its own. A portion is a run of pytest in a
process that is bounded in memory.

    python tools/fuzz.py --examples 10000 --jobs 2 --seconds 3600 --seed 0

After every portion what each law has gone through is in fuzz.json of the output folder, and a
later run with the same folder goes on from there, with other seeds. What fails is kept as an
example in .hypothesis, which every later run tries first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[1]
ROUNDS = 5
"""Portions of a law: of one that is stopped nothing counts."""

PASSED = re.compile(r"- (\d+) passing")
NO_MORE = "Stopped because nothing left to do"
HELD, EXHAUSTED, FAILED, SKIPPED = "held", "every one there is", "FAILED", "skipped"


def run_pytest(*words: str, seconds: float | None = None, **environment: str) -> Any:
    """Return what pytest did with the laws that are named."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", *words]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, timeout=seconds, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def count_cases() -> Counter[str]:
    """Return every law, as pytest collects them, with the number of its parameters."""
    files = sorted(str(f) for f in ROOT.glob("tests/**/test_*.py") if "@given" in f.read_text())
    said = run_pytest("--collect-only", "--no-summary", *files).stdout
    return Counter(line.partition("[")[0] for line in said.splitlines() if "::" in line)


def try_portion(law: dict[str, Any], end: float, options: argparse.Namespace) -> str:
    """Try a law with another seed, add what it went through, and return what pytest said."""
    seed, begun = max([options.seed, *(1 + seed for seed in law["seeds"])]), time.monotonic()
    each = -(-options.examples // (ROUNDS * law["cases"]))
    words = "--hypothesis-show-statistics", f"--hypothesis-seed={seed}", law["name"]
    environment = {"NYSBOOST_PROFILE": "fuzz", "NYSBOOST_FUZZ_EXAMPLES": str(each)}
    environment |= {"NYSBOOST_MEMORY": str(options.memory)}
    try:
        run = run_pytest(*words, seconds=max(0.0, end - begun), **environment)
    except subprocess.TimeoutExpired:
        return ""
    passed = sum(map(int, PASSED.findall(run.stdout)))
    exhausted = run.stdout.count(NO_MORE) >= law["cases"]
    state = EXHAUSTED if exhausted else HELD if passed else SKIPPED
    law["state"] = FAILED if run.returncode else state
    law["examples"] += passed
    law["seconds"] += time.monotonic() - begun
    law["seeds"].append(seed)
    return str(run.stdout)


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
    options.out.mkdir(parents=True, exist_ok=True)
    end, path, lock = time.monotonic() + options.seconds, options.out / "fuzz.json", Lock()
    known = {law["name"]: law for law in json.loads(path.read_text())} if path.exists() else {}
    new = {"examples": 0, "seconds": 0.0, "state": ""}
    cases = {name: count for name, count in count_cases().items() if options.only in name}
    for name, count in cases.items():
        known[name] = {"seeds": [], **new, **known.get(name, {}), "name": name, "cases": count}
        if known[name]["state"] in (FAILED, SKIPPED):  # which are tried again
            known[name]["state"] = ""
    laws = [known[name] for name in cases]

    def work(law: dict[str, Any]) -> None:
        said = try_portion(law, end, options)
        name = law["name"].rpartition("::")[2]
        with lock:
            if said and law["state"] == FAILED:
                (options.out / f"{name}-{law['seeds'][-1]}.txt").write_text(said)
            path.with_suffix(".new").write_text(json.dumps(list(known.values()), indent=1) + "\n")
            path.with_suffix(".new").replace(path)
            print(describe(law), flush=True)

    def lacks_examples(law: dict[str, Any]) -> bool:
        return law["state"] in ("", HELD) and law["examples"] < options.examples

    print(f"seed {options.seed}, {len(laws)} laws")
    with ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < end and (missing := [*filter(lacks_examples, laws)]):
            list(pool.map(work, sorted(missing, key=lambda law: int(law["examples"]))))
    failed = [law for law in laws if law["state"] == FAILED]
    left = [*failed, *filter(lacks_examples, laws)]
    print(
        f"{len(laws)} laws, {sum(law['examples'] for law in laws):,} examples in all; "
        f"{len(laws) - len(left)} had {options.examples:,}, or every one there is, and held."
    )
    print(*map(describe, left), sep="\n")
    raise SystemExit(bool(failed))


def describe(law: dict[str, Any]) -> str:
    """Return a line on what a law has gone through."""
    return f"{law['examples']:8,}  {law['seconds']:6.0f} s  {law['state']}  {law['name']}"


if __name__ == "__main__":
    main()
