"""The report of ``nysboost learn``: learners, and what ours makes of the first fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import confusion_matrix

from nysboost.compare.charts import BLACK, COLOURS, Chart, Curve, draw_bars, draw_curves
from nysboost.compare.learners import COMPACT, OURS, Outcome, Problem, say_outcome
from nysboost.compare.page import Page, Section, Table, format_number
from nysboost.compare.peers import CONSTANT
from nysboost.plots import CoverageDisplay

EXAMINED = 500
"""Test rows at most that are drawn, and that effects are averaged over."""
SHOWN, EFFECTS, LABELS = 15, 4, 10
"""Columns whose importance is drawn, and whose effect is; labels of a confusion matrix."""


def make_page(
    outcomes: Sequence[Outcome],
    first: tuple[Any, Any, Any] | None,
    problem: Problem,
    about: Mapping[str, Any],
) -> Page:
    """Return the report of a comparison; without `first`, if it was stopped before ours.

    `about` are other parts of the page: its notes, commands and settings.
    """
    timed = [Curve(o.name, [o.seconds], [o.error]) for o in outcomes if o.name != CONSTANT]
    draw = draw_curves("seconds to fit", problem.measure, timed, log_x=True)
    charts = [Chart("Error against time", draw)] if timed else []
    sections = [Section("Learners", charts=charts, tables=[_make_table(outcomes, problem)])]
    if first is not None:
        sections += _show_predictions(problem, *first)
    return Page(
        title=f"Learners that predict {problem.target}, compared",
        headline=say_outcome(outcomes, problem.measure, problem.target),
        sections=sections,
        **about,
    )


def list_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the rows of ``comparison.csv``."""
    return [
        {
            "learner": o.name, "error": o.error, "log_loss": float(np.mean(o.losses)),
            "folds": len(o.errors), "fit_seconds": o.seconds, "predict_seconds": o.predict_seconds,
        }
        for o in outcomes
    ]  # fmt: skip


def _make_table(outcomes: Sequence[Outcome], problem: Problem) -> Table:
    """Return the outcomes as a table; the best of ours is bold."""
    measures = ("wrong", "log loss") if problem.classify else ("RMSE",)
    rows = []
    for o in outcomes:
        spread = np.std(o.errors, ddof=1) / np.sqrt(len(o.errors)) if len(o.errors) > 1 else np.nan
        found = [f"{format_number(o.error)} ± {format_number(spread, 2)}"]
        found += [format_number(float(np.mean(o.losses)))] if problem.classify else []
        times = [format_number(o.seconds, 2), format_number(o.predict_seconds, 2)]
        rows.append([o.name, *found, str(len(o.errors)), *times])
    ours = next((i for i, o in enumerate(outcomes) if o.is_ours), None)
    marked = frozenset() if ours is None else frozenset([ours])
    head = ("learner", *measures, "folds", "seconds to fit", "seconds to predict")
    note = (
        f"Mean ± standard error over folds. In bold: the better of ours. {COMPACT}: landmarks "
        f"alone, a small model. {CONSTANT}: the mean, or the most frequent label."
    )
    return Table("Learners, smallest error first", head, rows, note, marked=marked)


def _show_predictions(problem: Problem, model: Any, table: Any, y: Any) -> list[Section]:
    """Return how far predictions, intervals or probabilities can be relied on, and on what."""
    predicted = model.predict(table)
    tables: list[Table] = []
    if problem.classify:
        right, claimed = predicted == y, model.predict_proba(table).max(axis=1)
        how = {"n_bins": 10, "strategy": "quantile", "name": OURS}

        def calibrate(axes: Any) -> None:
            CalibrationDisplay.from_predictions(right, claimed, ax=axes, **how)
            axes.set(xlabel="probability of the predicted label", ylabel="share that was right")

        charts = [Chart("Calibration of probabilities", calibrate)]
        tables = [_make_confusion_table(y, predicted)]
    else:
        std = model.predict(table, return_std=True)[1]
        charts = [
            Chart("True against predicted values", _draw_points(predicted, y, "true", 1)),
            Chart("Residuals", _draw_points(predicted, y - predicted, "true − predicted", 0)),
            Chart(
                "Calibration of intervals",
                lambda axes: CoverageDisplay.from_predictions(y, predicted, std, ax=axes),
            ),
        ]
    return [
        Section("Predictions", [f"Of {OURS}, on the test rows of the first fold."], charts, tables),
        _show_features(problem, model, table),
    ]


def _draw_points(x: Any, y: Any, label: str, slope: int) -> Callable[[Any], None]:
    """Return what draws some points over the predictions x, and the line where they should be."""
    some = np.linspace(0, len(x) - 1, min(len(x), EXAMINED)).astype(np.intp)

    def draw(axes: Any) -> None:
        axes.plot(x[some], y[some], ".", markersize=4, alpha=0.5, color=COLOURS[OURS])
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, slope * ends, "--", color=BLACK, linewidth=1)
        axes.set(xlabel="predicted", ylabel=label)

    return draw


def _show_features(problem: Problem, model: Any, table: Any) -> Section:
    """Return the importance of the columns, and the effects of those that matter most."""
    shares = dict(zip(table.column_names, model.feature_importances_, strict=True))
    names = sorted(shares, key=lambda name: -shares[name])
    shown = names[:SHOWN]
    draw = draw_bars("share of all", shown, [shares[name] for name in shown])
    charts = [Chart("Importance", draw, height=0.8 + 0.26 * len(shown))]
    rng = np.random.default_rng(problem.seed)
    rows = table.take(np.sort(rng.permutation(len(table))[:EXAMINED]))
    on = f"predicted {problem.target}"
    on = f"probability of {problem.target} = {model.classes_[-1]}" if problem.classify else on
    for name in names[:EFFECTS]:
        values, means = _find_effect(model, rows, name)
        if isinstance(values[0], str):
            bars = draw_bars(f"mean {on}", values, means)
            charts.append(Chart(f"Effect of {name}", bars, height=0.8 + 0.26 * len(values)))
        else:
            lines = draw_curves(name, f"mean {on}", [Curve(OURS, values, means)], log_y=False)
            charts.append(Chart(f"Effect of {name}", lines))
    note = (
        "Importance: by how much the error grows if a column is shuffled. Effect: the mean "
        "prediction if every test row had this value."
    )
    return Section("Features", [note], charts)


def _find_effect(model: Any, table: Any, name: str) -> tuple[list[Any], list[float]]:
    """Return values of a column, and the mean prediction if all rows had each of them."""
    cells = table.column(name).to_pylist()
    rows = {value: row for row, value in enumerate(cells) if value is not None and value == value}
    values = sorted(rows, key=lambda v: (str(type(v)), v))
    steps = np.unique(np.linspace(0, len(values) - 1, 12).round().astype(int))
    values, means, place = [values[i] for i in steps], [], table.column_names.index(name)
    for value in values:
        everywhere = table.column(name).take(np.full(len(table), rows[value]))
        changed = table.set_column(place, name, everywhere)
        classify = hasattr(model, "classes_")
        found = model.predict_proba(changed)[:, -1] if classify else model.predict(changed)
        means.append(float(np.mean(found)))
    return [v if isinstance(v, int | float) else str(v) for v in values], means


def _make_confusion_table(y: Any, predicted: Any) -> Table:
    """Return how often each label was predicted for each true one, of the most frequent."""
    labels, counts = np.unique(y, return_counts=True)
    shown = labels[np.sort(np.argsort(-counts, kind="stable")[:LABELS])]
    found = confusion_matrix(y, predicted, labels=shown)
    rows = [[str(label), *map(str, row)] for label, row in zip(shown, found, strict=True)]
    return Table("True labels (rows) and predicted ones (columns)", ["", *map(str, shown)], rows)
