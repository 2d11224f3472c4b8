"""The report of ``nysboost learn``: errors, curves, reliability and relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nysboost.experiments.learning import OURS, Insight, Outcome, best_other
from nysboost.experiments.report import Chart, Page, Section, Series, Table
from nysboost.experiments.report.reproduction import number


def head(classify: bool) -> tuple[str, ...]:
    """Return the head of the table of learners."""
    measures = ("wrong", "± between folds", "log loss") if classify else ("RMSE", "± between folds")
    return ("learner", *measures, "folds", "seconds")


def rows(outcomes: Sequence[Outcome], classify: bool) -> list[list[str]]:
    """Return the table that the command prints and the report shows."""
    table = []
    for o in outcomes:
        folds = len(o.errors)
        spread = number((max(o.errors) - min(o.errors)) / 2) if folds > 1 else "–"
        losses = [number(sum(o.losses) / folds)] if classify else []
        table.append([o.name, number(o.error), spread, *losses, str(folds), number(o.seconds)])
    return table


def page(
    outcomes: Sequence[Outcome],
    insight: Insight | None,
    classify: bool,
    notes: Sequence[str],
    settings: Mapping[str, Any],
) -> Page:
    """Return the report of a comparison of learners; without insight, if it was stopped."""
    error = "share of wrong labels" if classify else "root mean squared error"
    marked = frozenset(i for i, o in enumerate(outcomes) if o.name == OURS)
    learners = Table(
        "Learners, smallest error first", head(classify), rows(outcomes, classify), marked=marked
    )
    sections = [Section("Learners", tables=[learners])]
    if insight is not None:
        sections += _closer(insight, classify, error)
    summary = _summary(outcomes, error)
    return Page("Learners compared on your data", [summary, *notes], sections, dict(settings))


def _summary(outcomes: Sequence[Outcome], error: str) -> str:
    """Say how ours stands, or who is first where either side is missing."""
    ours = next((o for o in outcomes if o.name == OURS), None)
    other = best_other(outcomes)
    if ours is None or other is None:
        first = outcomes[0]
        return f"So far {first.name} has the smallest {error}, {number(first.error)}."
    ratio = ours.error / other.error if other.error else float("nan")
    return (
        f"NysBoost's {error} is {number(ours.error)}, {ratio:.2f} times that of the best other "
        f"learner, {other.name} ({number(other.error)})."
    )


def _closer(insight: Insight, classify: bool, error: str) -> list[Section]:
    """Return what ours has learned."""
    relevance = [[name, f"{100 * share:.1f} %"] for name, share in insight.relevance]
    sections = [
        Section("Landmarks", chart=_curve(insight, error)),
        Section("Reliability", chart=_reliability(insight, classify)),
        Section(
            "Relevance", tables=[Table("What the metric looks at", ("column", "share"), relevance)]
        ),
    ]
    if insight.predicted:
        sections.insert(1, Section("Predictions", chart=_predicted(insight)))
    return sections


def _curve(insight: Insight, error: str) -> Chart:
    series = [
        Series(name, *zip(*points, strict=True)) for name, points in insight.curve.items() if points
    ]
    return _chart("Error against the number of landmarks", "landmarks", error, series)


def _predicted(insight: Insight) -> Chart:
    ends = sorted(predicted for predicted, _ in insight.predicted)
    series = [
        Series("as it should be", (ends[0], ends[-1]), (ends[0], ends[-1])),
        Series("tenths of the test rows", *zip(*insight.predicted, strict=True)),
    ]
    return _chart("Predicted against true", "predicted", "true, on average", series)


def _reliability(insight: Insight, classify: bool) -> Chart:
    series = [
        Series("as it should be", (0.0, 1.0), (0.0, 1.0)),
        Series("test rows", *zip(*insight.reliability, strict=True)),
    ]
    title = "Reliability of probabilities" if classify else "Reliability of intervals"
    return _chart(title, "claimed share", "share that came true", series)


def _chart(title: str, x_label: str, y_label: str, series: list[Series]) -> Chart:
    names = [s.name for s in series]
    return Chart(title, x_label, y_label, {"all": series}, {"all": names})
