"""An ONNX graph, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.user_error import need

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of the operators, which ONNX Runtime 1.14 and newer have."""

LARGEST = 2**31 - 2**20
"""Bytes of a file of protocol buffers."""


class Graph:
    """Nodes as they are made: call it with an operator and its inputs, names or arrays."""

    def __init__(self) -> None:
        self._onnx: Any = need("onnx", "onnx")
        self._nodes: list[Any] = []
        self._arrays: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def __call__(self, operator: str, *inputs: str | NDArray[Any], **how: Any) -> str:
        """Add a node, and return the name of its result."""
        names = [part if isinstance(part, str) else self._constant(part) for part in inputs]
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, names, [result], **how))
        return result

    def input(self, name: str, width: int, kind: str = "DOUBLE") -> str:
        """Add an input of shape (n, width)."""
        self._inputs.append(self._tensor(name, kind, ["n", width]))
        return name

    def cast(self, name: str) -> str:
        """Return truth values as 0 and 1."""
        return self("Cast", name, to=self._onnx.TensorProto.DOUBLE)

    def column(self, X: str, j: int) -> str:
        """Return a column, shape (n, 1)."""
        return self("Gather", X, np.array([j]), axis=1)

    def _tensor(self, name: str, kind: str, shape: Any) -> Any:
        kinds = self._onnx.TensorProto
        return self._onnx.helper.make_tensor_value_info(name, getattr(kinds, kind), shape)

    def _constant(self, values: NDArray[Any]) -> str:
        name, dtype = f"constant_{len(self._arrays)}", {"f": np.float64, "i": np.int64}
        values = np.ascontiguousarray(values, dtype=dtype.get(values.dtype.kind))
        self._arrays.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def output(self, name: str, result: str, kind: str = "DOUBLE", *, flat: bool = False) -> None:
        """Give a result, of shape (n,) or (n, m), its name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [result], [name]))
        self._outputs.append(self._tensor(name, kind, ["n"] if flat else ["n", "m"]))

    def model(self) -> Any:
        """Return all of it, checked."""
        if sum(len(array.raw_data) for array in self._arrays) > LARGEST:
            msg = "This model has more than 2 GB, too much for ONNX: fit one without leaves."
            raise ValueError(msg)
        helper, parts = self._onnx.helper, (self._inputs, self._outputs, self._arrays)
        graph = helper.make_graph(self._nodes, "nysboost", *parts)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, producer_name=SOFTWARE, ir_version=8)
        self._onnx.checker.check_model(made)
        return made
