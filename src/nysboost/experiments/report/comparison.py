"""The report of ``nysboost compare``: the user's data, the methods, the choice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nysboost.experiments.compare import Outcome, pareto_front, recommend
from nysboost.experiments.families import by_family, family_of, leading
from nysboost.experiments.report import Chart, Page, Section, Series, Table
from nysboost.experiments.report.reproduction import number

HEAD = (
    "family",
    "method",
    "relative error",
    "± standard error",
    "seconds",
    "entries evaluated",
    "front",
)
ERROR = "relative error (Frobenius norm)"
FRONT = "★: no other method is at least as good in error, time and entries together."


def rows(outcomes: Sequence[Outcome], front: Collection[str]) -> list[list[str]]:
    """Return the table that the command prints and the report shows; a family is named once.

    Parameters
    ----------
    outcomes : sequence of Outcome
        In the order of the table.
    front : collection of str
        The methods on the front of all outcomes.
    """
    table, family = [], ""
    for o in outcomes:
        same, family = family == family_of(o.method), family_of(o.method)
        table.append(
            [
                "" if same else family,
                o.method,
                number(o.error),
                number(o.standard_error),
                number(o.seconds),
                f"{o.entries:,.0f}",
                "★" if o.method in front else "",
            ]
        )
    return table


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
    _, reason = recommend(outcomes)
    return Page(
        title="Nyström methods compared on your data",
        summary=[reason, *notes],
        sections=[
            Section("Error against time", chart=_by_time(outcomes), tables=_tables(outcomes)),
            Section("Error against columns", chart=_by_columns(outcomes)),
        ],
        settings=dict(settings),
    )


def _by_time(outcomes: Sequence[Outcome]) -> Chart:
    """Return the picture that decides the advice: error and time of each method."""
    points = [Series(o.method, [o.seconds], [o.error], [o.standard_error]) for o in outcomes]
    times = [o.seconds for o in outcomes]
    return Chart(
        title="Error against time",
        x_label="seconds to fit (processor time, one thread)",
        y_label=ERROR,
        views={"all": points},
        selections=_selections(outcomes),
        logarithmic=_wide([o.error for o in outcomes]),
        logarithmic_x=_wide(times),
        named=True,
    )


def _by_columns(outcomes: Sequence[Outcome]) -> Chart:
    return Chart(
        title="Error against the number of columns used",
        x_label="columns used",
        y_label=ERROR,
        views={"all": [Series(o.method, *zip(*o.curve, strict=True)) for o in outcomes]},
        selections=_selections(outcomes),
        logarithmic=_wide([e for o in outcomes for _, e in o.curve]),
    )


def _selections(outcomes: Sequence[Outcome]) -> dict[str, Sequence[str]]:
    return {
        "first": [o.method for o in leading(outcomes)],
        "the front": sorted(pareto_front(outcomes)),
    }


def _wide(values: Sequence[float]) -> bool:
    """Whether the values ask for a logarithmic axis."""
    return min(values) > 0 and max(values) > 8 * min(values)


def _tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return the table of those shown at once, and a folded one for each family of several."""
    front, chosen = pareto_front(outcomes), recommend(outcomes)[0]

    def table(title: str, some: Sequence[Outcome], **how: Any) -> Table:
        marked = frozenset(i for i, o in enumerate(some) if o.method == chosen)
        return Table(title=title, head=HEAD, rows=rows(some, front), marked=marked, **how)

    shown = leading(outcomes)
    if len(shown) == len(outcomes):
        return [table("Methods by family", shown, note=f"{FRONT} Bold: recommended.")]
    first = "The best of each family, smallest error first"
    folded = [
        table(f"{family.name}: {len(family.outcomes)} methods", family.outcomes, folded=True)
        for family in by_family(outcomes)
        if len(family.outcomes) > 1
    ]
    return [table(first, shown, note=f"{FRONT} Bold: recommended."), *folded]
