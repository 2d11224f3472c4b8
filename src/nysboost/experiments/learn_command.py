"""``nysboost learn``: from a file and a target to a table of learners and a report."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.experiments import console, learning, report
from nysboost.experiments.csv_file import MISSING
from nysboost.experiments.report import learning as pages
from nysboost.experiments.store import make_writable
from nysboost.experiments.user_data import INDEX
from nysboost.experiments.user_error import UserError, need
from nysboost.numerics.checks import unknown


@dataclass(frozen=True)
class Request:
    """The options of the command, as given."""

    data: str
    target: str
    task: str = "auto"
    components: int = 256
    folds: int = 5
    max_rows: int = 20_000
    seed: int = 0


def run(request: Request, out: Path) -> list[learning.Outcome]:
    """Compare the learners by cross-validation, print the table, write the report.

    Ctrl-C ends it with a report of what was measured until then.
    """
    frame, y = read(Path(request.data), request.target)
    frame, y, notes = _drawn(frame, y, request)
    classify = _is_classification(y, request)
    y = y.astype(str) if classify else y.astype(np.float64)
    if len(y) < 2 * request.folds:
        raise UserError(f"{request.data} has {len(y)} rows: too few for {request.folds} folds.")
    _refuse_out_of_range(frame, y, classify, request)
    _refuse_what_is_not_there_in_every_fold(y, classify, request)
    make_writable(out)
    c = min(request.components, len(y) // 2)
    notes.append(
        f"{'Classification' if classify else 'Regression'} of {request.target} from "
        f"{len(frame.columns)} columns; {request.folds} folds; {c} landmarks."
    )
    for note in notes:
        console.say(note)
    task = (frame, y, classify, c, request.folds, request.seed)
    left_out, stops = list[str](), list[str]()
    with console.progress("fits") as progress:
        outcomes = learning.cross_validate(*task, progress, stops.append, left_out.append)
    table = pages.head(classify), pages.rows(outcomes, classify)
    console.table("Learners, smallest error first", *table)
    insight = None if stops else _insight(task, stops)
    for note in (*left_out, *stops):
        console.say(note)
    notes += [*left_out, *stops]
    page = pages.page(outcomes, insight, classify, notes, asdict(request))
    console.say(page.summary[0])
    console.keep_earlier(out / "report.html")
    report.write(page, out / "report.html")
    console.say(f"The report is {out / 'report.html'}.")
    if stops:
        raise KeyboardInterrupt
    return outcomes


def _insight(task: tuple[Any, ...], stops: list[str]) -> learning.Insight | None:
    """Look closer, unless that is stopped: what was measured before is kept."""
    try:
        return learning.look_closer(*task)
    except KeyboardInterrupt:
        stops.append("Stopped by Ctrl-C after the comparison: what ours has learned is not shown.")
        return None


def read(path: Path, target: str) -> tuple[learning.Frame, Any]:
    """Read a .csv, .tsv or .parquet file; return its columns and the target's values."""
    if not path.is_file():
        is_folder = f"{path} is a folder: give a file."
        raise UserError(is_folder if path.is_dir() else f"There is no file {path}.")
    if path.suffix.lower() not in READERS:
        raise UserError(f"{path} has an unknown ending: learn takes {', '.join(READERS)}.")
    columns = READERS[path.suffix.lower()](path)
    columns = {name: column for name, column in columns.items() if name not in INDEX}
    if target not in columns:
        raise UserError(f"{path} has no such target. {unknown('column', target, columns)}")
    y = columns.pop(target)
    missing = np.isnan(y) if y.dtype.kind == "f" else y == ""
    if missing.any():
        raise UserError(
            f"The target {target} of {path} has no value in {int(missing.sum())} rows, first in "
            f"row {int(np.argmax(missing)) + 1}: drop such rows first."
        )
    if not columns:
        raise UserError(f"{path} has no column beside the target.")
    return learning.Frame(tuple(columns), columns), y


def _csv(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = max(",;\t", key=file.readline().count)
            file.seek(0)
            lines = [row for row in csv.reader(file, delimiter=delimiter) if row]
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8: save it as such.") from error
    except csv.Error as error:
        raise UserError(f"{path} is not a table of cells: {error}.") from error
    if len(lines) < 2:
        raise UserError(f"{path} needs a line of column names and at least one row.")
    names, *cells = lines
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{path} has two columns called {twice!r}: give each a name of its own.")
    for number, row in enumerate(cells, start=2):
        if len(row) != len(names):
            raise UserError(f"{path} is ragged: row {number} has {len(row)} cells.")
    columns = zip(*cells, strict=True)
    return {name: _column(values) for name, values in zip(names, columns, strict=True)}


def _column(cells: Any) -> Any:
    """Return numbers where all cells are numbers or missing, else text."""
    stripped = ["" if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    try:
        return np.array([float(cell) if cell else np.nan for cell in stripped])
    except ValueError:
        return np.array(stripped, dtype=object)


def _parquet(path: Path) -> dict[str, Any]:
    parquet = need("pyarrow.parquet", "experiments")
    try:
        table = parquet.read_table(path)
    except ValueError as error:  # what Arrow raises is a ValueError
        raise UserError(f"{path} cannot be read as Parquet: {error}.") from error
    found = {}
    for name in table.column_names:
        values = table.column(name).to_pylist()
        numbers = all(isinstance(v, int | float | None) for v in values)
        as_number = [np.nan if v is None else v for v in values]
        as_text = ["" if v is None else str(v) for v in values]
        found[name] = (
            np.array(as_number, dtype=np.float64) if numbers else np.array(as_text, dtype=object)
        )
    return found


READERS = {".csv": _csv, ".tsv": _csv, ".txt": _csv, ".parquet": _parquet}
"""How a file is read, by its ending."""

LARGEST = 1e100
"""Numbers beyond this have squares that some learner cannot add up."""


def _refuse_out_of_range(frame: learning.Frame, y: Any, classify: bool, request: Request) -> None:
    """Say which column has numbers that no learner could square."""
    columns = {name: frame[name] for name in frame.columns if frame[name].dtype.kind == "f"}
    for name, values in (columns | ({} if classify else {request.target: y})).items():
        far = np.abs(values) > LARGEST
        if far.any():
            raise UserError(
                f"Column {name} of {request.data} has the value {values[far][0]:g} in row "
                f"{int(np.argmax(far)) + 1}, out of range: divide the column by a constant, or "
                "drop such rows."
            )


def _refuse_what_is_not_there_in_every_fold(y: Any, classify: bool, request: Request) -> None:
    """Say that there is nothing to tell apart, or not often enough."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise UserError(
            f"The target {request.target} is {values[0]} in every row: there is nothing to learn."
        )
    if classify and counts.min() < request.folds:
        raise UserError(
            f"The label {values[counts.argmin()]} of {request.target} is in {counts.min()} rows, "
            f"fewer than the {request.folds} folds: drop such rows, or take fewer folds."
        )


def _drawn(
    frame: learning.Frame, y: Any, request: Request
) -> tuple[learning.Frame, Any, list[str]]:
    if len(y) <= request.max_rows:
        return frame, y, [f"{request.data}: {len(y):,} rows, all of them used."]
    kept = np.random.default_rng(request.seed).permutation(len(y))[: request.max_rows]
    note = (
        f"{request.data} has {len(y):,} rows: {request.max_rows:,} of them, drawn at random, are "
        "used (--max-rows changes that)."
    )
    return frame.rows(kept), y[kept], [note]


def _is_classification(y: Any, request: Request) -> bool:
    if request.task == "auto":
        return bool(y.dtype.kind != "f")
    if request.task == "regression" and y.dtype.kind != "f":
        raise UserError(f"The target {request.target} is text ({y[0]!r}): it can be classified.")
    return request.task == "classification"
