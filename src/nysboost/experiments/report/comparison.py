"""The report of ``nysboost compare``: the user's data, the methods, the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nysboost.experiments.compare import Outcome, pareto_front, recommend
from nysboost.experiments.report import Chart, Page, Section, Series, Table
from nysboost.experiments.report.reproduction import number

HEAD = ("method", "relative error", "± standard error", "seconds", "entries evaluated", "front")


def rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Return the table that the command prints and the report shows."""
    front = pareto_front(outcomes)
    return [
        [
            o.method,
            number(o.error),
            number(o.standard_error),
            number(o.seconds),
            f"{o.entries:,.0f}",
            "★" if o.method in front else "",
        ]
        for o in outcomes
    ]


def page(outcomes: Sequence[Outcome], notes: Sequence[str], settings: Mapping[str, Any]) -> Page:
    """Return the report of a comparison.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Smallest error first.
    notes : sequence of str
        What was done to the data, in sentences.
    settings : mapping
        All that the numbers depend on.
    """
    chosen, reason = recommend(outcomes)
    values = [e for o in outcomes for _, e in o.curve]
    chart = Chart(
        title="Error against the number of columns used",
        x_label="columns used",
        y_label="relative error (Frobenius norm)",
        views={"all": [Series(o.method, *zip(*o.curve, strict=True)) for o in outcomes]},
        selections={
            "all": [o.method for o in outcomes],
            "the front": sorted(pareto_front(outcomes)),
        },
        logarithmic=min(values) > 0 and max(values) > 8 * min(values),
    )
    table = Table(
        title="Methods, smallest error first",
        head=HEAD,
        rows=rows(outcomes),
        note="★: no other method is at least as good in error, time and entries together. "
        "Bold: recommended.",
        marked=frozenset(i for i, o in enumerate(outcomes) if o.method == chosen),
    )
    return Page(
        title="Nyström methods compared on your data",
        summary=[reason, *notes],
        sections=[Section("Comparison", chart=chart, tables=[table])],
        settings=dict(settings),
    )
