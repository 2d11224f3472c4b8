"""The inputs of a model in an ONNX graph: columns, encoded as in `tables.codes`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from nysboost.numerics.arrays import Floats
from nysboost.onnx_export.graph import Graph, Tensor, join
from nysboost.tables.categories import GAP, UNKNOWN, find_positions
from nysboost.tables.codes import Codes
from nysboost.tables.columns import Column
from nysboost.tables.dates import CYCLES, DIGITS, Cycle


def read_rows(g: Graph, model: BaseEstimator) -> Tensor:
    """Return the inputs as numbers (n, width), encoded with the codes of the model's table."""
    codes: Codes | None = getattr(model, "_table", None)
    columns: list[Column] = []
    if codes is not None:
        columns = list(codes.schema.columns)

    # make one input for an array, or one for each column that has a name, or beside a category
    X = None
    has_names = hasattr(model, "feature_names_in_")
    has_text = any(column.used and column.kind == "category" for column in columns)
    if not has_names and not has_text:
        X = g.input("X", model.n_features_in_)

    # plain numbers need no codes
    if codes is None or not columns:
        if X is None:
            inputs = [g.column_input(j, "number") for j in range(model.n_features_in_)]
            X = join(inputs)
        if codes is None or codes.schema.medians is None:
            return X

        # gaps are filled by medians
        gaps = np.isnan(X)
        medians = codes.schema.medians[None, :]
        return g("Where", gaps, medians, X)

    # encode columns of any kind
    parts: list[Tensor] = []
    for j, column in enumerate(columns):
        if not column.used:
            continue
        if X is None:
            x = g.column_input(j, column.kind)
        else:
            x = X.column(j)

        # only categories have values with a column of their own
        shown = codes.shown[j]
        if shown is None:
            parts += _encode_number(g, x, column)
        else:
            parts += _encode_category(g, x, column, shown, codes.means[j])
    return join(parts)


def _encode_number(g: Graph, x: Tensor, column: Column) -> list[Tensor]:
    """Return a number with gaps filled by the median, its indicator, and the cycles of a date."""
    gaps: Tensor = np.isnan(x)
    filled = g("Where", gaps, [column.median], x)
    parts = [filled * [column.scale]]
    if column.gaps:
        parts.append(g("Where", gaps, 1.0, 0.0))

    for name in column.cycles:
        phase = _phase(x, CYCLES[name])
        angle = phase * (2 * np.pi)
        sine = _round(np.sin(angle))

        # onnxruntime 1.20 has no cosine of doubles: cos a = sin(a + π/2)
        ahead = angle + np.pi / 2
        cosine = _round(np.sin(ahead))
        for code in (phase, sine, cosine):
            without_gaps = g("Where", gaps, 0.0, code)
            parts.append(without_gaps)
    return parts


def _phase(seconds: Tensor, cycle: Cycle) -> Tensor:
    """Return the phase of a cycle: the share of the period that has passed."""
    since_start = seconds - cycle.start
    if cycle.step:
        steps = np.floor(since_start / cycle.step)
        since_start = steps * cycle.step

    periods = np.floor(since_start / cycle.period)
    rest = since_start - periods * cycle.period
    phase: Tensor = rest / cycle.period
    return phase


def _round(x: Tensor) -> Tensor:
    """Round numbers to the digits of `tables.dates`."""
    unit = 10.0**DIGITS
    rounded: Tensor = np.rint(x * unit) / unit
    return rounded


def _encode_category(
    g: Graph, x: Tensor, column: Column, shown: Sequence[int], means: Floats | None
) -> list[Tensor]:
    """Return one-hot codes, and the means of the targets for a category with many values."""
    # ONNX takes no blanks away: values are known as they were written in fitting, too
    written = [str(value) for value in column.values]
    written += column.padded
    positions = list(range(len(column.values)))
    positions += find_positions(column.values, column.padded)
    at = g(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        keys_strings=[*written, ""],
        values_int64s=[*positions, GAP],
        default_int64=UNKNOWN,
    )

    # add a column for each value shown, and the means of the targets
    parts = []
    if shown:
        is_value = g("Equal", at, [list(shown)])
        one_hot = g("Where", is_value, 1.0, 0.0)
        parts.append(one_hot)
    if means is not None:
        # the last two means are those of unknown values, −2, and of gaps, −1
        flat = g("Reshape", at, [-1])
        of_value = g("Gather", means, flat, axis=0)
        parts.append(of_value)
    return parts
