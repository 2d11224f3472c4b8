"""Maps of the inputs before a kernel: quantiles, a linear metric, and scaled coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import diags_array
from scipy.special import ndtri

from nysboost.numerics.arrays import (
    Array,
    Floats,
    dense,
    floats_on_host,
    is_numpy,
    is_sparse,
    like,
    namespace,
    spaced_indices,
    to_host,
)
from nysboost.numerics.linalg import positive_or_one
from nysboost.numerics.messages import format_value

KNOTS = 512
"""Largest number of knots of a feature's function. Learned from 10,000 log-normal numbers, it maps
new ones to within .042 of their normal quantile with 128 knots, .029 with 512 and .027 with
2048."""


@dataclass(frozen=True, eq=False)
class Quantiles:
    """x ↦ h(x), where h_j increases from values to normal quantiles, linearly between knots.

    At a knot v it is Φ⁻¹(P(x_j < v) + ½ P(x_j = v)), where P are shares of the training rows. So an
    increasing transformation of a feature does not change h at the knots. Beyond the outermost
    knots, the last piece is extended: h is one-to-one, and far rows stay far.

    Parameters
    ----------
    knots, heights : tuples of d arrays of shape (q_j,)
        For each feature, increasing values and their normal quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> from nysboost.kernels.metric import Quantiles
    >>> quantiles = Quantiles.of(np.array([[1.0], [10.0], [1000.0]]))
    >>> quantiles(np.array([[1.0], [10.0], [505.0], [1000.0]])).round(2).ravel()
    array([-0.97,  0.  ,  0.48,  0.97])
    >>> quantiles.inverse(np.array([[0.0]]))
    array([[10.]])
    """

    knots: tuple[Floats, ...]
    heights: tuple[Floats, ...]

    def __post_init__(self) -> None:
        for values, heights in zip(self.knots, self.heights, strict=True):
            both_rise = _rises(values) and _rises(heights)
            if not both_rise or values.shape != heights.shape:
                msg = "Knots and heights must be finite, increasing, and equal in number."
                raise ValueError(msg)

    @classmethod
    def of(cls, X: Array) -> Quantiles:
        """Learn from rows, shape (n, d)."""
        columns = floats_on_host(X).T
        functions = map(_knots, columns)
        knots, heights = zip(*functions, strict=True)
        return cls(knots, heights)

    def __call__(self, X: Array) -> Array:
        """Return h(x) of each row, shape (n, d)."""
        return _through(self._forward, X)

    def inverse(self, U: Array) -> Array:
        """Return the rows that h maps to U, shape (n, d)."""
        return _through(self._backward, U)

    def slope(self, X: Array) -> Array:
        """Return h'(x), the slope of the piece that contains each value, shape (n, d)."""
        pieces = _take_pieces(self._forward, X)
        return pieces[2, ...]

    @cached_property
    def _forward(self) -> Pieces:
        return _make_pieces(self.knots, self.heights)

    @cached_property
    def _backward(self) -> Pieces:
        return _make_pieces(self.heights, self.knots)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantiles) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[bytes, ...]:
        arrays = [*self.knots, *self.heights]
        return tuple(np.asarray(values).tobytes() for values in arrays)


class Pieces(NamedTuple):
    """The pieces of d piecewise linear functions, numbered function after function.

    Attributes
    ----------
    first : list of d numbers
        The number of each function's first piece.
    inner : list of d arrays
        The inner knots of each function: values where a piece ends and the next one begins.
    table : array of shape (4, pieces)
        The value where a piece begins, the height there, its slope and its largest height.
    """

    first: list[int]
    inner: list[Floats]
    table: Floats


SLOPELESS = 1e-270  # values below are zero to a warp: slopes there would be out of range


def _knots(values: Floats) -> tuple[Floats, Floats]:
    """Return distinct values, evenly spaced by rank if there are many, and their quantiles."""
    is_tiny = np.abs(values) < SLOPELESS
    values = np.where(is_tiny, 0.0, values)
    distinct, counts = np.unique(values, return_counts=True)

    # P(x_j < v) + ½ P(x_j = v) at each value, and its normal quantile
    counts_up_to = np.cumsum(counts)
    shares = (counts_up_to - counts / 2) / len(values)
    heights = ndtri(shares)
    if len(distinct) <= KNOTS:
        return distinct, heights

    # values at evenly spread ranks
    ranks = spaced_indices(len(values), KNOTS)
    places = np.searchsorted(counts_up_to, ranks, side="right")
    kept = np.unique(places)
    return distinct[kept], heights[kept]


def _make_pieces(starts: Sequence[Floats], ends: Sequence[Floats]) -> Pieces:
    """Return the pieces of the functions that go through these values and heights."""
    first = []
    inner = []
    tables = []
    n_pieces = 0
    for start, end in zip(starts, ends, strict=True):
        with np.errstate(over="ignore"):  # a step that is out of range has no slope
            rises = np.diff(end) / np.diff(start)

        # the last piece goes on with the slope before it; of a single knot the slope is 0
        slopes = np.zeros(len(start))
        slopes[:-1] = rises
        if len(rises):
            slopes[-1] = rises[-1]

        # an inner piece ends where the next begins
        ceilings = np.full(len(end), np.inf)
        ceilings[:-2] = end[1:-1]
        table = np.stack([start, end, slopes, ceilings])

        first.append(n_pieces)
        inner.append(start[1:-1])
        tables.append(table)
        n_pieces += len(start)

    whole = np.concatenate(tables, axis=1)
    return Pieces(first, inner, whole)


def _take_pieces(pieces: Pieces, X: Array) -> Array:
    """Return value, height, slope and largest height of each value's piece, shape (4, n, d)."""
    xp = namespace(X)

    # the number of each value's piece
    columns = []
    for j, first in enumerate(pieces.first):
        values = X[:, j] + 0.0  # PyTorch wants a copy
        starts = like(pieces.inner[j], X)
        places = xp.searchsorted(starts, values, side="right")
        columns.append(places + first)
    numbers = xp.stack(columns, axis=1)

    # the columns of the table with these numbers
    flat = xp.reshape(numbers, (-1,))
    table = like(pieces.table, X)
    taken = xp.take(table, flat, axis=1)
    return xp.reshape(taken, (4, *X.shape))


def _through(pieces: Pieces, X: Array) -> Array:
    """Apply each column's piecewise linear function."""
    found = _take_pieces(pieces, X)
    start = found[0, ...]
    height = found[1, ...]
    slope = found[2, ...]
    ceiling = found[3, ...]

    with np.errstate(over="ignore", invalid="ignore"):  # out of range becomes infinite
        line = height + slope * (X - start)

        # what rounding adds at the end of a piece may not pass the beginning of the next
        return namespace(X).minimum(line, ceiling)


def _rises(values: Floats) -> bool:
    is_finite = np.isfinite(values).all()
    if values.ndim != 1 or not is_finite:
        return False
    steps_up = values[1:] > values[:-1]
    return bool(steps_up.all())


# Metrics


@dataclass(frozen=True, eq=False)
class Metric:
    """The linear map x ↦ xA: distances are those of the mapped points.

    .. versionadded:: 0.2

    Parameters
    ----------
    map : float, array of shape (d,) or array of shape (d, q)
        One scale for all features, one scale for each, or the matrix A, of full rank if q = d and
        of low rank if q < d. A feature with larger entries has more influence.
    warp : Quantiles or None
        A transformation h of each feature before the map, which is then x ↦ h(x)A. The learners use
        it for ``scale="quantile"``.

    See Also
    --------
    NystroemRegressor : learns a metric.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> metric = nb.Metric([2.0, 0.0])
    >>> metric
    Metric(a scale for each of 2 features)
    >>> kernel = nb.Gaussian(metric=metric)
    >>> float(kernel(np.array([[0.0, 5.0]]), np.array([[0.0, -3.0]]))[0, 0])
    1.0
    >>> metric.relevance(2)
    array([1., 0.])
    """

    map: Any
    warp: Quantiles | None = None

    def __post_init__(self) -> None:
        try:
            values = np.array(self.map, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        is_finite = values.size > 0 and np.isfinite(values).all()
        if values.ndim > 2 or not is_finite:
            raise ValueError(
                "A metric is a finite number, a vector of d numbers or a d×q matrix, but "
                f"{format_value(self.map)} was given."
            )

        # a copy, so that the metric does not change with the user's array
        values.flags.writeable = False
        object.__setattr__(self, "map", values)

    def __call__(self, X: Array) -> Array:
        """Return the mapped points XA: dense, unless X is CSR and each feature has a scale."""
        return self.mapping(X)(X)

    def mapping(self, template: Array) -> PointMap:
        """Return X ↦ XA for points like `template`, with A converted to their form once."""
        self.require_features(template.shape[1])
        if self.map.ndim == 0:
            return PointMap(float(self.map), self.warp)

        # for CSR points a SciPy matrix
        A = self.map
        if is_sparse(template) and self.warp is None:
            if A.ndim == 1:
                A = diags_array(A)
            return PointMap(A)

        # PyTorch wants writable arrays, so that it gets a copy
        points = dense(template)
        if not is_numpy(points):
            A = A.copy()
        return PointMap(like(A, points), self.warp)

    def pull_back(self, gradient: Array, x: Array) -> Array:
        """Return the gradient with respect to x from that with respect to xA: times Aᵀ."""
        A = like(self.map.copy(), gradient)
        if self.map.ndim == 2:
            linear = gradient @ A.T
        else:
            linear = gradient * A

        if self.warp is None:
            return linear
        return linear * self.warp.slope(x)

    def width(self, d: int) -> int:
        """Return the number of mapped coordinates of points with d features."""
        if self.map.ndim == 2:
            return int(self.map.shape[1])
        return d

    def relevance(self, d: int) -> Floats:
        """Return the relative weight of each of d features in the metric, shape (d,), sum 1.

        It is proportional to the diagonal of A Aᵀ, the squared length of a unit step along each
        feature.
        """
        self.require_features(d)

        # Σ_k A_jk²
        squared = self.map**2
        if squared.ndim == 2:
            lengths = squared.sum(axis=1)
        else:
            lengths = np.broadcast_to(squared, (d,))

        total = lengths.sum()
        if total == 0:
            return np.full(d, 1 / d)
        return np.array(lengths / total)

    def require_features(self, d: int) -> None:
        """Raise unless points of d features can be mapped."""
        # the map has a row for each feature, and the warp a function
        needed = []
        if self.map.ndim > 0:
            needed.append(len(self.map))
        if self.warp is not None:
            needed.append(len(self.warp.knots))

        if any(width != d for width in needed):
            msg = f"{self} needs points with {needed[0]} features, but these have {d}."
            raise ValueError(msg)

    def __repr__(self) -> str:
        of = ""
        if self.warp is not None:
            of = " of quantiles"

        if self.map.ndim == 0:
            return f"Metric({float(self.map):.4g}{of})"
        if self.map.ndim == 1:
            return f"Metric(a scale for each of {len(self.map)} features{of})"
        return f"Metric({self.map.shape[0]} features{of} → {self.map.shape[1]})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Metric)
            and np.array_equal(self.map, other.map)
            and self.warp == other.warp
        )

    def __hash__(self) -> int:
        key = (self.map.shape, self.map.tobytes(), self.warp)
        return hash(key)


@dataclass(frozen=True, eq=False)
class PointMap:
    """X ↦ h(X) A, for points of one namespace and device, on which A already is.

    A is a number, a scale for each feature (d,), or a matrix (d, q); for CSR points a SciPy matrix.
    """

    A: float | Array
    warp: Quantiles | None = None

    def __call__(self, X: Array) -> Array:
        """Return the mapped points, shape (n, q)."""
        if self.warp is not None:
            X = self.warp(dense(X))

        if isinstance(self.A, float):
            return X * self.A
        if is_sparse(X):
            product = X @ self.A
            mapped: Array = product.astype(X.dtype)
            return mapped
        if self.A.ndim == 1:
            return X * self.A
        return X @ self.A


# Coordinates of scaled features, whose metrics are metrics of the raw rows


CONSTANT = 1e-12  # of its size: a feature with a smaller spread is constant but for rounding
PRINCIPAL_ROWS = 2048  # rows that give principal components


@dataclass(frozen=True, eq=False)
class Scale:
    """x ↦ ((h(x) − centre) · factor) P: a shift, and a part that belongs to the metric.

    The factor of a constant feature is 0. h is the warp. The projection P (d, q) has orthonormal
    columns.
    """

    centre: Floats
    factor: Floats
    warp: Quantiles | None = None
    projection: Floats | None = None

    def __call__(self, X: Array) -> Array:
        """Return the rows in these coordinates, shape (n, q)."""
        if self.warp is not None:
            X = self.warp(X)

        centred = X - like(self.centre, X)
        scaled = centred * like(self.factor, X)
        if self.projection is None:
            return scaled
        return scaled @ like(self.projection, X)

    def to_rows(self, U: Array) -> Array:
        """Return raw rows with these coordinates; a constant feature has its one value."""
        # the projection is undone as far as it can be: P⁺ = Pᵀ
        if self.projection is not None:
            U = U @ like(self.projection.T, U)

        spread = _inverse(self.factor)
        centred = U * like(spread, U)
        X = centred + like(self.centre, U)
        if self.warp is None:
            return X
        return self.warp.inverse(X)

    def metric(self, A: Array) -> Metric:
        """Convert a metric of these coordinates, shape (), (q,) or (q, r), to one of raw rows."""
        # (x · factor) P A, with P and A matrices or scales
        inner = to_host(A)
        P = self.projection
        if P is not None and inner.ndim == 2:
            inner = P @ inner
        elif P is not None:
            inner = P * inner

        factor = self.factor
        if inner.ndim == 2:
            factor = factor[:, None]
        return Metric(factor * inner, self.warp)


Scaling: TypeAlias = Callable[[Array], Scale]
"""A function from rows of a sample to coordinates."""


def unit_spread(X: Array) -> Scale:
    """Return coordinates in which each feature has unit standard deviation."""
    centre, spread = _location_and_spread(X)
    return Scale(centre, _inverse(spread))


def in_proportion(X: Array) -> Scale:
    """Return coordinates in which all features are scaled by the same factor."""
    centre, spread = _location_and_spread(X)
    common = np.sqrt(np.mean(spread**2))
    spreads = np.where(spread > 0, common, 0.0)
    return Scale(centre, _inverse(spreads))


def by_quantiles(X: Array) -> Scale:
    """Return coordinates in which each feature is transformed to normal quantiles."""
    warp = Quantiles.of(X)
    scale = unit_spread(warp(X))
    return replace(scale, warp=warp)


@dataclass(frozen=True)
class PrincipalComponents:
    """Coordinates of a limited number of leading principal components of scaled features."""

    scaling: Scaling
    most: int

    def __call__(self, X: Array) -> Scale:
        """Return the scaling to the components of rows X, with unit variance on average."""
        from sklearn.decomposition import PCA  # which takes a while to import

        scale = self.scaling(X)
        sample = to_host(scale(X[:PRINCIPAL_ROWS, :]))
        n_components = min(self.most, *sample.shape)
        with np.errstate(invalid="ignore"):  # constant features have shares 0/0
            pca = PCA(n_components, random_state=0).fit(sample)

        # those that vary, if any do
        variances = pca.explained_variance_
        varies = variances > CONSTANT * max(variances[0], CONSTANT)
        if not varies.any():
            return scale

        # unit variance on average
        mean_variance = variances[varies].mean()
        factor = scale.factor / np.sqrt(mean_variance)
        directions = pca.components_[varies].T
        return Scale(scale.centre, factor, scale.warp, directions)


@dataclass(frozen=True, eq=False)
class FixedScale:
    """Coordinates that do not depend on the sample."""

    scale: Scale

    def __call__(self, X: Array) -> Scale:  # noqa: ARG002
        """Return the scale."""
        return self.scale


SCALINGS: dict[str, Scaling] = {
    "auto": unit_spread,
    "standard": unit_spread,
    "quantile": by_quantiles,
    "none": in_proportion,
}


def _location_and_spread(X: Array) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of each feature, 0 if it is constant."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = to_host(xp.mean(X, axis=0))
        spread = to_host(xp.std(X, axis=0))

    in_range = np.isfinite(spread)
    if not in_range.all():
        column = int(np.argmin(in_range))
        msg = (
            f"The numbers in column {column} of X are so large that their squares are out of "
            "range: divide the column by a constant, or take its logarithm."
        )
        raise ValueError(msg)

    varies = spread > CONSTANT * np.abs(centre)
    return centre, np.where(varies, spread, 0.0)


def _inverse(values: Floats) -> Floats:
    """Return 1 / v, and 0 for 0."""
    inverses = 1 / positive_or_one(values)
    return np.where(values > 0, inverses, 0.0)
