"""CSV files of numbers: read at full speed, or cell by cell to say what is wrong."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nysboost.experiments.user_error import UserError

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "<na>")
"""What programs write, in letters of any case, where there is no value."""

TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class CsvFile:
    """How a CSV file is laid out."""

    path: Path
    delimiter: str
    names: Sequence[str]
    kept: Sequence[int]
    has_names: bool

    def numbers(self) -> NDArray[np.float64]:
        """Return the columns that are kept: at full speed, or cell by cell if that fails."""
        try:
            with warnings.catch_warnings():
                # A file without rows gets a sentence of its own.
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                return np.loadtxt(
                    self.path,
                    delimiter=self.delimiter,
                    comments=None,
                    skiprows=int(self.has_names),
                    usecols=None if len(self.kept) == len(self.names) else list(self.kept),
                    ndmin=2,
                    quotechar='"',
                    encoding="utf-8-sig",
                )
        except ValueError:
            return np.array([self._row(line, row) for line, row in self.lines()])

    def lines(self) -> list[tuple[int, list[str]]]:
        """Return the lines that hold rows, with their numbers in the file."""
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            numbered = enumerate(csv.reader(file, delimiter=self.delimiter), start=1)
            return [(i, row) for i, row in numbered if row and i > int(self.has_names)]

    def refuse_ragged(self) -> None:
        """Refuse rows that are longer than the others, which a choice of columns would hide."""
        for line, row in self.lines():
            if len(row) != len(self.names):
                raise UserError(ragged(self.path, line, len(row), len(self.names)))

    def _row(self, line: int, row: Sequence[str]) -> list[float]:
        """Return a row as numbers, or point at the first cell that is none."""
        if len(row) != len(self.names):
            raise UserError(ragged(self.path, line, len(row), len(self.names)))
        values = []
        for i in self.kept:
            cell = row[i].strip()
            if cell.lower() in MISSING:
                raise UserError(_missing(self.path, self.names[i], f"line {line}"))
            if cell.lower() not in TRUTH and not is_number(cell):
                raise UserError(text(self.path, self.names[i], f"{row[i]!r} in line {line}"))
            values.append(float(TRUTH.get(cell.lower(), cell)))
        return values


def ragged(path: Path, line: int, found: int, expected: int) -> str:
    """Return the sentence for a row of another length."""
    return f"{path} is ragged: line {line} has {found} cells, where {expected} were expected."


def _missing(path: Path, column: str, where: str) -> str:
    return (
        f"The column {column} of {path} has no value in {where}: fill such cells or drop their "
        "rows first."
    )


def text(path: Path, column: str, example: str) -> str:
    """Return the sentence for a column that is no numbers."""
    return (
        f"The column {column} of {path} is text ({example}): drop it, turn it into numbers, or "
        f"leave it out with --label {column}."
    )


def is_number(text: str) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
