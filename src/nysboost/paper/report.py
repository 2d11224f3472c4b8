"""The report of ``nysboost reproduce``: what was run, what it gave, which statements hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nysboost.compare.charts import Chart
from nysboost.compare.page import Page, Section, Table, format_number
from nysboost.numerics.messages import format_count
from nysboost.paper import datasets, figures
from nysboost.paper.figures import Figure, Panel
from nysboost.paper.ledger import HOW_DECIDED, LACKS, Decision, group_by_statement
from nysboost.paper.presets import ORDER, Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.results import Results

MOST_SAID = 10_000
"""A number of replicates above this is said to be more than it."""


@dataclass(frozen=True)
class About:
    """The command that repeats a run, and the sizes of its data sets as read."""

    command: str
    sizes: Mapping[str, str]


def make_page(
    results: Mapping[str, Results],
    decisions: Sequence[Decision],
    about: About,
    *,
    panels: bool = True,
) -> Page:
    """Return the report: figures, verdicts, then details.

    With `panels` each panel is a chart of its own, as a web page draws them; without, each figure
    is the picture that lies beside the page.
    """
    return Page(
        title="Boosting Nyström: the paper's experiments, run again",
        headline=say_outcome(results, decisions),
        sections=[
            _make_figures(results, panels),
            _make_verdicts(decisions),
            *_make_details(decisions),
            *(_make_section(result) for result in results.values()),
            _make_data(about.sizes),
        ],
        notes=list_verdicts(decisions),
        commands=_find_commands(results, about.command),
        files=_find_files(results, decisions),
        settings={
            "command": about.command,
            "made with": {name: list(r.made_with) for name, r in results.items()},
            "presets": {
                name: r.preset.settings() | {"seed": r.seed, "replicates": r.preset.replicates}
                for name, r in results.items()
            },
        },
    )


def _find_commands(results: Mapping[str, Results], command: str) -> dict[str, str]:
    """Return the command that repeats the run and, if that is another, the one for the paper's."""
    commands = {"The same numbers again:": command}
    whole = all(result.has_paper_sizes for result in results.values())
    everything = "nysboost reproduce all --variants stated"
    if (
        set(results) <= set(ORDER)
        and command != everything
        and not (whole and len(results) == len(ORDER))
    ):
        commands["All data sets, learners and replicates of the paper:"] = everything
    return commands


def _find_files(results: Mapping[str, Results], decisions: Sequence[Decision]) -> list[str]:
    files = [f"{name}/{name}.csv" for name in results]
    return ["ledger.csv", *files] if decisions else files


# Figures


def _choose_reading(results: Mapping[str, Results], figure: Figure) -> Reading:
    """Return the reading that is shown first: all sets as whole columns, if that was run."""
    return results[figure.panels[0].preset].preset.readings[0]


def _make_figures(results: Mapping[str, Results], panels: bool) -> Section:
    charts = []
    for figure in figures.available(results):
        reading = _choose_reading(results, figure)
        if panels:
            charts += [_chart_panel(figure, panel, results, reading) for panel in figure.panels]
        else:
            file = f"figures/{figures.file_name(figure, reading)}.png"
            title = f"Figure {figure.number}. {figure.caption}"
            charts.append(Chart(title, lambda _: None, file))
    sentence = (
        "Each replicate draws its own points; all methods share its first learner. The ensemble is "
        "dashed; bands are one standard error. The folder figures has every figure under each "
        "reading of the validation sets, as PNG, SVG and PDF."
    )
    return Section("The figures", [sentence], charts)


def _chart_panel(
    figure: Figure, panel: Panel, results: Mapping[str, Results], reading: Reading
) -> Chart:
    def draw(axes: Any) -> None:
        figures.draw_panel(axes, panel, results[panel.preset], reading)

    return Chart(f"Figure {figure.number}: {figures.label(panel, results)}", draw)


# Verdicts


def _make_verdicts(decisions: Sequence[Decision]) -> Section:
    """Return a row for each statement, with its verdict under each reading."""
    readings = dict.fromkeys(d.reading for d in decisions)
    head = ["", "the paper's statement", *(reading.words for reading in readings)]
    rows = []
    for number, mine in group_by_statement(decisions).items():
        if all(d.verdict == LACKS for d in mine):
            verdicts = [f"{LACKS}: {', '.join(mine[0].lacks)}" for _ in mine]
        else:
            verdicts = [say_verdict(d) for d in mine]
        rows.append([str(number), mine[0].statement.gist, *verdicts])
    if not rows:
        sentence = "A small version decides none of the paper's statements."
        return Section("Which statements hold", [sentence])
    return Section("Which statements hold", tables=[Table("The statements", head, rows)])


def say_verdict(d: Decision) -> str:
    """Return a verdict; an undecided one with the number of replicates that would decide."""
    if d.verdict == LACKS:
        return f"{LACKS}: {', '.join(d.lacks)}"
    if d.would_decide is None:
        return d.verdict
    enough = f"{d.would_decide:,}" if d.would_decide <= MOST_SAID else f"over {MOST_SAID:,}"
    return f"{d.verdict} ({enough} replicates)"


def _make_details(decisions: Sequence[Decision]) -> Iterator[Section]:
    """Yield what the paper says word for word, how it was tested, and what decided."""
    if not decisions:
        return
    readings = dict.fromkeys(d.reading for d in decisions)
    quotes, reasons = [], []
    for number, mine in group_by_statement(decisions).items():
        statement = mine[0].statement
        quotes.append([str(number), statement.section, f"“{statement.quote}”", statement.tests])
        reasons.append([str(number), *(say_decision(d) for d in mine)])
    head = ["", "section", "the paper's words", "tested as"]
    tables = [
        Table("The sentences, and how each is tested", head, quotes, folded=True),
        Table("What decides", ["", *(r.words for r in readings)], reasons, folded=True),
    ]
    yield Section("How they are decided", [HOW_DECIDED], tables=tables)


def say_decision(d: Decision) -> str:
    """Return the counts behind a verdict, the test it rests on, and its weakest comparison."""
    if d.verdict == LACKS:
        return f"{LACKS}: {', '.join(d.lacks)}"
    text = ", ".join(f"{n} {kind}" for kind, n in d.counts.items() if n)
    if d.rests_on:
        text += f" ({d.rests_on})"
    if d.verdict != "holds":
        text += f"; weakest: {d.weakest}"
    return text


def _group(decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """Return the gists of the statements by what holds under every reading."""
    groups: dict[str, list[str]] = {
        "hold": [],
        "do not hold": [],
        "depend on the reading, or tie": [],
        "are undecided": [],
        "lack data": [],
    }
    for number, mine in group_by_statement(decisions).items():
        groups[_find_group({d.verdict for d in mine})].append(
            f"{mine[0].statement.gist} [{number}]"
        )
    return groups


def _find_group(verdicts: set[str]) -> str:
    if verdicts == {LACKS}:
        return "lack data"
    if "undecided" in verdicts:
        return "are undecided"
    if verdicts == {"holds"}:
        return "hold"
    if verdicts <= {"does not hold", "fails only in size"}:
        return "do not hold"
    return "depend on the reading, or tie"


def list_verdicts(decisions: Sequence[Decision]) -> list[str]:
    """Return which statements hold, which do not, and what lies between, a sentence for each."""
    return [
        f"{format_count(len(said), 'statement')} {what}: {'; '.join(said)}."
        for what, said in _group(decisions).items()
        if said
    ]


def say_outcome(results: Mapping[str, Results], decisions: Sequence[Decision]) -> str:
    """Say how many statements hold, and why others are not decided."""
    numbers = sorted(result.preset.replicates for result in results.values())
    said = format_count(numbers[-1], "replicate")
    if numbers[0] < numbers[-1]:
        said = f"{numbers[0]} to {said}"
    if not decisions:
        return f"{said} of a small version: it decides none of the paper's statements."

    counts = {what: len(gists) for what, gists in _group(decisions).items() if gists}
    readings = len({d.reading for d in decisions})
    under = f" under {readings} readings of the validation sets" if readings > 1 else ""
    found = ", ".join(f"{n} {what}" for what, n in counts.items())
    total = sum(counts.values())
    text = f"{said}: of {total} statements {found}{under}."
    if "are undecided" in counts:
        text += " Undecided ones need more replicates."
    lacking = dict.fromkeys(name for d in decisions for name in d.lacks)
    if lacking:
        text += f" Data sets missing: {', '.join(lacking)}."
    return text


# Presets


def say_finding(result: Results) -> str:
    """Return what a preset gave, in a sentence."""
    summaries = {s.method: s for s in result.summaries(result.preset.readings[0])}
    drawn = [summaries[name] for name in result.preset.drawn if name in summaries]
    of_boosting = [s for s in drawn if s.method != BASELINE]
    best = min(of_boosting or [summaries[BASELINE]], key=lambda s: float(s.mean[-1]))
    most = result.counts[-1]
    what = "time" if result.preset.measure == "seconds" else "error"
    text = (
        f"With {most} learners the smallest mean {what} of the variants drawn is "
        f"{format_number(best.mean[-1])} ({best.method}); {BASELINE} has "
        f"{format_number(summaries[BASELINE].mean[-1])}"
    )
    urb = summaries.get("URB-mean")
    if what == "error" and urb is not None:
        reach = f"with {format_count(urb.to_match, 'learner')}" if urb.to_match else "not at all"
        text += f", which URB-mean reaches {reach}"
    return text + "."


def say_properties(result: Results) -> str:
    """Return the means of the measured properties."""
    said = [
        f"{name} {format_number(values.mean())} (from {format_number(values.min())} "
        f"to {format_number(values.max())})"
        for name, values in result.properties.items()
    ]
    return f"Properties: {', '.join(said)}." if said else ""


def say_protocol(result: Results) -> str:
    """Return the settings of a preset in a sentence."""
    p = result.preset
    draws = "each with its own points" if p.redraw else "all on the same points"
    replicates = format_count(p.replicates, "replicate")
    return (
        f"{replicates}, {draws} (n = {p.n_points}); m = {p.n_columns}, "
        f"k = {p.rank}, s = {p.n_candidates}, v1 = {p.n_fit}, v2 = {p.n_tune}, η = {p.eta:g}; "
        f"seed {result.seed}."
    )


def _make_section(result: Results) -> Section:
    tables = [_make_table(result, reading) for reading in result.preset.readings]
    sentences = [say_protocol(result), say_finding(result), say_properties(result)]
    return Section(result.preset.title, [s for s in sentences if s], tables=tables)


def _make_table(result: Results, reading: Reading) -> Table:
    """Return all methods under one reading, best first."""
    most = result.counts[-1]
    shown = [i for i, count in enumerate(result.counts) if count in (5, 10, most)]
    head = ["method", *(f"p = {result.counts[i]}" for i in shown)]
    head += [f"learners to match {BASELINE} at p = {most}", f"p-value at p = {most}", "Holm"]
    rows = []
    for s in sorted(result.summaries(reading), key=lambda s: float(s.mean[-1])):
        cells = [
            f"{format_number(s.mean[i])} ± {format_number(s.standard_error[i], 2)}" for i in shown
        ]
        match = "not reached" if s.to_match is None else str(s.to_match)
        rows.append(
            [s.method, *cells, match, format_number(s.p_value[-1], 2), format_number(s.holm[-1], 2)]
        )
    note = (
        "Mean ± standard error; bold: drawn in the paper's figures. p-values are one-sided Welch "
        f"tests of “smaller than {BASELINE}”. nystrom and adaptive are one Nyström approximation "
        "of p·m columns, uniform or by adaptive sampling, of rank k or p·k."
    )
    title = f"All methods; {reading.words}"
    return Table(title, head, rows, note, folded=True, marked=result.preset.drawn)


def _make_data(sizes: Mapping[str, str]) -> Section:
    columns = {
        "name": "name",
        "data set": "data set",
        "points × dimension, as read": "as read",
        "in the paper": "points × dimension",
        "features": "features",
    }
    drawn = [row for row in datasets.list_all() if row["name"] in sizes]
    records = [row | {"as read": sizes[row["name"]]} for row in drawn]
    return Section("Data sets", tables=[Table.of("What was drawn from", columns, records)])
