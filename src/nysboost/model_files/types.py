"""The types that a model file may contain, checked when it is read."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from types import ModuleType

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import BaseEstimator

from nysboost import estimators, kernels, learn
from nysboost._approximate import FrameEncoder
from nysboost.approximation import Approximation
from nysboost.features.feature_map import BlockDiagonal, EncodedMap, FeatureMap, Mixture
from nysboost.features.linear import LinearModel, LinearPredictor, Moments
from nysboost.gram import EntryCounter, Gram, KernelGram, Landmarks, PrecomputedGram
from nysboost.kernels.metric import Quantiles
from nysboost.learn.calibration import Calibration
from nysboost.learn.distribution import Distribution, ResidualShape, VarianceScale
from nysboost.learn.search.leaves import Leaves
from nysboost.learn.search.model import Member
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.methods.in_sample import InSample
from nysboost.model_files import consistency
from nysboost.model_files.description import (
    AttributesType,
    Contents,
    EstimatorType,
    Parts,
    Saved,
    SavedType,
    dataclass_type,
    require,
)
from nysboost.numerics.checks import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.dask_rows import DaskRows
from nysboost.rows.rows import ArrayRows, DroppedRows, EncodedRows, Rows
from nysboost.rows.stored_rows import StoredRows
from nysboost.settings import Settings
from nysboost.tables.codes import Codes, PiecewiseCodes
from nysboost.tables.columns import Column
from nysboost.tables.schema import Schema

# Approximations


@dataclass(frozen=True)
class GramType(SavedType):
    """A Gram: its rows, budget, cost and dtype, and the kernel if there are points."""

    kind: type[Gram]

    def to_parts(self, value: Gram) -> Contents:
        """Return the parts of a Gram."""
        parts = {
            "rows": value.rows,
            "budget": value.budget,
            "entries_evaluated": value.entries_evaluated,
            "dtype": value.dtype.name,
        }
        if issubclass(self.kind, KernelGram):
            parts["kernel"] = value.kernel
        return parts

    def from_parts(self, parts: Parts) -> Gram:
        """Return the Gram, without checking its rows, which may be missing."""
        gram = self.kind.__new__(self.kind)
        gram.rows = parts["rows"]
        gram.n = gram.rows.n

        # set what passes over rows need
        gram.dtype = np.dtype(parts["dtype"])
        gram.budget = parts["budget"]
        gram.counter = EntryCounter(int(parts["entries_evaluated"]))

        # a kernel of points, or the columns of a matrix
        if issubclass(self.kind, KernelGram):
            gram.kernel = parts["kernel"]
        else:
            gram.kernel = kernels.Columns(gram.n)
        consistency.check_gram(gram)
        return gram


@dataclass(frozen=True)
class ApproximationType(SavedType):
    """An approximation: its Gram, its mixture, its method, its cost and the encoder of tables."""

    kind: type[Approximation] = Approximation

    def arguments(self, value: Saved) -> Contents:
        """Return the arguments of the constructor except the Gram."""
        return {"mixture": Mixture(value.learners, value.weights)}

    def to_parts(self, value: Saved) -> Contents:
        """Return the parts of an approximation."""
        return {
            "gram": value.gram,
            **self.arguments(value),
            "method": value.method,
            "entries_evaluated": value.entries_evaluated,
            "encoder": value.encoder,
        }

    def from_parts(self, parts: Parts) -> Approximation:
        """Return the approximation, with its name and cost."""
        method = str(parts.pop("method"))
        entries = int(parts.pop("entries_evaluated"))
        encoder = parts.pop("encoder")
        require(isinstance(encoder, FrameEncoder | None), "an approximation and its encoder")

        # the remaining parts are arguments of the constructor
        made = self.kind(**parts).with_name(method)
        approximation = made.with_encoder(encoder)
        approximation.entries_evaluated = entries
        return approximation


@dataclass(frozen=True)
class InSampleType(ApproximationType):
    """An approximation on the rows of the data only: F, the signs S, δ and corrupted entries."""

    kind: type[Approximation] = InSample

    def arguments(self, value: Saved) -> Contents:
        """Return F, S, δ and the corrupted entries."""
        return {
            "F": value._factor.all(),
            "signs": value.weights,
            "shift": value.shift,
            "corrupted": value.corrupted,
        }

    def from_parts(self, parts: Parts) -> Approximation:
        """Return the approximation, if its features have a row for each row of the Gram."""
        n, r = consistency.shape_of(parts["F"], 2)
        require(n == parts["gram"].n, "features and rows")
        consistency.require_shape(parts["signs"], (r,), "features and signs")
        return super().from_parts(parts)


# Rows and sparse matrices


@dataclass(frozen=True)
class SparseType(SavedType):
    """A sparse matrix, stored as some arrays and its shape."""

    kind: type
    names: tuple[str, ...]

    def to_parts(self, value: Saved) -> Contents:
        """Return the arrays and the shape."""
        arrays = {name: getattr(value, name) for name in self.names}
        return {**arrays, "shape": value.shape}

    def from_parts(self, parts: Parts) -> object:
        """Return the matrix, if all indices are in range."""
        arrays = tuple(parts[name] for name in self.names)
        matrix = self.kind(arrays, shape=parts["shape"])

        # the constructor of COO checks indices, that of CSR does not
        if self.kind is not coo_array:
            matrix.check_format(full_check=True)
        return matrix


@dataclass(frozen=True)
class StoredType(SavedType):
    """Rows in a store or on a cluster, which cannot be saved."""

    kind: type

    def to_parts(self, value: Saved) -> Contents:
        """Raise a TypeError that says what to do."""
        raise TypeError(
            f"The {value.n} training rows are in a separate store: save the model without "
            "with_rows, and keep the store."
        )

    def from_parts(self, parts: Parts) -> object:
        """Raise, because a file never contains such an object."""
        raise ValueError(f"rows in a store, of {len(parts)} parts")


class EncodedRowsType(StoredType):
    """Rows with piecewise-linear codes; other encoded rows are in a store."""

    def to_parts(self, value: Saved) -> Contents:
        """Return rows and codes."""
        if isinstance(value.encoder, PiecewiseCodes):
            return {"rows": value.rows, "encoder": value.encoder}
        return super().to_parts(value)

    def from_parts(self, parts: Parts) -> EncodedRows:
        """Return the encoded rows."""
        rows = EncodedRows(**parts)
        require(isinstance(rows.rows, Rows), "codes and rows")
        require(isinstance(rows.encoder, PiecewiseCodes), "rows and codes")
        return rows


@dataclass(frozen=True)
class WithoutRowsType(SavedType):
    """Rows of any kind, of which only the number is saved."""

    kind: type

    @property
    def name(self) -> str:
        """The name of the placeholder."""
        return DroppedRows.__name__

    def to_parts(self, value: Saved) -> Contents:
        """Return the numbers of rows and columns."""
        return {"n": value.n, "n_features": value.n_features}

    def from_parts(self, parts: Parts) -> DroppedRows:
        """Return the placeholder."""
        return DroppedRows(**parts)


# Random numbers


class GeneratorType(SavedType):
    """A generator of NumPy."""

    kind = np.random.Generator

    def to_parts(self, value: np.random.Generator) -> Contents:
        """Return the state."""
        return {"state": value.bit_generator.state}

    def from_parts(self, parts: Parts) -> np.random.Generator:
        """Return a generator with this state."""
        name = parts["state"]["bit_generator"]
        if name not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
            raise ValueError("no generator of NumPy")

        bit_generator = getattr(np.random, name)()
        bit_generator.state = parts["state"]
        return np.random.Generator(bit_generator)


class RandomStateType(SavedType):
    """A random state of NumPy."""

    kind = np.random.RandomState

    def to_parts(self, value: np.random.RandomState) -> Contents:
        """Return the state."""
        return {"state": value.get_state()}

    def from_parts(self, parts: Parts) -> np.random.RandomState:
        """Return a random state in this state."""
        random_state = np.random.RandomState()
        random_state.set_state(parts["state"])
        return random_state


# All types


def _find_exported(module: ModuleType, kind: type) -> list[type[Saved]]:
    """Return the classes of this kind that a module exports."""
    exported = [one for one in vars(module).values() if isinstance(one, type)]
    return [one for one in exported if issubclass(one, kind)]


SAVED_KERNELS = [
    kernel
    for kernel in [*_find_exported(kernels, kernels.Kernel), Waves, Clustered]
    if is_dataclass(kernel) and kernel not in (kernels.CallableKernel, Clustered)
]

TYPES: tuple[SavedType, ...] = (
    # kernels: the user's own function is named in an error, and never made
    *[dataclass_type(kernel) for kernel in SAVED_KERNELS],
    dataclass_type(Clustered, consistency.check_clusters),
    dataclass_type(kernels.CallableKernel, consistency.refuse_function),
    dataclass_type(kernels.Metric),
    dataclass_type(Quantiles, consistency.check_quantiles),
    # approximations
    dataclass_type(Landmarks, consistency.check_landmarks),
    dataclass_type(BlockDiagonal, consistency.check_blocks),
    dataclass_type(FeatureMap, consistency.check_map),
    dataclass_type(EncodedMap, consistency.check_map),
    dataclass_type(Mixture, consistency.check_mixture),
    dataclass_type(FrameEncoder),
    GramType(KernelGram),
    GramType(PrecomputedGram),
    ApproximationType(),
    InSampleType(),
    # rows: those of a memory map are read into an array
    AttributesType(ArrayRows, ("data",), consistency.check_rows),
    AttributesType(DroppedRows, ("n", "n_features")),
    StoredType(StoredRows),
    StoredType(DaskRows),
    EncodedRowsType(EncodedRows),
    SparseType(csr_matrix, ("data", "indices", "indptr")),
    SparseType(csr_array, ("data", "indices", "indptr")),
    SparseType(coo_array, ("data", "coords")),
    # random numbers
    GeneratorType(),
    RandomStateType(),
    # parameters
    dataclass_type(Settings),
    dataclass_type(Budget),
    # parts of learners
    dataclass_type(Moments),
    dataclass_type(LinearPredictor, consistency.check_predictor),
    dataclass_type(LinearModel, consistency.check_linear),
    dataclass_type(Tree, consistency.check_tree),
    dataclass_type(Leaves, consistency.check_leaves),
    dataclass_type(PiecewiseCodes, consistency.check_piecewise),
    dataclass_type(Member, consistency.check_member),
    dataclass_type(Column, consistency.check_column),
    dataclass_type(Schema, consistency.check_schema),
    dataclass_type(Codes, consistency.check_codes),
    dataclass_type(Calibration),
    dataclass_type(VarianceScale, consistency.check_variance_scale),
    dataclass_type(ResidualShape, consistency.check_shape),
    dataclass_type(Distribution, consistency.check_distribution),
    # transformers and learners
    *[
        EstimatorType(kind, consistency.check_learned)
        for module in (estimators, learn)
        for kind in _find_exported(module, BaseEstimator)
    ],
)
"""Every type that a model file may contain, including all exports of `kernels`, `estimators` and
`learn`."""

ROWS = ArrayRows, StoredRows, DaskRows, EncodedRows

WITHOUT_ROWS: tuple[SavedType, ...] = (*TYPES, *[WithoutRowsType(kind) for kind in ROWS])
"""The same types, but only the number of training rows is saved."""
