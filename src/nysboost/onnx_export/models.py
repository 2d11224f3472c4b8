"""Feature maps, leaves and calibrations as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nysboost.estimators import KernelPCA
from nysboost.estimators.base import BaseNystroem
from nysboost.features.feature_map import FeatureMap
from nysboost.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Metric, Polynomial
from nysboost.kernels.metric import Quantiles
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.calibration import FLOOR
from nysboost.learn.search.leaves import Leaves
from nysboost.learn.search.model import Member
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.numerics.arrays import Floats, dense, floats_on_host
from nysboost.numerics.tree import Tree
from nysboost.onnx_export.graph import Operand, Tensor, join

# Models


def transform(model: BaseNystroem, X: Tensor) -> Tensor:
    """Return k(x, Z) N of a transformer."""
    features = model._transform
    K = _map_points(features, X).evaluate(features.kernel)
    N = floats_on_host(features.normalization)
    return K @ N


def project(model: KernelPCA, X: Tensor) -> Tensor:
    """Return the principal components of features."""
    F = transform(model.features_, X)
    components: Tensor = (F - model.mean_) @ model.components_.T
    return components


def regress(model: NystroemRegressor, X: Tensor) -> Tensor:
    """Return the predicted targets, in the units of y."""
    standardised = _predict(model._members, X)
    mean = standardised * model._unit + model._centre
    if model._flat:
        return X.graph("Reshape", mean, [-1])
    return mean


def classify(model: NystroemClassifier, X: Tensor) -> tuple[Tensor, Tensor]:
    """Return the most probable label (n,), and the softmax of the logits (n, k)."""
    g = X.graph
    k = len(model.classes_)
    found = _predict(model._members, X)
    scores = g("Gather", found, np.arange(k), axis=1)

    # logits: slope · s + power · log s + bias, and those of the logistic regressions
    calibration = model._calibration
    logits = scores * calibration.slope + calibration.bias[None, :]
    if model._members[0].logistic is not None:
        of_regressions = g("Gather", found, np.arange(k, 2 * k), axis=1)
        logits = logits + of_regressions
    if calibration.power:
        positive = g("Max", scores, FLOOR)
        logits = logits + np.log(positive) * calibration.power

    likeliest = g("ArgMax", logits, axis=1, keepdims=0)
    return g.choose(model.classes_, likeliest), g("Softmax", logits, axis=1)


def _predict(members: Sequence[Member], X: Tensor) -> Tensor:
    """Return the sum of the members' contributions by landmarks and leaves, shape (n, t)."""
    parts = []
    for member in members:
        model = member.predictor
        coded = X
        if member.codes is not None:
            coded = _add_codes(X, member.codes.edges)

        # landmarks: k(x, Z) N w + mean
        points = _map_points(model.features, coded)
        N = floats_on_host(model.features.normalization)
        w = N @ floats_on_host(model.w)
        mean = floats_on_host(model.mean)
        K = points.evaluate(model.kernel)
        parts.append(K @ w + mean[None, :])

        if member.leaves is None:
            continue

        # leaves, which add nothing to logits
        leaves = member.leaves
        of_targets = member.local_weight * floats_on_host(leaves.w)
        n_logits = w.shape[1] - of_targets.shape[1]
        in_leaves = np.pad(of_targets, ((0, 0), (0, n_logits)))

        # leaves of many columns have a metric of their own
        U = points.U
        if leaves.kernel.metric is not None:
            U = _map_rows(leaves.kernel.metric, coded)
        parts.append(_predict_in_leaves(leaves, U, in_leaves))
    return X.graph("Sum", *parts)


def _add_codes(X: Tensor, edges: Sequence[Floats]) -> Tensor:
    """Return the columns followed by their piecewise-linear codes."""
    parts = [X]
    for j, of_column in enumerate(edges):
        if len(of_column) <= 2:  # as in `PiecewiseCodes`
            continue

        # code j is (x − e_j) / (e_{j+1} − e_j), clipped to 0 … 1
        e = of_column[None, :]
        begins = e[:, :-1]
        steps = (X.column(j) - begins) / np.diff(e)
        parts.append(X.graph("Clip", steps, 0.0, 1.0))
    return join(parts)


def _predict_in_leaves(leaves: Leaves, U: Tensor, w: Floats) -> Tensor:
    """Return k(u, V) w in the leaf of each mapped row, for all rows of a leaf together."""
    g = U.graph
    V = floats_on_host(leaves.V)
    if len(leaves.tree.thresholds) == 0:
        return MappedPoints(U, V).evaluate(leaves.kernel) @ w

    # start from zeros of shape (n, t)
    n = g("Shape", U, start=0, end=1)
    t = w.shape[1]
    shape = g("Concat", n, [t], axis=0)
    found = g("Expand", np.zeros((1, 1)), shape)

    # write the predictions of each leaf to its rows
    for leaf, inside in enumerate(_find_leaf_rows(leaves.tree, U)):
        members = slice(leaves.starts[leaf], leaves.starts[leaf + 1])
        flat = g("Reshape", inside, [-1])
        rows = g("Transpose", g("NonZero", flat))
        of_leaf = g("GatherND", U, rows)
        K = MappedPoints(of_leaf, V[members]).evaluate(leaves.kernel)
        found = g("ScatterND", found, rows, K @ w[members])
    return found


def _find_leaf_rows(tree: Tree, U: Tensor) -> list[Operand]:
    """Return for each leaf of a tree a mask (n, 1) of the mapped rows in it."""
    # on which side of each node's plane a row lies
    projected = U @ tree.directions.T
    above = np.greater(projected, tree.thresholds[None, :])

    # the rows of each node are those of its parent on one side; parents come before their children
    inside: dict[int, Operand] = {0: np.ones((1, 1), dtype=np.bool)}
    for node, (below_child, above_child) in enumerate(tree.children.tolist()):
        side = above.column(node)
        inside[below_child] = ~side & inside[node]
        inside[above_child] = side & inside[node]

    # leaf j is the child −1 − j
    return [inside[-1 - j] for j in range(tree.n_leaves)]


# Rows and landmarks behind a metric


@dataclass(frozen=True, eq=False)
class MappedPoints:
    """Rows u (n, q) and landmarks v (m, q), mapped by the metric of a kernel."""

    U: Tensor
    V: Floats

    def evaluate(self, kernel: Kernel) -> Tensor:
        """Return k(u, V), shape (n, m)."""
        match kernel:
            case Linear():
                return self._products()
            case Polynomial():
                scaled = self._products() * float(kernel.gamma or 1.0)
                power: Tensor = (scaled + kernel.coef0) ** float(kernel.degree)
                return power
            case Laplacian():
                distances = self._city_block_distances()
                return np.exp(distances * -kernel._rate())
            case Gaussian():
                squared = self._squared_distances()
                return np.exp(squared * -kernel._rate())
            case Matern():
                distances = np.sqrt(self._squared_distances())
                return _matern(kernel.nu, distances * kernel._rate())

        known = "a Gaussian, Laplacian, Matern or polynomial kernel"
        raise TypeError(f"{kernel} cannot be exported to ONNX: choose {known}.")

    def _products(self) -> Tensor:
        return self.U @ self.V.T

    def _city_block_distances(self) -> Tensor:
        parts = []
        for j, v in enumerate(self.V.T):
            differences = self.U.column(j) - v[None, :]
            parts.append(abs(differences))
        return self.U.graph("Sum", *parts)

    def _squared_distances(self) -> Tensor:
        """Return ‖u − v‖² = ‖u‖² + ‖v‖² − 2 uᵀv, with both centred, so that little cancels."""
        centre = self.V.mean(axis=0)
        u = self.U - centre
        v = self.V - centre

        of_u = self.U.graph("ReduceSumSquare", u, [1])
        of_v = (v**2).sum(axis=1)
        squared = of_u + of_v - u @ (2 * v.T)
        return np.maximum(squared, 0.0)


def _matern(nu: float, r: Tensor) -> Tensor:
    """Return the Matérn kernel of scaled distances r."""
    decay: Tensor = np.exp(r * -1.0)
    if nu == 0.5:
        return decay
    if nu == 1.5:
        return (r + 1.0) * decay
    return (r + 1.0 + r * r / 3.0) * decay


def _map_points(features: FeatureMap, X: Tensor) -> MappedPoints:
    """Return rows and landmarks of a feature map, mapped by the metric of its kernel."""
    Z = features.landmarks.points
    if Z is None or isinstance(features.kernel, Waves | Clustered):
        raise TypeError(
            "to_onnx needs features that are kernel values with landmarks: choose a method with "
            "landmarks, and fit to rows instead of a precomputed kernel."
        )

    # apply the metric of the kernel; that of scikit-learn's kernels is a name
    V = floats_on_host(dense(Z))
    metric = getattr(features.kernel, "metric", None)
    if isinstance(metric, Metric):
        X = _map_rows(metric, X)
        V = floats_on_host(metric(V))
    return MappedPoints(X, V)


def _map_rows(metric: Metric, X: Tensor) -> Tensor:
    """Return rows mapped by a metric: warped, then multiplied by its matrix."""
    if metric.warp is not None:
        X = _warp(X, metric.warp)
    if metric.map.ndim == 1:
        return X * metric.map
    mapped: Tensor = X @ metric.map
    return mapped


def _warp(X: Tensor, warp: Quantiles) -> Tensor:
    """Apply the piecewise-linear function of each column, a line and hinges max(x − v, 0)."""
    columns = []
    for j, (knots, heights) in enumerate(zip(warp.knots, warp.heights, strict=True)):
        slopes = np.zeros(1)
        if len(knots) > 1:
            slopes = np.diff(heights) / np.diff(knots)

        # draw the first piece as a line, and add the change of slope at each knot
        x = X.column(j)
        line = (x - knots[:1]) * slopes[:1] + heights[:1]
        if len(slopes) > 1:
            inner_knots = knots[None, 1:-1]
            hinges = np.maximum(x - inner_knots, 0.0)
            changes = np.diff(slopes)[:, None]
            line = line + hinges @ changes
        columns.append(line)
    return join(columns)
