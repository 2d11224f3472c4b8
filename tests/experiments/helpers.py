"""Small presets and made-up results that the tests of the experiments share."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.experiments import presets
from nysboost.experiments.presets import Preset
from nysboost.experiments.replicate import METHODS
from nysboost.experiments.results import Results


def tiny(**changes: Any) -> Preset:
    """Return the simulation with a few points, learners and replicates."""
    small: dict[str, Any] = {
        "n_points": 120,
        "n_learners": 3,
        "n_columns": 6,
        "rank": 5,
        "n_candidates": 24,
        "n_fit": 8,
        "n_tune": 8,
        "replicates": 2,
    }
    return replace(presets.load("simulation"), **(small | changes))


def made_up(
    name: str, level: Callable[[str, int], float], *, replicates: int = 10, noise: float = 0.01
) -> Results:
    """Return results whose mean for a method and number of learners is the given level."""
    preset = replace(presets.load(name), replicates=replicates)
    rng = np.random.default_rng(7)
    values = {
        reading: {
            method: np.array([[level(method, p) for p in preset.counts]])
            * (1 + noise * rng.standard_normal((replicates, len(preset.counts))))
            for method in METHODS
        }
        for reading in preset.readings
    }
    return Results(preset, METHODS, 0, values)


def started(folder: Path, script: str) -> subprocess.Popen[str]:
    """Start a script in a process of its own, which Ctrl-C reaches and the tests' own does not."""
    path = folder / "run.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # whoever runs the tests in the background has it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
