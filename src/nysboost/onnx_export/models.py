"""Feature maps, leaves and calibrations as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nysboost.estimators import KernelPCA
from nysboost.estimators.transformers import BaseNystroem
from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearPredictor
from nysboost.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Metric, Polynomial
from nysboost.kernels.metric import Quantiles
from nysboost.kernels.radial import FARTHEST
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.learn.calibration import FLOOR
from nysboost.learn.search.leaves import Leaves
from nysboost.learn.search.model import Member
from nysboost.methods.centres import Clustered
from nysboost.methods.fourier import Waves
from nysboost.numerics.arrays import Floats, dense, floats_on_host
from nysboost.numerics.tree import Tree
from nysboost.onnx_export.graph import Operand, Tensor, join

WIDE = 100.0
"""Columns whose landmarks span more bandwidths than this are wide, such as dates in seconds."""


# Models


def transform(model: BaseNystroem, X: Tensor) -> Tensor:
    """Return k(x, Z) N of a transformer."""
    features = model._transform
    points = _map_points(features, X)
    K = points.evaluate(features.kernel)
    N = floats_on_host(features.normalization)
    return K @ N


def project(model: KernelPCA, X: Tensor) -> Tensor:
    """Return the principal components of features."""
    F = transform(model.features_, X)
    centred = F - model.mean_
    components: Tensor = centred @ model.components_.T
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
    scores = found.columns(range(k))

    # logits: slope · s + power · log s + bias, and those of the logistic regressions
    calibration = model._calibration
    bias = calibration.bias[None, :]
    logits = scores * calibration.slope + bias
    if model._members[0].logistic is not None:
        of_regressions = found.columns(range(k, 2 * k))
        logits = logits + of_regressions
    if calibration.power:
        positive = g("Max", scores, FLOOR)
        logarithms = np.log(positive)
        logits = logits + logarithms * calibration.power

    likeliest = g("ArgMax", logits, axis=1, keepdims=0)
    label = g.choose(model.classes_, likeliest)
    probabilities = g("Softmax", logits, axis=1)
    return label, probabilities


def _predict(members: Sequence[Member], X: Tensor) -> Tensor:
    """Return the sum of the members' contributions by landmarks and leaves, shape (n, t)."""
    parts = []
    for member in members:
        model = member.predictor
        coded = X
        if member.codes is not None:
            coded = _add_codes(X, member.codes.edges)

        # landmarks, and the model whose residuals they have learned
        points = _map_points(model.features, coded)
        parts.append(_predict_by_landmarks(model, points))
        if member.base is not None:
            base_points = _map_points(member.base.features, coded)
            of_base = _predict_by_landmarks(member.base, base_points)
            parts.append(member.weight * of_base)

        if member.leaves is None:
            continue

        # leaves add nothing to the logits, which are the last columns
        leaves = member.leaves
        of_targets = member.local_weight * floats_on_host(leaves.w)
        n_rows, t = of_targets.shape
        n_logits = model.w.shape[1] - t
        no_logits = np.zeros((n_rows, n_logits))
        w = np.hstack([of_targets, no_logits])

        # leaves of many columns have a metric of their own
        U = points.U
        if leaves.kernel.metric is not None:
            U = _map_rows(leaves.kernel.metric, coded)
        parts.append(_predict_in_leaves(leaves, U, w))
    return X.graph("Sum", *parts)


def _predict_by_landmarks(model: LinearPredictor, points: MappedPoints) -> Tensor:
    """Return k(x, Z) N w + mean, shape (n, t)."""
    N = floats_on_host(model.features.normalization)
    w = N @ floats_on_host(model.w)
    mean = floats_on_host(model.mean)
    K = points.evaluate(model.kernel)
    return K @ w + mean[None, :]


def _add_codes(X: Tensor, edges: Sequence[Floats]) -> Tensor:
    """Return the columns followed by their piecewise-linear codes."""
    parts = [X]
    for j, of_column in enumerate(edges):
        if len(of_column) <= 2:  # as in `PiecewiseCodes`
            continue

        # code j is (x − e_j) / (e_{j+1} − e_j), clipped to 0 … 1
        e = of_column[None, :]
        begins = e[:, :-1]
        widths = np.diff(e)
        beyond = X.column(j) - begins
        codes = X.graph("Clip", beyond / widths, 0.0, 1.0)
        parts.append(codes)
    return join(parts)


def _predict_in_leaves(leaves: Leaves, U: Tensor, w: Floats) -> Tensor:
    """Return k(u, V) w in the leaf of each mapped row, for all rows of a leaf together."""
    g = U.graph
    V = floats_on_host(leaves.V)
    if len(leaves.tree.thresholds) == 0:
        points = MappedPoints(U, V)
        return points.evaluate(leaves.kernel) @ w

    # start from zeros of shape (n, t)
    n = g("Shape", U, start=0, end=1)
    t = w.shape[1]
    shape = g("Concat", n, [t], axis=0)
    zero = np.zeros((1, 1))
    found = g("Expand", zero, shape)

    # the rows of each leaf
    masks = _find_leaf_rows(leaves.tree, U)
    for leaf, (start, end) in enumerate(pairwise(leaves.starts)):
        flat = g("Reshape", masks[leaf], [-1])
        places = g("NonZero", flat)
        rows = g("Transpose", places)

        # k(u, V) w with the training rows of the leaf, written to its rows
        of_leaf = g("GatherND", U, rows)
        points = MappedPoints(of_leaf, V[start:end])
        K = points.evaluate(leaves.kernel)
        predictions = K @ w[start:end]
        found = g("ScatterND", found, rows, predictions)
    return found


def _find_leaf_rows(tree: Tree, U: Tensor) -> list[Operand]:
    """Return for each leaf of a tree a mask (n, 1) of the mapped rows in it."""
    # on which side of each node's plane a row lies
    projected = U @ tree.directions.T
    thresholds = tree.thresholds[None, :]
    above = np.greater(projected, thresholds)

    # the rows of each node are those of its parent on one side; parents come before their children
    everywhere = np.ones((1, 1), dtype=np.bool)
    inside: dict[int, Operand] = {0: everywhere}
    children = tree.children.tolist()
    for node, (below_child, above_child) in enumerate(children):
        of_node = inside[node]
        side = above.column(node)
        inside[below_child] = ~side & of_node
        inside[above_child] = side & of_node

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
                gamma = float(kernel.gamma or 1.0)
                bases = self._products() * gamma + float(kernel.coef0)
                powers: Tensor = bases ** float(kernel.degree)
                return powers
            case Laplacian():
                distances = self._city_block_distances()
                return np.exp(distances * -kernel._rate())
            case Gaussian():
                rate = kernel._rate()
                squared = self._squared_distances(bandwidth=rate**-0.5)
                return np.exp(squared * -rate)
            case Matern():
                rate = kernel._rate()
                squared = self._squared_distances(bandwidth=1 / rate)
                r = np.sqrt(squared) * rate
                near = self.U.graph("Clip", r, 0.0, FARTHEST)
                return _matern(kernel.nu, near)

        known = "a Gaussian, Laplacian, Matern or polynomial kernel"
        raise TypeError(f"{kernel} cannot be exported to ONNX: choose {known}.")

    def _products(self) -> Tensor:
        return self.U @ self.V.T

    def _city_block_distances(self) -> Tensor:
        columns = range(self.V.shape[1])
        parts = [abs(self._differences(j)) for j in columns]
        return self.U.graph("Sum", *parts)

    def _differences(self, j: int) -> Tensor:
        """Return u_j − v_j in one column, shape (n, m)."""
        v = self.V[:, j]
        return self.U.column(j) - v[None, :]

    def _squared_distances(self, bandwidth: float) -> Tensor:
        """Return ‖u − v‖², shape (n, m), for a kernel of some bandwidth."""
        ranges = np.ptp(self.V, axis=0)
        is_wide = ranges > WIDE * bandwidth
        if not is_wide.any():
            return self._squared_distances_by_products()

        # digits of close points would cancel in products of wide columns
        parts = []
        wide = np.flatnonzero(is_wide)
        for j in wide.tolist():
            differences = self._differences(j)
            parts.append(differences * differences)

        rest = np.flatnonzero(~is_wide)
        if len(rest):
            u = self.U.columns(rest)
            v = self.V[:, rest]
            others = MappedPoints(u, v)
            parts.append(others._squared_distances_by_products())
        return self.U.graph("Sum", *parts)

    def _squared_distances_by_products(self) -> Tensor:
        """Return ‖u − v‖² = ‖u‖² + ‖v‖² − 2 uᵀv, with both centred, so that little cancels."""
        centre = self.V.mean(axis=0)
        u = self.U - centre
        v = self.V - centre

        of_u = self.U.graph("ReduceSumSquare", u, [1])
        of_v = (v**2).sum(axis=1)
        products = u @ (2 * v.T)
        squared = of_u + of_v - products
        return np.maximum(squared, 0.0)


def _matern(nu: float, r: Tensor) -> Tensor:
    """Return the Matérn kernel of scaled distances r."""
    decay: Tensor = np.exp(r * -1.0)
    if nu == 0.5:
        return decay

    # 1 + r, or 1 + r + r²/3
    polynomial = r + 1.0
    if nu == 2.5:
        polynomial = polynomial + r * r / 3.0
    return polynomial * decay


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
    """Return rows mapped by a metric: warped, then multiplied by its scales or matrix."""
    if metric.warp is not None:
        X = _warp(X, metric.warp)
    if metric.map.ndim < 2:
        return X * metric.map
    mapped: Tensor = X @ metric.map
    return mapped


def _warp(X: Tensor, warp: Quantiles) -> Tensor:
    """Apply the piecewise-linear function of each column, as the sum of its climbs up to x.

    The terms of the sum have one sign beyond the first knot, so that none cancels in far rows.
    """
    columns = []
    for j, (knots, heights) in enumerate(zip(warp.knots, warp.heights, strict=True)):
        x = X.column(j)

        # a single knot has no pieces: the function is constant
        if len(knots) == 1:
            columns.append(x * 0.0 + heights)
            continue

        # the share of each piece that lies below x; the outermost pieces have no outer end
        lowest = np.zeros(len(knots) - 1)
        highest = np.ones(len(knots) - 1)
        lowest[0] = -np.inf
        highest[-1] = np.inf
        shares = (x - knots[None, :-1]) / np.diff(knots)
        from_below = np.maximum(shares, lowest[None, :])
        climbed = np.minimum(from_below, highest[None, :])

        # the height of the first knot, and the climb in each piece
        climbs = np.diff(heights)[:, None]
        columns.append(climbed @ climbs + heights[:1])
    return join(columns)
