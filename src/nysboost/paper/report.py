"""The report of ``nysboost reproduce``: what was run, what it gave, which statements hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from nysboost.compare import charts
from nysboost.compare.charts import Chart, Curve, chart_curves
from nysboost.compare.page import Page, Section, Table, format_number, write_csv
from nysboost.numerics.messages import format_count
from nysboost.paper import datasets, ledger
from nysboost.paper.claims import MOST
from nysboost.paper.ledger import HOW_DECIDED, Decision, Results
from nysboost.paper.presets import ORDER
from nysboost.paper.replicate import BASELINE

READING_WORDS = {"columns": "V read as whole columns", "square": "V read as a square block"}
MEASURE_WORDS = {
    "error": "relative error (Frobenius norm)",
    "seconds": "seconds (processor time, one thread)",
}


def make_page(
    results: Mapping[str, Results],
    decisions: Sequence[Decision],
    sizes: Mapping[str, str],
    command: str,
) -> Page:
    """Return the report of presets, with the sizes of data as read and the command to repeat."""
    columns = {
        "name": "name", "data set": "data set", "points × dimension, as read": "as read",
        "in the paper": "points × dimension", "features": "features",
    }  # fmt: skip
    drawn = [row for row in datasets.list_all() if row["name"] in sizes]
    data = [row | {"as read": sizes[row["name"]]} for row in drawn]
    commands = {"The same numbers again:": command}
    if any(d.verdict == "undecided" for d in decisions) and set(results) <= set(ORDER):
        commands["With all learners and replicates:"] = f"nysboost reproduce {' '.join(results)}"
    presets = {
        name: r.preset.settings() | {"seed": r.seed, "replicates": r.preset.replicates}
        for name, r in results.items()
    }
    return Page(
        title="Boosting Nyström: the paper's experiments, run again",
        headline=say_outcome(results, decisions),
        sections=[
            _make_ledger_section(decisions),
            *map(_make_section, results.values()),
            Section("Data sets", tables=[Table.of("What was drawn from", columns, data)]),
        ],
        notes=[say_origin(results, command), *list_verdicts(decisions)],
        commands=commands,
        files=["ledger.csv", *(f"{name}/{name}-all-methods.csv" for name in results)],
        settings={"command": command, "presets": presets},
    )


def say_origin(results: Mapping[str, Results], command: str) -> str:
    """Say which command, code and libraries made the results."""
    runs = ", ".join(f"{r.preset.name} ({r.preset.replicates})" for r in results.values())
    codes = dict.fromkeys(f"NysBoost {made}" for r in results.values() for made in r.made_with)
    versions = dict.fromkeys(" ".join(v) for r in results.values() for v in r.libraries.items())
    made = f"Made with “{command}” by {', '.join(codes)} on {', '.join(versions)}"
    return f"{made}. Presets and replicates: {runs}."


_SIDES = {"holds": "right", "does not hold": "wrong", "fails only in size": "wrong"}
_WORDS = {
    "right": ("Holds, however V is read", "holds", "hold"),
    "wrong": ("Does not hold, however V is read", "does not hold", "do not hold"),
    "between": (
        "Ties, or depends on how V is read (as whole columns / as a square block)",
        "ties or depends on how V is read", "tie or depend on how V is read",
    ),
    "open": ("Undecided with these replicates", "", ""),
}  # fmt: skip
"""Of each group of statements: how its list begins, and what is said of one and of several."""


def _group(decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """Return the gists of the statements that were run, by what holds under every reading of V."""
    groups: dict[str, list[str]] = {side: [] for side in _WORDS}
    for mine in ledger.group_by_claim(decisions).values():
        verdicts = dict.fromkeys(d.verdict for d in mine if d.verdict != "not run")
        found = " / ".join(verdicts)
        if found:
            side = "open" if "undecided" in verdicts else _SIDES.get(found, "between")
            how = "" if found in ("holds", "does not hold", "undecided") else f" ({found})"
            claim = mine[0].claim
            groups[side].append(f"{claim.gist} [{claim.number}]{how}")
    return groups


def list_verdicts(decisions: Sequence[Decision]) -> list[str]:
    """Return what holds, what does not and what lies between, a sentence for each."""
    groups = _group(decisions).items()
    return [f"{_WORDS[side][0]}: {'; '.join(said)}." for side, said in groups if said]


def say_outcome(results: Mapping[str, Results], decisions: Sequence[Decision]) -> str:
    """Say how many statements hold, and how many these replicates are too few to decide."""
    counts = {side: len(said) for side, said in _group(decisions).items()}
    tested, undecided = sum(counts.values()), counts.pop("open")
    numbers = sorted(r.preset.replicates for r in results.values())
    replicates = format_count(numbers[-1], "replicate")
    replicates = f"{numbers[0]} to {replicates}" if numbers[0] < numbers[-1] else replicates
    if not tested:
        return f"{replicates}: they test none of the paper's statements."
    found = ", ".join(f"{n} {_WORDS[side][1 + (n > 1)]}" for side, n in counts.items() if n)
    if not undecided:
        return f"{replicates} decide all {tested} statements that they test: {found}."
    fewer = [f"up to {r.counts[-1]} learners" for r in results.values() if r.counts[-1] < MOST]
    what = " with ".join([replicates, *fewer[:1]])
    both = " under both readings of V" if len({d.reading for d in decisions}) > 1 else ""
    said = f"{what}: too few to decide {undecided} of {tested} statements{both}"
    return f"{said}; {found}." if found else f"{said}."


def say_finding(result: Results) -> str:
    """Return what a preset gave, in a sentence."""
    everything = {s.method: s for s in result.summaries(result.preset.readings[0])}
    drawn = [everything[m] for m in result.preset.drawn if m in everything]
    best = min(drawn or everything.values(), key=lambda s: float(s.mean[-1]))
    what = "time" if result.preset.measure == "seconds" else "error"
    most = result.counts[-1]
    text = (
        f"{result.preset.title}: with {most} learners the smallest {what} among the paper's drawn "
        f"methods is {format_number(best.mean[-1])} ({best.method})"
    )
    if best.method != BASELINE:
        text += f", against {format_number(everything[BASELINE].mean[-1])} for {BASELINE}"
    if what == "error" and (urb := everything.get("URB-mean")):
        n = urb.to_match
        reach = f"reaches with {format_count(n, 'learner')}" if n else "does not reach"
        text += f"; URB-mean {reach} the error that {BASELINE} has with {most}"
    return text + "."


def say_protocol(result: Results) -> str:
    """Return the settings of a preset in a sentence."""
    p = result.preset
    draws = "each with its own points" if p.redraw else "all on the same points"
    replicates = format_count(p.replicates, "replicate")
    return (
        f"{replicates}, {draws} (n = {p.n_points}); m = {p.n_columns}, "
        f"k = {p.rank}, s = {p.n_candidates}, v1 = {p.n_fit}, v2 = {p.n_tune}, η = {p.eta:g}; "
        f"seed {result.seed}. Bands are one standard error."
    )


def make_charts(result: Results) -> Iterator[tuple[str, tuple[str, ...], Chart]]:
    """Yield every figure of a preset under every reading of V, with its reading and methods."""
    preset, measure = result.preset, MEASURE_WORDS[result.preset.measure]
    panels = enumerate(preset.figures.items(), start=1)
    for (number, (label, methods)), reading in product(panels, preset.readings):
        shown = [s for s in result.summaries(reading) if s.method in methods]
        curves = [Curve(s.method, result.counts, s.mean, s.standard_error) for s in shown]
        title = f"{label}, {READING_WORDS[reading]}"
        file = f"{preset.name}/{preset.name}-figure-{number}-{reading}.png"
        chart = chart_curves(title, "number of learners p", measure, curves, file=file)
        if shown:
            yield reading, methods, chart


def write_figures(result: Results, folder: Path) -> None:
    """Write every figure as PNG and SVG with its numbers as CSV, and those of all methods."""
    records = result.records()
    write_csv(folder / f"{result.preset.name}-all-methods.csv", records)
    for reading, methods, chart in make_charts(result):
        path = folder / Path(chart.file).name
        charts.save(chart, path)
        mine = [r for r in records if r["reading"] == reading and r["method"] in methods]
        write_csv(path.with_suffix(".csv"), mine)


def _make_section(result: Results) -> Section:
    preset, most = result.preset, result.counts[-1]
    shown = [i for i, count in enumerate(result.counts) if count in (5, 10, most)]
    head = ["method", *(f"p = {result.counts[i]}" for i in shown)]
    head += [f"learners to match {BASELINE} at p = {most}", f"p-value at p = {most}", "Holm"]
    note = (
        "Mean ± standard error; bold: drawn in the paper's figures. p-values are one-sided Welch "
        f"tests of “smaller than {BASELINE}”."
    )
    tables = []
    for reading in preset.readings:
        rows = []
        for s in sorted(result.summaries(reading), key=lambda s: float(s.mean[-1])):
            pairs = [(format_number(s.mean[i]), s.standard_error[i]) for i in shown]
            means = [f"{mean} ± {format_number(error, 2)}" for mean, error in pairs]
            match = "not reached" if s.to_match is None else str(s.to_match)
            tests = [format_number(p[-1], 2) for p in (s.p_value, s.holm)]
            rows.append([s.method, *means, match, *tests])
        title = f"All methods, {READING_WORDS[reading]}, best first"
        tables.append(Table(title, head, rows, note, folded=True, marked=preset.drawn))
    drawn = [chart for _, _, chart in make_charts(result)]
    return Section(preset.title, [say_protocol(result), say_finding(result)], drawn, tables)


def _make_ledger_section(decisions: Sequence[Decision]) -> Section:
    """Return the verdicts as a table, and folded below it what each of them rests on."""
    words = [READING_WORDS[reading] for reading in dict.fromkeys(d.reading for d in decisions)]
    run, why, not_run = [], [], []
    for number, mine in ledger.group_by_claim(decisions).items():
        statement = mine[0].claim.statement
        if all(d.verdict == "not run" for d in mine):
            not_run.append([number, statement, ", ".join(mine[0].not_run)])
        else:
            run.append([number, statement, *(d.verdict for d in mine)])
            why.append([number, *map(say_decision, mine)])
    tables = [
        Table("The statements", ["", "what the paper says", *words], run),
        Table("What decides each of them", ["", *words], why, folded=True),
    ]
    if not_run:
        head = ["", "what the paper says", "needs"]
        tables.append(Table("Statements that were not run", head, not_run, folded=True))
    title = "Ledger: what the paper says, and whether it holds here"
    return Section(title, [HOW_DECIDED], tables=tables)


def say_decision(d: Decision) -> str:
    """Return the counts behind a verdict, the test it rests on, and its weakest comparison."""
    text = ", ".join(f"{n} {kind}" for kind, n in d.counts.items() if n)
    if d.not_run:
        text += f", not or not fully measured: {', '.join(d.not_run)}"
    text += f" ({d.rests_on})" if d.rests_on else ""
    return text + (f"; weakest: {d.weakest}" if d.verdict != "holds" else "")
