"""``nysboost reproduce``: from options to records, figures, a ledger and a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nysboost.data.whole import whole_text
from nysboost.experiments import console, datasets, figures, ledger, presets, report, runner
from nysboost.experiments.claims import named_in
from nysboost.experiments.csv_table import write_table
from nysboost.experiments.presets import Preset
from nysboost.experiments.replicate import BASELINE, METHODS, parse_method
from nysboost.experiments.report import markdown
from nysboost.experiments.report import reproduction as pages
from nysboost.experiments.results import Results
from nysboost.experiments.store import make_writable
from nysboost.experiments.user_error import UserError
from nysboost.numerics.checks import unknown


@dataclass(frozen=True)
class Request:
    """The options of the command, as given."""

    presets: tuple[str, ...]
    replicates: tuple[str, ...] = ()
    max_learners: int | None = None
    variants: str = "all"
    reading: str = "both"
    seed: int = 0
    quick: bool = False
    data_dir: Path | None = None
    device: str = ""
    report_only: bool = False

    def command(self) -> str:
        """Return the command that gives the same numbers, wherever data and results lie."""
        parts = ["nysboost reproduce", *self.presets]
        parts += [f"--replicates {r}" for r in self.replicates]
        if self.max_learners is not None:
            parts.append(f"--max-learners {self.max_learners}")
        if self.variants != "all":
            parts.append(f"--variants {self.variants}")
        if self.reading != "both":
            parts.append(f"--reading {self.reading}")
        if self.quick:
            parts.append("--quick")
        return " ".join([*parts, f"--seed {self.seed}"])


def run(request: Request, out: Path, jobs: int) -> dict[str, Results]:
    """Run all that is asked for and write it into a folder.

    Parameters
    ----------
    request : Request
        What to run.
    out : Path
        The folder; each preset has a folder of its own in it.
    jobs : int
        How many processes.
    """
    chosen = choose_presets(request)
    methods = {preset.name: choose_methods(request.variants, preset) for preset in chosen}
    make_writable(out)
    # What is missing is said, or downloaded, before hours of work and not between them.
    sources = {
        name: datasets.load(name, request.data_dir, console.say).source
        for name in dict.fromkeys(preset.data for preset in chosen)
    }
    results: dict[str, Results] = {}
    for preset in chosen:
        folder = out / preset.name
        console.say(
            f"{preset.title}: {preset.replicates} replicates; data: {sources[preset.data]}."
        )
        where = (request.data_dir, request.device)
        plan = runner.Plan(preset, methods[preset.name], request.seed, *where)
        if request.report_only:
            results[preset.name] = runner.gathered(plan, folder)
        else:
            with console.progress(preset.name) as progress:
                results[preset.name] = runner.run(plan, folder, jobs, progress)
        figures.write_all(results[preset.name], folder)
    _finish(results, request, out)
    return results


def _finish(results: dict[str, Results], request: Request, out: Path) -> None:
    decisions = ledger.ledger(results)
    write_ledger(decisions, out / "ledger.csv")
    page = pages.page(results, datasets.table(request.data_dir), request.command())
    report.write(page, out / "report.html")
    text = markdown.page(results, page.summary)
    with whole_text(out / "report.md", "The report") as file:
        file.write(text)
    for sentence in page.summary:
        console.say(sentence)
    readings = list(dict.fromkeys(d.reading for d in decisions))
    rows = [
        [claim, mine[0].claim.statement, *(d.verdict for d in mine)]
        for claim, mine in ledger.by_claim(decisions).items()
        if any(d.verdict != "not run" for d in mine)
    ]
    if rows:
        console.table("What the paper says", ["", "statement", *readings], rows)
    console.say(f"The report is {out / 'report.html'}; figures and numbers lie beside it.")


def choose_presets(request: Request) -> list[Preset]:
    """Return the presets asked for, with the overrides of the options."""
    names = list(presets.names()) if "all" in request.presets else list(request.presets)
    everywhere, single = _replicates(request.replicates)
    chosen = []
    for name in dict.fromkeys(names):
        preset = presets.load(name)
        if request.quick:
            preset = preset.quickened()
        replicates = single.pop(preset.name, everywhere) or preset.replicates
        readings = preset.readings if request.reading == "both" else (request.reading,)
        learners = request.max_learners or preset.n_learners
        changed = replace(preset, replicates=replicates, readings=readings, n_learners=learners)
        if not changed.counts:
            least = min(preset.counts)
            raise UserError(f"{preset.name} measures {least} learners and more, not {learners}.")
        chosen.append(changed)
    if single:
        known = [preset.name for preset in chosen]
        raise UserError(f"--replicates: {unknown('preset in this run', next(iter(single)), known)}")
    return chosen


def _replicates(given: Sequence[str]) -> tuple[int | None, dict[str, int]]:
    everywhere: int | None = None
    single: dict[str, int] = {}
    for text in given:
        name, _, count = text.rpartition("=")
        if not count.isdigit() or int(count) < 1:
            raise UserError(f"--replicates takes N or PRESET=N with N at least 1, not {text!r}.")
        if name:
            single[name] = int(count)
        else:
            everywhere = int(count)
    return everywhere, single


def choose_methods(variants: str, preset: Preset) -> tuple[str, ...]:
    """Return the methods to run, in the order of the paper's table, with the baseline.

    "stated" are those that the paper draws or says something of: its trajectories are the ones
    that a verdict needs, a third to two thirds of all.
    """
    if variants == "all":
        return METHODS
    if variants == "stated":
        asked = set(preset.drawn) | named_in(preset.name)
    else:
        asked = {parse_method(name.strip()).name for name in variants.split(",") if name.strip()}
    if not asked:
        raise UserError("--variants names no method: give names separated by commas, or all.")
    return tuple(m for m in METHODS if m in asked or m == BASELINE)


LEDGER_COLUMNS = (
    "claim",
    "statement",
    "reading",
    "verdict",
    "held",
    "reversed",
    "tied",
    "open",
    "rests on",
    "weakest comparison",
    "presets not run",
)


def write_ledger(decisions: Sequence[ledger.Decision], path: Path) -> None:
    """Write the ledger as CSV, one row for each claim and reading."""
    rows = (
        (
            d.claim.number,
            d.claim.statement,
            d.reading,
            d.verdict,
            d.held,
            d.reversed_,
            d.tied,
            d.open_,
            d.rests_on,
            d.weakest,
            " ".join(d.not_run),
        )
        for d in decisions
    )
    write_table(path, LEDGER_COLUMNS, rows)
