"""Targets: labels of one type, and the target column of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.checks import LEAVE_OUT, bring_to_host, refuse_non_finite
from nysboost.numerics.messages import format_cell, format_count
from nysboost.tables.categories import plain
from nysboost.tables.dates import DATES
from nysboost.tables.frames import RawColumn, Table, has_large_whole_numbers, read_column
from nysboost.tables.gaps import is_gap, is_program_mark
from nysboost.tables.values import Booleans, as_number, as_whole, find_rounded, first_of, kind_of
from nysboost.user_error import TableError

if TYPE_CHECKING:
    import pyarrow as pa

Labels: TypeAlias = NDArray[Any]
"""Labels or targets of any type, shape (n,)."""

LEADING_ZERO = re.compile(r"\s*0\d+\s*$", re.ASCII)
"""Text such as 007 is a code: as a number it would lose its zeros."""


# Labels


def check_labels(y: Table, learner: object) -> Labels:
    """Return labels of one type, shape (n,); raise if they are invalid."""
    y = bring_to_host(y, learner, "labels")
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        msg = "y is a masked array, and its masked labels would be used: leave such rows out."
        raise ValueError(msg)

    # bring the labels into one array
    array = _as_array(y)
    if array.dtype.kind == "c":
        msg = "Complex data not supported: labels are text, whole numbers or truth values."
        raise ValueError(msg)
    labels: Labels = column_or_1d(array, warn=True)

    # refuse gaps and mixed types
    _refuse_gaps(labels)
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels)
    if labels.dtype.kind == "f":
        refuse_non_finite(labels, 0, "y", LEAVE_OUT)
    check_classification_targets(labels)
    return labels


def _as_array(y: Table) -> Labels:
    """Return labels as an array of a type that scikit-learn supports."""
    try:
        array = np.asarray(y)
    except ValueError as error:  # of rows that differ in length
        raise ValueError(
            "y has several values in some rows: give one label for each row."
        ) from error
    if array.dtype.kind == "T":  # NumPy's text of any length
        return array.astype(object)

    # NumPy makes text of numbers beside text
    if isinstance(y, list | tuple) and array.dtype.kind == "U":
        all_text = all(isinstance(label, str) for label in y)
        if not all_text:
            return np.array(y, dtype=object)
    return array


def _refuse_gaps(labels: Labels) -> None:
    """Raise for None, NaN and blank text among labels."""
    if labels.dtype.kind not in "OU":
        return
    for row, label in enumerate(labels.tolist()):
        if is_gap(label):
            raise ValueError(f"y contains NaN: no label in row {row} ({label!r}). {LEAVE_OUT}")


def _of_one_type(labels: Labels) -> Labels:
    """Convert objects to numbers or Booleans if possible, else to text, or leave them unchanged."""
    are_text = {isinstance(label, str) for label in labels}
    if len(are_text) > 1:
        msg = "y mixes text with other labels: make all of them text, for example y.astype(str)."
        raise TypeError(msg)

    if True in are_text:
        return labels
    for label in labels:
        if as_number(label) is None:
            raise TypeError(
                f"y has labels of type {type(label).__name__}, such as {format_cell(label)}: make "
                "all of them text, with y.astype(str) say."
            )

    kinds = {type(label) for label in labels}
    if kinds <= {bool, np.bool}:
        return labels.astype(np.bool)

    # numbers, and integers if all of them are
    are_whole = all(issubclass(kind, int | np.integer | np.bool) for kind in kinds)
    if not are_whole:
        return labels.astype(np.float64)
    try:
        return labels.astype(np.int64)
    except OverflowError as error:
        msg = f"y has labels of more than 64 bits, such as {max(labels)}: convert them to text."
        raise ValueError(msg) from error


def find_classes(labels: Labels) -> tuple[Labels, Indices]:
    """Return the distinct labels, at least two, and the position of each row's label."""
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            "A classifier needs at least two classes, but y has one class: all rows with positive "
            f"weight have the label {classes.tolist()[0]!r}."
        )
    return classes, codes


def compute_class_weights(class_weight: object, classes: Labels, labels: Labels) -> Floats:
    """Return the weight of each class, shape (k,)."""
    if isinstance(class_weight, Mapping):
        for label, weight in class_weight.items():
            _check_class_weight(label, weight)
        class_weight = dict(class_weight)
        _refuse_other_classes(list(class_weight), classes.tolist())
    elif class_weight is not None and str(class_weight) != "balanced":
        msg = f'class_weight is a dict, "balanced" or None, but {class_weight!r} was given.'
        raise ValueError(msg)

    found: Floats = compute_class_weight(class_weight, classes=classes, y=labels)
    if not found.any():
        raise ValueError("class_weight is 0 for every class: give a class a positive weight.")
    return found


def _check_class_weight(label: object, weight: object) -> None:
    if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
        raise ValueError(
            f"class_weight has {weight!r} for the class {label!r}: a positive number, or 0, is "
            "needed."
        )


def _refuse_other_classes(given: Sequence[object], classes: Sequence[object]) -> None:
    """Raise if a weight is for an unknown label while another label has no weight."""
    others = [label for label in given if label not in classes]
    without = [label for label in classes if label not in given]
    if others and without:
        raise ValueError(
            f"class_weight has a weight for {others[0]!r}, which is no class of y, and none for "
            f"the class {without[0]!r}: its keys are the labels of y."
        )


# The target's column of a file


def read_target(column: pa.ChunkedArray, name: str, path: str) -> Labels:
    """Return the target of a file, shape (n,): numbers, Booleans, or text as written.

    Whole numbers with more digits than a float stay whole numbers, because they are labels.
    """
    import narwhals as nw

    # whole numbers that floats would round
    series = nw.from_native(column, series_only=True)
    has_gaps = bool(series.is_null().any())
    if has_large_whole_numbers(series) and not has_gaps:
        return np.asarray(series.to_numpy())

    # numbers, or values that may be numbers
    cells = read_column(series, name)
    kind = cells.kind
    data = cells.data
    if cells.values is None:
        _refuse_missing_targets(cells.gaps, name, path)
    else:
        kind, data = _read_values(cells, name, path)

    if kind in (*DATES, "duration"):
        raise TableError(
            f"The target {name!r} of {path} holds dates or times: turn it into numbers to be "
            "regressed, or into text to be classified."
        )

    if kind == "boolean":
        return data.astype(np.bool)
    return data


def _read_values(cells: RawColumn, name: str, path: str) -> tuple[str, Labels]:
    """Return the kind of a target given as values, and the target."""
    values = cells.values or ()
    kind = "category"
    gaps = cells.gaps
    if cells.kind == "object":
        kind, _, numbers = kind_of(values, cells.counts())

    # a mark such as NA among numbers is a gap
    if kind != "category":
        is_mark = [is_program_mark(value) for value in values]
        gaps = gaps | np.isin(cells.data, np.flatnonzero(is_mark))

    # labels come back as they are written
    texts = [value for value in values if isinstance(value, str)]
    is_text_truth = kind == "boolean" and bool(texts)
    has_codes = any(LEADING_ZERO.match(text) for text in texts)
    if kind in ("category", "numbers, but") or is_text_truth or has_codes:
        _refuse_missing_targets(gaps, name, path)
        written = [str(plain(value)) for value in values]
        labels = np.array(written, dtype=object)
        return "category", labels[cells.data]

    # numbers; large integers keep all their digits
    data = cells.replace_values(numbers)
    _refuse_missing_targets(gaps | np.isnan(data), name, path)
    if kind == "number" and find_rounded(values, numbers) is not None:
        whole = [as_whole(value) for value in values]
        if None not in whole:
            return _keep_digits(whole, cells)
    return kind, data


def _keep_digits(whole: Sequence[int | None], cells: RawColumn) -> tuple[str, Labels]:
    """Return whole numbers as integers, or as text if they have more than 64 bits."""
    try:
        numbers = np.array(whole, dtype=np.int64)
    except OverflowError:
        written = [str(value) for value in cells.values or ()]
        labels = np.array(written, dtype=object)
        return "category", labels[cells.data]
    return "number", numbers[cells.data]


def _refuse_missing_targets(gaps: Booleans, name: str, path: str) -> None:
    """Raise for rows without a target, with their number."""
    row = first_of(gaps)
    if row is None:
        return
    raise TableError(
        f"The target {name!r} of {path} has no value in {format_count(gaps.sum(), 'row')}, first "
        f"in row {row}. Leave out such rows with --drop-missing-target, or all rows with missing "
        "values with --drop-missing."
    )
