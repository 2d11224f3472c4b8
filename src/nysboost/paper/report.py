"""The report of ``nysboost reproduce``: the runs, their results, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nysboost.compare.charts import Chart
from nysboost.compare.page import Page, ReportTable, Section, format_number
from nysboost.numerics.messages import format_count
from nysboost.paper import datasets, figures
from nysboost.paper.datasets import Points
from nysboost.paper.figures import Panel
from nysboost.paper.ledger import HOW_DECIDED, LACKS, Decision, group_by_statement
from nysboost.paper.presets import ORDER, Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.results import ByPreset, Results, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SAID = 10_000
"""A larger number of replicates is reported as "more than" this."""

EVERYTHING = "nysboost reproduce all --variants stated"

ALL, NONE, MIXED, OPEN, NO_DATA = (
    "hold under every reading",
    "hold under none",
    "depend on the reading, or tie",
    "undecided under some reading",
    "without data",
)
"""The possible verdicts on a statement."""


@dataclass(frozen=True)
class About:
    """The command that repeats a run, and its data sets by name."""

    command: str
    sources: Mapping[str, Points]


def make_page(
    results: ByPreset,
    decisions: Sequence[Decision],
    about: About,
    *,
    panels: bool = True,
) -> Page:
    """Return the report: figures, verdicts, then details.

    With `panels`, each panel is a separate chart, for a web page. Without, each figure is a picture
    file in the same folder.
    """
    # collect the settings and versions that made the numbers
    used = {}
    made_with = {}
    for name, result in results.items():
        sizes = {"seed": result.seed, "replicates": result.preset.replicates}
        used[name] = result.preset.settings() | sizes
        made_with[name] = result.made_with

    # link the tables that lie beside the page
    files = [f"{name}/{name}.csv" for name in results]
    if decisions:
        files.insert(0, "ledger.csv")

    # put figures and verdicts first
    return Page(
        title="Boosting Nyström: the paper's experiments, run again",
        headline=say_outcome(results, decisions),
        sections=[
            _make_figures(results, panels),
            *_make_verdicts(decisions),
            _make_summary(results),
            *_make_details(decisions),
            *map(_make_section, results.values()),
            _make_data(about.sources),
        ],
        notes=list_verdicts(decisions),
        commands=_find_commands(results, about.command),
        files=files,
        settings={
            "command": about.command,
            "made with": made_with,
            "presets": used,
        },
    )


def _find_commands(results: ByPreset, command: str) -> dict[str, str]:
    """Return the command that repeats the run and, if different, that for the paper's sizes."""
    commands = {"The same numbers again:": command}
    if command == EVERYTHING or not set(results) <= set(ORDER):
        return commands

    # the paper's presets were not all run in full
    in_full = [name for name, result in results.items() if result.has_paper_sizes]
    if len(in_full) < len(ORDER):
        commands["All data sets, learners and replicates of the paper:"] = EVERYTHING
    return commands


# Figures


def _make_figures(results: ByPreset, panels: bool) -> Section:
    """Return the figures under the first reading: whole columns, if they were run."""
    charts = []
    for figure in figures.available(results):
        first = results[figure.panels[0].preset]
        reading = first.preset.readings[0]
        if not panels:
            title = f"Figure {figure.number}. {figure.caption}"
            file = f"figures/{figures.file_name(figure, reading)}.png"
            charts.append(Chart(title, _draw_nothing, file))
            continue

        for panel in figure.panels:
            title = f"Figure {figure.number}: {figures.label(panel, results)}"
            plot = PanelPlot(panel, results[panel.preset], reading)
            charts.append(Chart(title, plot))

    sentence = (
        "Each replicate draws its own points; all methods share its first learner. The ensemble is "
        "dashed; bands are one standard error. The folder figures has every figure under each "
        "reading of the validation sets, as PNG, SVG and PDF."
    )
    return Section("The figures", [sentence], charts)


def _draw_nothing(axes: Axes) -> None:
    """Draw nothing, for a chart whose picture exists."""


@dataclass(frozen=True)
class PanelPlot:
    """Draws a panel of a figure."""

    panel: Panel
    result: Results
    reading: Reading

    def __call__(self, axes: Axes) -> None:
        """Draw into axes."""
        figures.draw_panel(axes, self.panel, self.result, self.reading)


# Verdicts


def _make_verdicts(decisions: Sequence[Decision]) -> Iterator[Section]:
    """Yield a row for each statement, with the evidence against those that do not hold."""
    if not decisions:
        sentence = "A small version decides none of the paper's statements."
        yield Section("Which statements hold", [sentence])
        return

    # make a row for each statement, and note why it does not hold
    rows = []
    reasons = []
    for number, mine in group_by_statement(decisions).items():
        first = mine[0]
        verdicts = [say_verdict(decision) for decision in mine]
        rows.append([str(number), first.statement.gist, *verdicts])
        if first.weakest and first.verdict != "holds":
            reasons.append([str(number), first.verdict, first.weakest])

    # show all verdicts, and count them
    head = ["", "the paper's statement", *_list_readings(decisions)]
    counts = ["", "in all", *_count_verdicts(decisions)]
    table = ReportTable("The statements", head, rows, foot=counts)
    yield Section("Which statements hold", tables=[table])

    # say why others do not hold
    title = "What speaks against the others"
    sentence = f"Under the first reading ({decisions[0].reading.words}), the weakest comparison."
    table = ReportTable(title, ["", "verdict", "weakest comparison"], reasons)
    if reasons:
        yield Section(title, [sentence], tables=[table])


def _count_verdicts(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield the number of statements with each verdict, for each reading."""
    for words in _list_readings(decisions):
        mine = [decision for decision in decisions if decision.reading.words == words]
        counts = Counter(decision.verdict for decision in mine)
        yield ", ".join(f"{verdict}: {n}" for verdict, n in sorted(counts.items()))


def _list_readings(decisions: Sequence[Decision]) -> list[str]:
    """Return the readings as headings of columns."""
    return list(dict.fromkeys(decision.reading.words for decision in decisions))


def say_verdict(d: Decision) -> str:
    """Describe a verdict; an undecided one includes the number of replicates that would decide."""
    if d.verdict == LACKS:
        return f"{LACKS}: {', '.join(d.lacks)}"
    if d.would_decide is None:
        return d.verdict
    enough = f"{d.would_decide:,}"
    if d.would_decide > MOST_SAID:
        enough = f"over {MOST_SAID:,}"
    return f"{d.verdict} ({enough} replicates)"


def _make_details(decisions: Sequence[Decision]) -> Iterator[Section]:
    """Yield the words of the paper, and how they were tested."""
    if not decisions:
        return

    rows = []
    for number, mine in group_by_statement(decisions).items():
        statement = mine[0].statement
        quote = f"“{statement.quote}”"
        rows.append([str(number), statement.section, quote, statement.tests])

    head = ["", "section", "the paper's words", "tested as"]
    table = ReportTable("The sentences, and how each is tested", head, rows, folded=True)
    yield Section("How they are decided", [HOW_DECIDED], tables=[table])


def _group(decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """Group the summaries of the statements by verdict."""
    groups: dict[str, list[str]] = {what: [] for what in (ALL, NONE, MIXED, OPEN, NO_DATA)}
    for number, mine in group_by_statement(decisions).items():
        what = _find_group({decision.verdict for decision in mine})
        groups[what].append(f"{mine[0].statement.gist} [{number}]")
    return {what: gists for what, gists in groups.items() if gists}


def _find_group(verdicts: set[str]) -> str:
    """Return the overall verdict on a statement from its verdicts under the readings."""
    if LACKS in verdicts:
        return NO_DATA
    if "undecided" in verdicts:
        return OPEN

    # every reading has decided
    if verdicts == {"holds"}:
        return ALL
    if verdicts <= {"does not hold", "fails only in size"}:
        return NONE
    return MIXED


def list_verdicts(decisions: Sequence[Decision]) -> list[str]:
    """Return sentences on the statements that hold, do not hold, or are undecided."""
    return [
        f"{what.capitalize()} ({len(gists)}): {'; '.join(gists)}."
        for what, gists in _group(decisions).items()
    ]


def say_outcome(results: ByPreset, decisions: Sequence[Decision]) -> str:
    """Return a sentence on how many statements hold, and why others are undecided."""
    # say how much was run
    numbers = [result.preset.replicates for result in results.values()]
    said = format_count(max(numbers), "replicate")
    if min(numbers) < max(numbers):
        said = f"{min(numbers)} to {said}"

    if not decisions:
        return f"{said} of a small version: it decides none of the paper's statements."

    # say what holds
    groups = _group(decisions)
    sizes = {what: len(gists) for what, gists in groups.items()}
    counts = ", ".join(f"{size} {what}" for what, size in sizes.items())
    readings = format_count(len(_list_readings(decisions)), "reading")
    total = len(group_by_statement(decisions))
    text = f"{said}, {readings} of the validation sets. Of {total} statements: {counts}."

    # say what would decide the rest
    if OPEN in groups:
        text += " Undecided ones need more replicates."
    lacking = dict.fromkeys(name for decision in decisions for name in decision.lacks)
    if lacking:
        text += f" Data sets missing: {', '.join(lacking)}."
    return text


# Presets


def _make_summary(results: ByPreset) -> Section:
    """Return a row for each preset: best variant, URB-mean and ensemble, with all learners."""
    title = "With the most learners"
    head = ["", "replicates", "best variant drawn", "URB-mean", BASELINE]
    head.append("learners of URB-mean for the error of the ensemble")
    rows = []
    for result in results.values():
        preset = result.preset
        summaries = {summary.method: summary for summary in result.summaries(preset.readings[0])}
        baseline = summaries[BASELINE]
        urb = summaries.get("URB-mean")

        # find the best of the variants that were run and that the paper draws
        drawn = set(preset.drawn) - {BASELINE}
        variants = [summary for summary in summaries.values() if summary.method in drawn]
        best = min(variants, key=_last_mean, default=baseline)
        row = [
            preset.title,
            str(preset.replicates),
            f"{best.method}: {_say_last_mean(best)}",
            _say_last_mean(urb),
            _say_last_mean(baseline),
            _say_match(urb),
        ]
        rows.append(row)

    sentences = ["Mean errors under the first reading; of the runtime, mean seconds."]
    measured = [result for result in results.values() if result.properties]
    sentences += [say_properties(result) for result in measured]
    return Section(title, sentences, tables=[ReportTable(title, head, rows)])


def _last_mean(summary: Summary) -> float:
    """Return the mean with the most learners."""
    return float(summary.mean[-1])


def _say_last_mean(summary: Summary | None) -> str:
    """Return the mean with the most learners, or a dash where a method was not run."""
    if summary is None:
        return "–"
    return format_number(_last_mean(summary))


def _say_mean(summary: Summary, i: int) -> str:
    """Return a mean with its standard error."""
    error = format_number(summary.standard_error[i], 2)
    return f"{format_number(summary.mean[i])} ± {error}"


def _say_match(summary: Summary | None) -> str:
    """Return the number of learners that reach the ensemble's final error, or a dash."""
    if summary is None or summary.to_match is None:
        return "–"
    return str(summary.to_match)


def say_properties(result: Results) -> str:
    """Return the means of the measured properties."""
    said = []
    for name, values in result.properties.items():
        mean = format_number(values.mean())
        least = format_number(values.min())
        most = format_number(values.max())
        said.append(f"{name} {mean} (from {least} to {most})")
    return f"{result.preset.name}: {', '.join(said)}."


def say_protocol(result: Results) -> str:
    """Return the settings of a preset in a sentence."""
    p = result.preset
    draws = "all on the same points"
    if p.redraw:
        draws = "each with its own points"

    replicates = format_count(p.replicates, "replicate")
    return (
        f"{replicates}, {draws} (n = {p.n_points}); m = {p.n_columns}, "
        f"k = {p.rank}, s = {p.n_candidates}, v1 = {p.n_fit}, v2 = {p.n_tune}, η = {p.eta:g}; "
        f"seed {result.seed}."
    )


def _make_section(result: Results) -> Section:
    tables = [_make_table(result, reading) for reading in result.preset.readings]
    return Section(result.preset.title, [say_protocol(result)], tables=tables)


def _make_table(result: Results, reading: Reading) -> ReportTable:
    """Return all methods under one reading, best first."""
    # show the means at 5, 10 and the most learners
    most = result.counts[-1]
    shown = [i for i, count in enumerate(result.counts) if count in (5, 10, most)]
    head = ["method", *(f"p = {result.counts[i]}" for i in shown)]
    head += [f"learners to match {BASELINE} at p = {most}", f"p-value at p = {most}", "Holm"]

    rows = []
    for summary in sorted(result.summaries(reading), key=_last_mean):
        means = [_say_mean(summary, i) for i in shown]
        p_value = format_number(summary.p_value[-1], 2)
        holm = format_number(summary.holm[-1], 2)
        rows.append([summary.method, *means, _say_match(summary), p_value, holm])

    note = (
        "Mean ± standard error; bold: drawn in the paper's figures. p-values are one-sided Welch "
        f"tests of “smaller than {BASELINE}”. nystrom and adaptive are one Nyström approximation "
        "of p·m columns, uniform or by adaptive sampling, of rank k or p·k."
    )
    title = f"All methods; {reading.words}"
    return ReportTable(title, head, rows, note, folded=True, marked=result.preset.drawn)


def _make_data(sources: Mapping[str, Points]) -> Section:
    """Return the data sets that were used, as read and in the paper."""
    columns = {
        "name": "name",
        "data set": "data set",
        "points × dimension, as read": "as read",
        "in the paper": "points × dimension",
        "features": "features",
    }

    records = []
    for row in datasets.list_all():
        if row["name"] in sources:
            n, dimension = sources[row["name"]].shape
            records.append(row | {"as read": f"{n:,} × {dimension}"})
    table = ReportTable.of("What was drawn from", columns, records)
    return Section("Data sets", tables=[table])
