"""Presets: one readable file for each experiment of the paper, every number overridable."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_type_hints

from nysboost.experiments.user_error import UserError
from nysboost.numerics.checks import unknown

Measure = Literal["error", "seconds"]
READINGS = ("columns", "square")
ORDER = (
    "simulation",
    "runtime",
    "mnist-linear",
    "mnist-gaussian",
    "glove-linear",
    "glove-gaussian",
    "covertype",
    "pendigits",
    "ijcnn",
)


@dataclass(frozen=True)
class Figure:
    """One panel of a figure of the paper: its label and the methods drawn in it."""

    label: str
    draws: tuple[str, ...]


@dataclass(frozen=True)
class Preset:
    """One experiment: data, kernel, settings and what its figures draw.

    Attributes
    ----------
    measure : {"error", "seconds"}
        What is recorded: relative Frobenius errors, or the time of each method on its own.
    data, n_points : str, int
        The data set and how many of its points each replicate draws.
    redraw : bool
        Whether each replicate draws its own points; otherwise all share one draw.
    kernel, sigma : str, float or None
        The kernel; sigma is None for kernels without a width.
    replicates : int
        How often the experiment is repeated.
    n_learners, n_columns, rank, n_candidates, n_fit, n_tune, eta
        The paper's p, m, k, s, v1, v2 and η.
    validation_shape, row_cap
        The reading of V1 and V2, and the most rows that whole columns have.
    readings : tuple of str
        The readings of V: whole columns, square block. Each is run and reported by itself.
    learner_counts : tuple of int
        The numbers of learners that are measured; empty means each from 1 to n_learners.
    """

    name: str
    title: str
    measure: Measure
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
    figures: tuple[Figure, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured, increasing."""
        counts = self.learner_counts or tuple(range(1, self.n_learners + 1))
        return tuple(c for c in counts if c <= self.n_learners)

    @property
    def drawn(self) -> tuple[str, ...]:
        """All methods that the paper's figures draw, each once."""
        return tuple(dict.fromkeys(m for figure in self.figures for m in figure.draws))

    def quickened(self) -> Preset:
        """Return the preset with its ``[quick]`` numbers."""
        return replace(self, **self.quick)

    def settings(self) -> dict[str, Any]:
        """Return what the numbers of one replicate depend on: not how many there are."""
        left_out = {"title", "replicates", "figures", "quick", "readings"}
        return {k: v for k, v in asdict(self).items() if k not in left_out}


def names() -> tuple[str, ...]:
    """Return the names of all presets, in the paper's order."""
    return ORDER


def load(name_or_file: str) -> Preset:
    """Read a preset by its name, or from a ``.toml`` file of one's own."""
    if name_or_file.endswith(".toml"):
        path = Path(name_or_file)
        if not path.is_file():
            raise UserError(f"There is no preset file {path}.")
        return parse(path.read_text(encoding="utf-8"), path.stem, str(path))
    if name_or_file not in ORDER:
        raise UserError(unknown("preset", name_or_file, (*ORDER, "all")))
    text = resources.files(__package__).joinpath(f"{name_or_file}.toml").read_text("utf-8")
    return parse(text, name_or_file, f"{name_or_file}.toml")


def parse(text: str, name: str, where: str) -> Preset:
    """Read a preset from the text of its file; a wrong key or value is a sentence."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The preset file {where} is not TOML: {error}.") from error
    panels = table.pop("figure", [])
    values = _checked(table, where, allowed=_keys())
    values["figures"] = tuple(_figure(panel, where) for panel in panels)
    values["quick"] = _checked(dict(table.get("quick", {})), f"[quick] of {where}", _keys())
    missing = [k for k in _required() if k not in values]
    if missing:
        raise UserError(f"The preset file {where} lacks {', '.join(missing)}.")
    preset = Preset(name=name, **values)
    _check_values(preset, where)
    return preset


def _keys() -> dict[str, Any]:
    kinds = get_type_hints(Preset)
    return {f.name: kinds[f.name] for f in fields(Preset) if f.name not in ("name", "figures")}


def _required() -> list[str]:
    optional = {"sigma", "eta", "redraw", "validation_shape", "row_cap", "readings"}
    optional |= {"learner_counts", "quick"}
    return [k for k in _keys() if k not in optional]


def _checked(table: dict[str, Any], where: str, allowed: dict[str, Any]) -> dict[str, Any]:
    for key, value in table.items():
        if key not in allowed:
            raise UserError(f"{where} has a wrong key. {unknown('key', key, allowed)}")
        _check_kind(key, value, allowed[key], where)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}


def _check_kind(key: str, value: Any, kind: Any, where: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    right = {
        int: whole,
        float: whole or isinstance(value, float),
        bool: isinstance(value, bool),
        str: isinstance(value, str),
        float | None: whole or isinstance(value, float),
        tuple[str, ...]: isinstance(value, list) and all(isinstance(v, str) for v in value),
        tuple[int, ...]: isinstance(value, list) and all(isinstance(v, int) for v in value),
        Measure: value in ("error", "seconds"),
    }.get(kind, isinstance(value, dict))
    if not right:
        raise UserError(f"{where} gives {key} the value {value!r}, which is of the wrong kind.")
    if whole and kind is int and value < 1:
        raise UserError(f"{where} gives {key} the value {value}; it must be at least 1.")


def _figure(panel: dict[str, Any], where: str) -> Figure:
    values = _checked(panel, f"[[figure]] of {where}", {"label": str, "draws": tuple[str, ...]})
    if values.keys() != {"label", "draws"}:
        raise UserError(f"[[figure]] of {where} needs label and draws.")
    return Figure(**values)


def _check_values(preset: Preset, where: str) -> None:
    for reading in preset.readings:
        if reading not in READINGS:
            raise UserError(f"{where}: {unknown('reading of V', reading, READINGS)}")
    if not preset.readings:
        raise UserError(f"{where} has no reading of V; give columns, square or both.")
    if not preset.counts:
        raise UserError(f"{where} measures no number of learners up to {preset.n_learners}.")
