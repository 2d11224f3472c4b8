"""The types that a model file may hold: exported ones and those in `TYPES`, checked when read."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import BaseEstimator

from nysboost import estimators, kernels, learn
from nysboost._approximate import FrameEncoder
from nysboost.approximation import Approximation
from nysboost.features.feature_map import EncodedMap, FeatureMap
from nysboost.features.linear import LinearModel, LinearPredictor
from nysboost.features.moments import Moments
from nysboost.features.nystrom import Mixture
from nysboost.features.projection import BlockDiagonal
from nysboost.gram import EntryCounter, Gram, KernelGram, Landmarks, PrecomputedGram
from nysboost.kernels.warp import Quantiles
from nysboost.learn.calibration import Calibration
from nysboost.learn.intervals import IntervalScale
from nysboost.learn.search.leaves import Leaves
from nysboost.learn.search.model import Member
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.methods.in_sample import InSample
from nysboost.model_files.description import (
    TypeSpec,
    attributes_spec,
    dataclass_spec,
    estimator_spec,
)
from nysboost.numerics.budget import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.dask_rows import DaskRows
from nysboost.rows.stored_rows import StoredRows
from nysboost.rows.views import DroppedRows, EncodedRows
from nysboost.settings import Settings
from nysboost.tables.codes import Codes
from nysboost.tables.columns import Column
from nysboost.tables.piecewise import PiecewiseCodes
from nysboost.tables.schema import Schema

# Approximations


def _gram(kind: type[Gram], *own: str) -> TypeSpec:
    names = ("rows", "budget", "entries_evaluated", *own)

    def from_parts(parts: dict[str, Any]) -> Gram:
        gram = kind.__new__(kind)  # rows that are gone cannot be looked at
        gram.rows, gram.n = parts["rows"], parts["rows"].n
        gram.dtype, gram.budget = np.dtype(parts["dtype"]), parts["budget"]
        gram.counter = EntryCounter(int(parts["entries_evaluated"]))
        gram.kernel = parts["kernel"] if "kernel" in own else kernels.Columns(gram.n)
        return gram

    def fits(gram: Any) -> bool:
        known = isinstance(gram.budget, Budget) and gram.dtype in (np.float32, np.float64)
        return known and isinstance(gram.kernel, kernels.Kernel)

    def to_parts(gram: Gram) -> dict[str, Any]:
        return {name: getattr(gram, name) for name in names} | {"dtype": gram.dtype.name}

    return TypeSpec(kind.__name__, kind, to_parts, from_parts, fits)


def _approximation(kind: type[Approximation], arguments: Any) -> TypeSpec:
    """Return the spec of an approximation: arguments of its class, its method and its cost."""

    def to_parts(a: Approximation) -> dict[str, Any]:
        costs = {"method": a.method, "entries_evaluated": a.entries_evaluated}
        return {"gram": a.gram, **arguments(a), **costs, "encoder": a.encoder}

    def from_parts(parts: dict[str, Any]) -> Approximation:
        method, entries = str(parts.pop("method")), int(parts.pop("entries_evaluated"))
        encoder = parts.pop("encoder")
        approximation = kind(**parts).with_name(method).with_encoder(encoder)
        approximation.entries_evaluated = entries
        return approximation

    return TypeSpec(kind.__name__, kind, to_parts, from_parts)


def _in_sample_arguments(a: InSample) -> dict[str, Any]:
    signs = {"F": a._factor.all(), "signs": a.weights}
    return signs | {"shift": a.shift, "corrupted": a.corrupted}


def _is_map(feature_map: FeatureMap) -> bool:
    N = feature_map.projection
    fits = N is None or (len(N.shape) == 2 and N.shape[0] == len(feature_map.landmarks))
    return fits and isinstance(feature_map.kernel, kernels.Kernel)


# Rows, sparse matrices, generators


def _sparse(kind: Any, *names: str) -> TypeSpec:
    """Return the spec of a sparse matrix, which is made of such arrays and its shape."""

    def from_parts(parts: dict[str, Any]) -> Any:
        matrix = kind(tuple(parts[name] for name in names), shape=parts["shape"])
        if kind is not coo_array:
            matrix.check_format(full_check=True)
        return matrix

    return attributes_spec(kind, (*names, "shape"), from_parts)


def _generator(parts: dict[str, Any]) -> np.random.Generator:
    name = parts["state"]["bit_generator"]
    if name not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        raise ValueError("no generator of NumPy")
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
    return {"rows": rows.rows, "encoder": rows.encoder} if own else _refuse_stored(rows)


def _refuse_stored(rows: Any) -> dict[str, Any]:
    raise TypeError(
        f"The {rows.n} training rows lie in a store of their own: save the model without "
        "with_rows, and keep the store beside it."
    )


def _find_exported(module: Any, kind: type) -> list[Any]:
    """Return the classes of that kind that a module exports, ready to be made."""
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, kind)]


SAVED_KERNELS = [
    kernel
    for kernel in [*_find_exported(kernels, kernels.Kernel), Waves, Clustered]
    if is_dataclass(kernel) and kernel is not kernels.CallableKernel
]

TYPES: tuple[TypeSpec, ...] = (
    # kernels: the user's own function is named in an error, and never made
    *map(dataclass_spec, SAVED_KERNELS),
    dataclass_spec(kernels.CallableKernel, fits=lambda _: False),
    # approximations
    dataclass_spec(Landmarks, fits=lambda Z: Z.points is None or Z.points.ndim == 2),
    dataclass_spec(Mixture, fits=lambda m: m.weights.shape == (len(m.learners),)),
    dataclass_spec(FeatureMap, fits=_is_map),
    dataclass_spec(EncodedMap, fits=_is_map),
    dataclass_spec(FrameEncoder),
    _gram(KernelGram, "kernel"),
    _gram(PrecomputedGram),
    _approximation(Approximation, lambda a: {"mixture": Mixture(a.learners, a.weights)}),
    _approximation(InSample, _in_sample_arguments),
    # rows: those of a memory map are read into an array
    attributes_spec(ArrayRows, ("data",), fits=lambda rows: rows.data.ndim == 2),
    TypeSpec("StoredRows", StoredRows, _refuse_stored, dict),
    TypeSpec("DaskRows", DaskRows, _refuse_stored, dict),
    TypeSpec("EncodedRows", EncodedRows, _encode_rows, lambda parts: EncodedRows(**parts)),
    *(_sparse(kind, "data", "indices", "indptr") for kind in (csr_matrix, csr_array)),
    _sparse(coo_array, "data", "coords"),
    # random numbers
    TypeSpec(
        "Generator", np.random.Generator, lambda g: {"state": g.bit_generator.state}, _generator
    ),
    TypeSpec(
        "RandomState", np.random.RandomState, lambda r: {"state": r.get_state()}, _random_state
    ),
    # parameters, and parts of approximations and learners
    *map(dataclass_spec, (Settings, Budget, BlockDiagonal, Quantiles, Moments)),
    attributes_spec(DroppedRows, ("n", "n_features")),
    *map(dataclass_spec, (kernels.Metric, LinearPredictor, LinearModel, Tree, Leaves, Member)),
    *map(dataclass_spec, (PiecewiseCodes, Column, Schema, Codes, Calibration, IntervalScale)),
    # transformers and learners
    *map(estimator_spec, _find_exported(estimators, BaseEstimator)),
    *map(estimator_spec, _find_exported(learn, BaseEstimator)),
)
"""Every type that a model file may hold, with all that `kernels`, `estimators`, `learn` export."""

WITHOUT_ROWS: tuple[TypeSpec, ...] = (
    *TYPES,
    *(
        replace(attributes_spec(kind, ("n", "n_features")), name="DroppedRows")
        for kind in (ArrayRows, StoredRows, DaskRows, EncodedRows)
    ),
)
"""The same, but of training rows only their number is kept."""
