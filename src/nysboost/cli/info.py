"""``nysboost info``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nysboost.cli.models import known_columns, load_model


def run(path: Path) -> dict[str, Any]:
    """Return what a model says about itself, ready to be printed."""
    model = load_model(path)
    names, width = known_columns(model)
    said: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "model": type(model).__name__,
        "columns_in": width,
    }
    if names is not None:
        said["names_in"] = names
    if hasattr(model, "get_feature_names_out"):
        said["features_out"] = len(model.get_feature_names_out())
    if hasattr(model, "classes_"):
        said["classes"] = [str(label) for label in model.classes_]
    found = getattr(model, "approximation_", model)
    for name in ("method", "kernel", "rank", "entries_evaluated"):
        value = getattr(found, name, None)
        if value not in (None, 0, "unnamed"):  # a learner's landmarks come from no one method
            said[name] = value if isinstance(value, int) else str(value)
    if hasattr(found, "landmarks"):
        said["landmarks"] = len(found.landmarks)
    if hasattr(found, "shape"):
        said["fitted_on_rows"] = int(found.shape[0])
    return said
