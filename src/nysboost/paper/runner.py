"""Run a preset in several processes, which do not affect the records; safe to stop at any time.

A file of records has one line of JSON for the settings, and one for each record. Its name contains
a digest of the settings. It is rewritten after each replicate, completely or not at all.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from nysboost._version import __version__
from nysboost.numerics.arrays import Floats
from nysboost.numerics.progress import current
from nysboost.paper import datasets
from nysboost.paper.presets import Preset, Reading
from nysboost.paper.replicate import POOLED, Measured, Replicate, settings_of
from nysboost.paper.results import Results
from nysboost.rows.files import atomic_file
from nysboost.user_error import UserError


class ReplicateRecord(TypedDict):
    """What a replicate gave under a reading, as a line of JSON; None was not measured."""

    replicate: int
    reading: str
    made_with: str
    values: dict[str, list[float | None]]
    properties: dict[str, float]


RunSettings: TypeAlias = dict[str, object]
"""All that a record depends on, as the first line of its file."""

RecordKey: TypeAlias = tuple[int, str]
"""The key of a record: a replicate, and the name of a reading."""

ANY = "any"
"""The name of the record of values that do not depend on a reading."""

RECORD_FORMAT = 4
LIBRARIES = ("numpy", "scikit-learn", "scipy")

JOBS_PER_TIMING = 4
"""Times are measured on every fourth core, because processes on all cores would slow each other
down."""

PACKAGE = Path(__file__).parents[1]
NUMBERS_COME_FROM = (
    "settings.py",
    "numerics",
    "kernels",
    "gram",
    "features",
    "boosting",
    "joint",
    "methods/adaptive.py",
    "paper/replicate.py",
)
"""The source files on which a replicate depends."""


@functools.cache
def digest_code(package: Path = PACKAGE) -> str:
    """Return a hash of the source on which numbers depend, independent of line ends."""
    found = hashlib.sha256()
    for part in NUMBERS_COME_FROM:
        path = package / part

        # a module, or all modules of a package
        files = sorted(path.rglob("*.py"))
        if path.is_file():
            files = [path]

        # names and contents, apart from each other
        for file in files:
            name = file.relative_to(package).as_posix()
            content = file.read_bytes().replace(b"\r\n", b"\n")
            found.update(name.encode() + b"\0")
            found.update(content + b"\0")
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class RunPlan:
    """What to run. The device is not a setting: records agree to 1e-9 on all devices."""

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    data_dir: Path | None = None
    device: str = ""
    code: str = field(default_factory=digest_code)

    def settings(self) -> RunSettings:
        """Return everything on which a record depends."""
        points = datasets.load(self.preset.data, self.data_dir)
        return {
            "format": RECORD_FORMAT,
            "preset": self.preset.settings(),
            "methods": self.methods,
            "seed": self.seed,
            "data": points.fingerprint(),
            "code": self.code,
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    @property
    def readings(self) -> tuple[Reading | None, ...]:
        """The readings to run, and None for values that do not depend on a reading."""
        pooled = any(name in POOLED for name in self.methods)
        if pooled or self.preset.properties:
            return (*self.preset.readings, None)
        return self.preset.readings

    @property
    def keys(self) -> list[RecordKey]:
        """The replicates and readings to run, in order."""
        numbers = range(self.preset.replicates)
        names = [name_reading(reading) for reading in self.readings]
        return list(itertools.product(numbers, names))

    def results(self, records: Mapping[RecordKey, ReplicateRecord]) -> Results:
        """Return the results in the records."""
        mine = [records[key] for key in self.keys]

        # stack what no reading changes
        anywhere = [record for record in mine if record["reading"] == ANY]
        shared = _stack(anywhere, "values")
        properties = _stack(anywhere, "properties")

        # stack the methods under each reading, in the order in which they were asked for
        values = {}
        for reading in self.preset.readings:
            of_reading = [record for record in mine if record["reading"] == str(reading)]
            found = _stack(of_reading, "values") | shared
            measured = [method for method in self.methods if method in found]
            values[reading] = {method: found[method] for method in measured}

        # name each version that made them once
        versions = dict.fromkeys(record["made_with"] for record in mine)
        return Results(
            self.preset,
            self.methods,
            self.seed,
            values,
            properties,
            made_with=tuple(versions),
        )


def name_reading(reading: Reading | None) -> str:
    """Return the name of a reading in records."""
    if reading is None:
        return ANY
    return str(reading)


def _stack(
    records: Sequence[ReplicateRecord], what: Literal["values", "properties"]
) -> dict[str, Floats]:
    """Stack each entry of some records into an array whose first axis is the replicate."""
    if not records:
        return {}
    stacked = {}
    for name in records[0][what]:
        values = [record[what][name] for record in records]
        stacked[name] = np.array(values, dtype=np.float64)
    return stacked


def run(plan: RunPlan, out: Path, jobs: int, deadline: float | None = None) -> Results | None:
    """Compute the missing records of a plan, replicate by replicate, and return its results.

    After `deadline`, in seconds since the epoch, no replicate begins. If some are missing then, the
    result is None.
    """
    for reading in plan.preset.readings:
        settings_of(plan.preset, reading)  # or it says what is wrong

    # read the records that an earlier run made with these settings
    out.mkdir(parents=True, exist_ok=True)
    settings = plan.settings()
    digest = hashlib.sha256(_to_text(settings).encode())
    path = out / f"{plan.preset.name}-{digest.hexdigest()[:16]}.jsonl"
    records: dict[RecordKey, ReplicateRecord] = {}
    if path.exists():
        _, records = read(path)

    # make the missing ones
    work = current()
    total = len(plan.keys)
    n_there = total - len(find_missing(plan, records))
    work.begin(total, n_there)
    for made in _make_records(plan, records, jobs, deadline):
        if not made:  # the time was over
            continue
        for record in made:
            records[record["replicate"], record["reading"]] = record
        _write(path, settings, records)
        work.step(len(made))

    if find_missing(plan, records):
        return None
    return plan.results(records)


def find_missing(plan: RunPlan, records: Mapping[RecordKey, ReplicateRecord]) -> list[RecordKey]:
    """Return the keys of a plan that have no record."""
    return [key for key in plan.keys if key not in records]


def _write(path: Path, settings: RunSettings, records: Mapping[RecordKey, ReplicateRecord]) -> None:
    """Write the settings and then the records in their order, a line each."""
    lines: list[object] = [settings]
    lines += [records[key] for key in sorted(records)]
    with atomic_file(path, "The records") as file:
        file.writelines(f"{_to_text(line)}\n".encode() for line in lines)


def gather(plan: RunPlan, out: Path) -> Results:
    """Return the results of a plan from a single file of records, from any version."""
    asked = _leave_code_out(plan.settings())
    matching = []
    for path in sorted(out.glob("*.jsonl")):
        settings, _ = read(path)
        if _leave_code_out(settings) == asked:
            matching.append(path)

    # several files would mix the results of different code
    if len(matching) != 1:
        raise UserError(
            f"{out} has {len(matching)} files with records of {plan.preset.name} for these "
            "methods, seed and data, but a report needs a single one."
        )

    # refuse incomplete records
    (path,) = matching
    _, records = read(path)
    missing = find_missing(plan, records)
    if missing:
        raise UserError(
            f"{path} lacks {len(missing)} of {len(plan.keys)} records: run them without "
            "--report-only, or ask for fewer with --replicates."
        )
    return plan.results(records)


def read(path: Path) -> tuple[RunSettings, dict[RecordKey, ReplicateRecord]]:
    """Return the settings and the records of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        settings, *records = map(json.loads, lines)
        keyed: dict[RecordKey, ReplicateRecord] = {}
        for record in records:
            keyed[record["replicate"], record["reading"]] = record
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path} is not a file of records, or is damaged ({error}): remove it and run again."
        raise UserError(msg) from error
    return settings, keyed


def _to_text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _leave_code_out(settings: RunSettings) -> str:
    """Return the settings without the hash of the source."""
    left = dict(settings)
    for name in ("code", "libraries"):
        left.pop(name, None)
    return _to_text(left)


@dataclass(frozen=True)
class ReplicateTask:
    """The readings of one replicate that have no record yet, computed in one process."""

    plan: RunPlan
    number: int
    readings: tuple[Reading | None, ...]
    deadline: float | None = None
    parent: int | None = None

    def run(self) -> list[ReplicateRecord]:
        """Return a record for each reading, or none after the deadline."""
        if self.parent is not None:
            _end_with(self.parent)
        if self.deadline is not None and time.time() > self.deadline:
            return []

        plan = self.plan
        points = _load(plan.preset.data, plan.data_dir)
        one = Replicate(plan.preset, points, plan.methods, plan.seed, self.number, plan.device)
        return [self._record(one.measure(reading)) for reading in self.readings]

    def _record(self, found: Measured) -> ReplicateRecord:
        """Return what was measured as a record, or refuse what is infinite."""
        measured = list(itertools.chain(*found.values.values()))
        is_finite = np.isfinite(list(found.properties.values())).all()
        if np.isinf(measured).any() or not is_finite:
            raise UserError(f"Replicate {self.number} of {self.plan.preset.name} is not finite.")

        # write null for what was not measured
        values = {}
        for name, mine in found.values.items():
            values[name] = [None if np.isnan(value) else value for value in mine]

        return {
            "replicate": self.number,
            "reading": name_reading(found.reading),
            "made_with": f"{__version__} ({self.plan.code})",
            "values": values,
            "properties": dict(found.properties),
        }


def _make_records(
    plan: RunPlan,
    records: Mapping[RecordKey, ReplicateRecord],
    jobs: int,
    deadline: float | None,
) -> Iterator[list[ReplicateRecord]]:
    """Yield the missing records of each replicate, as soon as they are made."""
    # use few processes to measure times; workers end with this process
    if plan.preset.measure == "seconds":
        jobs = max(1, jobs // JOBS_PER_TIMING)
    parent = None
    if jobs > 1:
        parent = os.getpid()

    # make a task for each replicate that lacks some reading
    tasks = []
    for number in range(plan.preset.replicates):
        missing = tuple(r for r in plan.readings if (number, name_reading(r)) not in records)
        if missing:
            tasks.append(ReplicateTask(plan, number, missing, deadline, parent))

    # run in this process
    if jobs == 1:
        with threadpool_limits(1):
            yield from (task.run() for task in tasks)
        return

    # run in as many processes as there are jobs
    try:
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            # batches of one: little is lost if the run ends
            workers = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
            yield from workers(joblib.delayed(ReplicateTask.run)(task) for task in tasks)
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process was killed, often because memory was full. The records so far are "
            "kept, and the same command continues; --jobs 1 needs the least memory."
        ) from error


@functools.cache
def _end_with(parent: int) -> None:
    """Make this process end with its parent; a joblib worker would end minutes later."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    # Ctrl-C ends the parent, which says so
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, daemon=True).start()


_load = functools.lru_cache(maxsize=1)(datasets.load)
