"""Put figures of benchmarks into docs/results.json, and from there into README and pictures.

    python benchmarks/results.py leaderboard out/leaderboard.jsonl      errors, ranks and times
    python benchmarks/results.py distributions out/distributions.jsonl  quantiles and intervals
    python benchmarks/results.py evidence out/evidence.jsonl            the other figures
    python benchmarks/results.py systems out/systems.jsonl              all methods
    python benchmarks/results.py zoo out/zoo.jsonl                      data sets and kernels
    python benchmarks/results.py reports out/*.json                     the tables of `make bench`
    python benchmarks/results.py gpu out/learning.jsonl                 runs of learning.py on a GPU
    python benchmarks/results.py pages                                  README and pictures alone
    python benchmarks/results.py goals out/*.json                       which goals were met

Pages of the site take their tables from the file when they are built; "pages" writes the README,
which is also read without the site, and the pictures. `make results` does all of this.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import distributions
import leaderboard
import numpy as np
import systems
import zoo
from common import HEADER, Report, read, table
from environment import machine_line

import nysboost as nb

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results.json"
FEWEST_OWN = 0.8
"""Share of the tables on which a learner has to run to be ranked."""


def put_leaderboard(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take errors and times of all tables, ranks, and the speed of trees.

    A table has one set of splits: a learner that has not run on all of them is left out there.
    """
    runs = [run for run in runs if "error" in run]
    version = _one_version(runs)
    tables = {
        name: _table([run for run in runs if run["table"] == name])
        for name in dict.fromkeys(run["table"] for run in sorted(runs, key=lambda r: r["rows"]))
    }
    known["tables"] = {"version": version, "of": tables}

    # ranks among learners that ran on nearly all of the reference's tables
    full = [name for name, table in tables.items() if leaderboard.REFERENCE in table["error"]]
    own = Counter(learner for name in full for learner in tables[name]["error"])
    ranked = {learner for learner, count in own.items() if count >= FEWEST_OWN * len(full)}
    used = [run for run in runs if run["table"] in full and run["learner"] in ranked]
    board, mean = leaderboard.standings(used)
    columns = board[["Elo", "low", "high", "rank", "normalised error", "fit", "predict"]]
    known["leaderboard"] = {
        "version": version,
        "tables": mean.shape[1],
        "learners": {n: [float(f"{v:.4g}") for v in row] for n, row in columns.T.items()},
    }

    # how many times as fast as ours LightGBM fits
    both = [table["seconds"] for table in tables.values() if "LightGBM" in table["error"]]
    ratios = [s["NysBoost"] / s["LightGBM"] for s in both if "NysBoost" in s]
    known["speed_of_trees"] = {
        "version": version,
        "tables": len(ratios),
        "median": round(float(np.median(ratios))),
        "smallest": round(min(ratios), 1),
        "largest": round(max(ratios)),
    }


def _one_version(runs: list[dict[str, Any]]) -> str:
    """Return the version that our learners were measured with, which must be one."""
    ours = {run["nysboost"] for run in runs if run["learner"].startswith("NysBoost")}
    if len(ours) != 1:
        raise SystemExit(f"The runs are of several versions, or of none: {sorted(ours)}")
    return ours.pop()


def _table(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of the runs on a table, over the splits of all its learners."""
    found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for run in runs:
        found[run["learner"]][run["split"]] = run
    splits = max(map(len, found.values()))
    whole = {learner: list(cells.values()) for learner, cells in found.items()}
    whole = {learner: cells for learner, cells in whole.items() if len(cells) == splits}

    def mean(of: str, digits: int) -> dict[str, float]:
        return {
            learner: float(f"{np.mean([cell[of] for cell in cells]):.{digits}g}")
            for learner, cells in whole.items()
        }

    first = runs[0]
    return {
        "metric": first["metric"],
        "rows": first["rows"],
        "splits": splits,
        "error": mean("error", 4),
        "seconds": mean("fit_s", 3),
    }


def put_gpu(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take errors, in the units of y, and seconds on a GPU, of tables with the same splits."""
    runs = [run for run in runs if run.get("device", "cpu") != "cpu"]
    tables = {}
    for name, about in known["tables"]["of"].items():
        if about["metric"] != "RMSE":
            continue
        mine = [run for run in runs if run["table"] == name and run["split"] < about["splits"]]
        if len(mine) == about["splits"]:
            errors = [run["error"] * run["unit"] for run in mine]
            seconds = np.mean([run["seconds"] for run in mine])
            error = float(f"{np.mean(errors):.4g}")
            tables[name] = {"error": error, "seconds": round(float(seconds), 1)}
    first = runs[0]
    known["gpu"] = {"version": first["version"], "device": first["device"], "tables": tables}


def put_distributions(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take pinball loss, coverage and interval score of each learner on each table."""
    found = distributions.means(runs)
    rows = {run["table"]: run["rows"] for run in runs}
    known["distributions"] = {
        "version": _one_version(runs),
        "tables": {
            name: {
                "rows": rows[name],
                **{
                    score: {who: float(f"{of[score]:.4g}") for who, of in learners.items()}
                    for score in distributions.SCORES
                },
            }
            for name, learners in found.items()
        },
    }


def put_evidence(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take the means of what evidence.py measured, part by part."""
    found: dict[str, Any] = {"version": runs[0]["nysboost"]}

    matrix = _means(runs, "matrix", ("data", "method", "columns"), "error")
    found["columns"] = sorted({columns for *_, columns in matrix})
    found["matrix"] = _curves(matrix)

    found["boosting"] = {
        method: [float(f"{error:.4g}") for error in errors]
        for (method,), errors in _means(runs, "boosting", ("method",), "errors").items()
    }

    inside = _means(runs, "intervals", ("learner", "table", "coverage"), "inside")
    found["coverages"] = sorted({coverage for *_, coverage in inside})
    found["inside"] = _curves(inside)
    found["width"] = _curves(_means(runs, "intervals", ("learner", "table", "coverage"), "width"))

    seconds = _means(runs, "scale", ("what", "rows"), "seconds")
    found["scale"] = {
        what: [[n, float(f"{s:.3g}")] for (name, n), s in sorted(seconds.items()) if name == what]
        for what in dict.fromkeys(name for name, _ in seconds)
    }
    known["evidence"] = found


def _means(
    runs: list[dict[str, Any]], part: str, keys: Sequence[str], value: str
) -> dict[tuple[Any, ...], Any]:
    """Return the mean value of the records of a part, by the values of its keys."""
    found = defaultdict(list)
    for run in runs:
        if run["part"] == part:
            found[tuple(run[key] for key in keys)].append(run[value])
    return {at: np.mean(values, axis=0) for at, values in found.items()}


def _curves(means: dict[tuple[Any, ...], Any]) -> list[dict[str, Any]]:
    """Return a curve for each pair of the first two keys, over the third in order."""
    pairs = dict.fromkeys((one, two) for one, two, _ in means)
    return [
        {
            "of": [one, two],
            "values": [
                float(f"{value:.4g}") for at, value in sorted(means.items()) if at[:2] == (one, two)
            ],
        }
        for one, two in pairs
    ]


def put_systems(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take the mean errors of each method on each data set, its time and its entries."""
    methods = {}
    for name in dict.fromkeys(run["method"] for run in runs):
        mine = [run for run in runs if run["method"] == name]
        errors = [np.mean([r["error"] for r in mine if r["data"] == data]) for data in systems.DATA]
        methods[name] = {
            "error": [float(f"{error:.3g}") for error in errors],
            "seconds": float(f"{np.mean([run['seconds'] for run in mine]):.3g}"),
            "entries": float(f"{np.mean([run['entries'] for run in mine]):.3g}"),
        }
    known["systems"] = {"version": nb.__version__, "of": methods}


def put_zoo(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take the ratios of errors over all data sets and kernels, and joint's in each cell."""
    comparisons = {}
    for title, how in zoo.COMPARISONS.items():
        ratios = np.array(list(zoo.ratios(runs, *how).values()))
        mean = float(np.exp(np.log(ratios).mean()))
        above = int((ratios > zoo.ABOVE).sum())
        comparisons[title] = [len(ratios), round(mean, 3), round(float(ratios.max()), 2), above]

    cells: dict[str, dict[str, float]] = defaultdict(dict)
    for (data, kernel, _), ratio in sorted(zoo.ratios(runs, 0, "joint", zoo.PEERS).items()):
        cells[data][kernel] = round(ratio, 3)
    known["zoo"] = {"version": nb.__version__, "ratios": comparisons, "cells": cells}


def put_reports(known: dict[str, Any], paths: Sequence[Path]) -> None:
    """Take the rows of each part of the benchmarks that print a table."""
    stored = known.setdefault("reports", {})
    for path in paths:
        report = Report.load(path)
        parts: dict[str, list[list[Any]]] = defaultdict(list)
        for row in report.rows:
            numbers = [float(f"{value:.3g}") for value in (row.ours, row.theirs, row.ratio)]
            parts[row.part].append([row.what, row.against, row.unit, *numbers])
        stored[path.stem] = {"version": report.machine["nysboost"], "parts": parts}


def write_pages() -> None:
    """Write the README's table and output, the speed of trees and the pictures anew."""
    sys.path.insert(0, str(DOCS / "_ext"))
    import measured
    import pictures

    measured.write_readme()
    measured.write_speed()
    pictures.draw_all()


def shown(known: dict[str, Any]) -> str:
    """Return JSON with one line for each table and each cell, which shows what changed."""
    text = json.dumps(known, indent=1, ensure_ascii=False)
    flat = re.compile(r"[\[{][^\[\]{}]*[\]}]")
    text = flat.sub(lambda m: re.sub(r"\s*\n\s*", " ", m.group()), text)
    return flat.sub(lambda m: re.sub(r"\s*\n\s*", " ", m.group()), text) + "\n"


def goals(paths: Sequence[Path], markdown: bool) -> str:
    """Return the goals of all reports in one table: met or missed."""
    reports = [Report.load(path) for path in paths]
    rows = [row for report in reports for row in report.rows if row.goal is not None]
    missed = sum(row.verdict == "missed" for row in rows)
    machines = dict.fromkeys(machine_line(report.machine) for report in reports)
    counted = f"{len(rows) - missed} of {len(rows)} goals met, {missed} missed"
    return "\n\n".join([*machines, table(HEADER, [row.cells() for row in rows], markdown), counted])


PUT = {
    "leaderboard": put_leaderboard,
    "distributions": put_distributions,
    "gpu": put_gpu,
    "evidence": put_evidence,
    "systems": put_systems,
    "zoo": put_zoo,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*PUT, "reports", "pages", "goals"])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    given = parser.parse_args(arguments)
    if given.what == "goals":
        print(goals(given.files, given.markdown))
        return
    if given.what == "pages":
        write_pages()
        return

    known = json.loads(RESULTS.read_text(encoding="utf-8"))
    if given.what == "reports":
        put_reports(known, given.files)
    else:
        PUT[given.what](known, [record for path in given.files for record in read(path)])
    known["version"] = nb.__version__
    RESULTS.write_text(shown(known), encoding="utf-8")


if __name__ == "__main__":
    main()
