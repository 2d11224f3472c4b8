"""Runs a preset: many replicates over processes, safe to stop at any moment.

Each replicate is computed with one BLAS thread and its own random numbers, so the records do
not depend on how many processes made them, in which order, or how often the run was stopped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from nysboost.experiments import datasets
from nysboost.experiments.presets import Preset
from nysboost.experiments.provenance import code_digest, made_with
from nysboost.experiments.replicate import Replicate, settings_of
from nysboost.experiments.results import Results
from nysboost.experiments.store import Record, Store, canonical
from nysboost.experiments.user_error import UserError
from nysboost.experiments.workers import in_processes

RECORD_FORMAT = 2
LIBRARIES = ("numpy", "scikit-learn", "scipy")
KEY = ("replicate", "reading")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, order=True)
class Unit:
    """One replicate under one reading of V: what one record holds."""

    replicate: int
    reading: str


@dataclass(frozen=True)
class Plan:
    """What to run: a preset, the methods, the seed, where data lie and where the matrix does.

    The device is no part of the settings: records agree to 1e-9 wherever they were made.
    """

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    data_dir: Path | None = None
    device: str = ""

    def settings(self, points: datasets.Points) -> dict[str, Any]:
        """Return all that a record depends on."""
        return {
            "format": RECORD_FORMAT,
            "preset": self.preset.settings(),
            "methods": list(self.methods),
            "seed": self.seed,
            "data": points.fingerprint(),
            "code": code_digest(),
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    def units(self) -> list[Unit]:
        """Return what is to be run, in order."""
        readings, replicates = self.preset.readings, range(self.preset.replicates)
        return [Unit(number, reading) for number in replicates for reading in readings]

    def missing_in(self, store: Store) -> list[Unit]:
        """Return the units of which there is no record yet."""
        there = {Unit(*(record[field] for field in KEY)) for record in store.records()}
        return [unit for unit in self.units() if unit not in there]

    def results_in(self, store: Store) -> Results:
        """Return what the records say."""
        records, libraries = store.records(), store.settings["libraries"]
        return Results.from_records(self.preset, self.methods, self.seed, records, libraries)


def run(
    plan: Plan, out: Path, jobs: int, progress: Progress = lambda _done, _total: None
) -> Results:
    """Compute what is missing of a plan and return all of its results.

    Parameters
    ----------
    plan : Plan
        What to run.
    out : Path
        The folder for the records.
    jobs : int
        How many processes; runs that measure time use one.
    progress : callable
        Told the number of records that are there, and of all, at the start and as each is made.
    """
    points = datasets.load(plan.preset.data, plan.data_dir)
    for reading in plan.preset.readings:
        settings_of(plan.preset, reading)
    store = Store(out, plan.preset.name, plan.settings(points), KEY)
    with store.alone():
        store.tidy()
        units, missing = plan.units(), plan.missing_in(store)
        progress(len(units) - len(missing), len(units))
        for done, record in enumerate(_records(plan, missing, jobs), start=1):
            store.append(record)
            progress(len(units) - len(missing) + done, len(units))
        store.tidy()
        return plan.results_in(store)


def gathered(plan: Plan, out: Path) -> Results:
    """Return the results of a plan from the records in a folder, whichever code made them.

    Records of one code and one set of libraries lie in one file. There must be one such file
    with all that the plan asks for: no records are made, and none are mixed.
    """
    asked = plan.settings(datasets.load(plan.preset.data, plan.data_dir))
    found = [Store.found(path, KEY) for path in sorted(out.glob("*.settings.json"))]
    stores = [store for store in found if _but_for_code(store.settings) == _but_for_code(asked)]
    if len(stores) != 1:
        message = (
            f"{out} has {len(stores)} files with records of {plan.preset.name} for these methods, "
            "seed and data; a report is made of one, with the settings that lie beside it."
        )
        raise UserError(message)
    if missing := plan.missing_in(stores[0]):
        message = (
            f"{stores[0].path} lacks {len(missing)} of {len(plan.units())} records: run them "
            "without --report-only, or ask for fewer with --replicates."
        )
        raise UserError(message)
    return plan.results_in(stores[0])


def _but_for_code(settings: Mapping[str, Any]) -> str:
    """Return the settings that say what was run, not what ran it."""
    return canonical({k: v for k, v in settings.items() if k not in ("code", "libraries")})


def _records(plan: Plan, units: list[Unit], jobs: int) -> Iterator[Record]:
    if plan.preset.measure == "seconds" or jobs == 1:
        with threadpool_limits(1):
            for unit in units:
                yield _work(plan, unit)
    else:
        yield from in_processes(functools.partial(_work, plan), units, jobs)


@functools.lru_cache(maxsize=1)
def _points(name: str, data_dir: Path | None) -> datasets.Points:
    return datasets.load(name, data_dir)


def _work(plan: Plan, unit: Unit) -> Record:
    points = _points(plan.preset.data, plan.data_dir)
    one = Replicate(
        plan.preset, points, plan.methods, plan.seed, unit.replicate, unit.reading, plan.device
    )
    values = one.measure()
    if not all(np.isfinite(v).all() for v in values.values()):
        raise UserError(f"Replicate {unit.replicate} of {plan.preset.name} is not finite.")
    return {
        "replicate": unit.replicate,
        "reading": unit.reading,
        "made_with": made_with(),
        "values": values,
    }
