"""Models as ONNX files, which other programs and languages run without NysBoost.

Everything is in float64. An array is one input ``X`` of shape (n, d); a data frame is an input of
shape (n, 1) for each of its columns, named after it: numbers, truth values as 0 and 1, dates in
seconds since 1970 (UTC), durations in seconds, and text for categories. A gap is NaN, or an empty
text. The description of each input in the file says which of these it takes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from sklearn.utils.validation import check_is_fitted

from nysboost._version import SOFTWARE
from nysboost.estimators import KernelPCA
from nysboost.estimators.base import BaseNystroem
from nysboost.features.feature_map import FeatureMap
from nysboost.kernels import Gaussian, Laplacian, Linear, Matern, Metric, Polynomial
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.calibration import FLOOR
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.numerics.arrays import Floats, dense, floats_on_host
from nysboost.rows.files import as_path, atomic_file
from nysboost.tables.categories import GAP, UNKNOWN, find_positions
from nysboost.tables.columns import Column
from nysboost.tables.cycles import CYCLES, DIGITS, Cycle
from nysboost.user_error import import_optional

OPSETS = {"": 18, "ai.onnx.ml": 3}  # versions of operators that ONNX Runtime 1.14 and newer have
LARGEST = 2**31 - 2**20  # bytes of a file of protocol buffers
OPERATORS: dict[np.ufunc, str] = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.power: "Pow",
    np.matmul: "MatMul", np.absolute: "Abs", np.exp: "Exp", np.log: "Log", np.sqrt: "Sqrt",
    np.maximum: "Max", np.isnan: "IsNaN", np.greater: "Greater", np.invert: "Not",
    np.bitwise_and: "And", np.floor: "Floor", np.sin: "Sin", np.cos: "Cos",
    np.rint: "Round",
}  # fmt: skip

INPUTS = {
    "number": "a number; NaN where it is missing",
    "boolean": "1 or 0; NaN where it is missing",
    "date": "seconds since 1970-01-01 00:00 UTC; NaN where it is missing",
    "duration": "seconds; NaN where it is missing",
    "category": "text; empty where it is missing",
}
"""What the input of a column takes, by its kind."""

OUTPUTS = ("prediction", "label", "probabilities", "features")


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted transformer or learner as an ONNX file.

    A regressor has the output ``prediction``, a classifier ``label`` and ``probabilities``, a
    transformer ``features``.

    .. versionadded:: 0.3

    Parameters
    ----------
    model : transformer, KernelPCA, NystroemRegressor or NystroemClassifier
        With a Gaussian, Laplacian, Matérn, polynomial or linear kernel.
    path : str or path
        Where it goes. It needs the package onnx: ``pip install 'nysboost[onnx]'``.

    See Also
    --------
    save : writes a file that NysBoost reads.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, onnxruntime, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = nb.Nystroem(n_components=10, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.to_onnx(model, pathlib.Path(folder) / "model.onnx")
    ...     session = onnxruntime.InferenceSession(pathlib.Path(folder) / "model.onnx")
    >>> bool(np.allclose(session.run(None, {"X": X})[0], model.transform(X)))
    True
    """
    check_is_fitted(model)
    g = Graph([str(name) for name in getattr(model, "feature_names_in_", ())])
    if isinstance(model, BaseNystroem):
        g.output("features", _transform(g, model))
    elif isinstance(model, KernelPCA):
        F = _transform(g, model.features_)
        g.output("features", (F - model.mean_) @ model.components_.T)
    elif isinstance(model, NystroemRegressor):
        mean = _predict(model._members, _read_rows(g, model)) * model._unit + model._centre
        g.output("prediction", g("Reshape", mean, [-1]) if model._flat else mean, flat=model._flat)
    elif isinstance(model, NystroemClassifier):
        _classify(g, model)
    else:
        msg = f"to_onnx takes transformers, KernelPCA and learners, not {type(model).__name__}."
        raise TypeError(msg)
    with atomic_file(as_path(path), "The model") as file:
        file.write(g.model().SerializeToString())


class Tensor(NDArrayOperatorsMixin):
    """A value in a graph, to which arithmetic and NumPy's functions (`OPERATORS`) add nodes."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_ufunc__(self, ufunc: np.ufunc, _method: str, *inputs: Any) -> Tensor:
        return self.graph(OPERATORS[ufunc], *inputs)

    def column(self, j: int) -> Tensor:
        """Return a column, shape (n, 1)."""
        return self.graph("Gather", self, [j], axis=1)


class Graph:
    """A graph of ONNX: call it with an operator and its inputs, tensors or arrays.

    Names of inputs are those of columns. All other names inside begin with `prefix`, as no column
    does, and an input whose name is empty or that of an output is named after its position.
    """

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self._onnx: Any = import_optional("onnx")
        self._nodes: list[Any] = []
        self._arrays: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._columns = list(columns)
        self.prefix = "nysboost/"
        while any(name.startswith(self.prefix) for name in self._columns):
            self.prefix += "/"

    def __call__(self, operator: str, *inputs: Any, **how: Any) -> Tensor:
        """Add a node, and return its result."""
        names = [part.name if isinstance(part, Tensor) else self._constant(part) for part in inputs]
        result = f"{self.prefix}{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, names, [result], **how))
        return Tensor(self, result)

    def input(self, name: str, width: int, kind: str = "number") -> Tensor:
        """Add an input of shape (n, width) for numbers or a column of another kind."""
        elements = "STRING" if kind == "category" else "DOUBLE"
        self._inputs.append(self._describe(name, elements, ["n", width], INPUTS[kind]))
        return Tensor(self, name)

    def column_input(self, j: int, kind: str) -> Tensor:
        """Add an input for the column j of a data frame."""
        name = self._columns[j]
        if name in ("", *OUTPUTS):
            given = f"column_{j}"
            while given in self._columns:
                given += "_"
            warnings.warn(
                f"Column {j} is called {name!r}, which ONNX does not take as the name of an input: "
                f"it is the input {given!r}.",
                stacklevel=4,
            )
            name = given
        return self.input(name, 1, kind)

    def output(self, name: str, found: Tensor, kind: str = "DOUBLE", *, flat: bool = False) -> None:
        """Give a result, of shape (n,) or (n, m), its name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [found.name], [name]))
        self._outputs.append(self._describe(name, kind, ["n"] if flat else ["n", "m"]))

    def _describe(self, name: str, kind: str, shape: Any, said: str = "") -> Any:
        elements = getattr(self._onnx.TensorProto, kind)
        return self._onnx.helper.make_tensor_value_info(name, elements, shape, doc_string=said)

    def _constant(self, values: Any) -> str:
        name = f"{self.prefix}constant_{len(self._arrays)}"
        values = np.asarray(values)
        values = np.ascontiguousarray(values, {"f": "f8", "i": "i8"}.get(values.dtype.kind))
        self._arrays.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def model(self) -> Any:
        """Return all of it, checked."""
        if sum(len(array.raw_data) for array in self._arrays) > LARGEST:
            msg = "This model has more than 2 GB, too much for ONNX: fit one without leaves."
            raise ValueError(msg)
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "nysboost", self._inputs, self._outputs, self._arrays
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, producer_name=SOFTWARE, ir_version=8)
        self._onnx.checker.check_model(made)
        return made


def _join(columns: Sequence[Tensor]) -> Tensor:
    """Return tables beside each other."""
    return columns[0].graph("Concat", *columns, axis=1)


# Rows and kernel values


def _read_rows(g: Graph, model: Any) -> Tensor:
    """Return the inputs as numbers, shape (n, width), by the codes of the model's table."""
    codes = getattr(model, "_table", None)
    names = getattr(model, "feature_names_in_", None)
    X = None
    if names is None:
        X = g.input("X", model.n_features_in_)

    if codes is None or not codes.schema.columns:
        if X is None:
            X = _join([g.column_input(j, "number") for j in range(model.n_features_in_)])
        medians = None if codes is None else codes.schema.medians
        return X if medians is None else g("Where", np.isnan(X), medians[None], X)

    parts: list[Tensor] = []
    for j, column in enumerate(codes.schema.columns):
        if not column.used:
            continue
        x = g.column_input(j, column.kind) if X is None else X.column(j)
        if column.kind == "category":
            parts += _encode_category(g, x, column, codes.shown[j], codes.means[j])
        else:
            parts += _encode_number(g, x, column)
    return _join(parts)


def _encode_number(g: Graph, x: Tensor, column: Column) -> list[Tensor]:
    """Return a number with the median for a gap, its indicator, and the cycles of a date."""
    gaps = np.isnan(x)
    parts = [g("Where", gaps, [column.median], x) * [column.scale]]
    if column.gaps:
        parts.append(g("Where", gaps, 1.0, 0.0))
    for name in column.cycles:
        phase = _phase(x, CYCLES[name])
        angle = phase * (2 * np.pi)
        codes = [phase, _round(np.sin(angle)), _round(np.cos(angle))]
        parts += [g("Where", gaps, 0.0, code) for code in codes]
    return parts


def _phase(seconds: Any, cycle: Cycle) -> Any:
    """Return the share of the period of a cycle that has passed."""
    since_start = seconds - cycle.start
    if cycle.step:
        since_start = np.floor(since_start / cycle.step) * cycle.step
    periods = np.floor(since_start / cycle.period)
    return (since_start - periods * cycle.period) / cycle.period


def _round(x: Any) -> Any:
    """Return numbers with as many digits as `tables.cycles` gives them."""
    unit = 10.0**DIGITS
    return np.rint(x * unit) / unit


def _encode_category(
    g: Graph, x: Tensor, column: Column, shown: Sequence[int], means: Floats | None
) -> list[Tensor]:
    """Return one-hot codes, and the means of the targets for a category with many values."""
    # ONNX takes no blanks away: values are known as they were written in fitting, too
    written = [*map(str, column.values), *column.padded]
    positions = [*range(len(column.values)), *find_positions(column.values, column.padded)]
    at = g(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        keys_strings=[*written, ""],
        values_int64s=[*positions, GAP],
        default_int64=UNKNOWN,
    )
    parts = []
    if shown:
        parts.append(g("Where", g("Equal", at, [list(shown)]), 1.0, 0.0))
    if means is not None:  # whose last two rows, −2 and −1, are those of the unknown and of gaps
        parts.append(g("Gather", means, g("Reshape", at, [-1]), axis=0))
    return parts


def _add_codes(X: Tensor, edges: Sequence[Floats]) -> Tensor:
    """Return the columns with their piecewise-linear codes beside them."""
    codes = [
        X.graph("Clip", (X.column(j) - e[None, :-1]) / np.diff(e)[None, :], 0.0, 1.0)
        for j, e in enumerate(edges)
        if len(e) > 2
    ]
    return _join([X, *codes])


def _map_points(features: FeatureMap, X: Tensor) -> tuple[Any, Floats]:
    """Return rows, and the landmarks of a feature map, behind the metric of its kernel."""
    metric: Any = getattr(features.kernel, "metric", None)
    Z = features.landmarks.points
    if Z is None or isinstance(features.kernel, Waves | Clustered):
        raise TypeError(
            "These features are no kernel values at landmarks, which is what to_onnx takes: "
            "choose a method with landmarks, and rows, not kernel values."
        )
    V = floats_on_host(dense(Z))
    if not isinstance(metric, Metric):  # that of scikit-learn's kernels is a name
        return X, V
    return _map_rows(metric, X), floats_on_host(metric(V))


def _map_rows(metric: Metric, X: Tensor) -> Any:
    """Return rows behind a metric."""
    if metric.warp is not None:
        X = _warp(X, metric.warp)
    if metric.map.ndim == 2:
        return X @ metric.map
    return X * metric.map


def _warp(X: Tensor, warp: Any) -> Tensor:
    """Return each column after its piecewise-linear function: a line and hinges max(x − v, 0)."""
    columns = []
    for j, (knots, heights) in enumerate(zip(warp.knots, warp.heights, strict=True)):
        slopes = np.diff(heights) / np.diff(knots) if len(knots) > 1 else np.zeros(1)
        x = X.column(j)
        line = (x - knots[:1]) * slopes[:1] + heights[:1]
        if len(slopes) > 1:
            line = line + np.maximum(x - knots[None, 1:-1], 0.0) @ np.diff(slopes)[:, None]
        columns.append(line)
    return _join(columns)


def _evaluate_kernel(kernel: Any, U: Tensor, V: Floats) -> Any:
    """Return k(u, V) of mapped rows, shape (n, m)."""
    match kernel:
        case Linear():
            return U @ V.T
        case Polynomial():
            return (U @ V.T * float(kernel.gamma or 1.0) + kernel.coef0) ** float(kernel.degree)
        case Laplacian():
            parts = [abs(U.column(j) - v[None, :]) for j, v in enumerate(V.T)]
            return np.exp(U.graph("Sum", *parts) * -kernel._rate())
        case Gaussian():
            return np.exp(_squared_distances(U, V) * -kernel._rate())
        case Matern():
            r = np.sqrt(_squared_distances(U, V)) * kernel._rate()
            decay = np.exp(r * -1.0)
            if kernel.nu == 0.5:
                return decay
            return (r + 1.0 if kernel.nu == 1.5 else r + 1.0 + r * r / 3.0) * decay
    known = "a Gaussian, Laplacian, Matern or polynomial kernel"
    raise TypeError(f"{kernel} has no form in ONNX: take {known}.")


def _squared_distances(U: Tensor, V: Floats) -> Any:
    """Return ‖u − v‖², with both centred, so that little cancels."""
    centre = V.mean(axis=0)
    u, v = U - centre, V - centre
    norms = U.graph("ReduceSumSquare", u, [1]) + (v**2).sum(axis=1)
    return np.maximum(norms - u @ (2 * v.T), 0.0)


# Models


def _transform(g: Graph, model: Any) -> Any:
    """Return k(x, Z) N of a transformer."""
    features = model._transform
    U, V = _map_points(features, _read_rows(g, model))
    return _evaluate_kernel(features.kernel, U, V) @ floats_on_host(features.normalization)


def _predict(members: Any, X: Tensor) -> Tensor:
    """Return the sum of what members contribute by landmarks and by leaves, shape (n, t)."""
    parts = []
    for member in members:
        model, codes = member.predictor, member.codes
        rows = X if codes is None else _add_codes(X, codes.edges)
        U, V = _map_points(model.features, rows)
        w = floats_on_host(model.features.normalization) @ floats_on_host(model.w)
        mean = floats_on_host(model.mean)[None, :]
        parts.append(_evaluate_kernel(model.kernel, U, V) @ w + mean)
        if member.leaves is not None:
            local = member.local_weight * floats_on_host(member.leaves.w)
            local = np.pad(local, ((0, 0), (0, w.shape[1] - local.shape[1])))  # 0 for logits
            own = member.leaves.kernel.metric
            V = U if own is None else _map_rows(own, rows)
            parts.append(_predict_in_leaves(member.leaves, V, local))
    return X.graph("Sum", *parts)


def _predict_in_leaves(leaves: Any, U: Tensor, w: Floats) -> Any:
    """Return k(u, V) w of the leaf of each mapped row: the rows of a leaf are taken together."""
    g, V = U.graph, floats_on_host(leaves.V)
    places = [slice(a, b) for a, b in pairwise(leaves.starts)]
    if len(places) == 1:
        return _evaluate_kernel(leaves.kernel, U, V) @ w
    above = np.greater(U @ leaves.tree.directions.T, leaves.tree.thresholds[None, :])
    shape = g("Concat", g("Shape", U, start=0, end=1), [w.shape[1]], axis=0)
    out = g("Expand", np.zeros((1, 1)), shape)
    waiting: list[tuple[int, Any]] = [(0, np.ones((1, 1), dtype=bool))]
    while waiting:
        node, inside = waiting.pop()  # truth values, shape (n, 1)
        if node >= 0:
            side = above.column(node)
            for child, here in zip(leaves.tree.children[node], (~side, side), strict=True):
                waiting.append((int(child), inside & here))
            continue
        at = places[-1 - node]
        rows = g("Transpose", g("NonZero", g("Reshape", inside, [-1])))
        value = _evaluate_kernel(leaves.kernel, g("GatherND", U, rows), V[at]) @ w[at]
        out = g("ScatterND", out, rows, value)
    return out


def _classify(g: Graph, model: Any) -> None:
    """Add the outputs of a classifier: the likeliest label, and the softmax of its logits."""
    X, classes = _read_rows(g, model), np.asarray(model.classes_)
    found, k = _predict(model._members, X), len(classes)
    scores: Any = g("Gather", found, np.arange(k), axis=1)
    calibration = model._calibration
    logits = scores * calibration.slope + calibration.bias[None, :]
    if model._members[0].logistic is not None:
        logits = logits + g("Gather", found, np.arange(k, 2 * k), axis=1)
    if calibration.power:
        logits = logits + np.log(np.maximum(scores, FLOOR)) * calibration.power
    kind = {"i": "INT64", "u": "INT64", "b": "INT64", "f": "DOUBLE"}.get(classes.dtype.kind)
    labels = classes.astype(np.int64) if kind == "INT64" else classes
    labels = labels if kind else np.array([*map(str, classes)], dtype=object)
    best = g("ArgMax", logits, axis=1, keepdims=0)
    g.output("label", g("Gather", labels, best), kind or "STRING", flat=True)
    g.output("probabilities", g("Softmax", logits, axis=1))
