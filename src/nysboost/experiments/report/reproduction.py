"""The report of ``nysboost reproduce``: what was run, what it gave, what the paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nysboost.experiments import ledger
from nysboost.experiments.figures import MEASURE_WORDS, READING_WORDS, spread_out
from nysboost.experiments.ledger import TIE, Decision
from nysboost.experiments.replicate import BASELINE
from nysboost.experiments.report import Chart, Page, Section, Series, Table
from nysboost.experiments.results import Results, Summary


def page(
    results: Mapping[str, Results], data_table: Sequence[Mapping[str, str]], command: str
) -> Page:
    """Return the report of some presets.

    Parameters
    ----------
    results : mapping from preset name to Results
        What was run.
    data_table : sequence of rows
        The data sets, as found.
    command : str
        The command that makes these results again.
    """
    decisions = ledger.ledger(results)
    return Page(
        title="Boosting Nyström: the paper's experiments, run again",
        summary=summary(results, decisions, command),
        sections=[
            *(_section(result) for result in results.values()),
            _ledger_section(decisions),
            _data_section(data_table),
        ],
        settings=_settings(results, command),
    )


def summary(
    results: Mapping[str, Results], decisions: Sequence[Decision], command: str
) -> list[str]:
    """Return the outcome in plain words: what was run, what the paper got right, what not."""
    runs = ", ".join(f"{r.preset.name} ({r.preset.replicates})" for r in results.values())
    code = _each_once(f"NysBoost {made}" for r in results.values() for made in r.made_with)
    libraries = _each_once(" ".join(item) for r in results.values() for item in r.libraries.items())
    made = f"Made with “{command}”" + (f" by {code}" if code else "")
    made += f" on {libraries}" if libraries else ""
    return [f"{made}. Presets and replicates: {runs}.", *verdicts(decisions)]


def _each_once(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def verdicts(decisions: Sequence[Decision]) -> list[str]:
    """Return what holds, what does not and what lies between, a sentence for each.

    A statement holds here, or does not, if it is so under every reading of V.
    """
    groups: dict[str, list[str]] = {side: [] for side in _OPENINGS}
    for mine in ledger.by_claim(decisions).values():
        found = " / ".join(dict.fromkeys(d.verdict for d in mine if d.verdict != "not run"))
        if found:
            claim, how = mine[0].claim, "" if found in _PLAIN else f" ({found})"
            groups[_SIDES.get(found, "between")].append(f"{claim.gist} [{claim.number}]{how}")
    return [f"{_OPENINGS[side]}: {'; '.join(said) or 'nothing'}." for side, said in groups.items()]


_PLAIN = ("holds", "does not hold")
_SIDES = {"holds": "right", "does not hold": "wrong", "fails only in size": "wrong"}
_OPENINGS = {
    "right": "What the paper says and what holds, however V is read",
    "wrong": "What it says and what does not hold, however V is read",
    "between": "What lies between, for V read as whole columns / as a square block",
}


def finding(result: Results) -> str:
    """Return what a preset gave, in a sentence."""
    reading = next(iter(result.values))
    everything = {s.method: s for s in result.summaries(reading)}
    drawn = [everything[m] for m in result.preset.drawn if m in everything]
    best = min(drawn or everything.values(), key=lambda s: float(s.mean[-1]))
    what = "time" if result.preset.measure == "seconds" else "error"
    most = result.counts[-1]
    text = (
        f"{result.preset.title}: with {most} learners the smallest {what} among the paper's drawn "
        f"methods is {number(best.mean[-1])} ({best.method})"
    )
    if BASELINE in everything and best.method != BASELINE:
        text += f", against {number(everything[BASELINE].mean[-1])} for {BASELINE}"
    if what == "error" and (urb := everything.get("URB-mean")) and BASELINE in everything:
        text += f"; URB-mean {_reach(urb)} the error that {BASELINE} has with {most}"
    return text + "."


def _reach(summary: Summary) -> str:
    if summary.to_match is None:
        return "does not reach"
    return f"reaches with {summary.to_match} learner{'s' if summary.to_match > 1 else ''}"


def _section(result: Results) -> Section:
    preset = result.preset
    views = {READING_WORDS[r]: _series(result, r) for r in preset.readings}
    chart = Chart(
        title=preset.title,
        x_label="number of learners p",
        y_label=MEASURE_WORDS[preset.measure],
        views=views,
        selections=_selections(result),
        logarithmic=_spans_decades(result),
    )
    return Section(
        title=preset.title,
        sentences=[protocol(result), finding(result)],
        chart=chart,
        tables=[_table(result, reading) for reading in preset.readings],
    )


def protocol(result: Results) -> str:
    """Return the settings of a preset in a sentence."""
    p = result.preset
    draws = "each with its own points" if p.redraw else "all on the same points"
    return (
        f"{p.replicates} replicates, {draws} (n = {p.n_points}); m = {p.n_columns}, "
        f"k = {p.rank}, s = {p.n_candidates}, v1 = {p.n_fit}, v2 = {p.n_tune}, η = {p.eta:g}; "
        f"seed {result.seed}. Bands are one standard error."
    )


def _selections(result: Results) -> dict[str, Sequence[str]]:
    chosen = {
        figure.label: [m for m in figure.draws if m in result.methods]
        for figure in result.preset.figures
    }
    return {k: v for k, v in chosen.items() if v} or {"chosen methods": list(result.methods)}


def _spans_decades(result: Results) -> bool:
    return spread_out([s for r in result.preset.readings for s in result.summaries(r)])


def _series(result: Results, reading: str) -> list[Series]:
    return [
        Series(
            s.method,
            result.counts,
            s.mean.tolist(),
            s.standard_error.tolist(),
            s.p_value.tolist(),
            s.holm.tolist(),
        )
        for s in result.summaries(reading)
    ]


def _table(result: Results, reading: str) -> Table:
    most = result.counts[-1]
    ordered = sorted(result.summaries(reading), key=lambda s: float(s.mean[-1]))
    return Table(
        title=f"All methods, {READING_WORDS[reading]}, best first",
        head=[
            "method",
            *(f"p = {c}" for c in shown_counts(result)),
            f"learners to match {BASELINE} at p = {most}",
            f"p-value at p = {most}",
            "Holm",
        ],
        rows=[_table_row(result, s) for s in ordered],
        note="Mean ± standard error; bold: drawn in the paper's figures. p-values are one-sided "
        f"Welch tests of “smaller than {BASELINE}”.",
        folded=True,
        marked=frozenset(i for i, s in enumerate(ordered) if s.method in result.preset.drawn),
    )


def shown_counts(result: Results) -> list[int]:
    """Return the numbers of learners that tables show."""
    return [c for c in result.counts if c in (5, 10, result.counts[-1])]


def mean_cells(result: Results, s: Summary) -> list[str]:
    """Return mean ± standard error at each of the numbers of learners that tables show."""
    places = [result.counts.index(c) for c in shown_counts(result)]
    return [f"{number(s.mean[i])} ± {number(s.standard_error[i], 2)}" for i in places]


def _table_row(result: Results, s: Summary) -> list[str]:
    match = "not reached" if s.to_match is None else str(s.to_match)
    p_values = (number(p[-1], 2) for p in (s.p_value, s.holm))
    return [s.method, *mean_cells(result, s), match, *p_values]


def _ledger_section(decisions: Sequence[Decision]) -> Section:
    readings = list(dict.fromkeys(d.reading for d in decisions))
    head = ["", "what the paper says", *(READING_WORDS[r] for r in readings), "what decides it"]
    run, not_run = ledger_rows(decisions)
    tables = [Table(title="The statements", head=head, rows=run)]
    if not_run:
        tables.append(
            Table(title="Statements that were not run", head=head, rows=not_run, folded=True)
        )
    return Section(
        title="Ledger: what the paper says, and whether it holds here",
        sentences=[HOW_DECIDED],
        tables=tables,
    )


HOW_DECIDED = (
    "A statement is taken apart into comparisons of two means, each a one-sided test. It holds if "
    "every comparison is significant at its level (5%, for statement 4 1%); it does not hold if "
    "one is significantly reversed (Holm-corrected), and statement 4, about p-values at 100 "
    f"replicates, if one is not significant then. Means that are shown to be within {TIE:.0%} of "
    "each other are tied: the statement holds or ties if all others hold, and fails only in size "
    "if none does. Otherwise it is undecided: it lacks replicates. Methods share the points "
    "of a replicate: where Welch's test finds no clear answer a paired one does, and the verdict "
    "says on which it rests."
)


def ledger_rows(decisions: Sequence[Decision]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the ledger's rows: of statements that were run, and of those that were not."""
    run: list[list[str]] = []
    not_run: list[list[str]] = []
    for number_, mine in ledger.by_claim(decisions).items():
        words = " | ".join(dict.fromkeys(decision_words(d) for d in mine))
        row = [number_, mine[0].claim.statement, *(d.verdict for d in mine), words]
        (not_run if all(d.verdict == "not run" for d in mine) else run).append(row)
    return run, not_run


def decision_words(d: Decision) -> str:
    """Return the counts behind a verdict, the test it rests on, and its weakest comparison."""
    if d.verdict == "not run":
        return "needs " + ", ".join(d.not_run)
    counts = {"hold": d.held, "reversed": d.reversed_, "tied": d.tied, "open": d.open_}
    text = f"{d.reading}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    if d.not_run:
        text += f", not or not fully measured: {', '.join(d.not_run)}"
    text += f" ({d.rests_on})" if d.rests_on else ""
    return text + (f"; weakest: {d.weakest}" if d.verdict != "holds" else "")


def _data_section(rows: Sequence[Mapping[str, str]]) -> Section:
    # Where a file lies is the reader's business only on the machine that made the report.
    head = [k for k in rows[0] if k != "found"] if rows else []
    table = Table("Sizes as read from the files", head, [[r[k] for k in head] for r in rows])
    return Section("Data sets", tables=[table])


def _settings(results: Mapping[str, Results], command: str) -> dict[str, Any]:
    left_out = ("figures", "quick")
    presets = {
        name: {k: v for k, v in asdict(r.preset).items() if k not in left_out}
        for name, r in results.items()
    }
    seeds = sorted({r.seed for r in results.values()})
    return {"command": command, "seed": seeds, "presets": presets}


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, or a dash."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"
