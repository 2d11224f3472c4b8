"""Objects as JSON and arrays, and back: only of types that a table names.

Plain values stay what they are. Arrays go beside the text, each once. An object becomes the
name of its type and its parts, and its parts come before it: what is read is put together in
order, from a table of known types, with no code from anywhere else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics import arrays as lib

LIBRARIES = {"torch": "array_api_compat.torch", "cupy": "array_api_compat.cupy"}


class NotSavableError(TypeError):
    """A model that holds something which no file may hold; the message says what to do."""


class DeviceError(RuntimeError):
    """Arrays that cannot be put where they were; the message says what to do."""


@dataclass(frozen=True)
class TypeSpec:
    """How objects of one type are taken apart, put together again, and checked (`fits`)."""

    name: str
    kind: type
    to_parts: Callable[[Any], Mapping[str, Any]]
    from_parts: Callable[[dict[str, Any]], Any]
    fits: Callable[[Any], object] = lambda _: True


def attributes_spec(kind: Any, names: Iterable[str], make: Any = None, **how: Any) -> TypeSpec:
    """Return the spec of a type whose parts are attributes, and arguments of its constructor."""
    names, make = tuple(names), make or (lambda parts: kind(**parts))
    return TypeSpec(
        kind.__name__, kind, lambda value: {n: getattr(value, n) for n in names}, make, **how
    )


def dataclass_spec(kind: Any, **how: Any) -> TypeSpec:
    """Return the spec of a dataclass, whose parts are its fields."""
    return attributes_spec(kind, (field.name for field in fields(kind) if field.init), **how)


def estimator_spec(kind: Any) -> TypeSpec:
    """Return the spec of a scikit-learn estimator: its parameters, and what it has learned."""

    def to_parts(estimator: Any) -> dict[str, Any]:
        params = estimator.get_params(deep=False)
        attributes = estimator._saved_attributes()
        learned = {name: value for name, value in attributes.items() if name not in params}
        return {"params": params, "learned": learned}

    def from_parts(parts: dict[str, Any]) -> Any:
        estimator = kind(**parts["params"])
        for name, value in parts["learned"].items():
            if name.startswith("__") or hasattr(kind, name):
                raise ValueError(f"{name} is no learned attribute")
            setattr(estimator, name, value)
        return estimator

    return TypeSpec(kind.__name__, kind, to_parts, from_parts)


class ModelEncoder:
    """Turns a value into JSON, and collects the arrays that belong to it."""

    def __init__(self, specs: Iterable[TypeSpec]) -> None:
        self._specs = {spec.kind: spec for spec in specs}
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self._seen: dict[int, Any] = {}
        self._alive: list[Any] = []  # or another object would get the identity of one that is gone

    def encode(self, value: Any, where: str = "the model") -> Any:
        """Return the JSON of a value; `where` says in an error what holds it."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.encode(item, where) for item in value]
        if type(value) is tuple:
            return {"tuple": self.encode(list(value), where)}
        if isinstance(value, Mapping):
            if all(isinstance(key, str) for key in value):
                return {"dict": {k: self.encode(v, f"{k} of {where}") for k, v in value.items()}}
            return {"pairs": self.encode([list(pair) for pair in value.items()], where)}
        if id(value) not in self._seen:
            self._alive.append(value)
            self._seen[id(value)] = self._reference(value, where)
        return self._seen[id(value)]

    def _reference(self, value: Any, where: str) -> Any:
        """Put an array or an object where it belongs, and return what stands for it."""
        if isinstance(value, np.generic):
            return {"scalar": self._add_array(np.asarray(value))}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O" and all(isinstance(text, str) for text in value.flat):
                return {"names": value.tolist()}
            if value.dtype.kind in "fiubU":
                return {"array": self._add_array(np.asarray(value))}
        elif lib.is_array(value) and (library := lib.library(value)) in LIBRARIES:
            host = self._add_array(lib.to_host(value))
            return {"array": host, "library": library, "device": str(lib.device(value))}
        spec = self._specs.get(type(value))
        if spec is None:
            raise _not_savable(value, where)
        inside = f"{spec.name} in {where}" if self.objects else where
        parts = {
            name: self.encode(part, f"{name} of {inside}")
            for name, part in spec.to_parts(value).items()
        }
        self.objects.append({"type": spec.name, "parts": parts})
        return {"object": len(self.objects) - 1}

    def _add_array(self, array: NDArray[Any]) -> str:
        name = f"{len(self.arrays)}.npy"
        self.arrays[name] = array
        return name


def _not_savable(value: Any, where: str) -> NotSavableError:
    if callable(value) and not isinstance(value, type):
        name = getattr(value, "__name__", type(value).__name__)
        return NotSavableError(
            f"The model uses a function of yours, {name} ({where}), and a model file holds no "
            "code: use one of NysBoost's kernels or kernel='precomputed', or keep the model with "
            "joblib.dump for yourself."
        )
    kind = value if isinstance(value, type) else type(value)
    return NotSavableError(
        f"A {kind.__module__}.{kind.__qualname__} ({where}) cannot be put into a model file, which "
        "holds approximations, transformers and learners of NysBoost, and numbers."
    )


def decode_model(
    objects: list[dict[str, Any]],
    root: Any,
    specs: Iterable[TypeSpec],
    arrays: Mapping[str, NDArray[Any]],
    where: str | None = None,
) -> Any:
    """Return the value that a description says, after the objects that it is made of.

    `where` is the device for arrays that were on one; None is where they were.
    """
    kinds = {spec.name: spec for spec in specs}
    made: list[Any] = []  # an object's parts come before it

    @cache
    def move(name: str, library: str, device: str) -> Any:
        return _on_device(arrays[name], library, where or device)

    readers: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "tuple": lambda items: tuple(map(read, items)),
        "dict": lambda items: {name: read(item) for name, item in items.items()},
        "pairs": lambda items: {read(key): read(item) for key, item in items},
        "names": lambda names: np.array([str(name) for name in names], dtype=object),
        "scalar": lambda name: arrays[name][()],
        "array": arrays.__getitem__,
        "object": made.__getitem__,
    }

    def read(text: Any) -> Any:
        """Return what a piece of JSON stands for."""
        if isinstance(text, list):
            return list(map(read, text))
        if not isinstance(text, dict):
            return text
        if "library" in text:
            return move(text["array"], text["library"], text["device"])
        kind, content = next(iter(text.items()))
        return readers[kind](content)

    for described in objects:
        spec = kinds[described["type"]]
        made.append(spec.from_parts({n: read(part) for n, part in described["parts"].items()}))
        if not spec.fits(made[-1]):
            raise ValueError(f"the parts of a {spec.name} do not fit together")
    return read(root)


def _on_device(array: NDArray[Any], library: str, device: str) -> Any:
    try:
        xp = importlib.import_module(LIBRARIES[library])
    except ImportError as error:
        raise DeviceError(
            f"The model has {library} arrays: install {library} to load it."
        ) from error
    try:
        return xp.asarray(array, device=device) if library == "torch" else xp.asarray(array)
    except Exception as error:  # each library has its own errors for a device that is not there
        raise DeviceError(
            f"The model has {library} arrays on {device!r}, which this machine does not have "
            f"({error}). Say where they shall go: nysboost.load(path, device='cpu')."
        ) from error
