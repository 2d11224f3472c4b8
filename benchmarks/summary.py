"""The goals of all benchmarks in one table, from their JSON files: met or missed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from common import HEADER, Report, machine_line, progress, table


def _load(path: Path) -> Report | None:
    try:
        return Report.load(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        progress(f"{path} is no report, so its goals are not counted: {error!r}")
        return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", type=Path, nargs="+", metavar="FILE.json")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args(arguments)
    reports = [report for path in options.reports if (report := _load(path))]
    goals = [row for report in reports for row in report.rows if row.goal is not None]
    print(*dict.fromkeys(machine_line(report.machine) for report in reports), sep="\n")
    print("\n" + table(HEADER, [row.cells() for row in goals], options.markdown))
    missed = [row for row in goals if row.verdict == "missed"]
    print(f"\n{len(goals) - len(missed)} of {len(goals)} goals met, {len(missed)} missed")


if __name__ == "__main__":
    main()
