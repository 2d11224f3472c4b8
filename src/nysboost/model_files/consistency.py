"""Parts of objects that must fit together, checked once, when a model file is read.

A file with valid checksums may still come from a stranger. All indices must be in range, and arrays
in a product or a sum must have matching sizes; otherwise a model could fail, or run forever, when
it is used.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from nysboost.features.feature_map import BlockDiagonal, FeatureMap, Mixture
from nysboost.features.linear import LinearModel, LinearPredictor
from nysboost.gram import Gram, Landmarks
from nysboost.kernels import CallableKernel, Kernel, Metric
from nysboost.kernels.metric import Quantiles
from nysboost.learn.calibration import Calibration
from nysboost.learn.distribution import (
    NORMAL_SCORES,
    Distribution,
    ResidualShape,
    VarianceScale,
)
from nysboost.learn.search.leaves import Leaves
from nysboost.learn.search.model import Member
from nysboost.methods.centres import Clustered
from nysboost.model_files.description import Saved, is_of, require
from nysboost.numerics.arrays import Array, is_array, is_sparse
from nysboost.numerics.checks import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.rows import ArrayRows
from nysboost.tables.codes import Codes, PiecewiseCodes
from nysboost.tables.columns import Column
from nysboost.tables.dates import CYCLES
from nysboost.tables.schema import KINDS, Schema

Shape: TypeAlias = tuple[int, ...]


def shape_of(array: Saved, axes: int) -> Shape:
    """Return the shape of a part; raise unless it is an array with this number of axes."""
    require(is_array(array) or is_sparse(array), "an array and what is there instead")
    shape = tuple(array.shape)
    require(len(shape) == axes, "an array and its axes")
    return shape


def require_shape(array: Saved, shape: Shape, what: str) -> None:
    """Check that a part is an array of this shape."""
    require(shape_of(array, len(shape)) == shape, what)


def refuse_function(_kernel: CallableKernel) -> None:
    """Raise for a kernel that is a user's function, because a file holds no code."""
    raise ValueError("a function of the user's is in no model file")


# Rows, landmarks and maps


def check_rows(rows: ArrayRows) -> None:
    """Check that rows are a table."""
    shape_of(rows.data, 2)


def check_gram(gram: Gram) -> None:
    """Check that a Gram has a kernel, a budget and a dtype of floating point."""
    require(isinstance(gram.kernel, Kernel), "a Gram and its kernel")
    require(isinstance(gram.budget, Budget), "a Gram and its budget")
    require(gram.dtype in (np.float32, np.float64), "a Gram and its dtype")


def check_landmarks(landmarks: Landmarks) -> None:
    """Check that landmarks have indices (m,), points (m, d), or equally many of both."""
    indices = landmarks.indices
    points = landmarks.points
    require(indices is not None or points is not None, "landmarks without points")
    if points is not None:
        shape_of(points, 2)

    # rows of the training table, which may be saved beside their points
    if indices is None:
        return
    (m,) = shape_of(indices, 1)
    require(indices.dtype.kind in "iu", "landmarks and their indices")
    smallest = indices.min(initial=0)
    require(smallest >= 0, "landmarks and their indices")
    if points is not None:
        n_points = points.shape[0]
        require(n_points == m, "points and indices of landmarks")


def check_blocks(projection: BlockDiagonal) -> None:
    """Check that every block of a block-diagonal matrix is a matrix."""
    for block in projection.blocks:
        shape_of(block, 2)


def check_map(feature_map: FeatureMap) -> None:
    """Check that N has a row for each landmark, and the metric an entry for each column."""
    # an array or blocks, of which both have a shape
    m = len(feature_map.landmarks)
    projection = feature_map.projection
    if projection is not None:
        height, *others = projection.shape
        require(height == m and len(others) == 1, "landmarks and projection")

    # a metric has one number for all columns, or one or more for each
    points = feature_map.landmarks.points
    metric = getattr(feature_map.kernel, "metric", None)
    if not isinstance(metric, Metric) or points is None:
        return
    if np.ndim(metric.map) > 0:
        n_columns = points.shape[1]
        n_mapped = len(metric.map)
        require(n_mapped == n_columns, "landmarks and metric")


def check_mixture(mixture: Mixture) -> None:
    """Check that a mixture has a weight for each learner."""
    n_learners = len(mixture.learners)
    require(n_learners > 0, "a mixture and its learners")
    require_shape(mixture.weights, (n_learners,), "learners and weights")


def check_quantiles(quantiles: Quantiles) -> None:
    """Check that every feature has as many heights as knots, at least one."""
    require(len(quantiles.knots) == len(quantiles.heights), "knots and heights")

    for knots, heights in zip(quantiles.knots, quantiles.heights, strict=True):
        shape = shape_of(knots, 1)
        require_shape(heights, shape, "knots and heights")
        require(len(knots) > 0, "a feature and its knots")


def check_clusters(kernel: Clustered) -> None:
    """Check that every cluster has a centre and a number of landmarks."""
    s, _ = shape_of(kernel.centres, 2)
    require(len(kernel.sizes) == s, "clusters and their sizes")
    smallest = min(kernel.sizes, default=0)
    require(smallest >= 0, "sizes of clusters")


# Linear models


def check_predictor(predictor: LinearPredictor) -> None:
    """Check that weights have a row for each feature, and a column and a mean for each target."""
    _check_weights(predictor.features, predictor.mean, predictor.w)


def check_variance_scale(scale: VarianceScale) -> None:
    """Check that a scale of variances has a factor and a floor for each target."""
    shape = shape_of(scale.a, 1)
    require_shape(scale.b, shape, "factors and floors of variances")


def check_shape(shape: ResidualShape) -> None:
    """Check that quantiles of residuals are known at each level."""
    (n_levels,) = shape_of(shape.levels, 1)
    expected = (n_levels, len(NORMAL_SCORES))
    require_shape(shape.values, expected, "levels and quantiles of residuals")


def check_distribution(distribution: Distribution) -> None:
    """Check that a distribution has variances and shapes of the same targets."""
    t = len(distribution.shapes)  # a shape for each target

    for scale in (distribution.without_gaps, distribution.with_gaps):
        require(len(scale.a) == t, "variances and shapes")


def check_linear(model: LinearModel) -> None:
    """Check that the moments and the root of a linear model are of as many features and targets."""
    r, t = _check_weights(model.features, model.mean, model.w)

    # Σ f, Σ y, Σ f fᵀ, Σ f yᵀ and Σ y²
    moments = model.moments
    require_shape(moments.F, (r,), "features and their sums")
    require_shape(moments.Y, (t,), "targets and their sums")
    require_shape(moments.FF, (r, r), "features and their products")
    require_shape(moments.FY, (r, t), "features, targets and their products")
    require_shape(moments.YY, (t,), "targets and their squares")

    # the root of the covariance of the weights
    n_rows, _ = shape_of(model.root, 2)
    require(n_rows == r, "features and the root")
    require_shape(model.noise, (t,), "targets and noise")


def _check_weights(features: FeatureMap, mean: Array, w: Array) -> Shape:
    """Return (r, t), the shape of weights of r features."""
    r, t = shape_of(w, 2)
    require(r == features.rank, "features and weights")
    require_shape(mean, (t,), "means and weights")
    return r, t


# Trees and leaves


def check_tree(tree: Tree) -> None:
    """Check that all paths end in a leaf.

    Every node but the first, and every leaf, is the child of one node that comes before it.
    """
    # a direction, a threshold and two children for each of k nodes
    (k,) = shape_of(tree.thresholds, 1)
    n_directions, _ = shape_of(tree.directions, 2)
    require(n_directions == k, "directions and thresholds of a tree")
    require_shape(tree.children, (k, 2), "children and thresholds of a tree")
    if k == 0:
        return

    # every leaf is there once, leaf j as −1 − j, and every node but the first
    children = tree.children
    require(children.dtype.kind in "iu", "nodes of a tree")
    leaves = range(-(k + 1), 0)
    nodes = range(1, k)
    found = np.sort(children, axis=None)
    is_complete = np.array_equal(found, [*leaves, *nodes])
    require(is_complete, "nodes and leaves of a tree")

    # children come after their parents
    parents = np.arange(k)[:, None]
    is_leaf = children < 0
    is_later = children > parents
    are_ordered = np.all(is_leaf | is_later)
    require(bool(are_ordered), "nodes of a tree and their order")


def check_leaves(leaves: Leaves) -> None:
    """Check that every row is in a leaf, and has residuals, a count and coefficients."""
    # for each of n rows mapped inputs, t residuals and coefficients, and a weight
    n, q = shape_of(leaves.V, 2)
    n_residuals, t = shape_of(leaves.R, 2)
    require(n_residuals == n, "rows and residuals of leaves")
    require_shape(leaves.w, (n, t), "rows and coefficients of leaves")
    require_shape(leaves.counts, (n,), "rows and counts of leaves")

    # leaf j has the rows from starts[j] to starts[j + 1]
    starts = leaves.starts
    n_leaves = leaves.tree.n_leaves
    require_shape(starts, (n_leaves + 1,), "leaves and their first rows")
    require(starts.dtype.kind in "iu", "leaves and their first rows")
    require(starts[0] == 0, "leaves and their rows")
    require(starts[-1] == n, "leaves and their rows")
    are_ordered = np.all(starts[1:] >= starts[:-1])
    require(bool(are_ordered), "leaves and their rows")

    # cutting planes belong to the mapped inputs
    n_nodes, width = leaves.tree.directions.shape
    if n_nodes > 0:
        require(width == q, "rows and directions of leaves")


def check_member(member: Member) -> None:
    """Check that the parts of a member have weights for its features and targets."""
    # the columns of its landmarks are the features and their codes
    points = member.model.features.landmarks.points
    if member.codes is not None and points is not None:
        width = len(member.codes.origins)
        require(points.shape[1] == width, "codes and landmarks of a member")

    # leaves predict the same targets
    r, t = member.model.w.shape
    if member.leaves is not None:
        of_leaves = member.leaves.w.shape[1]
        require(of_leaves == t, "targets of a member and of its leaves")

    # logistic weights and the correction belong to the same features
    if member.logistic is not None:
        n_features, _ = shape_of(member.logistic, 2)
        require(n_features == r, "features and logistic weights of a member")
    if member.corrected is not None:
        require_shape(member.corrected.w, (r, t), "a member and its correction")

    # so does the model before it, and it has the same columns
    base = member.base
    if base is None:
        return
    targets_of_base = base.w.shape[1]
    require(targets_of_base == t, "targets of a member and of its base")
    points_of_base = base.features.landmarks.points
    if points is not None and points_of_base is not None:
        width = points_of_base.shape[1]
        require(width == points.shape[1], "columns of a member and of its base")


# Tables


def check_column(column: Column) -> None:
    """Check that a column is of a known kind, and has a count for each of its values."""
    require(column.kind in KINDS, "a column and its kind")
    cycles = set(column.cycles)
    require(cycles <= CYCLES.keys(), "a column and its cycles")

    # the categories
    values = column.values
    require(len(column.counts) == len(values), "values and their counts")
    is_plain = [isinstance(value, str | int | float) for value in values]
    require(all(is_plain), "a category and its values")


def check_schema(schema: Schema) -> None:
    """Check that a schema has the columns, and the medians, of as many as it says."""
    width = schema.width
    n_columns = len(schema.columns)
    require(n_columns in (0, width), "columns and their number")
    if schema.medians is not None:
        require_shape(schema.medians, (width,), "columns and medians")


def check_codes(codes: Codes) -> None:
    """Check that means of a category have a row for each value, an unknown one and a gap."""
    columns = codes.schema.columns
    require(len(codes.means) == len(columns), "columns and means")
    for column, means in zip(columns, codes.means, strict=True):
        if means is None:
            continue
        n_means, _ = shape_of(means, 2)
        expected = len(column.values) + 2
        require(n_means == expected, "values and means")


def check_piecewise(codes: PiecewiseCodes) -> None:
    """Check that the edges of every feature increase."""
    for edges in codes.edges:
        shape_of(edges, 1)
        steps = np.diff(edges)
        are_increasing = np.all(steps > 0)
        require(bool(are_increasing), "edges of a feature")


# Estimators

LEARNED = {
    "_members": list[Member],
    "_calibration": Calibration,
    "_distribution": Distribution | None,
    "_table": Codes | None,
    "_transform": FeatureMap,
    "schema_": Schema,
    "n_features_in_": int,
}
"""Types of learned attributes that estimators use without a check."""


def check_learned(estimator: object) -> None:
    """Check the types of the learned attributes of an estimator."""
    for name, value in vars(estimator).items():
        if name in LEARNED:
            require(is_of(value, LEARNED[name]), f"an estimator and its {name}")

    # a centre, a unit and a variance for each target
    members = getattr(estimator, "_members", ())
    for name in ("_centre", "_unit", "_variance_of_y"):
        if members and hasattr(estimator, name):
            value = getattr(estimator, name)
            n_targets = members[0].model.w.shape[1]
            require_shape(value, (n_targets,), f"targets and their {name}")

    # the maps must take as many numbers as a row of the table becomes
    codes = getattr(estimator, "_table", None)
    if codes is None:
        return
    width = len(codes.origins)
    for member in members:
        if member.codes is not None:
            n_coded = len(member.codes.edges)
            require(n_coded == width, "a table and the codes of a member")
        else:
            _check_width(member.model.features, width)
    if hasattr(estimator, "_transform"):
        _check_width(estimator._transform, width)


def _check_width(features: FeatureMap, width: int) -> None:
    points = features.landmarks.points
    if points is not None:
        require(points.shape[1] == width, "a table and landmarks")
