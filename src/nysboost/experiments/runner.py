"""Runs a preset: many replicates over processes, safe to stop at any moment.

Each replicate is computed with one BLAS thread and its own random numbers, so the records do
not depend on how many processes made them, in which order, or how often the run was stopped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
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
from nysboost.experiments.store import Record, Store
from nysboost.experiments.user_error import UserError
from nysboost.experiments.workers import in_processes

RECORD_FORMAT = 2
LIBRARIES = ("numpy", "scipy", "scikit-learn")
Progress = Callable[[int, int], None]


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


@dataclass(frozen=True, order=True)
class Unit:
    """One replicate under one reading of V: what one record holds."""

    replicate: int
    reading: str


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
    store = Store(out, plan.preset.name, plan.settings(points), ("replicate", "reading"))
    with store.alone():
        store.tidy()
        units = [
            Unit(r, reading)
            for r in range(plan.preset.replicates)
            for reading in plan.preset.readings
        ]
        there = {Unit(rec["replicate"], rec["reading"]) for rec in store.records()}
        missing = [unit for unit in units if unit not in there]
        progress(len(units) - len(missing), len(units))
        for done, record in enumerate(_records(plan, missing, jobs), start=1):
            store.append(record)
            progress(len(units) - len(missing) + done, len(units))
        store.tidy()
        return Results.from_records(plan.preset, plan.methods, plan.seed, store.records())


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
