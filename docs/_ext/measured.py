"""Tables of pages from ``docs/results.json``, which ``benchmarks/results.py`` writes."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
README = DOCS.parent / "README.md"
BEGIN, END = "<!-- results: front -->", "<!-- end of results -->"
OURS = "NysBoost"
FRONT = (OURS, "LightGBM", "CatBoost", "linear model")
"""Learners of the table of the front page."""

FRONT_TABLES = ("concrete", "airfoil", "pol", "elevators", "kin40k", "protein")
"""Tables of the front page and of the picture of error against time."""

SHOWN = (OURS, "LightGBM", "CatBoost", "XGBoost", "extra trees", "xRFM", "linear model")
"""Learners of the tables of errors."""

LEAST = 1e-4
"""Smaller errors count as this one in ratios: with 1 − AUC it is a perfect ranking."""


def stored() -> dict[str, Any]:
    """Return the results."""
    found: dict[str, Any] = json.loads((DOCS / "results.json").read_text(encoding="utf-8"))
    return found


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    first, *others = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return "".join([first, "|---" * len(head), "|\n", *others])


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def splits(names: Iterable[str] | None = None) -> str:
    """Return how many splits tables have, all or some, in words."""
    tables = stored()["tables"]["of"]
    counts = sorted({tables[name]["splits"] for name in names or tables})
    return " to ".join(WORDS[count] for count in dict.fromkeys((counts[0], counts[-1])))


def front() -> str:
    """Return the table of the front page: mean errors on the splits of some tables."""
    tables = stored()["tables"]["of"]
    table = _errors({name: tables[name] for name in FRONT_TABLES}, FRONT)
    return (
        f"{table}\nThe table shows the mean RMSE of {splits(FRONT_TABLES)} test splits, with "
        "default settings; the smallest error is bold. The command is on\nthe page "
        "[Evidence](docs/evidence.md).\n"
    )


def protocol() -> str:
    """Return how the learners were compared."""
    return (
        f"All learners have one core, the same {splits()} splits of each table, and their default "
        f"settings. An error is the mean over these splits; smaller is better, and the smallest of "
        "a row is bold.\n"
    )


def regression_tables() -> str:
    """Return the errors of learners on tables with numbers to predict."""
    tables = stored()["tables"]["of"]
    return _errors({n: t for n, t in tables.items() if t["metric"] == "RMSE"}, SHOWN)


def class_tables() -> str:
    """Return the errors of learners on tables with classes to predict."""
    tables = stored()["tables"]["of"]
    return _errors({n: t for n, t in tables.items() if t["metric"] != "RMSE"}, SHOWN)


def leaderboard() -> str:
    """Return Elo, rank, error and time of each learner over all tables."""
    found = stored()["leaderboard"]
    head = ["learner", "Elo (95 %)", "mean rank", "normalised error", "s for 1,000 rows"]
    rows = []
    for name, (elo, low, high, rank, error, fit, _) in found["learners"].items():
        cells = [f"{elo:.0f} ({low:.0f} – {high:.0f})", f"{rank:.2f}", f"{error:.2f}"]
        rows.append([name, *cells, f"{fit:.2g}"])
    return f"{make_table(head, rows)}\n{found['tables']} tables with up to 20,000 training rows.\n"


def gpu_tables() -> str:
    """Return errors and times on a GPU, beside those on a processor."""
    found = stored()
    learners = (OURS, "LightGBM", "CatBoost")
    rows = []
    for name, on_gpu in found["gpu"]["tables"].items():
        table = found["tables"]["of"][name]
        errors = _numbers([on_gpu["error"], *(table["error"][who] for who in learners)])
        seconds = [on_gpu["seconds"], table["seconds"][OURS]]
        rows.append([name, f"{table['rows']:,}", *errors, *(f"{s:.0f}" for s in seconds)])
    head = ["table", "rows", "NysBoost, GPU", *learners, "s, GPU", "s, NysBoost"]
    device = found["gpu"]["device"]
    caption = f"GPU: one {device}, seconds by the clock. The other times are processor times."
    return f"{make_table(head, rows)}\n{caption}\n"


def pairs() -> str:
    """Return how NysBoost compares with each other learner, on the tables that both have."""
    tables = stored()["tables"]["of"].values()
    others = dict.fromkeys(who for table in tables for who in table["error"] if who != OURS)
    lines = []
    for other in others:
        both = [t for t in tables if other in t["error"] and OURS in t["error"]]
        ratios = [_ratio(table["error"], other) for table in both]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        won = sum(table["error"][OURS] < table["error"][other] for table in both)
        most = max(table["rows"] for table in both)
        lines.append((mean, [other, str(len(both)), f"{most:,}", str(won), f"{mean:.2f}"]))
    head = ["other learner", "tables", "most rows", "NysBoost better", "error of NysBoost / other"]
    return make_table(head, [cells for _, cells in sorted(lines, reverse=True)])


def _ratio(error: dict[str, float], other: str) -> float:
    """Return our error over that of another learner."""
    return max(error[OURS], LEAST) / max(error[other], LEAST)


def where_others_win() -> str:
    """Return the tables on which another learner has the smaller error, as a list."""
    lines = []
    for name, table in stored()["tables"]["of"].items():
        errors = table["error"]
        least = min(errors, key=errors.__getitem__)
        theirs, ours = _number(errors[least]), _number(errors[OURS])
        if theirs != ours:
            lines.append(f"- **{name}**: {least} has {theirs}, NysBoost {ours}.")
    return "\n".join(lines or ["- On none of these tables."]) + "\n"


def fit_times() -> str:
    """Return how long fits take."""
    found = stored()["evidence"]
    rows = [
        [f"{n:,} rows", f"{seconds:.0f} s"] for n, seconds in found["scale"]["NystroemRegressor"]
    ]
    head = ["a regression with 10 columns, default settings", "processor time, one core"]
    made = "`python benchmarks/evidence.py --only scale`"
    return f"{make_table(head, rows)}\n{made}\n"


def speed_of_trees() -> str:
    """Return how many times as fast as ours LightGBM fits."""
    found = stored()["speed_of_trees"]
    return (
        f"LightGBM fits {found['median']} times as fast as NysBoost, the median of "
        f"{found['tables']} tables; the ratio is between {found['smallest']:g} and "
        f"{found['largest']}. Both have one core.\n"
    )


def distributions() -> str:
    """Return pinball loss and coverage of the learners, by table."""
    tables = stored()["distributions"]["tables"]
    learners = list(next(iter(tables.values()))["pinball"])
    head = ["table", "rows", *(f"pinball, {who}" for who in learners)]
    head += [f"inside, {who}" for who in learners]
    rows = []
    for name, table in tables.items():
        pinball = _numbers([table["pinball"][who] for who in learners])
        inside = [f"{100 * table['inside'][who]:.1f}\u00a0%" for who in learners]
        rows.append([name, f"{table['rows']:,}", *pinball, *inside])
    return make_table(head, rows)


def evidence_distributions() -> str:
    """Return what the comparison of predictive distributions shows."""
    tables = stored()["distributions"]["tables"]
    ratios = []
    for table in tables.values():
        trees = [loss for who, loss in table["pinball"].items() if who != OURS]
        ratios.append(table["pinball"][OURS] / min(trees))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    inside = [100 * table["inside"][OURS] for table in tables.values()]
    return (
        f"The pinball loss of NysBoost is {mean:.2f} times that of the better of LightGBM and "
        f"CatBoost, the geometric mean of {len(ratios)} tables, and between {min(ratios):.2f} and "
        f"{max(ratios):.2f} times. Its 90 % intervals contain {min(inside):.1f} to "
        f"{max(inside):.1f} % of the test rows of a table.\n"
    )


def evidence_matrix() -> str:
    """Return what the picture of errors against columns shows."""
    found = stored()["evidence"]
    last = {tuple(curve["of"]): curve["values"][-1] for curve in found["matrix"]}
    sets = list(dict.fromkeys(data for data, _ in last))
    near = [last[data, "joint"] / last[data, "optimal"] for data in sets]
    less = [last[data, "uniform"] / last[data, "joint"] for data in sets]
    return (
        f"With {found['columns'][-1]} columns, `joint` has {min(near):.2f} to {max(near):.2f} "
        "times the error of the best matrix of that rank; random columns have "
        f"{min(less):.1f} to {max(less):.1f} times the error of `joint`.\n"
    )


def evidence_boosting() -> str:
    """Return what the picture of errors against learners shows."""
    found = stored()["evidence"]["boosting"]
    ensemble, boosted, one = (
        found[method][-1] for method in ("ensemble-ridge", "URB-mean", "nystrom")
    )
    reached = next(i for i, error in enumerate(found["URB-mean"], 1) if error <= ensemble)
    return (
        f"Boosting (`URB-mean`) needs {reached} learners for the error that the ensemble has with "
        f"{len(found['URB-mean'])}, and ends at {boosted:.3f} instead of {ensemble:.3f}; one "
        f"Nyström approximation on all {10 * len(found['URB-mean'])} columns, which is more "
        f"expensive, has {one:.4f}.\n"
    )


def evidence_error_time() -> str:
    """Return what the picture of errors against time shows."""
    tables = stored()["tables"]["of"]
    errors = [tables[name]["error"] for name in FRONT_TABLES]
    ratios = [min(e["LightGBM"], e["CatBoost"]) / e[OURS] for e in errors]
    best = sum(error[OURS] == min(error.values()) for error in errors)
    most = max(tables[name]["splits"] for name in FRONT_TABLES)
    return (
        f"NysBoost has the smallest error on {best} of {len(ratios)} tables: the better of "
        f"LightGBM and CatBoost has {min(ratios):.2f} to {max(ratios):.1f} times its error, but "
        f"fits faster. Errors and times are means of {splits(FRONT_TABLES)} published splits.\n\n"
        f"`python benchmarks/leaderboard.py --data-dir DATA --splits {most} "
        f"--tables {' '.join(FRONT_TABLES)}`\n"
    )


def evidence_intervals() -> str:
    """Return what the picture of intervals shows."""
    found = stored()["evidence"]

    def mean(learner: str, coverage: float) -> float:
        at = found["coverages"].index(coverage)
        shares = [curve["values"][at] for curve in found["inside"] if curve["of"][0] == learner]
        return 100 * sum(shares) / len(shares)

    return (
        f"The 90 % intervals of NysBoost contain {mean('NysBoost', 0.9):.0f} % of the test rows, "
        f"those of an exact Gaussian process {mean('exact Gaussian process', 0.9):.0f} %, and "
        f"those of trees with the quantile loss {mean('trees, quantile loss', 0.9):.0f} %; 50 % "
        f"intervals of NysBoost contain {mean('NysBoost', 0.5):.0f} %, which is too many.\n"
    )


def evidence_scale() -> str:
    """Return what the picture of times shows."""
    found = stored()["evidence"]["scale"]
    n, seconds = found["NystroemRegressor"][-1]
    rows, exact = found["exact"][-1]
    features = found["Nystroem"][-1]
    return (
        "Beyond a few thousand rows, the time grows more slowly than the rows: "
        f"`NystroemRegressor` fits {n:,} rows in {seconds:.0f} s, and `Nystroem` makes features of "
        f"{features[0]:,} rows in {features[1]:.1f} s. Exact kernel ridge regression "
        f"takes {exact:.1f} s for {rows:,} rows, and its time grows with n³.\n"
    )


SETS = ("MNIST", "Covertype", "GloVe", "Pendigits", "IJCNN")
"""The data sets on which all methods are compared, in the order of their errors."""


def mean_error(method: dict[str, Any]) -> float:
    """Return the geometric mean of a method's errors on the data sets."""
    return math.exp(sum(map(math.log, method["error"])) / len(SETS))


def systems() -> str:
    """Return error, time and entries of all methods, the most accurate first."""
    methods = stored()["systems"]["of"]
    rows = []
    for name in sorted(methods, key=lambda name: mean_error(methods[name])):
        method = methods[name]
        errors = [
            f"{error:.2e}".replace("e-0", "e-").replace("e+00", "") for error in method["error"]
        ]
        title = f"**{name}**" if name == "joint" else name
        rows.append([title, *errors, f"{method['seconds']:.2f}", f"{method['entries']:.2f}"])
    return make_table(["method", *SETS, "s", "entries / n²"], rows)


def _short_power(error: float) -> str:
    """Return 7.56e-2 for 0.0756, and 1.25 for 1.25."""
    return f"{error:.2e}".replace("e-0", "e-").replace("e+00", "")


def zoo() -> str:
    """Return how joint compares with five other methods over data sets and kernels."""
    ratios = stored()["zoo"]["ratios"]
    titles = {
        "`joint` / best of `uniform`, `kmeans`, `rpcholesky`, `greedy`, `rls`": (0, True),
        "the same on other rows": (1, True),
        "`JJB-mean` / `rpcholesky`": (2, True),
        "`joint` / optimum of rank 60": (3, False),
    }
    found = list(ratios.values())
    rows = []
    for title, (at, peers) in titles.items():
        _, mean, largest, above = found[at]
        rows.append([title, f"{mean:.3f}", f"{largest:.2f}", str(above) if peers else "–"])
    head = ["ratio of errors", "geometric mean", "largest", "cells above 1.02"]
    return make_table(head, rows)


COMMANDS = {"transform": "", "dask_scale": ""}
"""Options of benchmarks that need no data; the others have --data-dir."""


def reports() -> dict[str, str]:
    """Return the tables of the benchmarks that print one, part by part, each with its command."""
    found = {}
    for script, report in stored()["reports"].items():
        for part, rows in report["parts"].items():
            options = COMMANDS.get(script, " --data-dir DATA")
            command = f"`python benchmarks/{script}.py --only {part}{options}`"
            found[f"report_{script}_{part}"] = f"{_report(rows)}\n{command}\n"
    return found


def _report(rows: list[list[Any]]) -> str:
    """Return the rows of a part as a table; only times have a ratio."""
    head = ["", "NysBoost", "compared with"]
    cells = [
        [what, _quantity(ours, unit), f"{against}: {_quantity(theirs, unit)}"]
        for what, against, unit, ours, theirs, _ in rows
    ]
    timed = [unit in ("s", "ms") and against != "at most" for _, against, unit, *_ in rows]
    if any(timed):
        head.append("ratio")
        for row, line, is_time in zip(rows, cells, timed, strict=True):
            line.append(f"{row[-1]:.2g}" if is_time else "–")
    return make_table(head, cells)


def _quantity(value: float, unit: str) -> str:
    """Return a number with its unit, three digits long."""
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{number}\u00a0{unit}" if unit else number


EVIDENCE = (
    *(evidence_matrix, evidence_boosting, evidence_error_time, evidence_intervals),
    *(evidence_distributions, evidence_scale),
)


def _errors(tables: dict[str, Any], learners: tuple[str, ...]) -> str:
    """Return the errors of learners, one table a line, and the metric where it is not the RMSE."""
    rows = []
    for name, table in tables.items():
        title = name if table["metric"] == "RMSE" else f"{name}, {table['metric']}"
        errors = [table["error"].get(learner) for learner in learners]
        rows.append([title, f"{table['rows']:,}", *_numbers(errors)])
    return make_table(["table", "rows", *learners], rows)


def _numbers(errors: list[float | None]) -> list[str]:
    """Return errors as cells of a table, all that read as the smallest in bold."""
    best = _number(min(error for error in errors if error is not None))
    cells = ["–" if error is None else _number(error) for error in errors]
    return [f"**{cell}**" if cell == best else cell for cell in cells]


def _number(error: float) -> str:
    return f"{error:.3g}" if error < 1000 else f"{error:,.0f}"


def readme() -> str:
    """Return the README with the present table in its place."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{front()}{END}{rest.split(END)[1]}"


EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)


def run_example(code: str) -> str:
    """Return what an example of the README prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {"__name__": "example"})
    return printed.getvalue()


SPEED = re.compile(r"\d+(\s+times\s+as\s+fast\s+\(the\s+median\s+of) \d+ tables")


def write_speed() -> None:
    """Write how many times as fast LightGBM fits wherever a page states it."""
    found = stored()["speed_of_trees"]
    stated = rf"{found['median']}\1 {found['tables']} tables"
    for path in (README, *DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if SPEED.search(text):
            path.write_text(SPEED.sub(stated, text), encoding="utf-8")


def write_readme() -> None:
    """Write the table, and what the examples print, into the README."""

    def with_output(found: re.Match[str]) -> str:
        return found.group().replace(found["output"], run_example(found["code"]))

    README.write_text(EXAMPLE.sub(with_output, readme()), encoding="utf-8")
