"""Learners and Dask: targets stay on the workers, and predictions are lazy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite

from nysboost.data.dask_graph import as_node, is_dask
from nysboost.data.dask_tables import dask_rows
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.threads import on_one_core

Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """Let a method of a learner, rows ↦ an array, return a Dask array for Dask's rows.

    The learner travels to each worker once, without its training rows, and calls the method
    there on each chunk of rows.
    """

    @wraps(method)
    def on_rows(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        if any((*args, *kwargs.values())):
            msg = f"{method.__name__} of Dask's rows has no options: call it on X.compute()."
            raise ValueError(msg)
        return _mapped(self, method.__name__, X)

    return on_rows  # type: ignore[return-value]


def _mapped(model: Any, name: str, X: Any) -> Any:
    """Return the method's answer for each chunk of rows, when it is asked for."""
    rows, model = dask_rows(X, "X"), _without_names(model, X)
    one = getattr(model, name)(rows.form)  # it shows the shape and the dtype of the answers
    return rows.data.map_blocks(
        _called,
        model=as_node(model, "learner"),
        method=name,
        nothing=one[:0],
        chunks=(rows.data.chunks[0], *((size,) for size in one.shape[1:])),
        drop_axis=[] if one.ndim == 2 else 1,
        dtype=one.dtype,
        meta=one[:0],
        token=name.replace("_", "-"),
    )


def _without_names(model: Any, X: Any) -> Any:
    """Return a learner that asks for no names, after a look at those of a data frame."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return model
    if hasattr(X, "columns") and list(X.columns) != list(names):
        msg = f"X has the columns {list(X.columns)}, but {list(names)} were fitted, in this order."
        raise ValueError(msg)
    nameless = copy.copy(model)
    del nameless.feature_names_in_
    return nameless


def _called(block: Array, model: Any, method: str, nothing: Array) -> Array:
    if block.shape[0] == 0:
        return nothing
    with on_one_core():
        answer: Array = getattr(model, method)(block)
        return answer


def lazy_targets(y: Any) -> Any:
    """Return targets as a Dask array of shape (n, t) in float64."""
    values = y.to_dask_array() if hasattr(y, "to_dask_array") else y
    if values.dtype.kind not in "fiub":
        msg = f"y has dtype {values.dtype}, which is no number: a classifier takes labels."
        raise ValueError(msg)
    if values.ndim > 2:
        msg = f"y has shape {values.shape}: one row of targets for each row of X is needed."
        raise ValueError(msg)
    values = values[:, None] if values.ndim == 1 else values
    return values.astype(np.float64)


def refuse_gaps(Y: Any) -> None:
    """Say that targets have a gap, from their sums alone."""
    if not np.isfinite(np.asarray(Y.sum(axis=0))).all():
        msg = "y contains NaN or infinity: leave such rows out."
        raise ValueError(msg)


def location_and_scale(Y: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each target, computed where they are."""
    import dask

    centre, spread = dask.compute(Y.mean(axis=0), Y.std(axis=0))
    refuse_gaps(centre[None])
    return rounded(centre, spread)


def rounded(centre: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return them to a millionth of the spread, which is as good and hides how sums were formed.

    The search for landmarks would make much of a last digit that differs from cluster to
    cluster: with this its landmarks are those of the run in memory.
    """
    safe = np.where(spread > 0, spread, 1.0)
    step = 2.0 ** (np.floor(np.log2(safe)) - 20)
    far = 2.0 ** (np.floor(np.log2(np.abs(centre) + safe)) - 40)  # where only few digits are left
    coarse = np.maximum(step, far)
    return np.round(centre / coarse) * coarse, np.round(safe / step) * step


def lazy_indicators(y: Any) -> tuple[Array, Any]:
    """Return the classes, sorted, and a Dask array with 1 where a row has a class, else 0."""
    import dask.array as da

    labels = y.to_dask_array() if hasattr(y, "to_dask_array") else y
    if labels.ndim != 1:
        msg = f"y has shape {labels.shape}: one label for each row is needed."
        raise ValueError(msg)
    classes = np.sort(da.unique(labels).compute())
    if classes.dtype.kind == "f":
        _assert_all_finite(classes, input_name="y")
    check_classification_targets(classes)
    codes = labels.map_blocks(
        _indicators,
        classes=classes,
        chunks=(labels.chunks[0], (len(classes),)),
        new_axis=1,
        dtype=np.float64,
        meta=np.empty((0, 0)),
        token="indicators",
    )
    return classes, codes


def _indicators(labels: Array, classes: Array) -> Floats:
    found: Floats = np.equal(np.asarray(labels)[:, None], classes[None, :]).astype(np.float64)
    return found
