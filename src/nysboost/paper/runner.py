"""Runs a preset over processes, on which records do not depend; safe to stop at any moment."""

from __future__ import annotations

import functools
import hashlib
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
from nysboost.numerics.progress import current
from nysboost.paper import datasets
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import Replicate, settings_of
from nysboost.paper.results import Results
from nysboost.paper.store import Key, Record, Store, to_text
from nysboost.user_error import UserError

RECORD_FORMAT = 2
LIBRARIES = ("numpy", "scikit-learn", "scipy")
PACKAGE = Path(__file__).parents[1]
NUMBERS_COME_FROM = (
    *("settings.py", "numerics", "kernels", "gram", "engine", "boosting"),
    *("paper/errors.py", "paper/replicate.py"),
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
        message = (
            f"{out} has {len(stores)} files with records of {plan.preset.name} for these methods, "
            "seed and data; a report is made of one, with the settings that lie beside it."
        )
        raise UserError(message)
    if missing := plan.missing_in(stores[0]):
        message = (
            f"{stores[0].path} lacks {len(missing)} of {len(plan.keys())} records: run them "
            "without --report-only, or ask for fewer with --replicates."
        )
        raise UserError(message)
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
        message = (
            "A worker process was ended from outside (often for want of memory). The records "
            "made so far are kept: the same command goes on; --jobs 1 needs least memory."
        )
        raise UserError(message) from error


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
