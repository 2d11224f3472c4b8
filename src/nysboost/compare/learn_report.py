"""The report of ``nysboost learn``: learners, and what ours makes of the first fold."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import confusion_matrix

from nysboost.compare.charts import BLACK, COLOURS, Chart, Curve, chart_bars, chart_curves
from nysboost.compare.effects import MOST_CLASSES, Effect, find_effects
from nysboost.compare.learners import (
    COMPACT,
    OURS,
    FirstFold,
    Model,
    Problem,
    Targets,
    is_ours,
    say_outcome,
)
from nysboost.compare.outcomes import Outcome
from nysboost.compare.page import CHART, CHART_FILES, Page, Record, Section, Table
from nysboost.compare.peers import CONSTANT
from nysboost.numerics.arrays import Floats, spaced_indices
from nysboost.plots import CoverageDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXAMINED = 500
"""Test rows at most that are drawn, and that effects are averaged over."""
SHOWN = 15
"""Columns whose importance is drawn."""
EFFECTS = 4
"""Columns whose effect is drawn."""
LABELS = 10
"""Labels of a confusion matrix."""
ALONE = 0.95
"""Share of the importance from which one column is named: it may be written down afterwards."""
FEATURES = (
    "Importance: how much the error grows if a column is shuffled. Effect: the mean prediction if "
    "every test row had this value; of several classes the most probable are drawn."
)
NOTE = (
    f"Bold: the better of the two NysBoost models. {COMPACT}: landmarks alone, a small model. "
    f"{CONSTANT}: the mean, or the most frequent label."
)


def make_page(
    outcomes: Sequence[Outcome],
    first: FirstFold | None,
    problem: Problem,
    *,
    notes: Sequence[str] = (),
    commands: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Page:
    """Return the report of a comparison; `first` is None, if it was stopped before ours."""
    records = [_as_record(outcome) for outcome in outcomes]
    shown = [outcome for outcome in outcomes if outcome.name != CONSTANT]
    timed = [Curve(outcome.name, [outcome.seconds], [outcome.error]) for outcome in shown]
    charts = []
    if timed:
        charts = [
            chart_curves(
                "Error against time", "seconds to fit", problem.measure, timed, log="xy", file=CHART
            )
        ]
    sections = [Section("Learners", charts=charts, tables=[_make_table(problem, records)])]
    if first is not None:
        sections.append(_show_predictions(problem, first))
        sections.append(_show_features(problem, first))
    return Page(
        title=f"Learners that predict {problem.target}, compared",
        headline=say_outcome(outcomes, problem.measure, problem.target),
        sections=sections,
        records=records,
        notes=notes,
        commands=commands or {},
        files=CHART_FILES,
        settings=settings or {},
    )


def _as_record(outcome: Outcome) -> Record:
    """Return what is kept of a learner in ``comparison.csv``."""
    return {
        "learner": outcome.name,
        "error": outcome.error,
        "standard_error": outcome.standard_error,
        "log_loss": outcome.mean("log_loss"),
        "folds": len(outcome.measured["error"]),
        "fit_seconds": outcome.seconds,
        "predict_seconds": outcome.mean("predict_seconds"),
    }


def _make_table(problem: Problem, records: Sequence[Record]) -> Table:
    """Return the table of learners; the better of ours is marked."""
    columns = {
        "learner": "learner",
        "RMSE": "error",
        "± standard error": "standard_error",
    }
    if problem.classify:
        columns = {
            "learner": "learner",
            "wrong": "error",
            "± standard error": "standard_error",
            "log loss": "log_loss",
        }
    columns |= {
        "folds": "folds",
        "seconds to fit": "fit_seconds",
        "seconds to predict": "predict_seconds",
    }
    ours = [record["learner"] for record in records if is_ours(record["learner"])][:1]
    return Table.of("Learners, smallest error first", columns, records, note=NOTE, marked=ours)


def _show_predictions(problem: Problem, first: FirstFold) -> Section:
    """Return how far predictions, intervals or probabilities can be relied on."""
    model, table, y = first
    predicted = model.predict(table)
    said = [f"Of {OURS}, on the test rows of the first fold."]
    if problem.classify:
        claimed = model.predict_proba(table).max(axis=1)
        charts = [Chart("Calibration of probabilities", CalibrationPlot(predicted == y, claimed))]
        return Section("Predictions", said, charts, [_make_confusion_table(y, predicted)])

    std = model.predict(table, return_std=True)[1]
    charts = [
        Chart("True against predicted values", ScatterPlot(predicted, y, "true", 1)),
        Chart("Residuals", ScatterPlot(predicted, y - predicted, "true − predicted", 0)),
        Chart("Calibration of intervals", CoveragePlot(y, predicted, std)),
    ]
    return Section("Predictions", said, charts)


@dataclass(frozen=True, eq=False)
class CalibrationPlot:
    """Draws how often the predicted label was right, against its probability."""

    right: NDArray[np.bool_]
    claimed: Floats

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        CalibrationDisplay.from_predictions(
            self.right, self.claimed, ax=axes, n_bins=10, strategy="quantile", name=OURS
        )
        axes.set(xlabel="probability of the predicted label", ylabel="share that was right")


@dataclass(frozen=True, eq=False)
class ScatterPlot:
    """Draws values against predictions, and a line of some slope on which they should lie."""

    predicted: Floats
    values: Floats
    label: str
    slope: int

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        some = spaced_indices(len(self.values), EXAMINED)
        axes.plot(
            self.predicted[some],
            self.values[some],
            ".",
            markersize=4,
            alpha=0.5,
            color=COLOURS[OURS],
        )
        ends = np.array([self.predicted.min(), self.predicted.max()])
        axes.plot(ends, self.slope * ends, "--", color=BLACK, linewidth=1)
        axes.set(xlabel="predicted", ylabel=self.label)
        axes.locator_params("x", nbins=6)  # long numbers would touch on a phone


@dataclass(frozen=True, eq=False)
class CoveragePlot:
    """Draws the share of values inside intervals, against their probability."""

    y: Floats
    predicted: Floats
    std: Floats

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        CoverageDisplay.from_predictions(self.y, self.predicted, self.std, ax=axes)


def _show_features(problem: Problem, first: FirstFold) -> Section:
    """Return the importance of the columns, and the effects of those that matter most."""
    model, table, _ = first
    shares = dict(zip(table.column_names, model.feature_importances_, strict=True))
    names = sorted(shares, key=lambda name: -shares[name])
    most = {name: shares[name] for name in names[:SHOWN]}
    charts = [chart_bars("Importance", "share of the total increase in error", most)]

    # Effects of the most important, over some of the rows
    rng = np.random.default_rng(problem.seed)
    examined = np.sort(rng.permutation(len(table))[:EXAMINED])
    rows = table.take(examined)
    for name in names[:EFFECTS]:
        effects = find_effects(model, rows, name)
        charts += [_chart_effect(problem, model, effect) for effect in effects]

    sentences = [FEATURES]
    if shares[names[0]] > ALONE and len(names) > 1:
        sentences.append(
            f"{names[0]} alone has {shares[names[0]]:.0%} of the importance. Check that it is "
            f"known when {problem.target} is predicted: a column that is written down afterwards "
            "predicts well here and is missing later."
        )
    return Section("Features", sentences, charts)


def _chart_effect(problem: Problem, model: Model, effect: Effect) -> Chart:
    """Return the chart of an effect: a curve of numbers, or bars of names."""
    if not problem.classify:
        label = f"mean predicted {problem.target}"
        outputs = {OURS: effect.means[:, 0]}
    else:
        label = f"mean probability of {problem.target}"
        outputs = _probabilities_to_draw(model, effect)
        if len(outputs) == 1:
            label += f" = {next(iter(outputs))}"
    label = textwrap.fill(label, 36)  # longer lines would be cut off

    if effect.ordered:
        numbers = np.asarray(effect.values, dtype=np.float64)
        curves = [Curve(name, numbers, means) for name, means in outputs.items()]
        return chart_curves(effect.title, effect.column, label, curves, log="")
    name, means = next(iter(outputs.items()))
    if len(outputs) > 1:
        label = textwrap.fill(f"{label.replace(chr(10), ' ')} = {name}, the most frequent", 36)
    return chart_bars(effect.title, label, dict(zip(effect.values, means, strict=True)))


def _probabilities_to_draw(model: Model, effect: Effect) -> dict[str, Floats]:
    """Return the probabilities of the second of two classes, or of the most frequent of more."""
    classes = [str(label) for label in model.classes_]
    if len(classes) == 2:
        return {classes[1]: effect.means[:, 1]}

    probability = effect.means.mean(axis=0)
    most_probable = np.argsort(-probability, kind="stable")
    chosen = most_probable[:MOST_CLASSES].tolist()
    return {classes[i]: effect.means[:, i] for i in chosen}


def _make_confusion_table(y: Targets, predicted: Targets) -> Table:
    """Return how often each label was predicted for each true one, of the most frequent."""
    labels, counts = np.unique(y, return_counts=True)
    most_frequent = np.argsort(-counts, kind="stable")[:LABELS]
    shown = labels[np.sort(most_frequent)]
    matrix = confusion_matrix(y, predicted, labels=shown)
    rows = []
    for label, row in zip(shown, matrix, strict=True):
        rows.append([str(label), *map(str, row)])
    return Table("True labels (rows) and predicted ones (columns)", ["", *map(str, shown)], rows)
