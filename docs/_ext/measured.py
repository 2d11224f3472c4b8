"""Tables of pages from ``docs/results.json``, which ``benchmarks/results.py`` writes."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
README = DOCS.parent / "README.md"
BEGIN, END = "<!-- results: front -->", "<!-- end of results -->"
FRONT = ("NysBoost", "LightGBM", "CatBoost", "linear model")
"""Learners of the table of the front page."""

LEARNERS = ("NysBoost, GPU", "NysBoost", "LightGBM", "xRFM")


def stored() -> dict[str, Any]:
    """Return the results."""
    found: dict[str, Any] = json.loads((DOCS / "results.json").read_text(encoding="utf-8"))
    return found


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    first, *others = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return "".join([first, "|---" * len(head), "|\n", *others])


def front() -> str:
    """Return the table of the front page: errors of this version, one split a table."""
    cells = stored()["error_time"]["cells"]
    error = {(cell["table"], cell["learner"]): cell["error"] for cell in cells}
    rows = {cell["table"]: cell["rows"] for cell in cells}
    lines = []
    for table, n in rows.items():
        numbers = _numbers([error[table, who] for who in FRONT], "RMSE")
        lines.append([table, f"{n:,}", *numbers])
    return make_table(["table", "rows", *FRONT], lines)


def large_tables() -> str:
    """Return errors, intervals and times on tables with many rows."""
    return _group("large", LEARNERS)


def small_tables() -> str:
    """Return errors, intervals and times on tables with few rows."""
    return _group("small", ("NysBoost", "LightGBM", "exact process"))


def _group(group: str, learners: tuple[str, ...]) -> str:
    found = {n: t for n, t in stored()["tables"].items() if t["group"] == group}
    most = max(table["splits"] for table in found.values())
    fewer = ", ".join(f"{n} {t['splits']}" for n, t in found.items() if t["splits"] < most)
    caption = (
        f"Means over {most} splits{f' ({fewer})' if fewer else ''}. “In 95 %”: test rows inside "
        "their 95 % interval. s: seconds of processor time to fit, on two cores."
    )
    if splits := [table["gpu_splits"] for table in found.values() if "gpu_splits" in table]:
        caption += f" GPU: one NVIDIA H200, up to {max(splits)} splits, s by the clock."
    return f"{_errors(found, learners, times=True)}\n{caption}\n"


def category_tables() -> str:
    """Return losses on tables with categories and gaps, or nothing if there are none."""
    found = stored().get("categories", {})
    if not found:
        return "No figures of this version yet: the command makes them.\n"
    names = list(dict.fromkeys(who for table in found.values() for who in table["loss"]))
    rows = (
        [name, *_numbers([table["loss"].get(who) for who in names], "")]
        for name, table in found.items()
    )
    splits = min(table["splits"] for table in found.values())
    return f"{make_table(['table', *names], rows)}\nMeans over {splits} splits or more.\n"


def leaderboard() -> str:
    """Return Elo, rank and error of each learner over all tables."""
    found = stored()["leaderboard"]
    head = ["learner", "Elo (95 %)", "mean rank", "normalised error"]
    rows = []
    for name, (elo, low, high, rank, error, *_) in found["learners"].items():
        cells = [f"{elo:.0f} ({low:.0f} – {high:.0f})", f"{rank:.2f}", f"{error:.2f}"]
        rows.append([name, *cells])
    least, most = found["splits"]
    caption = f"{found['tables']} tables, {least} to {most} splits of each."
    return f"{make_table(head, rows)}\n{caption}\n"


def where_others_win() -> str:
    """Return the tables on which another learner has the smaller error, as a list."""
    known, lines = stored(), []
    tables = [(name, table["error"], table["what"]) for name, table in known["tables"].items()]
    tables += [(name, table["loss"], "") for name, table in known.get("categories", {}).items()]
    for name, errors, what in tables:
        least = min(errors, key=errors.get)
        both = [_number(errors[who], what) for who in (least, "NysBoost")]
        if not least.startswith("NysBoost") and both[0] != both[1]:
            lines.append(f"- **{name}**: {least} has {both[0]}, NysBoost {both[1]}.")
    return "\n".join(lines or ["- On none of these tables."]) + "\n"


def fit_times() -> str:
    """Return how long fits take."""
    found = stored()["evidence"]
    rows = [
        [f"{n:,} rows", f"{seconds:.0f} s"] for n, seconds in found["scale"]["NystroemRegressor"]
    ]
    head = ["a regression with 10 columns, default settings", "processor time, one core"]
    made = f"Version {found['version']}, `python benchmarks/evidence.py --only scale`."
    return f"{make_table(head, rows)}\n{made}\n"


def speed_of_trees() -> str:
    """Return how many times as fast as ours LightGBM fits."""
    found = stored()["speed_of_trees"]
    return (
        f"LightGBM fits {found['median']} times as fast as NysBoost, the median of "
        f"{found['tables']} tables; the ratio is between {found['smallest']:g} and "
        f"{found['largest']}. Version {found['version']}, one core:\n"
        "`python benchmarks/leaderboard.py --data-dir DATA --splits 1 --max-rows 6000 --runs "
        "out/speed.jsonl --only NysBoost LightGBM`,\nand the six tables of "
        "[error against time](evidence.md).\n"
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
    cells = stored()["error_time"]["cells"]
    error = {(cell["table"], cell["learner"]): cell["error"] for cell in cells}
    tables = dict.fromkeys(cell["table"] for cell in cells)
    trees = ("LightGBM", "CatBoost")
    ratios = [min(error[t, who] for who in trees) / error[t, "NysBoost"] for t in tables]
    best = sum(
        error[t, "NysBoost"] == min(v for (name, _), v in error.items() if name == t)
        for t in tables
    )
    return (
        f"NysBoost has the smallest error on {best} of {len(ratios)} tables: the better of "
        f"LightGBM and CatBoost has {min(ratios):.2f} to {max(ratios):.1f} times its error, but "
        "fits faster.\n"
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
        "Beyond some thousand rows, the time grows more slowly than the rows: "
        f"`NystroemRegressor` fits {n:,} rows in {seconds:.0f} s, and `Nystroem` makes features of "
        f"{features[0]:,} rows in {features[1]:.1f} s. Exact kernel ridge regression "
        f"takes {exact:.1f} s for {rows:,} rows, and its time grows with n³.\n"
    )


EVIDENCE = (
    evidence_matrix, evidence_boosting, evidence_error_time, evidence_intervals, evidence_scale,
)  # fmt: skip


def _errors(tables: dict[str, Any], learners: tuple[str, ...], times: bool = False) -> str:
    learners = tuple(who for who in learners if any(who in t["error"] for t in tables.values()))
    head = ["table", "rows", *learners]
    clocks = [
        name for name in ("gpu_seconds", "seconds") if any(name in t for t in tables.values())
    ]
    if times:
        head += ["in 95 %", *("s, GPU" if name == "gpu_seconds" else "s" for name in clocks)]
    rows = []
    for name, table in tables.items():
        cells = [f"{name}, {table['what']}", f"{table['rows']:,}"]
        errors = [table["error"].get(learner) for learner in learners]
        same_splits = "gpu_splits" not in table
        cells += _numbers(errors, table["what"], in_bold=same_splits)
        if times:
            covered = table.get("covered")
            cells.append("–" if covered is None else f"{100 * covered:.1f}\u00a0%")
            cells += [f"{table[name]:.0f}" if name in table else "–" for name in clocks]
        rows.append(cells)
    return make_table(head, rows)


def _numbers(errors: list[float | None], what: str, in_bold: bool = True) -> list[str]:
    """Return errors as cells of a table, all that read as the smallest in bold, if they compare."""
    best = _number(min(error for error in errors if error is not None), what)
    cells = ["–" if error is None else _number(error, what) for error in errors]
    return [f"**{cell}**" if in_bold and cell == best else cell for cell in cells]


def _number(error: float, what: str) -> str:
    if what == "wrong labels":
        return f"{100 * error:.2g} %"
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


def write_readme() -> None:
    """Write the table, and what the examples print, into the README."""

    def with_output(found: re.Match[str]) -> str:
        return found.group().replace(found["output"], run_example(found["code"]))

    README.write_text(EXAMPLE.sub(with_output, readme()), encoding="utf-8")
