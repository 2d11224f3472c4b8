"""Models in files: loaded, asked what they can do, and what columns they know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.cli.errors import ModelError, NoFileError

Mapper = Callable[[Any], Any]
"""A block of rows, or a Dask array, ↦ what comes out of it."""


def load_model(path: Path) -> Any:
    """Load a model, or say why it is none."""
    import nysboost as nb

    if not path.is_file():
        msg = f"There is no model {path}."
        raise NoFileError(msg)
    try:
        return nb.load(path)
    except ValueError as error:
        raise ModelError(str(error)) from error


def known_columns(model: Any) -> tuple[list[str] | None, int]:
    """Return the names of the columns that a model was fitted on, if any, and their number."""
    names = getattr(model, "feature_names_in_", None)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        width = model.gram.rows.n_features
    return (None if names is None else [str(name) for name in names]), int(width)


def transformer(model: Any) -> Mapper:
    """Return rows ↦ features."""
    if hasattr(model, "transform"):
        return lambda X: model.transform(X)
    if hasattr(model, "feature_map"):
        features, _ = model.feature_map()
        return features  # type: ignore[no-any-return]
    msg = f"This {type(model).__name__} has no features: nysboost predict is for it."
    raise ModelError(msg)


def predictor(model: Any) -> Mapper:
    """Return rows ↦ predictions, shape (n, outputs)."""
    if not hasattr(model, "predict"):
        msg = f"This {type(model).__name__} predicts nothing: fit with --target, or transform."
        raise ModelError(msg)

    def predict(X: Any) -> Any:
        found = model.predict(X)
        return found[:, None] if found.ndim == 1 else found

    return predict


def output_names(kind: str, width: int) -> list[str]:
    """Return names for the columns of an output."""
    return [kind] if width == 1 else [f"{kind}_{i}" for i in range(width)]


def unmistakable(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels 1.0, 2.0, … as whole numbers, and others as they are."""
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == labels.round()).all():
        return labels.astype(np.int64)
    return labels
