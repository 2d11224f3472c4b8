"""Kernel ridge regression on all rows: exact in each leaf of a tree of mapped rows.

In a leaf with mapped rows V, residuals R and weights ω of the rows the coefficients solve

    (k(V, V) + ρ diag(1/ω)) w = R,

and a new row, mapped to u, is predicted by k(u, V) w of its own leaf. The tree is built from rows
in memory. Then all rows are grouped by leaf, and each leaf is solved (for Dask, on a worker).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from nysboost.kernels import Evaluator
from nysboost.kernels.base import Mapped
from nysboost.kernels.metric import PRINCIPAL_ROWS, Metric
from nysboost.kernels.radial import Radial
from nysboost.learn.search.tuning import LEAF_ROWS, LEAF_WIDTH, NEAREST
from nysboost.numerics import arrays
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    free_bytes,
    namespace,
    on_device,
    slices,
)
from nysboost.numerics.checks import Budget
from nysboost.numerics.linalg import symmetric
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import one_blas_thread, usable_threads
from nysboost.numerics.tree import Tree
from nysboost.rows.driver import BlockTask, Task, in_order
from nysboost.rows.rows import ArrayRows, Rows
from nysboost.rows.sizes import SCAN_BYTES

BLOCK = 256
"""Rows whose variances are computed together."""

PREPARED = 16
"""Number of leaves whose prepared kernels are kept."""

ROUNDED = 1e-3
"""Rows are stored in float32 if that changes them by at most this share of the error."""

LEAST = 1e-8
"""Smallest ρ: below it, rounding may make a kernel matrix indefinite."""


class LeafRows(NamedTuple):
    """Rows of a leaf: V (n, q) mapped, residuals R (n, t), ω (n,) and coefficients w (n, t)."""

    V: Array
    R: Array
    counts: Array
    w: Array | None = None

    @classmethod
    def of_table(cls, table: Array, q: int) -> LeafRows:
        """Return the parts of a table with columns V, R and ω."""
        V = table[:, :q]
        R = table[:, q:-1]
        counts = table[:, -1]
        return cls(V, R, counts)

    def and_more(self, table: Array) -> LeafRows:
        """Return these rows followed by those of a table."""
        xp = namespace(table)
        new = LeafRows.of_table(table, int(self.V.shape[1]))
        V = xp.astype(new.V, self.V.dtype)

        all_V = xp.concat([self.V, V])
        all_R = xp.concat([self.R, new.R])
        all_counts = xp.concat([self.counts, new.counts])
        return LeafRows(all_V, all_R, all_counts)

    def at(self, rows: slice) -> LeafRows:
        """Return some solved rows."""
        assert self.w is not None
        V = self.V[rows, :]
        R = self.R[rows, :]
        counts = self.counts[rows]
        w = self.w[rows, :]
        return LeafRows(V, R, counts, w)

    def kernel_matrix(self, kernel: Radial) -> Array:
        """Return k(V, V), shape (n, n), in float64."""
        V = arrays.in_float64(self.V)

        def block(rows: Indices, columns: Indices) -> Array:
            start = rows[0]
            stop = rows[-1] + 1
            some = V[start:stop, :]
            others = V[: len(columns), :]
            return kernel(some, others)

        return symmetric(block, V.shape[0])

    def coefficients(self, K: Array, rho: float) -> Array:
        """Return (K + ρ diag(1/ω))⁻¹R (n, t), or 0 if rounding prevents it; K is overwritten."""
        # K + ρ diag(1/ω)
        xp = namespace(K)
        entries = xp.reshape(K, (-1,))
        diagonal = entries[:: K.shape[0] + 1]
        diagonal += max(rho, LEAST) / self.counts

        # LAPACK says whether the factorisation failed
        if isinstance(K, np.ndarray):
            solution = lapack.dposv(K.T, self.R, lower=True, overwrite_a=True)
            _, found, failed = solution
            if failed:
                return np.zeros_like(self.R)
            return np.asarray(found)

        # solving with triangles is not in the standard
        solve_triangle = getattr(xp.linalg, "solve_triangular", None)
        if solve_triangle is None:
            return xp.linalg.solve(K, self.R)
        L = xp.linalg.cholesky(K)
        half_solved = solve_triangle(L, self.R, upper=False)
        return solve_triangle(L.T, half_solved, upper=True)


@dataclass(frozen=True, eq=False)
class Leaves:
    """All rows, leaf by leaf, with the coefficients of their ridge regressions.

    If `kernel` has a metric, it maps the rows for the leaves; otherwise, the model's metric does.
    `starts` (leaves + 1,) are the first rows of the leaves. V (n, q) are mapped rows, R (n, t)
    residuals, counts (n,) ω, and w (n, t) coefficients. V may be in float32. Then the coefficients
    belong to the rounded rows.
    """

    kernel: Radial
    tree: Tree
    starts: Indices
    V: Array
    R: Array
    counts: Array
    w: Array
    rho: float

    @classmethod
    def of(
        cls,
        kernel: Radial,
        tree: Tree,
        rho: float,
        U: Array,
        t: int,
        error: float = 0.0,
    ) -> Leaves:
        """Return leaves without rows, for mapped rows like U with t residuals.

        Rows will be stored in float32 if no entry of U changes by a thousandth of the error, in
        units of the kernel's bandwidth.
        """
        xp = namespace(U)
        single = xp.astype(U, xp.float32)
        rounded = xp.astype(single, xp.float64)
        moved = float(xp.max(xp.abs(rounded - U)))
        dtype = xp.float64
        if moved <= ROUNDED * error:
            dtype = xp.float32

        # no row is in any leaf yet
        starts = np.zeros(tree.n_leaves + 1, dtype=np.intp)
        V = xp.astype(U[:0, :], dtype)
        counts = U[:0, 0]
        nothing = arrays.empty((0, t), U)
        return cls(kernel, tree, starts, V, nothing, counts, nothing, rho)

    def __call__(self, U: Array, budget: Budget | None = None) -> Array:
        """Return k(u, V) w in the leaf of each mapped row u, shape (n, t)."""
        shape = U.shape[0], self.w.shape[1]
        out = namespace(U).zeros(shape, dtype=U.dtype, device=U.device)
        visits = list(self._visits(self.tree(U)))

        def predict(visit: Visit) -> Array:
            evaluate = self._evaluator(visit.leaf)
            C = evaluate(arrays.take(U, visit.rows))
            values: Array = C @ self.w[visit.leaf, :]
            return values

        # several leaves at a time
        usable = 1
        if arrays.is_numpy(U):
            usable = usable_threads(budget or Budget())
        threads = max(1, min(usable, len(visits)))

        # with one BLAS thread the result does not depend on other threads of the process
        with one_blas_thread():
            predicted = in_order(predict, visits, threads)
            for visit, values in zip(visits, predicted, strict=True):
                out[arrays.place(visit.rows, U), :] = values
        return out

    def variance(self, U: Array, *, seen: bool = False) -> Array:
        """Return the variance of observations at mapped rows (n, t); `seen` rows count as new.

        The amplitude is the maximum-likelihood estimate Rᵀ(K + ρ diag(1/ω))⁻¹R/n.
        """
        xp = namespace(U)
        out = (1 + self.rho) * xp.ones_like(U[:, 0])
        for visit in self._visits(self.tree(U)):
            V = arrays.in_float64(self.V[visit.leaf, :])
            counts = self.counts[visit.leaf]
            for at in slices(0, len(visit.rows), BLOCK):
                some = visit.rows[at]
                H = arrays.take(U, some)
                found = nearest_variance(self.of_mapped, self.rho, H, V, counts, seen)
                out[arrays.place(some, U)] = found

        amplitude = xp.mean(self.R * self.w, axis=0)
        return out[:, None] * amplitude

    @cached_property
    def of_mapped(self) -> Radial:
        """The kernel for mapped rows."""
        return self.kernel.with_metric(None)

    def _evaluator(self, leaf: slice) -> Evaluator:
        """Return u ↦ k(u, V) of one leaf, prepared once."""
        kept = self._prepared
        found = kept.get(leaf.start)  # another thread may clear the dictionary
        if found is None:
            if len(kept) >= PREPARED:
                kept.clear()
            V = arrays.in_float64(self.V[leaf, :])
            found = self.of_mapped.against(V)
            kept[leaf.start] = found
        return found

    @cached_property
    def _prepared(self) -> dict[int, Evaluator]:
        """Prepared kernels of some leaves, by the first row of the leaf."""
        return {}

    def __getstate__(self) -> dict[str, object]:
        state = dict(self.__dict__)
        state.pop("_prepared", None)
        return state

    def _visits(self, leaf: Indices) -> Iterator[Visit]:
        """Yield rows that belong to one leaf, in blocks, and the slice of that leaf."""
        if len(leaf) == 0:
            return

        # rows sorted by leaf, and cut where the leaf changes
        order = np.argsort(leaf, kind="stable")
        steps = np.diff(leaf[order])
        cuts = np.flatnonzero(steps) + 1

        for together in np.split(order, cuts):
            of_leaf = self._rows_of(leaf[together[0]])
            n_leaf = of_leaf.stop - of_leaf.start
            if n_leaf == 0:
                continue

            # as many rows as their kernel values of the leaf fit in a block
            size = max(64, block_bytes(self.V) // (8 * n_leaf))
            for part in slices(0, len(together), size):
                yield Visit(together[part], of_leaf)

    def _rows_of(self, j: int) -> slice:
        """Return the slice of the rows of leaf j."""
        start, stop = self.starts[j : j + 2].tolist()
        return slice(start, stop)

    def add_rows(self, rows: Rows, task: Task, *aligned: Array) -> Leaves:
        """Return the leaves with added rows; leaves with new rows are solved again.

        The task comes from `LeafTask.over`, and returns the leaf and the data of each row.
        """
        every = LeafRows(self.V, self.R, self.counts, self.w)
        places = [self._rows_of(j) for j in range(self.tree.n_leaves)]
        before = [every.at(place) for place in places]

        # each leaf is solved where its rows are collected
        join = partial(_join_leaf, self.of_mapped, self.rho)
        joined = rows.group(task, join, before, *aligned)
        after = [new or old for old, new in zip(before, joined, strict=True)]

        # the leaves one after the other
        sizes = [len(leaf.counts) for leaf in after]
        starts = np.cumsum([0, *sizes])
        columns = zip(*after, strict=True)
        V, R, counts, w = map(namespace(self.R).concat, columns)
        return replace(self, starts=starts, V=V, R=R, counts=counts, w=w)


class Visit(NamedTuple):
    """Numbers of new rows, and the slice of the rows of their leaf."""

    rows: Indices
    leaf: slice


def _join_leaf(kernel: Radial, rho: float, before: LeafRows, table: Array) -> LeafRows:
    """Return a leaf with the rows of a table added, solved."""
    joined = before.and_more(table)
    K = joined.kernel_matrix(kernel)
    w = joined.coefficients(K, rho)
    return joined._replace(w=w)


def predict_leaf(kernel: Radial, rhos: Floats, H: Array, table: Array) -> Floats:
    """Return the predictions of a leaf, a table of V, R and ω, at rows H for each ρ: (r, h, t)."""
    rows = LeafRows.of_table(table, int(H.shape[1]))
    K = rows.kernel_matrix(kernel)
    C = kernel(H, rows.V)

    # each ρ overwrites its K: a copy, or the matrix itself for the last
    *others, last = rhos.tolist()
    coefficients = [rows.coefficients(K + 0.0, rho) for rho in others]
    coefficients.append(rows.coefficients(K, last))
    return np.stack([arrays.to_host(C @ w) for w in coefficients])


def nearest_variance(
    kernel: Radial,
    rho: float,
    H: Array,
    V: Array,
    counts: Array,
    seen: bool = False,
) -> Array:
    """Return the variance of observations at mapped rows H, over the amplitude, shape (h,).

    It is 1 + ρ − c(K + ρ diag(1/ω))⁻¹cᵀ with c = k(h, N) and K = k(N, N), where N are the rows of
    the leaf nearest to h, as in nearest-neighbour Gaussian processes (Datta et al. 2016). If the
    rows H were `seen` in training, each is its own nearest row, which is left out.
    """
    xp = namespace(H)
    C = kernel(H, V)
    k = min(NEAREST, V.shape[0] - seen)
    if k == 0:
        return xp.full_like(C[:, 0], 1.0 + rho)

    # c: kernel values of the k nearest rows
    near = _nearest(C, k, int(seen))
    c = xp.take_along_axis(C, arrays.place(near, C), axis=1)

    # K: kernel values among these rows
    flat = near.ravel()
    shape = *near.shape, V.shape[1]
    groups = xp.reshape(arrays.take(V, flat), shape)
    K = _kernel_in_groups(kernel, groups)

    # ρ diag(1/ω)
    times = xp.reshape(arrays.take(counts, flat), near.shape)
    noise = max(rho, LEAST) / times
    ridge = noise[:, :, None] * arrays.identity(k, H)

    # 1 + ρ − c(K + ρ diag(1/ω))⁻¹cᵀ
    solved = xp.linalg.solve(K + ridge, c[:, :, None])
    known = xp.sum(c * solved[:, :, 0], axis=1)
    return xp.clip(1.0 + rho - known, min=rho)


def _kernel_in_groups(kernel: Radial, groups: Array) -> Array:
    """Return the kernel values (h, k, k) among the k rows of each of h groups (h, k, q)."""
    xp = namespace(groups)

    # distances do not depend on the origin, and near the rows there is less rounding
    V = groups - groups[:, :1, :]

    # ‖v − w‖² = ‖v‖² + ‖w‖² − 2vᵀw
    norms = xp.sum(V * V, axis=2)
    products = V @ xp.matrix_transpose(V)
    sums = norms[:, :, None] + norms[:, None, :]
    squared = xp.clip(sums - 2 * products, min=0.0)

    K, _ = kernel.profile(squared)
    return K


def _nearest(C: Array, k: int, skipped: int) -> Indices:
    """Return the columns of the k largest entries of each row, after some skipped ones."""
    xp = namespace(C)
    if hasattr(xp, "topk"):  # PyTorch, which has no argpartition
        _, largest = xp.topk(C, k + skipped)
        return arrays.to_host(largest[:, skipped:])

    # the largest entry is last, and the k + skipped largest ones are behind `start`
    n = C.shape[1]
    stop = n - skipped
    start = stop - k
    order = xp.argpartition(C, [start, n - 1], axis=1)
    return arrays.to_host(order[:, start:stop])


# Which rows are in which leaf


class Evaluates(Protocol):
    """A model whose predictions the leaves correct."""

    def evaluate(self, rows: Rows, budget: Budget) -> Array:
        """Return the predictions for rows, shape (n, t)."""


def map_block(kernel: Mapped, X: Array) -> Array:
    """Return rows in memory mapped by the metric, in float64, shape (n, q)."""
    x = arrays.in_float64(arrays.as_float(X))
    return arrays.dense(kernel.mapping(x)(x))


def narrow(kernel: Radial, X: Array) -> Radial:
    """Return the kernel with a metric that maps rows to at most a few coordinates.

    These are the leading principal components of mapped rows. Codes give hundreds of coordinates,
    but the metric has shrunk most of them to nearly zero.
    """
    some = X[:PRINCIPAL_ROWS, :]
    U = arrays.to_host(map_block(kernel, some))
    metric = kernel.metric
    if U.shape[1] <= LEAF_WIDTH or metric is None:
        return kernel

    # eigenvectors of the largest eigenvalues, which come last
    covariance = np.cov(U, rowvar=False)
    _, V = np.linalg.eigh(covariance)
    leading = V[:, -LEAF_WIDTH:]

    # the map x ↦ xA, and then onto these components
    A = np.asarray(metric.map)
    if A.ndim == 2:
        A = A @ leading
    else:
        A = A.reshape(-1, 1) * leading
    return kernel.with_metric(Metric(A, metric.warp))


@dataclass(frozen=True, eq=False)
class LeafTask:
    """A task that finds the leaf of each row, and its residual.

    The metric of `kernel` maps the rows before the tree. If a mask `asked` (leaves,) is given, only
    rows of these leaves are used.
    """

    kernel: Mapped
    model: Evaluates
    tree: Tree
    budget: Budget
    asked: NDArray[np.bool_] | None = None

    def over(
        self,
        rows: Rows,
        Y: Array,
        weights: Array | None = None,
    ) -> tuple[Task, *tuple[Array, ...]]:
        """Return the task that groups rows by leaf, and the tables that come with the rows."""
        # blocks of X, U and R that fit in an eighth of the memory
        n_mapped = self.tree.directions.shape[1]
        width = rows.n_features + n_mapped + Y.shape[1]
        room = min(SCAN_BYTES, self.budget.bytes // 8)
        block = max(1, room // (8 * width))

        task = BlockTask("leaves", LeafTask.__call__, self, block)
        if weights is None:
            return task, Y
        return task, Y, weights[:, None]

    def __call__(
        self,
        X: Array,
        Y: Floats,
        weights: Floats | None = None,
    ) -> tuple[Indices, Array]:
        """Return the leaf of each row of positive weight, and a table of U, y − g(x) and ω."""
        U = map_block(self.kernel, X)
        leaf = self.tree(U)

        # rows of positive weight, in the leaves of the mask
        counts = np.ones((len(leaf), 1))
        if weights is not None:
            counts = weights
        is_kept = counts[:, 0] > 0
        if self.asked is not None:
            is_kept &= self.asked[leaf]
        kept = np.flatnonzero(is_kept)

        # residuals of these rows
        U = arrays.take(U, kept)
        x = arrays.in_float64(arrays.take(X, kept))
        predicted = self.model.evaluate(ArrayRows(x), self.budget)
        R = arrays.like(Y[kept], U) - predicted

        omega = arrays.like(counts[kept], U)
        table = namespace(U).concat([U, R, omega], axis=1)
        return leaf[kept], table


def rows_per_leaf(
    local: bool | int | str,
    rows: Rows,
    width: int,
    budget: Budget,
) -> int:
    """Return the largest number of rows of a leaf, so that two kernel matrices fit; 0 is no leaves.

    The leaves hold all rows, with `width` numbers for each. "auto" uses leaves if they fit.
    """
    if local is False:
        return 0

    # on a device, the free memory counts, and a kernel matrix takes twice as much
    accelerated = on_device(rows.template)
    room = budget.bytes
    matrices = 16
    if accelerated:
        room = free_bytes(rows.template)
        matrices = 32

    needed = 16 * rows.n * width
    if needed > room and local == "auto":
        return 0
    if needed > room:
        raise ValueError(
            f"Leaves hold all {rows.n} rows, which takes about {format_bytes(needed)}, but "
            f"max_memory is {format_bytes(budget.bytes)}: raise it, or choose local=False."
        )

    # the user's number of rows, or ours
    most = LEAF_ROWS[accelerated]
    if not isinstance(local, bool | str):
        most = int(local)
    fitting = int((room / matrices) ** 0.5)
    return max(1, min(most, fitting))
