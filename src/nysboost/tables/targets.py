"""Targets and labels as they come: series of any library, objects, columns of files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite, column_or_1d

from nysboost.numerics.checks import refuse_odd_labels
from nysboost.tables import values
from nysboost.tables.frames import cells_of
from nysboost.tables.values import READINGS, Factor, first_of, kind_of, numbers_as
from nysboost.user_error import TableError


def labels_of(y: Any) -> NDArray[Any]:
    """Return labels as an array of one type: numbers, truth values or text."""
    array = np.asarray(y)
    if array.dtype.kind == "T":  # NumPy's text of any length
        array = array.astype(object)
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    row = first_of(np.array([values.is_gap(label) for label in array], dtype=bool))
    if row is not None:
        msg = f"Input y contains NaN: no label in row {row} ({array[row]!r}). Leave such rows out."
        raise ValueError(msg)
    kinds = {type(label) for label in array}
    if kinds <= {bool, np.bool}:
        return array.astype(np.bool)
    whole = all(issubclass(kind, int | np.integer | np.bool) for kind in kinds)
    if not whole and any(
        values.as_number(label) is None or isinstance(label, str) for label in array
    ):
        return array
    try:
        return array.astype(np.int64 if whole else np.float64)
    except OverflowError as error:
        msg = f"y has labels of more than 64 bits, such as {max(array)}: turn them into text."
        raise ValueError(msg) from error


def classifiable(y: Any) -> NDArray[Any]:
    """Return labels in memory that can be told apart, shape (n,), or say why they cannot."""
    if not isinstance(y, np.ma.MaskedArray) and np.asarray(y).ndim == 1:
        y = labels_of(y)
    refuse_odd_labels(y)
    labels = labels_of(column_or_1d(y, warn=True))
    if labels.dtype.kind == "f":
        _assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def target_of(column: Any, name: str, path: str) -> NDArray[Any]:
    """Return the target of a file: floats, truth values, or text."""
    import narwhals as nw

    cells = cells_of(nw.from_native(column, series_only=True), name)
    kind, data = cells.kind, cells.data
    if isinstance(data, Factor) and kind == "object":
        kind = kind_of(data.values, data.counts())
    if kind in ("date", "duration"):
        raise TableError(
            f"The target {name!r} of {path} holds dates or times: turn it into numbers to be "
            "regressed, or into text to be classified."
        )
    if isinstance(data, Factor) and kind in READINGS:
        data = data.at(numbers_as(kind, data.values)[0])
    gaps = data.codes < 0 if isinstance(data, Factor) else np.isnan(data)
    if (row := first_of(gaps)) is not None:
        raise TableError(
            f"The target {name!r} of {path} has no value in {int(gaps.sum())} rows, first in row "
            f"{row}: leave such rows out (--drop-missing)."
        )
    if isinstance(data, Factor):
        return np.array([str(values.plain(v)) for v in data.values], dtype=object)[data.codes]
    return data.astype(np.bool) if kind == "boolean" else data
