"""The paper's experiments: presets, data sets, claims, replicates, runs, ledger and pages."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_toml(name: str) -> dict[str, Any]:
    """Read one of the paper's tables that lie beside the code."""
    return tomllib.loads(resources.files(__package__).joinpath(name).read_text("utf-8"))
