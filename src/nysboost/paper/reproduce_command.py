"""``nysboost reproduce``: from options to records, figures, a ledger and a report."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nysboost.compare.methods import split_names
from nysboost.compare.page import (
    MARKS,
    REPORT,
    make_writable,
    refuse_missing_packages,
    write,
    write_csv,
)
from nysboost.numerics.messages import format_count, format_seconds, unknown
from nysboost.numerics.progress import report_progress
from nysboost.paper import datasets, figures, ledger, presets, report, runner
from nysboost.paper.datasets import Points
from nysboost.paper.presets import SHAPES, Preset
from nysboost.paper.replicate import BASELINE, METHODS, POOLED
from nysboost.paper.results import ByPreset, Results
from nysboost.paper.runner import RunPlan
from nysboost.paper.statements import find_methods
from nysboost.rows.files import atomic_file
from nysboost.settings import Shape
from nysboost.user_error import UserError

PLAIN_REPORT = "report.md"
LEDGER = "ledger.csv"
FIGURES = "figures"
RUN_FILE = "run.json"
"""A file that describes the run of a folder, so that no run replaces the report of another."""


def run(options: Namespace) -> dict[str, object]:
    """Run the presets, write results to a folder, and return outcome and verdicts."""
    # refuse wrong options at once
    chosen = choose_presets(options)
    if not options.records_only:
        refuse_missing_packages()
    make_writable(options.out, _list_files(chosen, options.out))
    _refuse_other_report(options)

    # download or report missing data before hours of work, not in between
    names = dict.fromkeys(preset.data for preset in chosen)
    sources = {name: datasets.load(name, options.data_dir) for name in names}
    plans = {}
    for preset in chosen:
        methods = choose_methods(options.variants, preset)
        plans[preset.name] = RunPlan(
            preset, methods, options.seed, options.data_dir, options.device
        )

    # report the records that exist
    if options.report_only:
        results = {name: runner.gather(plan, options.out / name) for name, plan in plans.items()}
        return _write_report(results, sources, options)

    # make the missing records
    made = dict(_make_records(plans, sources, options))
    results = {name: result for name, result in made.items() if result is not None}
    left = [name for name in made if name not in results]

    # stop here if no report is due
    if left:
        outcome = f"Stopped after {options.max_minutes} min; still to run: {', '.join(left)}."
        return _without_report(outcome, "The same command continues the run.")
    if options.records_only:
        outcome = f"All records are in {options.out}."
        return _without_report(outcome, "To write a report of them, use --report-only.")
    return _write_report(results, sources, options)


def _list_files(chosen: Sequence[Preset], out: Path) -> list[str]:
    """Return the names of the files that a run writes, but of the pictures only those there."""
    names = [REPORT, PLAIN_REPORT, LEDGER, RUN_FILE]
    names += [f"{preset.name}/{preset.name}.csv" for preset in chosen]
    for picture in sorted((out / FIGURES).glob("figure-*")):
        if picture.suffix in MARKS:
            names.append(str(picture.relative_to(out)))
    return names


def _without_report(outcome: str, advice: str) -> dict[str, object]:
    """Print why there is no report, and what to do."""
    print(f"{outcome} {advice}")
    return {"outcome": outcome, "verdicts": [], "report": ""}


def _make_records(
    plans: Mapping[str, RunPlan], sources: Mapping[str, Points], options: Namespace
) -> Iterator[tuple[str, Results | None]]:
    """Yield the results of each preset, or None if time was over before its last replicate."""
    deadline = None
    if options.max_minutes is not None:
        deadline = time.time() + 60 * options.max_minutes

    for name, plan in plans.items():
        preset = plan.preset
        count = format_count(preset.replicates, "replicate")
        source = sources[preset.data].source
        print(f"{preset.title}: {count}; data: {source}.")

        # run until the time is over
        began = time.perf_counter()
        with report_progress(name, verbose=1) as work:
            result = runner.run(plan, options.out / name, options.jobs, deadline)
        made = work.done - work.before
        seconds = format_seconds(time.perf_counter() - began)
        print(f"{made:g} of {work.total:g} records were computed now, in {seconds}.")
        yield name, result


def _write_report(
    results: ByPreset, sources: Mapping[str, Points], options: Namespace
) -> dict[str, object]:
    """Write figures, ledger and report, and return outcome and verdicts."""
    # numbers and figures
    out: Path = options.out
    for name, result in results.items():
        write_csv(out / name / f"{name}.csv", result.records())
    figures.write_all(results, out / FIGURES)

    # verdicts
    decisions = ledger.decide_all(results)
    records = [decision.record() for decision in decisions]
    if records:
        write_csv(out / LEDGER, records)

    # the report as a web page and as Markdown
    about = report.About(options.again, sources)
    page = report.make_page(results, decisions, about)
    plain_page = report.make_page(results, decisions, about, panels=False)
    write(page, out / REPORT)
    write(plain_page, out / PLAIN_REPORT)

    # what was run: the same run may replace its report later
    with atomic_file(out / RUN_FILE, "The description of the run") as file:
        file.write(_describe_run(options).encode())

    print(page.headline)
    print(f"The report is {out / REPORT}; figures and numbers are in the same folder.")
    shown = ("statement", "reading", "verdict")
    decided = [record for record in records if record["verdict"] != ledger.LACKS]
    verdicts = [{key: record[key] for key in shown} for record in decided]
    return {"outcome": page.headline, "verdicts": verdicts, "report": str(out / REPORT)}


def _describe_run(options: Namespace) -> str:
    """Return a description of a run, independent of its number of replicates."""
    asked = {
        "presets": sorted(map(str, options.presets)),
        "variants": options.variants,
        "quick": options.quick,
        "max_learners": options.max_learners,
        "seed": options.seed,
    }
    return json.dumps(asked, sort_keys=True)


def _refuse_other_report(options: Namespace) -> None:
    """Raise if the report of another run would be replaced without --force."""
    has_report = (options.out / REPORT).exists()
    if options.force or options.records_only or not has_report:
        return

    # the same run may replace its report, even with other replicates
    described = options.out / RUN_FILE
    earlier = ""
    if described.is_file():
        earlier = described.read_text(encoding="utf-8")
    if earlier == _describe_run(options):
        return
    raise UserError(
        f"{options.out} has the report of another run: give another folder with --out, "
        "or --force to replace the report (records are kept)."
    )


@dataclass(frozen=True)
class Replicates:
    """The user's numbers of replicates: for presets by name, and for all others."""

    of: Mapping[str, int]
    of_others: int | None

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Replicates:
        """Read each N or PRESET=N."""
        of: dict[str, int] = {}
        of_others = None
        for text in texts:
            # "N" has no name before it
            name, _, count = text.rpartition("=")
            if not count.isdecimal() or int(count) < 1:
                raise UserError(
                    f"--replicates takes N or PRESET=N with N at least 1, not {text!r}."
                )

            if name:
                of[name] = int(count)
            else:
                of_others = int(count)
        return cls(of, of_others)

    def choose(self, preset: Preset) -> int:
        """Return the number of replicates of a preset."""
        usual = self.of_others or preset.replicates
        return self.of.get(preset.name, usual)


def choose_presets(options: Namespace) -> list[Preset]:
    """Return the chosen presets, with the overrides of the options."""
    names = dict.fromkeys(options.presets)
    if "all" in names:
        names = dict.fromkeys(presets.ORDER)

    # apply the overrides
    replicates = Replicates.parse(options.replicates)
    chosen = [_choose_preset(name, replicates, options) for name in names]

    # refuse replicates for a preset that is not run
    known = [preset.name for preset in chosen]
    for name in replicates.of:
        if name not in known:
            raise UserError(f"--replicates: {unknown('preset in this run', name, known)}")
    return chosen


def _choose_preset(name: str, replicates: Replicates, options: Namespace) -> Preset:
    """Return a preset with the overrides of the options."""
    preset = presets.load(name)
    if options.quick:
        preset = replace(preset, **preset.quick)

    # apply the replicates, readings and learners that were asked for
    changed = replace(
        preset,
        replicates=replicates.choose(preset),
        residual_shapes=_choose_shapes(options.reading, preset.residual_shapes),
        validation_shapes=_choose_shapes(options.validation, preset.validation_shapes),
        n_learners=options.max_learners or preset.n_learners,
    )

    # refuse fewer learners than the preset measures
    if not changed.counts:
        least = min(preset.counts)
        learners = changed.n_learners
        raise UserError(f"{preset.name} measures {least} learners and more, not {learners}.")
    return changed


def _choose_shapes(asked: str, of_preset: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return the chosen shapes; "both" means those of the preset."""
    if asked == "both":
        return of_preset
    return tuple(shape for shape in SHAPES if shape == asked)


def choose_methods(variants: str, preset: Preset) -> tuple[str, ...]:
    """Return the methods to run, with the baseline; "stated" are those that the paper mentions."""
    for name in preset.drawn:
        if name not in METHODS:
            message = unknown("method of the paper", name, METHODS)
            raise UserError(f"[[figure]] of {preset.name}: {message}")

    if variants == "all":
        asked = set(METHODS)
    elif variants == "stated":
        asked = {*preset.drawn, *find_methods(preset.name)}
    else:
        asked = set(split_names(variants, "method of the paper", METHODS))
    if not asked:
        raise UserError("--variants names no method: give names separated by commas, or all.")

    # the baseline always runs; times of pooled methods are not measured
    asked.add(BASELINE)
    if preset.measure == "seconds":
        asked -= set(POOLED)
    return tuple(name for name in METHODS if name in asked)
