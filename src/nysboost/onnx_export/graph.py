"""An ONNX graph to which arithmetic and NumPy's functions add nodes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike

from nysboost._version import SOFTWARE
from nysboost.tables.dates import ZONED
from nysboost.user_error import import_optional

if TYPE_CHECKING:
    import onnx

OPSETS = {"": 18, "ai.onnx.ml": 3}  # versions of operators that ONNX Runtime 1.14 and newer have
LARGEST = 2**31 - 2**20  # bytes of a file of protocol buffers

OPERATORS: dict[np.ufunc, str] = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.power: "Pow",
    np.matmul: "MatMul", np.absolute: "Abs", np.exp: "Exp", np.log: "Log", np.sqrt: "Sqrt",
    np.maximum: "Max", np.minimum: "Min", np.isnan: "IsNaN", np.greater: "Greater",
    np.invert: "Not", np.bitwise_and: "And", np.floor: "Floor", np.sin: "Sin",
    np.rint: "Round",
}  # fmt: skip

INPUTS = {
    "number": "a number; NaN where it is missing",
    "boolean": "1 or 0; NaN where it is missing",
    "date": "seconds since 1970-01-01 00:00, without a time zone; NaN where it is missing",
    ZONED: "seconds since 1970-01-01 00:00 UTC; NaN where it is missing",
    "duration": "seconds; NaN where it is missing",
    "category": "text; empty where it is missing",
}
"""The description of a column's input, by its kind."""

OUTPUTS = ("prediction", "label", "probabilities", "features")

ELEMENTS = {"f": "DOUBLE", "i": "INT64", "u": "INT64", "b": "INT64"}
"""ONNX element types by the kind of NumPy dtype; everything else is text."""

WIDEST = {"f": np.float64, "i": np.int64}
"""Dtypes of constants by the kind of NumPy dtype."""


class Tensor(NDArrayOperatorsMixin):
    """A value in a graph; NumPy's functions of it (`OPERATORS`) are nodes."""

    def __init__(self, graph: Graph, name: str, elements: str = "DOUBLE") -> None:
        self.graph = graph
        self.name = name
        self.elements = elements

    def __array_ufunc__(self, ufunc: np.ufunc, _method: str, *inputs: Operand) -> Tensor:
        return self.graph(OPERATORS[ufunc], *inputs)

    def column(self, j: int) -> Tensor:
        """Return a column, shape (n, 1)."""
        return self.columns([j])

    def columns(self, positions: ArrayLike) -> Tensor:
        """Return some columns, shape (n, len(positions))."""
        return self.graph("Gather", self, positions, axis=1)


Operand: TypeAlias = Tensor | ArrayLike
"""An input of a node: a value of the graph, or a constant."""


class Graph:
    """An ONNX graph: call it with an operator and its inputs, tensors or arrays.

    Inputs have the names of columns. All internal names begin with `prefix`, which no column name
    does. If a name is empty or equals an output, the input is named after its position.
    """

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self._onnx = import_optional("onnx")
        self._nodes: list[onnx.NodeProto] = []
        self._arrays: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._columns = list(columns)

        # choose a prefix that no column has
        self.prefix = "nysboost/"
        while any(name.startswith(self.prefix) for name in self._columns):
            self.prefix += "/"

    def __call__(self, operator: str, *inputs: Operand, **how: object) -> Tensor:
        """Add a node, and return its result."""
        names = [self._name(part) for part in inputs]
        result = f"{self.prefix}{operator}_{len(self._nodes)}"
        self._add_node(operator, names, result, **how)
        return Tensor(self, result)

    def _name(self, part: Operand) -> str:
        if isinstance(part, Tensor):
            return part.name
        return self._constant(part)

    def _add_node(self, operator: str, names: Sequence[str], result: str, **how: object) -> None:
        # runtimes that merge nodes name the new one after the first of them
        own_name = f"{operator}_{len(self._nodes)}"
        make_node = self._onnx.helper.make_node
        node = make_node(operator, names, [result], own_name, **how)
        self._nodes.append(node)

    def input(self, name: str, width: int, kind: str = "number") -> Tensor:
        """Add an input of shape (n, width) for numbers or a column of another kind."""
        elements = "DOUBLE"
        if kind == "category":
            elements = "STRING"
        described = self._describe(name, elements, ["n", width], INPUTS[kind])
        self._inputs.append(described)
        return Tensor(self, name, elements)

    def column_input(self, j: int, kind: str) -> Tensor:
        """Add an input for the column j of a data frame, called column_j if names are no text."""
        if not self._columns:
            return self.input(f"column_{j}", 1, kind)

        name = self._columns[j]
        if name not in ("", *OUTPUTS):
            return self.input(name, 1, kind)

        # choose a name that no column has
        given = f"column_{j}"
        while given in self._columns:
            given += "_"

        warnings.warn(
            f"Column {j} is called {name!r}, which cannot be the name of an input in ONNX: its "
            f"input is called {given!r}.",
            stacklevel=4,
        )
        return self.input(given, 1, kind)

    def choose(self, values: ArrayLike, positions: Tensor) -> Tensor:
        """Return the constant values, numbers or text, at some positions."""
        array = np.asarray(values)
        elements = ELEMENTS.get(array.dtype.kind, "STRING")

        # convert to the types that ONNX has here
        if elements == "STRING":
            texts = [str(value) for value in array]
            array = np.array(texts, dtype=object)
        largest = np.iinfo(np.int64).max
        if array.dtype.kind == "u" and array.max() > largest:
            elements = "UINT64"
        elif elements == "INT64":
            array = array.astype(np.int64)

        found = self("Gather", array, positions)
        found.elements = elements
        return found

    def output(self, name: str, found: Tensor, *, flat: bool = False) -> None:
        """Declare a result, shape (n,) or (n, m), as an output with this name."""
        shape = ["n", "m"]
        if flat:
            shape = ["n"]
        self._add_node("Identity", [found.name], name)
        described = self._describe(name, found.elements, shape)
        self._outputs.append(described)

    def _describe(
        self,
        name: str,
        elements: str,
        shape: Sequence[str | int],
        said: str = "",
    ) -> onnx.ValueInfoProto:
        kind = getattr(self._onnx.TensorProto, elements)
        describe = self._onnx.helper.make_tensor_value_info
        return describe(name, kind, shape, doc_string=said)

    def _constant(self, values: ArrayLike) -> str:
        """Add an array, in the widest type of its kind, and return its name."""
        name = f"{self.prefix}constant_{len(self._arrays)}"
        array = np.asarray(values)
        dtype = WIDEST.get(array.dtype.kind, array.dtype)
        array = np.ascontiguousarray(array, dtype)

        stored = self._onnx.numpy_helper.from_array(array, name)
        self._arrays.append(stored)
        return name

    def model(self) -> onnx.ModelProto:
        """Return the complete model, checked."""
        n_bytes = sum(len(array.raw_data) for array in self._arrays)
        if n_bytes > LARGEST:
            msg = "This model has more than 2 GB, too much for ONNX: fit one without leaves."
            raise ValueError(msg)

        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            "nysboost",
            self._inputs,
            self._outputs,
            self._arrays,
        )

        # name the versions of the operators
        versions = [helper.make_opsetid(*opset) for opset in OPSETS.items()]
        model = helper.make_model(
            graph,
            opset_imports=versions,
            producer_name=SOFTWARE,
            ir_version=8,
        )
        self._onnx.checker.check_model(model)
        return model


def join(columns: Sequence[Tensor]) -> Tensor:
    """Concatenate tables side by side."""
    return columns[0].graph("Concat", *columns, axis=1)
