"""The paper's experiments: presets, data sets, claims, replicates, runs, ledger and pages."""

import tomllib
from pathlib import Path
from typing import Any


def read_toml(name: str) -> dict[str, Any]:
    """Read one of the paper's TOML tables in this package."""
    path = Path(__file__).parent / name
    return tomllib.loads(path.read_text(encoding="utf-8"))
