"""``nysboost reproduce``: from options to records, figures, a ledger and a report."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nysboost.compare.methods import split_names
from nysboost.compare.page import make_writable, print_table, write, write_csv
from nysboost.numerics.messages import format_count, format_seconds, unknown
from nysboost.numerics.progress import report_progress
from nysboost.paper import datasets, ledger, presets, report, runner
from nysboost.paper.claims import find_methods
from nysboost.paper.ledger import Results
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import BASELINE, METHODS
from nysboost.user_error import UserError


def run(options: Namespace) -> dict[str, Any]:
    """Run all that is asked for, write it into a folder, and return outcome and verdicts."""
    chosen, out = choose_presets(options), options.out
    methods = {preset.name: choose_methods(options.variants, preset) for preset in chosen}
    make_writable(out)
    # What is missing is said, or downloaded, before hours of work and not between them.
    sources, sizes = {}, {}
    for name in dict.fromkeys(preset.data for preset in chosen):
        points = datasets.load(name, options.data_dir, print)
        sources[name], sizes[name] = points.source, "{:,} × {}".format(*points.shape)
    results: dict[str, Results] = {}
    paces: dict[str, float] = {}
    for preset in chosen:
        folder = out / preset.name
        count = format_count(preset.replicates, "replicate")
        print(f"{preset.title}: {count}; data: {sources[preset.data]}.")
        where = (options.data_dir, options.device)
        plan = runner.Plan(preset, methods[preset.name], options.seed, *where)
        if options.report_only:
            results[preset.name] = runner.gather(plan, folder)
        else:
            began = time.perf_counter()
            with report_progress(preset.name, verbose=1) as work:
                results[preset.name] = runner.run(plan, folder, options.jobs)
            made = work.done - work.before
            print(f"{made:g} of {work.total:g} records were made now.")
            if made:  # seconds of a replicate
                pace = (time.perf_counter() - began) / made
                paces[preset.name] = pace * len(preset.readings)
        report.write_figures(results[preset.name], folder)
    decisions = ledger.decide_all(results)
    write_csv(out / "ledger.csv", [decision.record() for decision in decisions])
    page = report.make_page(results, decisions, sizes, options.again)
    write(page, out / "report.html")
    write(page, out / "report.md")
    found = {d.verdict for d in decisions}
    if found - {"not run", "undecided"}:
        print_table(page.sections[0].tables[0])
    print(page.notes[0], page.headline, sep="\n")
    if "undecided" in found:
        print(say_time_for_all(results, options.presets, paces))
    print(f"The report is {out / 'report.html'}; figures and numbers lie beside it.")
    verdicts = [
        {"statement": d.claim.number, "reading": d.reading, "verdict": d.verdict}
        for d in decisions
        if d.verdict != "not run"
    ]
    return {"outcome": page.headline, "verdicts": verdicts, "report": str(out / "report.html")}


def say_time_for_all(
    results: Mapping[str, Results], names: Sequence[str], paces: Mapping[str, float]
) -> str:
    """Say how long whole presets take, from seconds per replicate: time grows about as n · p."""
    files = [presets.load(name) for name in (presets.ORDER if "all" in names else names)]
    seconds = 0.0
    for whole in files:
        done = results[whole.name].preset
        size = whole.n_learners * whole.n_points / (done.n_learners * done.n_points)
        left = whole.replicates - (done.replicates if size == 1 else 0)
        seconds += paces.get(whole.name, 0.0) * size * max(left, 0)
    most = max(preset.replicates for preset in files)
    time_ = f" takes about {format_seconds(seconds)}" if seconds else " takes longer"
    return f"All of it, up to {most} replicates,{time_}: nysboost reproduce {' '.join(names)}"


def choose_presets(options: Namespace) -> list[Preset]:
    """Return the presets asked for, with the overrides of the options."""
    replicates: dict[str, int] = {}  # of presets, and of all under ""
    for text in options.replicates:
        name, _, count = text.rpartition("=")
        if not count.isdigit() or int(count) < 1:
            raise UserError(f"--replicates takes N or PRESET=N with N at least 1, not {text!r}.")
        replicates[name] = int(count)
    chosen = []
    for name in dict.fromkeys(presets.ORDER if "all" in options.presets else options.presets):
        preset = presets.load(name)
        preset = replace(preset, **preset.quick) if options.quick else preset
        everywhere = replicates.get("", preset.replicates)
        learners = options.max_learners or preset.n_learners
        changed = replace(
            preset,
            replicates=replicates.get(preset.name, everywhere),
            readings=preset.readings if options.reading == "both" else (options.reading,),
            n_learners=learners,
        )
        if not changed.counts:
            least = min(preset.counts)
            raise UserError(f"{preset.name} measures {least} learners and more, not {learners}.")
        chosen.append(changed)
    known = [preset.name for preset in chosen]
    if others := [name for name in replicates if name not in ("", *known)]:
        raise UserError(f"--replicates: {unknown('preset in this run', others[0], known)}")
    return chosen


def choose_methods(variants: str, preset: Preset) -> tuple[str, ...]:
    """Return the methods to run, with the baseline; "stated" are those the paper speaks of."""
    if variants == "all":
        return METHODS
    stated = {*preset.drawn, *find_methods(preset.name)}
    asked = (
        stated if variants == "stated" else split_names(variants, "method of the paper", METHODS)
    )
    if not asked:
        raise UserError("--variants names no method: give names separated by commas, or all.")
    return tuple(m for m in METHODS if m in asked or m == BASELINE)
