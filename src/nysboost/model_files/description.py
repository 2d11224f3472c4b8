"""Convert objects to JSON and arrays, and back, for the types in a table.

Plain values are stored unchanged. Each array is stored once, separately from the text. An object is
stored as the name of its type and its parts, which come before it. So a reader builds objects in
order, from a table of known types, without any other code.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from nysboost.model_files.archive import SAVED_KINDS, HostArray, Json
from nysboost.numerics import arrays as lib

LIBRARIES = {"torch": "array_api_compat.torch", "cupy": "array_api_compat.cupy"}

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Saved: TypeAlias = Any
"""An object of a type that can be saved."""

Contents: TypeAlias = Mapping[str, object]
"""The parts of an object by name: plain values, arrays and objects of known types."""

Parts: TypeAlias = dict[str, Any]
"""The same, as read from a file, not yet checked."""


class NotSavableError(TypeError):
    """A model contains something that cannot be saved; the message says what to do."""


class DeviceError(RuntimeError):
    """Arrays cannot be loaded to the device where they were; the message says what to do."""


# Checks of what was read


def require(fits: bool | np.bool, what: str) -> None:
    """Raise a ValueError unless the parts fit together."""
    if not fits:
        raise ValueError(f"{what} do not fit together")


def check_fields(value: object) -> None:
    """Check that each field of a dataclass is of the type that its class says."""
    kind: Saved = type(value)
    for name, hint in _field_types(kind).items():
        content = getattr(value, name)
        require(is_of(content, hint), f"{kind.__name__} and its {name}")


@cache
def _field_types(kind: type[DataclassInstance]) -> dict[str, object]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in _field_names(kind)}


def _field_names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the fields that are arguments of a dataclass."""
    return tuple(field.name for field in fields(kind) if field.init)


def is_of(value: object, hint: Saved) -> bool:
    """Return whether a value is of an annotated type; an array may be of any library and dtype."""
    if hint is Any:
        return True

    # unions, literals and containers
    origin: Saved = get_origin(hint)
    inside = get_args(hint)
    if origin in (Union, UnionType):
        return any(is_of(value, each) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin in (tuple, list):
        if not isinstance(value, tuple | list):
            return False
        return all(is_of(item, inside[0]) for item in value)

    # a class: of an array, of a number, of ours; NumPy 2.5 has aliases where 2.4 has classes
    kind = origin or hint
    if hasattr(kind, "__value__"):
        return is_of(value, kind.__value__)
    if kind is np.ndarray:
        return lib.is_array(value) or lib.is_sparse(value)

    # truth values are whole numbers of Python
    if kind in NUMBERS:
        is_number = isinstance(value, NUMBERS[kind])
        return is_number and not isinstance(value, bool)
    return isinstance(value, kind)


NUMBERS = {float: Real, int: Integral}
"""Types of numbers in a file, of Python or NumPy."""


# Types that a file may hold


class SavedType(ABC):
    """Converts objects of one type to parts, and back.

    Attributes
    ----------
    kind : type
        The type.
    """

    kind: type

    @property
    def name(self) -> str:
        """The name of the type in a file."""
        return self.kind.__name__

    @abstractmethod
    def to_parts(self, value: Saved) -> Contents:
        """Return the parts of an object."""

    @abstractmethod
    def from_parts(self, parts: Parts) -> object:
        """Return the object, or raise an exception if the parts do not fit together."""


def accept_all(_value: object) -> None:
    """Accept an object, because its constructor has checked the parts."""


@dataclass(frozen=True)
class AttributesType(SavedType):
    """A type whose parts are its attributes, which are also the arguments of its constructor.

    `check` raises a ValueError if the parts of an object do not fit together. Parts of a dataclass
    must have the types of its fields.
    """

    kind: type
    names: tuple[str, ...]
    check: Callable[[Saved], None] = accept_all

    def to_parts(self, value: Saved) -> Contents:
        """Return the attributes."""
        return {name: getattr(value, name) for name in self.names}

    def from_parts(self, parts: Parts) -> object:
        """Call the constructor."""
        value = self.kind(**parts)
        if is_dataclass(value):
            check_fields(value)
        self.check(value)
        return value


def dataclass_type(
    kind: type[DataclassInstance], check: Callable[[Saved], None] = accept_all
) -> AttributesType:
    """Return the saved type of a dataclass, whose parts are its fields."""
    return AttributesType(kind, _field_names(kind), check)


@dataclass(frozen=True)
class EstimatorType(SavedType):
    """A scikit-learn estimator: its parameters, and its learned attributes after a `check`."""

    kind: type
    check: Callable[[Saved], None]

    def to_parts(self, value: Saved) -> Contents:
        """Return parameters and learned attributes."""
        params = value.get_params(deep=False)
        learned = value._saved_attributes()
        for name in params:
            learned.pop(name, None)
        return {"params": params, "learned": learned}

    def from_parts(self, parts: Parts) -> object:
        """Return an estimator with these parameters and learned attributes."""
        estimator: object = self.kind(**parts["params"])

        # refuse attributes that would replace a method
        for name, value in parts["learned"].items():
            if name.startswith("__") or hasattr(self.kind, name):
                raise ValueError(f"{name} is no learned attribute")
            setattr(estimator, name, value)

        self.check(estimator)
        return estimator


# Writing


class ModelEncoder:
    """Turns a value into JSON, and collects the arrays that belong to it."""

    def __init__(self, types: Iterable[SavedType]) -> None:
        self.objects: list[dict[str, Json]] = []
        self.arrays: dict[str, HostArray] = {}
        self._types = {one.kind: one for one in types}
        self._references: dict[int, Json] = {}
        self._alive: list[object] = []  # objects are kept alive so that ids are not reused

    def encode(self, value: object, where: str = "the model") -> Json:
        """Return the JSON of a value; `where` is its place for error messages."""
        # plain values stay as they are, except NaN and infinity, which JSON lacks
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float and np.isfinite(value):
            return value
        if type(value) is float:
            return {"float": str(value)}

        # containers are written item by item
        if isinstance(value, list):
            return [self.encode(item, where) for item in value]
        if type(value) is tuple:
            return {"tuple": self.encode(list(value), where)}
        if isinstance(value, Mapping):
            return self._encode_mapping(value, where)

        # write each array and object once
        key = id(value)
        if key not in self._references:
            self._alive.append(value)
            self._references[key] = self._encode_shared(value, where)
        return self._references[key]

    def _encode_mapping(self, value: Mapping[Saved, object], where: str) -> Json:
        """Encode a dictionary: as a JSON object if its keys are text, else as pairs."""
        if all(isinstance(key, str) for key in value):
            inside = {}
            for name, part in value.items():
                inside[name] = self.encode(part, f"{name} of {where}")
            return {"dict": inside}

        pairs = [list(pair) for pair in value.items()]
        return {"pairs": self.encode(pairs, where)}

    def _encode_shared(self, value: Saved, where: str) -> Json:
        """Add an array or an object to the file, and return a reference to it."""
        if isinstance(value, np.generic):
            name = self._add_array(np.asarray(value))
            return {"scalar": name}

        # NumPy arrays of numbers or text
        if isinstance(value, np.ndarray):
            if value.dtype.kind in SAVED_KINDS:
                name = self._add_array(np.asarray(value))
                return {"array": name}
            all_text = all(isinstance(item, str) for item in value.flat)
            if value.dtype.kind == "O" and all_text:
                return {"names": value.tolist()}
            return self._encode_object(value, where)

        # arrays of other libraries keep their device
        library = lib.library(value)
        if lib.is_array(value) and library in LIBRARIES:
            name = self._add_array(lib.to_host(value))
            device = str(lib.device(value))
            return {"array": name, "library": library, "device": device}

        return self._encode_object(value, where)

    def _encode_object(self, value: object, where: str) -> Json:
        """Add an object after its parts, and return a reference to it."""
        saved = self._types.get(type(value))
        if saved is None:
            raise _not_savable(value, where)

        # write its parts first; an error names what holds them
        inside = where
        if self.objects:
            inside = f"{saved.name} in {where}"
        parts = {}
        for name, part in saved.to_parts(value).items():
            parts[name] = self.encode(part, f"{name} of {inside}")

        number = len(self.objects)
        self.objects.append({"type": saved.name, "parts": parts})
        return {"object": number}

    def _add_array(self, array: HostArray) -> str:
        name = f"{len(self.arrays)}.npy"
        self.arrays[name] = array
        return name


CURE_OF_KERNELS = "use one of NysBoost's kernels or kernel='precomputed'"
CURES = {
    "callback": "leave callback out, with model.set_params(callback=None)",
    "rule": "register the rule with nysboost.register_rule and use its letter",
    "selector": "register the selector with nysboost.register_selector and use its name",
    "sampling": "use one of NysBoost's samplings",
}
"""What to do about a function, by the parameter that holds it."""


def _not_savable(value: object, where: str) -> NotSavableError:
    """Return the error for a value that cannot be saved."""
    if callable(value) and not isinstance(value, type):
        name = getattr(value, "__name__", type(value).__name__)
        parameter, _, _ = where.partition(" of ")
        cure = CURES.get(parameter, CURE_OF_KERNELS)
        return NotSavableError(
            f"The model uses your own function {name} ({where}), but a model file holds no code: "
            f"{cure}, or define it in a module of yours and save the model with joblib.dump."
        )

    kind = type(value)
    if isinstance(value, type):
        kind = value
    return NotSavableError(
        f"A {kind.__module__}.{kind.__qualname__} ({where}) cannot be put into a model file, which "
        "holds approximations, transformers and learners of NysBoost, and numbers."
    )


# Reading


class ModelDecoder:
    """Builds a value from its description.

    `device` is the device for arrays that were on a device; None is the device where they were.
    """

    def __init__(
        self,
        types: Iterable[SavedType],
        arrays: Mapping[str, HostArray],
        device: str | None = None,
    ) -> None:
        self._types = {one.name: one for one in types}
        self._arrays = arrays
        self._device = device
        self._made: list[object] = []
        self._moved: dict[tuple[str, str, str], object] = {}

    def decode(self, objects: list[dict[str, Json]], root: Json) -> object:
        """Return the root value, after building its objects in order."""
        for described in objects:
            saved = self._types[described["type"]]
            parts = {}
            for name, part in described["parts"].items():
                parts[name] = self._read(part)
            self._made.append(saved.from_parts(parts))

        return self._read(root)

    def _read(self, text: Json) -> Saved:
        """Return the value for a piece of JSON."""
        if isinstance(text, list):
            return [self._read(item) for item in text]
        if not isinstance(text, dict):
            return text

        # arrays of other libraries name their device
        if "library" in text:
            return self._on_device(text["array"], text["library"], text["device"])

        # everything else has a kind and a content
        ((kind, content),) = text.items()
        match kind:
            case "float":
                return float(content)
            case "tuple":
                return tuple(self._read(item) for item in content)
            case "dict":
                return {name: self._read(item) for name, item in content.items()}
            case "pairs":
                return {self._read(key): self._read(item) for key, item in content}
            case "names":
                texts = [str(name) for name in content]
                return np.array(texts, dtype=object)
            case "scalar":
                return self._arrays[content][()]
            case "array":
                return self._arrays[content]
            case "object":
                return self._made[_position(content)]
        raise KeyError(kind)

    def _on_device(self, name: str, library: str, device: str) -> object:
        """Return an array in its library, on its device or on that of the user, loaded once."""
        device = self._device or device
        key = name, library, device
        if key not in self._moved:
            array = self._arrays[name]
            self._moved[key] = _to_device(array, library, device)
        return self._moved[key]


def _position(number: Json) -> int:
    """Return the position of an object that is already built."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number} is no position of an object")
    return number


def _to_device(array: HostArray, library: str, device: str) -> object:
    """Return an array in a library and on a device, or raise a DeviceError that says what to do."""
    try:
        xp = importlib.import_module(LIBRARIES[library])
    except ImportError as error:
        raise DeviceError(
            f"The model has {library} arrays: install {library} to load it."
        ) from error

    try:
        if library == "torch":
            return xp.asarray(array, device=device)
        return xp.asarray(array)
    except Exception as error:  # each library has its own errors for a device that is not there
        raise DeviceError(
            f"The model has {library} arrays on {device!r}, which this machine does not have "
            f"({error}). Choose a device: nysboost.load(path, device='cpu')."
        ) from error
