"""Models as ONNX files, which other programs and languages run without NysBoost.

Everything is in float64. An array is one input ``X`` of shape (n, d); a data frame is an input of
shape (n, 1) for each of its columns, named after it: numbers, truth values as 0 and 1, dates and
durations in seconds, and text for categories. A gap is NaN, or an empty text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nysboost._version import SOFTWARE
from nysboost.data.files import as_path, atomic_file
from nysboost.engine.feature_map import FeatureMap
from nysboost.estimators.base import BaseNystroem
from nysboost.kernels import Gaussian, Laplacian, Linear, Matern, Metric, Polynomial
from nysboost.learn import KernelPCA, NystroemClassifier, NystroemRegressor
from nysboost.learn.classification import FLOOR
from nysboost.numerics.arrays import Floats, dense, floats_on_host
from nysboost.user_error import import_optional

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of the operators, which ONNX Runtime 1.14 and newer have."""

LARGEST = 2**31 - 2**20
"""Bytes of a file of protocol buffers."""


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
    g = Graph()
    if isinstance(model, BaseNystroem):
        g.output("features", _add_features(g, model))
    elif isinstance(model, KernelPCA):
        F = g("Sub", _add_features(g, model.features_), model.mean_)
        g.output("features", g("MatMul", F, model.components_.T))
    elif isinstance(model, NystroemRegressor):
        mean = g("Mul", _add_mixture(g, model._members, _add_rows(g, model)), model._unit)
        mean = g("Add", mean, model._centre)
        mean = g("Reshape", mean, [-1]) if model._flat else mean
        g.output("prediction", mean, flat=model._flat)
    elif isinstance(model, NystroemClassifier):
        _add_classifier(g, model)
    else:
        msg = f"to_onnx takes transformers, KernelPCA and learners, not {type(model).__name__}."
        raise TypeError(msg)
    with atomic_file(as_path(path), "The model") as file:
        file.write(g.model().SerializeToString())


# From inputs to numbers


def _add_rows(g: Graph, model: Any) -> str:
    """Return the inputs as numbers, shape (n, width), by the codes of the model's table."""
    codes, names = getattr(model, "_table", None), getattr(model, "feature_names_in_", None)
    X = None if names is not None else g.input("X", model.n_features_in_)
    if codes is None or not codes.schema.columns:
        X = X or g("Concat", *(g.input(str(name), 1) for name in names or ()), axis=1)
        medians = None if codes is None else codes.schema.medians
        return X if medians is None else g("Where", g("IsNaN", X), medians[None], X)
    parts: list[str] = []
    for j, (column, shown) in enumerate(zip(codes.schema.columns, codes.shown, strict=True)):
        if not column.used:
            continue
        kind = "DOUBLE" if shown is None else "STRING"
        x = g.input(column.name, 1, kind) if X is None else g.column(X, j)
        if shown is None:
            gaps = g("IsNaN", x)
            parts.append(g("Mul", g("Where", gaps, [column.median], x), [column.scale]))
            parts += [g.cast(gaps)] if column.gaps else []
        else:
            parts += _add_category(g, x, column, shown, codes.means[j])
    return g("Concat", *parts, axis=1)


def _add_category(g: Graph, x: str, column: Any, shown: Any, means: Floats | None) -> list[str]:
    """Return one-hot codes, and the means of the targets for a category with many values."""
    keys, places = [*map(str, column.values), ""], [*range(len(column.values)), -1]
    found = {"keys_strings": keys, "values_int64s": places, "default_int64": -2}
    at = g("LabelEncoder", x, domain="ai.onnx.ml", **found)
    parts = [g.cast(g("Equal", at, [shown]))] if shown else []
    if means is not None:  # whose last two rows, −2 and −1, are those of the unknown and of gaps
        parts.append(g("Gather", means, g("Reshape", at, [-1]), axis=0))
    return parts


def _add_piecewise_codes(g: Graph, X: str, edges: Sequence[Floats]) -> str:
    """Return the columns with their piecewise-linear codes beside them."""
    parts = [X]
    for j, e in enumerate(edges):
        if len(e) > 2:
            code = g("Div", g("Sub", g.column(X, j), e[None, :-1]), np.diff(e)[None, :])
            parts.append(g("Clip", code, 0.0, 1.0))
    return g("Concat", *parts, axis=1)


def _add_warp(g: Graph, X: str, warp: Any) -> str:
    """Return each column after its piecewise-linear function: a line and hinges max(x − v, 0)."""
    columns = []
    for j, (knots, heights) in enumerate(zip(warp.knots, warp.heights, strict=True)):
        slopes = np.diff(heights) / np.diff(knots) if len(knots) > 1 else np.zeros(1)
        x = g.column(X, j)
        line = g("Add", g("Mul", g("Sub", x, knots[:1]), slopes[:1]), heights[:1])
        if len(slopes) > 1:
            hinges = g("Max", g("Sub", x, knots[None, 1:-1]), 0.0)
            line = g("Add", line, g("MatMul", hinges, np.diff(slopes)[:, None]))
        columns.append(line)
    return g("Concat", *columns, axis=1)


# Kernels


def _metric(kernel: Any) -> Metric:
    found = getattr(kernel, "metric", None)  # that of scikit-learn's kernels is a name
    return found if isinstance(found, Metric) else Metric(1.0)


def _add_mapped_rows(g: Graph, kernel: Any, X: str) -> str:
    """Return rows behind the metric."""
    metric = _metric(kernel)
    X = X if metric.warp is None else _add_warp(g, X, metric.warp)
    return g("MatMul" if metric.map.ndim == 2 else "Mul", X, metric.map)


def _add_product(g: Graph, features: FeatureMap, U: str, matrix: Floats) -> str:
    """Return k(u, Z) · matrix of mapped rows, with the landmarks Z of a feature map."""
    kernel, Z = getattr(features.gram, "kernel", None), features.landmarks.points
    if features.landmarks.basis is not None or Z is None:
        raise TypeError(
            "These features are no kernel values at landmarks, which is what to_onnx takes: "
            "choose a method with landmarks, and rows, not kernel values."
        )
    V = floats_on_host(_metric(kernel)(floats_on_host(dense(Z))))
    return g("MatMul", _add_kernel(g, kernel, U, V), matrix)


def _add_kernel(g: Graph, kernel: Any, U: str, V: Floats) -> str:
    """Return k(u, V) of mapped rows, shape (n, m)."""
    if isinstance(kernel, Linear | Polynomial):
        inner = g("MatMul", U, V.T)
        if isinstance(kernel, Linear):
            return inner
        base = g("Add", g("Mul", inner, float(kernel.gamma or 1.0)), float(kernel.coef0))
        return g("Pow", base, float(kernel.degree))
    if isinstance(kernel, Laplacian):
        apart = (g("Abs", g("Sub", g.column(U, j), v[None, :])) for j, v in enumerate(V.T))
        r = g("Sum", *apart)
    elif isinstance(kernel, Gaussian | Matern):
        r = _add_squared_distances(g, U, V)
    else:
        known = "a Gaussian, Laplacian, Matern or polynomial kernel"
        raise TypeError(f"{kernel} has no form in ONNX: take {known}.")
    r = g("Mul", g("Sqrt", r) if isinstance(kernel, Matern) else r, kernel._rate())
    decay = g("Exp", g("Neg", r))
    if not isinstance(kernel, Matern) or kernel.nu == 0.5:
        return decay
    rising = g("Add", r, 1.0)
    if kernel.nu == 2.5:
        rising = g("Add", rising, g("Div", g("Mul", r, r), 3.0))
    return g("Mul", rising, decay)


def _add_squared_distances(g: Graph, U: str, V: Floats) -> str:
    """Return ‖u − v‖², with both centred, so that little cancels."""
    centre = V.mean(axis=0)
    u, v = g("Sub", U, centre), V - centre
    norms = g("Add", g("ReduceSumSquare", u, [1]), (v**2).sum(axis=1))
    return g("Max", g("Sub", norms, g("MatMul", u, 2 * v.T)), 0.0)


# Models


def _add_features(g: Graph, model: Any) -> str:
    """Return k(x, Z) N of a transformer."""
    features = model._transform
    U = _add_mapped_rows(g, getattr(features.gram, "kernel", None), _add_rows(g, model))
    return _add_product(g, features, U, floats_on_host(features.normalization))


def _add_mixture(g: Graph, members: Any, X: str) -> str:
    """Return the sum of what members contribute, shape (n, t)."""
    return g("Sum", *(part for member in members for part in _add_member(g, member, X)))


def _add_member(g: Graph, member: Any, X: str) -> list[str]:
    """Return what a member contributes: by landmarks, and by leaves."""
    model, mean = member.model, member.weight * floats_on_host(member.model.mean)[None, :]
    X = X if member.codes is None else _add_piecewise_codes(g, X, member.codes.edges)
    U = _add_mapped_rows(g, model.kernel, X)
    w = floats_on_host(model.features.normalization) @ floats_on_host(model.w)
    parts = [g("Add", _add_product(g, model.features, U, member.weight * w), mean)]
    if member.leaves is not None:
        parts.append(_add_leaves(g, member.leaves, U, member.local_weight))
    return parts


def _add_leaves(g: Graph, leaves: Any, U: str, share: float) -> str:
    """Return k(u, V) w of the leaf of each mapped row: the rows of a leaf are taken together."""
    V, w = floats_on_host(leaves.V), share * floats_on_host(leaves.w)
    places = [slice(a, b) for a, b in pairwise(leaves.starts)]
    if len(places) == 1:
        return g("MatMul", _add_kernel(g, leaves.kernel, U, V), w)
    above = g("Greater", g("MatMul", U, leaves.tree.directions.T), leaves.tree.thresholds[None, :])
    shape = g("Concat", g("Shape", U, start=0, end=1), [w.shape[1]], axis=0)
    out = g("Expand", np.zeros((1, 1)), shape)
    waiting: list[tuple[int, Any]] = [(0, np.ones((1, 1), dtype=bool))]
    while waiting:
        node, inside = waiting.pop()  # truth values, shape (n, 1)
        if node >= 0:
            side = g.column(above, node)
            for child, here in zip(leaves.tree.children[node], (g("Not", side), side), strict=True):
                waiting.append((int(child), g("And", inside, here)))
            continue
        at = places[-1 - node]
        rows = g("Transpose", g("NonZero", g("Reshape", inside, [-1])))
        value = g("MatMul", _add_kernel(g, leaves.kernel, g("GatherND", U, rows), V[at]), w[at])
        out = g("ScatterND", out, rows, value)
    return out


def _add_classifier(g: Graph, model: Any) -> None:
    """Add the outputs of a classifier: the likeliest label, and the softmax of its logits."""
    X, classes = _add_rows(g, model), np.asarray(model.classes_)
    scores = _add_mixture(g, model._members, X)
    logits = g("Add", g("Mul", scores, model._slope), model._bias[None, :])
    if model._logistic:
        logits = g("Add", logits, _add_mixture(g, model._logistic, X))
    if model._power:
        logits = g("Add", logits, g("Mul", g("Log", g("Max", scores, FLOOR)), model._power))
    kind = {"i": "INT64", "u": "INT64", "b": "INT64", "f": "DOUBLE"}.get(classes.dtype.kind)
    labels = classes.astype(np.int64) if kind == "INT64" else classes
    labels = labels if kind else np.array([*map(str, classes)], dtype=object)
    best = g("ArgMax", logits, axis=1, keepdims=0)
    g.output("label", g("Gather", labels, best), kind or "STRING", flat=True)
    g.output("probabilities", g("Softmax", logits, axis=1))


class Graph:
    """Nodes as they are made: call it with an operator and its inputs, names or arrays."""

    def __init__(self) -> None:
        self._onnx: Any = import_optional("onnx", "onnx")
        parts: tuple[list[Any], ...] = ([], [], [], [])
        self._nodes, self._arrays, self._inputs, self._outputs = parts

    def __call__(self, operator: str, *inputs: Any, **how: Any) -> str:
        """Add a node, and return the name of its result."""
        names = [part if isinstance(part, str) else self._constant(part) for part in inputs]
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, names, [result], **how))
        return result

    def input(self, name: str, width: int, kind: str = "DOUBLE") -> str:
        """Add an input of shape (n, width)."""
        self._inputs.append(self._tensor(name, kind, ["n", width]))
        return name

    def output(self, name: str, result: str, kind: str = "DOUBLE", *, flat: bool = False) -> None:
        """Give a result, of shape (n,) or (n, m), its name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [result], [name]))
        self._outputs.append(self._tensor(name, kind, ["n"] if flat else ["n", "m"]))

    def cast(self, name: str) -> str:
        """Return truth values as 0 and 1."""
        return self("Cast", name, to=self._onnx.TensorProto.DOUBLE)

    def column(self, X: str, j: int) -> str:
        """Return a column, shape (n, 1)."""
        return self("Gather", X, [j], axis=1)

    def _tensor(self, name: str, kind: str, shape: Any) -> Any:
        kinds = self._onnx.TensorProto
        return self._onnx.helper.make_tensor_value_info(name, getattr(kinds, kind), shape)

    def _constant(self, values: Any) -> str:
        name, values = f"constant_{len(self._arrays)}", np.asarray(values)
        values = np.ascontiguousarray(values, {"f": "f8", "i": "i8"}.get(values.dtype.kind))
        self._arrays.append(self._onnx.numpy_helper.from_array(values, name))
        return name

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
