"""Presets: one readable file for each experiment of the paper, every number overridable."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from nysboost.numerics.messages import unknown
from nysboost.user_error import UserError

READINGS, MEASURES = ("columns", "square"), ("error", "seconds")
ORDER = (
    *("simulation", "runtime", "mnist-linear", "mnist-gaussian", "glove-linear"),
    *("glove-gaussian", "covertype", "pendigits", "ijcnn"),
)
"""All presets, in the paper's order."""


@dataclass(frozen=True)
class Preset:
    """One experiment: data, kernel, settings and what its figures draw.

    `measure` is "error" (relative Frobenius) or "seconds" (each method on its own). Each replicate
    draws `n_points` points, its own if `redraw`. The paper's p, m, k, s, v1, v2 and η go by their
    names in `Settings`. `readings` are those of V, each reported by itself; `learner_counts` are
    the numbers of learners that are measured, each from 1 to n_learners if it is empty; `figures`
    map the label of a panel to the methods drawn in it.
    """

    name: str
    title: str
    measure: str
    data: str
    n_points: int
    kernel: str
    n_learners: int
    n_columns: int
    rank: int
    n_candidates: int
    n_fit: int
    n_tune: int
    replicates: int
    sigma: float | None = None
    eta: float = 0.01
    redraw: bool = True
    validation_shape: str = "columns"
    row_cap: int = 4096
    readings: tuple[str, ...] = READINGS
    learner_counts: tuple[int, ...] = ()
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured, increasing."""
        counts = self.learner_counts or tuple(range(1, self.n_learners + 1))
        return tuple(c for c in counts if c <= self.n_learners)

    @property
    def drawn(self) -> tuple[str, ...]:
        """All methods that the paper's figures draw, each once."""
        return tuple(dict.fromkeys(m for methods in self.figures.values() for m in methods))

    def settings(self) -> dict[str, Any]:
        """Return what the numbers of one replicate depend on: not how many there are."""
        left_out = {"title", "replicates", "figures", "quick", "readings"}
        return {k: v for k, v in asdict(self).items() if k not in left_out}


def load(name_or_file: str) -> Preset:
    """Read a preset by its name, or from a ``.toml`` file of one's own."""
    path = Path(name_or_file)
    if path.suffix != ".toml":
        if name_or_file not in ORDER:
            raise UserError(unknown("preset", name_or_file, (*ORDER, "all")))
        path = Path(__file__).parent / f"{name_or_file}.toml"
    if not path.is_file():
        raise UserError(f"There is no preset file {path}.")
    return parse(path.read_text(encoding="utf-8"), path.stem, str(path))


def parse(text: str, name: str, where: str) -> Preset:
    """Read a preset from the text of its file; a wrong key or value is a sentence."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The preset file {where} is not TOML: {error}.") from error
    figures = {}
    for panel in table.pop("figure", []):
        match panel:
            case {"label": str(label), "draws": list(methods)} if len(panel) == 2:
                figures[label] = tuple(methods)
            case _:
                msg = "needs label and draws, a text and a list of methods."
                raise UserError(f"[[figure]] of {where} is {panel}: it {msg}")
    values = _check(table, where)
    values["quick"] = _check(values.get("quick", {}), f"[quick] of {where}")
    required = (f.name for f in fields(Preset) if f.default is f.default_factory is MISSING)
    if missing := [key for key in required if key not in (*values, "name")]:
        raise UserError(f"The preset file {where} lacks {', '.join(missing)}.")
    preset = Preset(name=name, figures=figures, **values)
    words = {"reading of V": (preset.readings, READINGS), "measure": ([preset.measure], MEASURES)}
    for what, (given, known) in words.items():
        for word in given:
            if word not in known:
                raise UserError(f"{where}: {unknown(what, word, known)}")
    if not preset.readings:
        raise UserError(f"{where} has no reading of V; give columns, square or both.")
    if not preset.counts:
        raise UserError(f"{where} measures no number of learners up to {preset.n_learners}.")
    return preset


_TYPES: dict[str, set[type]] = {
    "int": {int}, "float": {int, float}, "float | None": {int, float}, "bool": {bool},
    "str": {str}, "tuple[str, ...]": {str}, "tuple[int, ...]": {int}, "Mapping[str, Any]": {dict},
}  # fmt: skip
"""What a value in a file, or each of a list, may be, by the annotation of its field."""


def _check(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of a table whose keys and types are those of the fields of a preset."""
    known = {f.name: str(f.type) for f in fields(Preset) if f.name not in ("name", "figures")}
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{where} has a wrong key. {unknown('key', key, known)}")
        listed = isinstance(value, list)
        types = {type(v) for v in (value if listed else [value])}
        if listed != known[key].startswith("tuple") or not types <= _TYPES[known[key]]:
            raise UserError(f"{where} gives {key} the value {value!r}, which is of the wrong kind.")
        if known[key] == "int" and value < 1:
            raise UserError(f"{where} gives {key} the value {value}; it must be at least 1.")
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
