"""The report of ``nysboost learn``: learners, and what ours makes of the first fold."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import confusion_matrix

from nysboost.compare.charts import BLACK, COLOURS, Chart, Curve, chart_bars, chart_curves
from nysboost.compare.learners import COMPACT, OURS, Problem, is_ours, say_outcome
from nysboost.compare.outcomes import Outcome
from nysboost.compare.page import Page, Section, Table
from nysboost.compare.peers import CONSTANT
from nysboost.numerics.indices import spaced_indices
from nysboost.plots import CoverageDisplay
from nysboost.tables.gaps import is_gap

EXAMINED = 500
"""Test rows at most that are drawn, and that effects are averaged over."""
SHOWN, EFFECTS, LABELS = 15, 4, 10
"""Columns whose importance is drawn, and whose effect is; labels of a confusion matrix."""
NOTE = (
    f"In bold: the better of ours. {COMPACT}: landmarks alone, a small model. "
    f"{CONSTANT}: the mean, or the most frequent label."
)


def make_page(
    outcomes: Sequence[Outcome], first: tuple[Any, ...], problem: Problem, about: Mapping[str, Any]
) -> Page:
    """Return the report of a comparison; `first` is empty, if it was stopped before ours.

    `about` are other parts of the page: its notes, commands and settings.
    """
    records = [
        {
            "learner": o.name, "error": o.error, "standard_error": o.standard_error,
            "log_loss": o.mean("log_loss"), "folds": len(o.measured["error"]),
            "fit_seconds": o.seconds, "predict_seconds": o.mean("predict_seconds"),
        }
        for o in outcomes
    ]  # fmt: skip
    columns = {
        "learner": "learner", "wrong" if problem.classify else "RMSE": "error",
        "± standard error": "standard_error", "log loss": "log_loss", "folds": "folds",
        "seconds to fit": "fit_seconds", "seconds to predict": "predict_seconds",
    }  # fmt: skip
    if not problem.classify:
        del columns["log loss"]
    ours = [o.name for o in outcomes if is_ours(o.name)][:1]
    table = Table.of("Learners, smallest error first", columns, records, note=NOTE, marked=ours)
    timed = [Curve(o.name, [o.seconds], [o.error]) for o in outcomes if o.name != CONSTANT]
    chart = chart_curves("Error against time", "seconds to fit", problem.measure, timed, log="xy")
    sections = [Section("Learners", charts=[chart] if timed else [], tables=[table])]
    if first:
        sections += [_show_predictions(problem, *first), _show_features(problem, *first[:2])]
    headline = say_outcome(outcomes, problem.measure, problem.target)
    title = f"Learners that predict {problem.target}, compared"
    return Page(title, headline, sections, records, **about)


def _show_predictions(problem: Problem, model: Any, table: Any, y: Any) -> Section:
    """Return how far predictions, intervals or probabilities can be relied on."""
    predicted = model.predict(table)
    said = [f"Of {OURS}, on the test rows of the first fold."]
    if problem.classify:
        right, claimed = predicted == y, model.predict_proba(table).max(axis=1)
        how = {"n_bins": 10, "strategy": "quantile", "name": OURS}

        def calibrate(axes: Any) -> None:
            CalibrationDisplay.from_predictions(right, claimed, ax=axes, **how)
            axes.set(xlabel="probability of the predicted label", ylabel="share that was right")

        charts = [Chart("Calibration of probabilities", calibrate)]
        return Section("Predictions", said, charts, [_make_confusion_table(y, predicted)])
    std = model.predict(table, return_std=True)[1]
    some, ends = spaced_indices(len(y), EXAMINED), np.array([predicted.min(), predicted.max()])

    def scatter(axes: Any, values: Any, label: str, slope: int) -> None:
        axes.plot(predicted[some], values[some], ".", markersize=4, alpha=0.5, color=COLOURS[OURS])
        axes.plot(ends, slope * ends, "--", color=BLACK, linewidth=1)  # where they should be
        axes.set(xlabel="predicted", ylabel=label)
        axes.locator_params("x", nbins=6)  # long numbers would touch on a phone

    def cover(axes: Any) -> None:
        CoverageDisplay.from_predictions(y, predicted, std, ax=axes)

    true = partial(scatter, values=y, label="true", slope=1)
    missed = partial(scatter, values=y - predicted, label="true − predicted", slope=0)
    charts = [Chart("True against predicted values", true), Chart("Residuals", missed)]
    return Section("Predictions", said, [*charts, Chart("Calibration of intervals", cover)])


def _show_features(problem: Problem, model: Any, table: Any) -> Section:
    """Return the importance of the columns, and the effects of those that matter most."""
    shares = dict(zip(table.column_names, model.feature_importances_, strict=True))
    names = sorted(shares, key=lambda name: -shares[name])
    charts = [chart_bars("Importance", "share of all", {n: shares[n] for n in names[:SHOWN]})]
    rng = np.random.default_rng(problem.seed)
    rows = table.take(np.sort(rng.permutation(len(table))[:EXAMINED]))
    on = f"mean predicted {problem.target}"
    if problem.classify:
        on = f"mean probability of {problem.target} = {model.classes_[-1]}"
    on = textwrap.fill(on, 36)  # longer lines would be cut off
    for name in names[:EFFECTS]:
        effect, title = _find_effect(model, rows, name), f"Effect of {name}"
        if any(isinstance(value, str) for value in effect):
            charts.append(chart_bars(title, on, effect))
        else:
            curve = Curve(OURS, list(effect), list(effect.values()))
            charts.append(chart_curves(title, name, on, [curve], log=""))
    note = (
        "Importance: by how much the error grows if a column is shuffled. Effect: the mean "
        "prediction if every test row had this value."
    )
    return Section("Features", [note], charts)


def _find_effect(model: Any, table: Any, name: str) -> dict[Any, float]:
    """Return values of a column, with the mean prediction if all rows had each of them."""
    cells, place, effect = table.column(name).to_pylist(), table.column_names.index(name), {}
    rows = {value: row for row, value in enumerate(cells) if not is_gap(value)}
    values = sorted(rows, key=lambda v: (str(type(v)), v))
    for i in np.unique(np.linspace(0, len(values) - 1, 12).round().astype(int)):
        everywhere = table.column(name).take(np.full(len(table), rows[values[i]]))
        changed = table.set_column(place, name, everywhere)
        classify = hasattr(model, "classes_")
        found = model.predict_proba(changed)[:, -1] if classify else model.predict(changed)
        value = values[i] if isinstance(values[i], int | float) else str(values[i])
        effect[value] = float(np.mean(found))
    return effect


def _make_confusion_table(y: Any, predicted: Any) -> Table:
    """Return how often each label was predicted for each true one, of the most frequent."""
    labels, counts = np.unique(y, return_counts=True)
    shown = labels[np.sort(np.argsort(-counts, kind="stable")[:LABELS])]
    found = confusion_matrix(y, predicted, labels=shown)
    rows = [[str(label), *map(str, row)] for label, row in zip(shown, found, strict=True)]
    return Table("True labels (rows) and predicted ones (columns)", ["", *map(str, shown)], rows)
