"""Put figures of benchmarks into docs/results.json, and from there into pages and pictures.

    python benchmarks/results.py learning out/learning.jsonl        runs of learning.py
    python benchmarks/results.py categories out/tables.jsonl        runs of tables.py
    python benchmarks/results.py leaderboard out/leaderboard.jsonl  runs of leaderboard.py: ranks
    python benchmarks/results.py error_time out/error_time.jsonl    runs of leaderboard.py: picture
    python benchmarks/results.py speed out/speed.jsonl out/error_time.jsonl  runs of leaderboard.py
    python benchmarks/results.py evidence out/evidence.jsonl        runs of evidence.py
    python benchmarks/results.py pages                              README and pictures alone
    python benchmarks/results.py goals out/*.json                   which goals were met

Pages of the site take their tables from the file when they are built; the README, which is also
read without the site, and the pictures are written here.
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

import leaderboard
import numpy as np
from common import HEADER, Report, read, table
from environment import machine_line

import nysboost as nb

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results.json"
TITLES = {"covtype": "Covertype", "mnist": "MNIST"}


def put_learning(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take mean error, coverage and seconds of each table."""
    found = defaultdict(list)
    for record in runs:
        gpu = record.get("device", "cpu") != "cpu"
        found[record["table"], record.get("learner"), gpu].append(record)
    found.pop(("times", None, False), [])
    for (name, learner, gpu), mine in found.items():
        into = known["tables"][TITLES.get(name, name)]
        mean = float(f"{np.mean([r['error'] for r in mine]):.4g}")
        into["error"][f"{learner}, GPU" if gpu else learner] = mean
        if learner == "NysBoost":
            clock = "seconds" if gpu else "processor"
            seconds = round(float(np.mean([r[clock] for r in mine])), 1)
            into |= {"rows": mine[0]["rows"], "gpu_seconds" if gpu else "seconds": seconds}
            into |= {"gpu_splits" if gpu else "splits": len(mine)}
            if "covered" in mine[0]:
                into["covered"] = round(float(np.mean([r["covered"] for r in mine])), 4)


def put_categories(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take the mean losses on tables with categories and gaps."""
    losses: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        losses[run["table"]][run["learner"]].append(run["loss"])
    known["categories"] |= {
        name: {
            "splits": min(map(len, found.values())),
            "loss": {who: float(f"{np.mean(values):.4g}") for who, values in found.items()},
        }
        for name, found in sorted(losses.items())
    }


def put_leaderboard(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take ranks, errors and times over all tables of the leaderboard."""
    runs = [run for run in runs if "error" in run]
    board, mean = leaderboard.standings(runs)
    columns = board[["Elo", "low", "high", "rank", "normalised error", "fit", "predict"]]
    splits = Counter(table for table, _ in {(run["table"], run["split"]) for run in runs})
    known["leaderboard"] = {
        "version": runs[0]["nysboost"],
        "tables": mean.shape[1],
        "splits": [min(splits.values()), max(splits.values())],
        "learners": {n: [float(f"{v:.4g}") for v in row] for n, row in columns.T.items()},
    }


def put_error_time(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take error and time of each learner on the first split of each table."""
    runs = [run for run in runs if "error" in run and run["split"] == 0]
    cells = [
        {
            "table": run["table"],
            "learner": run["learner"],
            "rows": run["rows"],
            "error": float(f"{run['error']:.4g}"),
            "seconds": round(run["fit_s"], 3),
        }
        for run in runs
    ]
    known["error_time"] = {"version": runs[0]["nysboost"], "cells": cells}


def put_speed(known: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Take how many times as fast as ours LightGBM fits, over the tables that both have."""
    seconds = {(run["table"], run["learner"]): run["fit_s"] for run in runs if "error" in run}
    ratios = [
        seconds[table, "NysBoost"] / seconds[table, "LightGBM"]
        for table, learner in seconds
        if learner == "NysBoost" and (table, "LightGBM") in seconds
    ]
    known["speed_of_trees"] = {
        "version": runs[0]["nysboost"],
        "tables": len(ratios),
        "median": round(float(np.median(ratios))),
        "smallest": round(min(ratios), 1),
        "largest": round(max(ratios)),
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


def write_pages() -> None:
    """Write the README's table and output, and the pictures, anew."""
    sys.path.insert(0, str(DOCS / "_ext"))
    import measured
    import pictures

    measured.write_readme()
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
    "learning": put_learning,
    "categories": put_categories,
    "leaderboard": put_leaderboard,
    "error_time": put_error_time,
    "speed": put_speed,
    "evidence": put_evidence,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*PUT, "pages", "goals"])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    given = parser.parse_args(arguments)
    if given.what == "goals":
        print(goals(given.files, given.markdown))
        return
    if given.what in PUT:
        known = json.loads(RESULTS.read_text(encoding="utf-8"))
        PUT[given.what](known, [record for path in given.files for record in read(path)])
        known["version"] = nb.__version__
        RESULTS.write_text(shown(known), encoding="utf-8")
    write_pages()


if __name__ == "__main__":
    main()
