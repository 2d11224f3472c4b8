"""Runs a preset over processes, on which records do not depend; safe to stop at any moment.

A file of records has a line of JSON for the settings, whose digest is in its name, and one for
each record. It is written anew with each of them, whole or not at all.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from nysboost._version import __version__
from nysboost.compare.page import make_writable
from nysboost.numerics.progress import current
from nysboost.paper import datasets
from nysboost.paper.ledger import Results
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import Replicate, settings_of
from nysboost.rows.files import atomic_file
from nysboost.user_error import UserError

Record = dict[str, Any]
Key = tuple[int, str]
"""A replicate and a reading of V: what tells one record from another."""
RECORD_FORMAT = 3
LIBRARIES = ("numpy", "scikit-learn", "scipy")
PACKAGE = Path(__file__).parents[1]
NUMBERS_COME_FROM = (
    *("settings.py", "numerics", "kernels", "gram", "features", "boosting", "joint"),
    "paper/replicate.py",
)
"""All that one replicate runs through, below the report: a change anywhere here may change it."""


@functools.cache
def digest_code(package: Path = PACKAGE) -> str:
    """Return a hash of the source that numbers come from, whatever its line ends are."""
    found = hashlib.sha256()
    for part in NUMBERS_COME_FROM:
        path = package / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            found.update(file.relative_to(package).as_posix().encode() + b"\0")
            found.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """What to run; the device is no setting: records agree to 1e-9 wherever they were made."""

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    data_dir: Path | None = None
    device: str = ""
    code: str = field(default_factory=digest_code)

    def settings(self) -> Record:
        """Return all that a record depends on."""
        return {
            "format": RECORD_FORMAT,
            "preset": self.preset.settings(),
            "methods": self.methods,
            "seed": self.seed,
            "data": datasets.load(self.preset.data, self.data_dir).fingerprint(),
            "code": self.code,
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    @property
    def keys(self) -> list[Key]:
        """The replicates and readings to run, in order."""
        readings, replicates = self.preset.readings, range(self.preset.replicates)
        return [(number, reading) for number in replicates for reading in readings]

    def results(self, settings: Record, records: Mapping[Key, Record]) -> Results:
        """Return what the records say."""
        mine = [records[key] for key in self.keys]
        values = {
            reading: {
                method: np.array([r["values"][method] for r in mine if r["reading"] == reading])
                for method in self.methods
            }
            for reading in self.preset.readings
        }
        made_with = tuple(dict.fromkeys(record["made_with"] for record in mine))
        return Results(
            self.preset, self.methods, self.seed, values, made_with, settings["libraries"]
        )


def run(plan: Plan, out: Path, jobs: int) -> Results:
    """Compute what is missing of a plan, record by record, and return its results."""
    for reading in plan.preset.readings:
        settings_of(plan.preset, reading)  # or it says what is wrong
    make_writable(out)
    settings = plan.settings()
    digest = hashlib.sha256(_to_text(settings).encode()).hexdigest()[:16]
    path = out / f"{plan.preset.name}-{digest}.jsonl"
    records = read(path)[1] if path.exists() else {}
    missing = [key for key in plan.keys if key not in records]
    work, total = current(), len(plan.keys)
    work.begin(total, total - len(missing))
    for record in _make_records(plan, missing, jobs):
        records[record["replicate"], record["reading"]] = record
        ordered = (record for _, record in sorted(records.items()))
        with atomic_file(path, "The records") as file:
            file.writelines(f"{_to_text(line)}\n".encode() for line in (settings, *ordered))
        work.step()
    return plan.results(settings, records)


def gather(plan: Plan, out: Path) -> Results:
    """Return a plan's results from one file of records, whichever code made them; mix none."""
    asked = _leave_code_out(plan.settings())
    files = [(path, *read(path)) for path in sorted(out.glob("*.jsonl"))]
    files = [file for file in files if _leave_code_out(file[1]) == asked]
    if len(files) != 1:
        raise UserError(
            f"{out} has {len(files)} files with records of {plan.preset.name} for these methods, "
            "seed and data; a report is made of one."
        )
    path, settings, records = files[0]
    if missing := [key for key in plan.keys if key not in records]:
        raise UserError(
            f"{path} lacks {len(missing)} of {len(plan.keys)} records: run them without "
            "--report-only, or ask for fewer with --replicates."
        )
    return plan.results(settings, records)


def read(path: Path) -> tuple[Record, dict[Key, Record]]:
    """Return the settings and the records of a file."""
    try:
        settings, *records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return settings, {(record["replicate"], record["reading"]): record for record in records}
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path} is no file of records, or it is damaged ({error}): remove it and run again."
        raise UserError(msg) from error


def _to_text(value: Record) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _leave_code_out(settings: Record) -> str:
    """Return the settings that say what was run, not what ran it."""
    return _to_text({k: v for k, v in settings.items() if k not in ("code", "libraries")})


def _make_records(plan: Plan, keys: Sequence[Key], jobs: int) -> Iterator[Record]:
    """Yield a record for each key, as soon as it is made."""
    if plan.preset.measure == "seconds" or jobs == 1:
        with threadpool_limits(1):
            yield from (_make_record(plan, *key) for key in keys)
        return
    try:
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            # one item at a time, so that an end leaves little behind
            workers = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
            yield from workers(
                joblib.delayed(_make_record)(plan, *key, os.getpid()) for key in keys
            )
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process was ended from outside (often for want of memory). The records "
            "made so far are kept: the same command goes on; --jobs 1 needs least memory."
        ) from error


@functools.cache
def _end_with(parent: int) -> None:
    """Make this process end with its parent, which a worker of joblib does minutes later."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


_load = functools.lru_cache(maxsize=1)(datasets.load)


def _make_record(plan: Plan, number: int, reading: str, parent: int | None = None) -> Record:
    if parent is not None:
        _end_with(parent)
    points = _load(plan.preset.data, plan.data_dir)
    one = Replicate(plan.preset, points, plan.methods, plan.seed, number, reading, plan.device)
    values = one.measure()
    if not all(np.isfinite(v).all() for v in values.values()):
        raise UserError(f"Replicate {number} of {plan.preset.name} is not finite.")
    made_with = f"{__version__} ({plan.code})"
    return {"replicate": number, "reading": reading, "made_with": made_with, "values": values}
