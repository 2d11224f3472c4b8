"""Presets: a readable file for each experiment of the paper, whose numbers can be overridden."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from nysboost.numerics.messages import unknown
from nysboost.settings import Shape
from nysboost.user_error import UserError

SHAPES: tuple[Shape, ...] = ("columns", "square")
MEASURES = ("error", "seconds")
PROPERTIES = ("rank_99", "coherence", "slope_n", "slope_p", "slope_m")
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
"""All presets, in the paper's order."""


@dataclass(frozen=True, order=True)
class Reading:
    """How the paper's validation sets are read: each as whole columns or as a square block.

    `residual` is the shape of V, and `validation` that of V1 and V2.
    """

    residual: Shape
    validation: Shape

    def __str__(self) -> str:
        return f"{self.residual}-{self.validation}"

    @property
    def words(self) -> str:
        """The reading as a heading."""
        return f"V {self.residual}; V1, V2 {self.validation}"


NOT_SETTINGS = (
    "title",
    "replicates",
    "figures",
    "quick",
    "residual_shapes",
    "validation_shapes",
)
"""Fields of a preset that do not affect the numbers of a replicate."""


@dataclass(frozen=True)
class Preset:
    """One experiment: data, kernel, settings, and the content of its figure.

    `measure` is "error" (relative Frobenius) or "seconds" (each method on its own). Each replicate
    draws `n_points` points, its own if `redraw`. The paper's p, m, k, s, v1, v2 and η go by their
    names in `Settings`. `residual_shapes` and `validation_shapes` are the shapes of V, and of V1
    and V2, that are run, each with each; `learner_counts` are the numbers of learners that are
    measured, each from 1 to n_learners if it is empty; `properties` of the matrix or of the time
    are measured once for all methods; `figures` map the label of a panel to the methods in it.
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
    row_cap: int = 4096
    residual_shapes: tuple[Shape, ...] = SHAPES
    validation_shapes: tuple[Shape, ...] = SHAPES
    learner_counts: tuple[int, ...] = ()
    properties: tuple[str, ...] = ()
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The readings of the validation sets that are run."""
        readings = []
        for validation in self.validation_shapes:
            readings += [Reading(residual, validation) for residual in self.residual_shapes]
        return tuple(readings)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured, increasing."""
        if not self.learner_counts:
            return tuple(range(1, self.n_learners + 1))
        return tuple(count for count in self.learner_counts if count <= self.n_learners)

    @property
    def drawn(self) -> tuple[str, ...]:
        """All methods that the paper's figures draw, each once."""
        methods = itertools.chain(*self.figures.values())
        return tuple(dict.fromkeys(methods))

    def settings(self) -> dict[str, object]:
        """Return everything on which the numbers of a replicate depend."""
        settings = asdict(self)
        for name in NOT_SETTINGS:
            del settings[name]
        return settings


def load(name_or_file: str) -> Preset:
    """Read a preset by name, or from a user's ``.toml`` file."""
    path = Path(name_or_file)
    if path.suffix != ".toml":
        if name_or_file not in ORDER:
            raise UserError(unknown("preset", name_or_file, (*ORDER, "all")))
        path = Path(__file__).parent / f"{name_or_file}.toml"

    if not path.is_file():
        raise UserError(f"There is no preset file {path}.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"The preset file {path} is not text in UTF-8: {error}.") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, where: str) -> Preset:
    """Read a preset from the text of its file; a wrong key or value is an error."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The preset file {where} is not TOML: {error}.") from error

    # check keys and types
    figures = _read_figures(table.pop("figure", []), where)
    values = _check_values(table, where)
    values["quick"] = _check_values(values.get("quick", {}), f"[quick] of {where}")
    required = [f.name for f in fields(Preset) if f.default is f.default_factory is MISSING]
    required.remove("name")
    missing = [key for key in required if key not in values]
    if missing:
        raise UserError(f"The preset file {where} lacks {', '.join(missing)}.")

    # check values
    preset = Preset(name=name, figures=figures, **values)
    _check_words("shape of V", preset.residual_shapes, SHAPES, where)
    _check_words("shape of V1 and V2", preset.validation_shapes, SHAPES, where)
    _check_words("measure", [preset.measure], MEASURES, where)
    _check_words("property", preset.properties, PROPERTIES, where)
    if not preset.readings:
        raise UserError(
            f"{where} has no shape of V, or of V1 and V2; give columns, square or both."
        )
    if not preset.counts:
        raise UserError(f"{where} measures no number of learners up to {preset.n_learners}.")
    return preset


def _read_figures(panels: Sequence[object], where: str) -> dict[str, tuple[str, ...]]:
    """Return the methods that each panel draws, by its label."""
    figures = {}
    for panel in panels:
        match panel:
            case {"label": str(label), "draws": list(methods), **more} if not more:
                figures[label] = tuple(methods)
            case _:
                needs = "it needs label and draws, a text and a list of methods."
                raise UserError(f"[[figure]] of {where} is {panel}: {needs}")
    return figures


def _check_words(what: str, given: Sequence[str], known: Sequence[str], where: str) -> None:
    for word in given:
        if word not in known:
            raise UserError(f"{where}: {unknown(what, word, known)}")


_TYPES: dict[str, set[type]] = {
    "int": {int},
    "float": {int, float},
    "float | None": {int, float},
    "bool": {bool},
    "str": {str},
    "tuple[str, ...]": {str},
    "tuple[Shape, ...]": {str},
    "tuple[int, ...]": {int},
    "Mapping[str, Any]": {dict},
}
"""The allowed types of a value, or of the entries of a list, by the annotation of its field."""


def _check_values(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the values of a table, after a check of its keys and types."""
    known = {field.name: str(field.type) for field in fields(Preset)}
    del known["name"], known["figures"]

    checked = {}
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{where} has a wrong key. {unknown('key', key, known)}")

        # check the type of the value, or of each item of a list
        annotation = known[key]
        values = [value]
        if isinstance(value, list):
            values = value
        is_tuple = annotation.startswith("tuple")
        types = {type(one) for one in values}
        if isinstance(value, list) != is_tuple or not types <= _TYPES[annotation]:
            raise UserError(f"{where} gives {key} the value {value!r}, which has the wrong type.")
        if annotation == "int" and isinstance(value, int) and value < 1:
            raise UserError(f"{where} gives {key} the value {value}; it must be at least 1.")

        checked[key] = value
        if is_tuple:
            checked[key] = tuple(values)
    return checked
