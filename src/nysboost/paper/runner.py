"""Runs a preset over processes, on which records do not depend; safe to stop at any moment.

Records are JSON lines with checksums, in a file named by a digest of all settings.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from nysboost._version import __version__
from nysboost.compare.page import make_writable
from nysboost.data.files import whole_text
from nysboost.numerics.progress import current
from nysboost.paper import datasets
from nysboost.paper.ledger import Results
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import Replicate, settings_of
from nysboost.user_error import UserError

Record = dict[str, Any]
Key = tuple[int, str]
"""A replicate and a reading of V: what tells one record from another."""
SETTINGS = ".settings.json"
VERSION = "nysboost_version"
RECORD_FORMAT = 2
LIBRARIES = ("numpy", "scikit-learn", "scipy")
PACKAGE = Path(__file__).parents[1]
NUMBERS_COME_FROM = (
    *("settings.py", "numerics", "kernels", "gram", "engine", "boosting"),
    "paper/replicate.py",
)
"""All that one replicate runs through, below the report: a change anywhere here may change it."""


def to_text(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, floats exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """Return 64 bits of a hash of a value's text: enough against damage by chance."""
    return hashlib.sha256(to_text(value).encode()).hexdigest()[:16]


def _to_line(record: Record) -> str:
    return to_text({"checksum": digest(record), "record": record}) + "\n"


class Store:
    """The records of one preset, in a file named after it and a digest of its settings."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        stem = f"{name}-{digest(self.settings)}"
        self.path = folder / f"{stem}.jsonl"
        make_writable(folder)
        beside = folder / f"{stem}{SETTINGS}"
        if not beside.exists():
            # the digest leaves the version out: what numbers depend on is in the settings
            described = self.settings | {VERSION: __version__}
            with whole_text(beside) as file:
                file.write(json.dumps(described, indent=2, sort_keys=True) + "\n")

    @classmethod
    def open(cls, path: Path) -> Store:
        """Return the store whose settings lie in this file."""
        settings: Record = {}
        with suppress(ValueError):
            settings = json.loads(path.read_text(encoding="utf-8"))
            settings.pop(VERSION, None)
        name, _, rest = path.name.rpartition("-")
        if rest != f"{digest(settings)}{SETTINGS}":
            raise UserError(f"{path} is not what was written with its records: its name says so.")
        return cls(path.parent, name, settings)

    def read(self) -> dict[Key, Record]:
        """Return the whole records, each key once and in order."""
        found: dict[Key, Record] = {}
        if self.path.exists():
            with self.path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                for line in lines:
                    with suppress(ValueError, KeyError, TypeError):  # of a line that is damaged
                        wrapped = json.loads(line)
                        record = wrapped["record"]
                        if wrapped["checksum"] == digest(record):
                            found[record["replicate"], record["reading"]] = record
        return dict(sorted(found.items()))

    def tidy(self) -> None:
        """Rewrite the file with its whole records in order, all at once or not at all."""
        text = "".join(map(_to_line, self.read().values()))
        with whole_text(self.path, "The records") as file:
            file.write(text)

    def append(self, record: Record) -> None:
        """Write one record and hand it to the disk before returning."""
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(_to_line(record))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the file for this process; a second run of the same settings is refused."""
        try:
            import fcntl
        except ImportError:  # no such lock on Windows: there the rule is on the user
            yield
            return
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(
                    f"Another run is writing {self.path}: wait for it, or give this one "
                    "another folder with --out."
                ) from error
            yield


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

    def settings(self) -> dict[str, Any]:
        """Return all that a record depends on."""
        return {
            "format": RECORD_FORMAT,
            "preset": self.preset.settings(),
            "methods": list(self.methods),
            "seed": self.seed,
            "data": datasets.load(self.preset.data, self.data_dir).fingerprint(),
            "code": self.code,
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    def keys(self) -> list[Key]:
        """Return the replicates and readings to run, in order."""
        readings, replicates = self.preset.readings, range(self.preset.replicates)
        return [(number, reading) for number in replicates for reading in readings]

    def missing_in(self, store: Store) -> list[Key]:
        """Return those of which there is no record yet."""
        there = store.read()
        return [key for key in self.keys() if key not in there]

    def results_in(self, store: Store) -> Results:
        """Return what the records say."""
        records = store.read()
        made_with = dict.fromkeys(records[key]["made_with"] for key in self.keys())
        values = {
            reading: {
                method: np.array(
                    [records[key]["values"][method] for key in self.keys() if key[1] == reading]
                )
                for method in self.methods
            }
            for reading in self.preset.readings
        }
        libraries = store.settings["libraries"]
        return Results(self.preset, self.methods, self.seed, values, tuple(made_with), libraries)


def run(plan: Plan, out: Path, jobs: int) -> Results:
    """Compute what is missing of a plan, record by record, and return its results."""
    for reading in plan.preset.readings:
        settings_of(plan.preset, reading)
    store = Store(out, plan.preset.name, plan.settings())
    with store.lock():
        store.tidy()
        total, missing, work = len(plan.keys()), plan.missing_in(store), current()
        work.begin(total, total - len(missing))
        for record in _make_records(plan, missing, jobs):
            store.append(record)
            work.step()
        store.tidy()
        return plan.results_in(store)


def gather(plan: Plan, out: Path) -> Results:
    """Return a plan's results from one file of records, whichever code made them; mix none."""
    asked = _leave_code_out(plan.settings())
    found = [Store.open(path) for path in sorted(out.glob("*.settings.json"))]
    stores = [store for store in found if _leave_code_out(store.settings) == asked]
    if len(stores) != 1:
        raise UserError(
            f"{out} has {len(stores)} files with records of {plan.preset.name} for these methods, "
            "seed and data; a report is made of one, with the settings that lie beside it."
        )
    if missing := plan.missing_in(stores[0]):
        raise UserError(
            f"{stores[0].path} lacks {len(missing)} of {len(plan.keys())} records: run them "
            "without --report-only, or ask for fewer with --replicates."
        )
    return plan.results_in(stores[0])


def _leave_code_out(settings: Mapping[str, Any]) -> str:
    """Return the settings that say what was run, not what ran it."""
    return to_text({k: v for k, v in settings.items() if k not in ("code", "libraries")})


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
            yield from workers(joblib.delayed(_work)(os.getpid(), plan, *key) for key in keys)
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process was ended from outside (often for want of memory). The records "
            "made so far are kept: the same command goes on; --jobs 1 needs least memory."
        ) from error


def _work(parent: int, plan: Plan, number: int, reading: str) -> Record:
    _end_with(parent)
    return _make_record(plan, number, reading)


@functools.cache
def _end_with(parent: int) -> None:
    """Make this process end with its parent, which a worker of joblib does minutes later."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


_load = functools.lru_cache(maxsize=1)(datasets.load)


def _make_record(plan: Plan, number: int, reading: str) -> Record:
    points = _load(plan.preset.data, plan.data_dir)
    one = Replicate(plan.preset, points, plan.methods, plan.seed, number, reading, plan.device)
    values = one.measure()
    if not all(np.isfinite(v).all() for v in values.values()):
        raise UserError(f"Replicate {number} of {plan.preset.name} is not finite.")
    made_with = f"{__version__} ({plan.code})"
    return {"replicate": number, "reading": reading, "made_with": made_with, "values": values}
