"""The report of ``nysboost learn``: all learners, and details of ours on the first fold."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

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
from nysboost.compare.page import (
    CHART_FILES,
    AboutRun,
    Page,
    Record,
    ReportTable,
    Section,
    chart_error_against_time,
)
from nysboost.compare.peers import CONSTANT
from nysboost.numerics.arrays import Floats, spaced_indices
from nysboost.plots import CoverageDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXAMINED = 500
"""Largest number of test rows that are drawn and used for effects."""
SHOWN = 15
"""Number of columns whose importance is drawn."""
EFFECTS = 4
"""Number of columns whose effect is drawn."""
LABELS = 10
"""Largest number of labels in a confusion matrix."""
LABEL_WIDTH = 36
"""Letters in a line of an axis's label."""
ALONE = 0.95
"""The report warns about a column with more than this share of the importance: its values may be
known only later."""
FEATURES = (
    "Importance: the increase of the error when a column is shuffled. Effect: the mean prediction "
    "if every test row had this value; with many classes, only the most probable are drawn."
)
NOTE = (
    f"Bold: the better of the two NysBoost models. {COMPACT}: a small model that predicts from "
    f"landmarks only. {CONSTANT}: always predicts the mean, or the most frequent label."
)


def make_page(
    outcomes: Sequence[Outcome],
    first: FirstFold | None,
    problem: Problem,
    **about: Unpack[AboutRun],
) -> Page:
    """Return the report of a comparison; `first` is None if it was stopped before our learner."""
    # draw a point for each learner; a constant takes no time, and after Ctrl-C there may be none
    charts = []
    timed = [outcome for outcome in outcomes if outcome.name != CONSTANT]
    if timed:
        charts.append(chart_error_against_time(timed, "seconds to fit", problem.measure))

    # show the learners, then what ours does on the first fold
    records = [_as_record(outcome) for outcome in outcomes]
    table = _make_table(problem, outcomes)
    sections = [Section("Learners", charts=charts, tables=[table])]
    if first is not None:
        sections.append(_show_predictions(problem, first))
        sections.append(_show_features(problem, first))
    return Page(
        title=f"Learners that predict {problem.target}, compared",
        headline=say_outcome(outcomes, problem.measure, problem.target),
        sections=sections,
        records=records,
        files=CHART_FILES,
        **about,
    )


def _as_record(outcome: Outcome) -> Record:
    """Return the record of a learner for ``comparison.csv``."""
    return {
        "learner": outcome.name,
        "error": outcome.error,
        "standard_error": outcome.standard_error,
        "log_loss": outcome.mean("log_loss"),
        "folds": len(outcome.measured["error"]),
        "fit_seconds": outcome.seconds,
        "predict_seconds": outcome.mean("predict_seconds"),
    }


def _make_table(problem: Problem, outcomes: Sequence[Outcome]) -> ReportTable:
    """Return the table of learners; the better NysBoost model is marked."""
    # choose the error columns of the task
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

    # add the columns of every task
    columns |= {
        "folds": "folds",
        "seconds to fit": "fit_seconds",
        "seconds to predict": "predict_seconds",
    }

    title = "Learners, smallest error first"
    records = [_as_record(outcome) for outcome in outcomes]
    ours = [outcome.name for outcome in outcomes if is_ours(outcome.name)]
    return ReportTable.of(title, columns, records, note=NOTE, marked=ours[:1])


def _show_predictions(problem: Problem, first: FirstFold) -> Section:
    """Return charts that show how reliable predictions, intervals or probabilities are."""
    model, table, y = first
    predicted = model.predict(table)
    said = [f"These charts show {OURS} on the test rows of the first fold."]
    if problem.classify:
        claimed = model.predict_proba(table).max(axis=1)
        calibration = CalibrationPlot(predicted == y, claimed)
        charts = [Chart("Calibration of probabilities", calibration)]
        return Section("Predictions", said, charts, [_make_confusion_table(y, predicted)])

    # show values, residuals and the coverage of intervals
    values = ScatterPlot(predicted, y, "true", 1)
    residuals = ScatterPlot(predicted, y - predicted, "true − predicted", 0)
    _, std = model.predict(table, return_std=True)
    charts = [
        Chart("True against predicted values", values),
        Chart("Residuals", residuals),
        Chart("Calibration of intervals", CoveragePlot(y, predicted, std)),
    ]
    return Section("Predictions", said, charts)


@dataclass(frozen=True, eq=False)
class CalibrationPlot:
    """Draw how often the predicted label was right, against its probability."""

    right: NDArray[np.bool_]
    claimed: Floats

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        CalibrationDisplay.from_predictions(
            self.right,
            self.claimed,
            ax=axes,
            n_bins=10,
            strategy="quantile",
            name=OURS,
        )
        axes.set(xlabel="probability of the predicted label", ylabel="share that was right")


@dataclass(frozen=True, eq=False)
class ScatterPlot:
    """Draw values against predictions, and the line on which they should lie."""

    predicted: Floats
    values: Floats
    label: str
    slope: int

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        # draw at most a few hundred points
        some = spaced_indices(len(self.values), EXAMINED)
        axes.plot(
            self.predicted[some],
            self.values[some],
            ".",
            markersize=4,
            alpha=0.5,
            color=COLOURS[OURS],
        )

        # draw the line on which they should lie
        least = self.predicted.min()
        largest = self.predicted.max()
        line = [self.slope * least, self.slope * largest]
        axes.plot([least, largest], line, "--", color=BLACK, linewidth=1)

        # long numbers would touch on a phone
        axes.set(xlabel="predicted", ylabel=self.label)
        axes.locator_params("x", nbins=6)


@dataclass(frozen=True, eq=False)
class CoveragePlot:
    """Draw the share of values inside intervals, against their stated coverage."""

    y: Floats
    predicted: Floats
    std: Floats

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        CoverageDisplay.from_predictions(self.y, self.predicted, self.std, ax=axes)


def _show_features(problem: Problem, first: FirstFold) -> Section:
    """Return the importance of the columns, and the effects of the most important ones."""
    # importances, the largest first
    model, table, _ = first
    shares = dict(zip(table.column_names, model.feature_importances_, strict=True))
    names = sorted(shares, key=lambda name: -shares[name])
    most = {name: shares[name] for name in names[:SHOWN]}
    charts = [chart_bars("Importance", "share of the total increase in error", most)]

    # effects of the most important, over some of the rows
    rng = np.random.default_rng(problem.seed)
    shuffled = rng.permutation(len(table))
    rows = table.take(np.sort(shuffled[:EXAMINED]))
    for name in names[:EFFECTS]:
        effects = find_effects(model, rows, name)
        charts += [_chart_effect(problem, model, effect) for effect in effects]

    # a column that says it all may not be known in time
    sentences = [FEATURES]
    leading = names[0]
    share = shares[leading]
    if share > ALONE and len(names) > 1:
        sentences.append(
            f"{leading} alone has {share:.0%} of the importance. Check that its value is "
            f"known when you predict {problem.target}. A column that is filled in later predicts "
            "well here, but cannot be used."
        )
    return Section("Features", sentences, charts)


def _chart_effect(problem: Problem, model: Model, effect: Effect) -> Chart:
    """Return the chart of an effect: a curve for numbers, or bars for categories."""
    # the mean prediction, or the probabilities of some classes
    if problem.classify:
        label = f"mean probability of {problem.target}"
        outputs = _probabilities_to_draw(model, effect)
    else:
        label = f"mean predicted {problem.target}"
        outputs = {OURS: effect.means[:, 0]}

    # of two classes one is named in the label
    first, means = next(iter(outputs.items()))
    if problem.classify and len(outputs) == 1:
        label = f"{label} = {first}"

    # numbers: a curve for each of them
    if effect.ordered:
        numbers = np.asarray(effect.values, dtype=np.float64)
        curves = [Curve(name, numbers, of_output) for name, of_output in outputs.items()]
        return chart_curves(effect.title, effect.column, _wrap(label), curves, log="")

    # names: bars of the first alone
    if len(outputs) > 1:
        label = f"{label} = {first}, the most frequent"
    lengths = dict(zip(effect.values, means, strict=True))
    return chart_bars(effect.title, _wrap(label), lengths)


def _wrap(label: str) -> str:
    """Return the label of an axis in lines that are not cut off."""
    return textwrap.fill(label, LABEL_WIDTH)


def _probabilities_to_draw(model: Model, effect: Effect) -> dict[str, Floats]:
    """Return the probabilities of the second of two classes, or of the most frequent classes."""
    classes = [str(label) for label in model.classes_]
    if len(classes) == 2:
        return {classes[1]: effect.means[:, 1]}

    probability = effect.means.mean(axis=0)
    most_probable = np.argsort(-probability, kind="stable")
    chosen = most_probable[:MOST_CLASSES].tolist()
    return {classes[i]: effect.means[:, i] for i in chosen}


def _make_confusion_table(y: Targets, predicted: Targets) -> ReportTable:
    """Return the confusion matrix of the most frequent labels."""
    labels, counts = np.unique(y, return_counts=True)
    most_frequent = np.argsort(-counts, kind="stable")[:LABELS]
    shown = labels[np.sort(most_frequent)]
    matrix = confusion_matrix(y, predicted, labels=shown)
    rows = []
    for label, counts_of_label in zip(shown, matrix, strict=True):
        rows.append([str(label), *map(str, counts_of_label)])

    head = ["", *map(str, shown)]
    return ReportTable("True labels (rows) and predicted ones (columns)", head, rows)
