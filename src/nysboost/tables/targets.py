"""What is learned: labels of one type, and the target's column of a file."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite, column_or_1d

from nysboost.numerics.arrays import Floats, Indices, to_host
from nysboost.numerics.messages import format_count
from nysboost.rows.lazy import gather
from nysboost.tables import values
from nysboost.tables.frames import read_column
from nysboost.user_error import TableError


def bring_to_host(y: Any, learner: Any, what: str = "targets") -> Any:
    """Return y in memory, as it is but for its place; refuse none."""
    if y is None:
        raise ValueError(
            f"{type(learner).__name__} requires y to be passed, but the target y is None: "
            f"give as many {what} as X has rows."
        )
    y = gather(y)
    return to_host(y) if hasattr(y, "device") and not isinstance(y, np.ndarray) else y


def check_labels(y: Any, learner: Any) -> NDArray[Any]:
    """Return labels of one type that can be told apart, shape (n,), or say why they cannot."""
    y = bring_to_host(y, learner, "labels")
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        msg = "y is a masked array, and its masked labels would count: leave such rows out."
        raise ValueError(msg)
    array = np.asarray(y)
    if isinstance(y, list | tuple) and array.dtype.kind == "U":  # also of numbers beside text
        array = array if all(isinstance(label, str) for label in y) else np.array(y, dtype=object)
    if array.dtype.kind == "c":
        msg = "Complex data not supported: labels are text, whole numbers or truth values."
        raise ValueError(msg)
    # NumPy's text of any length is none that scikit-learn knows
    labels = column_or_1d(array.astype(object) if array.dtype.kind == "T" else array, warn=True)
    listed = labels.tolist() if labels.dtype.kind in "OU" else []
    if (row := next((i for i, v in enumerate(listed) if values.is_missing(v)), None)) is not None:
        msg = f"Input y contains NaN: no label in row {row} ({listed[row]!r}). Leave such rows out."
        raise ValueError(msg)
    labels = _of_one_type(labels) if labels.dtype.kind == "O" else labels
    if labels.dtype.kind == "f":
        _assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def find_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """Return the different labels, two or more, and which of them each row has."""
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            "A classifier needs at least two classes, but y has one class: all rows that count "
            f"have the label {classes.tolist()[0]!r}."
        )
    return classes, codes


def compute_class_weights(class_weight: Any, classes: NDArray[Any], labels: NDArray[Any]) -> Floats:
    """Return how often a row of each class counts, shape (k,)."""
    if isinstance(class_weight, Mapping):
        for label, weight in class_weight.items():
            if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
                msg = f"class_weight has {weight!r} for the class {label!r}: a positive number, "
                raise ValueError(f"{msg}or 0, is needed.")
        class_weight = dict(class_weight)
    elif class_weight is not None and str(class_weight) != "balanced":
        msg = f'class_weight is a dict, "balanced" or None, but {class_weight!r} was given.'
        raise ValueError(msg)
    found: Floats = compute_class_weight(class_weight, classes=classes, y=labels)
    if not found.any():
        raise ValueError("class_weight has 0 for every class: no row counts.")
    return found


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as numbers or truth values where they are, else as text or what they are."""
    if len({isinstance(label, str) for label in labels}) > 1:
        msg = "y mixes text with other labels: make all of them text, with y.astype(str) say."
        raise TypeError(msg)
    kinds = {type(label) for label in labels}
    if kinds <= {bool, np.bool}:
        return labels.astype(np.bool)
    whole = all(issubclass(kind, int | np.integer | np.bool) for kind in kinds)
    if any(isinstance(label, str) or values.as_number(label) is None for label in labels):
        return labels
    try:
        return labels.astype(np.int64 if whole else np.float64)
    except OverflowError as error:
        msg = f"y has labels of more than 64 bits, such as {max(labels)}: turn them into text."
        raise ValueError(msg) from error


def read_target(column: Any, name: str, path: str) -> NDArray[Any]:
    """Return the target of a file: floats, truth values, or text."""
    import narwhals as nw

    cells = read_column(nw.from_native(column, series_only=True), name)
    kind, data, found = cells.kind, cells.data, cells.values
    if found is not None and kind == "object":
        kind, _, numbers = values.kind_of(found, cells.counts())
    if kind in ("date", "duration"):
        raise TableError(
            f"The target {name!r} of {path} holds dates or times: turn it into numbers to be "
            "regressed, or into text to be classified."
        )
    if found is not None and kind in values.READINGS:
        data, found = cells.replace_values(numbers), None
    gaps = cells.gaps if found is not None else np.isnan(data)
    if (row := values.first_of(gaps)) is not None:
        rows = format_count(gaps.sum(), "row")
        raise TableError(
            f"The target {name!r} of {path} has no value in {rows}, first in "
            f"row {row}: --drop-missing-target leaves such rows out, --drop-missing all rows "
            "with a gap in any column."
        )
    if found is not None:
        data = np.array([str(values.plain(v)) for v in found], dtype=object)[data]
    return np.asarray(data, dtype=np.bool if kind == "boolean" else None)
