"""The types that a model file may hold: exported ones and those in `TYPES`, checked when read."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import BaseEstimator

from nysboost import estimators, kernels, learn
from nysboost.approximation import Approximation
from nysboost.boosting.learner import Mixture
from nysboost.data.dask_rows import DaskRows
from nysboost.data.description import TypeSpec, dataclass_spec, estimator_spec
from nysboost.data.rows import ArrayRows, DroppedRows, EncodedRows, StoredRows
from nysboost.engine.factor import Moments
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.linear import LinearModel, LinearPredictor
from nysboost.engine.projection import BlockDiagonal
from nysboost.gram import Gram, KernelGram, Landmarks, PrecomputedGram
from nysboost.gram.gram import EntryCounter
from nysboost.kernels.warp import Quantiles
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.methods.in_sample import InSample
from nysboost.numerics.resources import Budget
from nysboost.numerics.tree import Tree
from nysboost.search.leaves import Leaves
from nysboost.search.model import Member
from nysboost.settings import Settings
from nysboost.tables.codes import Codes
from nysboost.tables.columns import Column
from nysboost.tables.piecewise import PiecewiseCodes
from nysboost.tables.schema import Schema

# Approximations


def _gram(kind: type[Gram]) -> TypeSpec:
    own = ("kernel", "codes") if kind is KernelGram else ()
    names = ("rows", "budget", "entries_evaluated", *own)

    def to_parts(gram: Gram) -> dict[str, Any]:
        return {name: getattr(gram, name) for name in names} | {"dtype": gram.dtype.name}

    def from_parts(parts: dict[str, Any]) -> Gram:
        _require(parts["dtype"] in ("float32", "float64") and isinstance(parts["budget"], Budget))
        gram = kind.__new__(kind)  # rows that are gone cannot be looked at
        gram.rows, gram.n = parts["rows"], parts["rows"].n
        gram.dtype, gram.budget = np.dtype(parts["dtype"]), parts["budget"]
        gram.counter = EntryCounter(int(parts["entries_evaluated"]))
        if isinstance(gram, KernelGram):
            _require(isinstance(parts["kernel"], kernels.Kernel))
            gram.kernel, gram.parallel = parts["kernel"], parts["kernel"].parallel
            gram.codes = parts.get("codes")
            _require(isinstance(gram.codes, Codes | None))
        return gram

    return TypeSpec(kind.__name__, kind, to_parts, from_parts)


def _approximation(kind: type[Approximation], to_parts: Any) -> TypeSpec:
    """Return the form of an approximation: arguments of its class, its method and its cost."""

    def from_parts(parts: dict[str, Any]) -> Approximation:
        method, entries = str(parts.pop("method")), int(parts.pop("entries_evaluated"))
        approximation = kind(**parts).with_name(method)
        approximation.entries_evaluated = entries
        return approximation

    def all_parts(a: Approximation) -> dict[str, Any]:
        costs = {"method": a.method, "entries_evaluated": a.entries_evaluated}
        return {"gram": a.gram, **to_parts(a), **costs}

    return TypeSpec(kind.__name__, kind, all_parts, from_parts)


def _in_sample_parts(a: InSample) -> dict[str, Any]:
    parts = {"F": a._factor.all(), "signs": a.weights}
    return parts | {"shift": a.shift, "corrupted": a.corrupted}


def _check(spec: TypeSpec, fits: Any) -> TypeSpec:
    """Return the form with a check of what was put together."""

    def from_parts(parts: dict[str, Any]) -> Any:
        value = spec.from_parts(parts)
        _require(fits(value))
        return value

    return replace(spec, from_parts=from_parts)


def _require(fits: object) -> None:
    if not fits:
        raise ValueError("the parts do not fit together")


def _is_map(feature_map: FeatureMap) -> bool:
    N = feature_map.projection
    return N is None or (len(N.shape) == 2 and N.shape[0] == len(feature_map.landmarks))


# Rows, sparse matrices, generators


def _sparse(kind: Any, parts: tuple[str, ...]) -> TypeSpec:
    """Return the form of a sparse matrix, which is made of such parts and its shape."""

    def from_parts(found: dict[str, Any]) -> Any:
        matrix = kind(tuple(found[name] for name in parts), shape=found["shape"])
        if kind is not coo_array:
            matrix.check_format(full_check=True)
        return matrix

    names = (*parts, "shape")
    return TypeSpec(kind.__name__, kind, lambda m: {k: getattr(m, k) for k in names}, from_parts)


def _generator(parts: dict[str, Any]) -> np.random.Generator:
    known = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
    name = parts["state"]["bit_generator"]
    _require(name in known)
    generator = np.random.Generator(getattr(np.random, name)())
    generator.bit_generator.state = parts["state"]
    return generator


def _random_state(parts: dict[str, Any]) -> np.random.RandomState:
    state = np.random.RandomState()
    state.set_state(parts["state"])
    return state


def _encode_rows(rows: EncodedRows) -> dict[str, Any]:
    """Return rows and their codes; a table is encoded where it is in a store."""
    own = isinstance(rows.encoder, PiecewiseCodes)
    return {"rows": rows.rows, "encoder": rows.encoder} if own else _stored_elsewhere(rows)


def _stored_elsewhere(rows: Any) -> dict[str, Any]:
    raise TypeError(
        f"The {rows.n} training rows lie in a store of their own: save the model without "
        "with_rows, and keep the store beside it."
    )


def _forget(rows: Any) -> dict[str, Any]:
    return {"n": rows.n, "n_features": rows.n_features}


def _rows(kind: Any) -> TypeSpec:
    """Return the form of rows in an array; those of a memory map are read into one."""
    spec = TypeSpec(
        "ArrayRows", kind, lambda rows: {"data": rows.data}, lambda p: ArrayRows(p["data"])
    )
    return _check(spec, lambda rows: rows.data.ndim == 2)


def _find_exported(module: Any, kind: type) -> list[Any]:
    """Return the classes of that kind that a module exports, ready to be made."""
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, kind)]


SAVED_KERNELS = [
    kernel for kernel in _find_exported(kernels, kernels.Kernel) if is_dataclass(kernel)
] + [Waves, Clustered]

TYPES: tuple[TypeSpec, ...] = (
    # kernels: the user's own function is named in an error, and never made
    *(dataclass_spec(kernel) for kernel in SAVED_KERNELS if kernel is not kernels.CallableKernel),
    _check(dataclass_spec(kernels.CallableKernel), lambda _: False),
    # approximations
    _check(dataclass_spec(Landmarks), lambda Z: Z.points is None or Z.points.ndim == 2),
    dataclass_spec(BlockDiagonal),
    _check(dataclass_spec(Mixture), lambda m: m.weights.shape == (len(m.learners),)),
    _check(dataclass_spec(FeatureMap), _is_map),
    _gram(KernelGram),
    _gram(PrecomputedGram),
    _approximation(Approximation, lambda a: {"mixture": Mixture(a.learners, a.weights)}),
    _approximation(InSample, _in_sample_parts),
    # rows
    dataclass_spec(DroppedRows),
    TypeSpec("StoredRows", StoredRows, _stored_elsewhere, lambda parts: parts),
    TypeSpec("DaskRows", DaskRows, _stored_elsewhere, lambda parts: parts),
    _rows(ArrayRows),
    TypeSpec("EncodedRows", EncodedRows, _encode_rows, lambda parts: EncodedRows(**parts)),
    *(_sparse(kind, ("data", "indices", "indptr")) for kind in (csr_matrix, csr_array)),
    _sparse(coo_array, ("data", "coords")),
    # parameters
    dataclass_spec(Settings),
    dataclass_spec(Budget),
    TypeSpec(
        "Generator", np.random.Generator, lambda g: {"state": g.bit_generator.state}, _generator
    ),
    TypeSpec(
        "RandomState", np.random.RandomState, lambda r: {"state": r.get_state()}, _random_state
    ),
    # parts of learners
    *map(dataclass_spec, (Quantiles, kernels.Metric, Moments, LinearPredictor, LinearModel)),
    *map(dataclass_spec, (Tree, Leaves, Member, PiecewiseCodes)),
    *map(dataclass_spec, (Column, Schema, Codes)),
    # transformers and learners
    *map(estimator_spec, _find_exported(estimators, BaseEstimator)),
    *map(estimator_spec, _find_exported(learn, BaseEstimator)),
)
"""Every type that a model file may hold, with all that `kernels`, `estimators`, `learn` export."""

WITHOUT_ROWS: tuple[TypeSpec, ...] = (
    *TYPES,
    *(
        TypeSpec("DroppedRows", kind, _forget, lambda parts: parts)
        for kind in (ArrayRows, StoredRows, DaskRows, EncodedRows)
    ),
)
"""The same, but of training rows only their number is kept."""
