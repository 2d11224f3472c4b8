"""The outcome of ``nysboost reproduce`` as Markdown, for a page of documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nysboost._version import SOFTWARE
from nysboost.experiments import ledger
from nysboost.experiments.figures import READING_WORDS, figure_name
from nysboost.experiments.ledger import Decision
from nysboost.experiments.report.reproduction import (
    HOW_DECIDED,
    decision_words,
    finding,
    ledger_rows,
    mean_cells,
    number,
    protocol,
    shown_counts,
)
from nysboost.experiments.results import Results, Summary


def page(results: Mapping[str, Results], summary: Sequence[str]) -> str:
    """Return the summary, the ledger, and for each preset its figures and a table.

    Parameters
    ----------
    results : mapping from preset name to Results
        What was run.
    summary : sequence of str
        The outcome in plain words.
    """
    as_code = str.maketrans("“”", "``")  # two hyphens of a command would become a dash
    parts = ["## Summary", *(f"- {sentence.translate(as_code)}" for sentence in summary), ""]
    parts += ["## What the paper says, and whether it holds here", ""]
    parts += _ledger(ledger.ledger(results))
    for result in results.values():
        parts += _preset(result)
    parts += ["", f"Made with {SOFTWARE}."]
    return "\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(c.replace("|", "/") for c in line) + " |" for line in lines]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def _ledger(decisions: Sequence[Decision]) -> list[str]:
    """Return the verdicts as a table, and folded below it what each of them rests on."""
    words = [READING_WORDS[reading] for reading in dict.fromkeys(d.reading for d in decisions)]
    run, not_run = ledger_rows(decisions)
    verdicts = [[*row[:2], *map(_strong, row[2:-1])] for row in run]
    grouped = ledger.by_claim(decisions)
    why = [[row[0], *map(_without_reading, grouped[row[0]])] for row in run]
    lines = [HOW_DECIDED, "", *_table(["", "statement", *words], verdicts), ""]
    lines += _folded("What decides each of them", _table(["", *words], why))
    if not_run:
        folded = [f"{row[0]} ({row[-1]})" for row in not_run]
        lines += [f"Not run: {', '.join(folded)}.", ""]
    return lines


def _without_reading(decision: Decision) -> str:
    return decision_words(decision).removeprefix(f"{decision.reading}: ")


def _strong(verdict: str) -> str:
    return f"**{verdict}**" if verdict in ("holds", "does not hold") else verdict


def _preset(result: Results) -> list[str]:
    parts = [f"## {result.preset.title}", "", protocol(result), "", finding(result), ""]
    for i, figure in enumerate(result.preset.figures, start=1):
        for reading in result.preset.readings:
            name = figure_name(result, i, reading)
            parts.append(
                f"![{figure.label}, {READING_WORDS[reading]}]({result.preset.name}/{name})"
            )
    most = result.counts[-1]
    head = ["method", "reading of V", *(f"p = {c}" for c in shown_counts(result))]
    head += ["learners to match", f"p-value at p = {most}"]
    drawn = [
        _row(result, reading, summary)
        for reading in result.preset.readings
        for summary in sorted(result.summaries(reading), key=lambda s: float(s.mean[-1]))
        if summary.method in result.preset.drawn or not result.preset.drawn
    ]
    return [*parts, "", *_folded("The numbers", _table(head, drawn))]


def _row(result: Results, reading: str, s: Summary) -> list[str]:
    match = "–" if s.to_match is None else str(s.to_match)
    return [s.method, reading, *mean_cells(result, s), match, number(s.p_value[-1], 2)]
