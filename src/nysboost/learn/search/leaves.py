"""Kernel ridge regression on all rows: exact in each leaf of a tree of mapped rows.

In a leaf with mapped rows V, residuals R and weights ω of the rows the coefficients solve

    (k(V, V) + ρ diag(1/ω)) w = R,

and a new row, mapped to u, is predicted by k(u, V) w of its own leaf. The tree is built from rows
in memory. Then all rows are grouped by leaf, and each leaf is solved, for Dask's rows on a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import lapack

from nysboost.learn.search.tuning import LEAF_ROWS, NEAREST
from nysboost.numerics import arrays
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    free_bytes,
    namespace,
    on_device,
)
from nysboost.numerics.budget import Budget, slices
from nysboost.numerics.linalg import symmetric
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import one_blas_thread, usable_threads
from nysboost.numerics.tree import Tree
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.driver import BlockTask, Task, in_order
from nysboost.rows.sizes import SCAN_BYTES

BLOCK, PREPARED = 256, 16
"""Rows whose variances are computed together; leaves whose prepared kernels are kept."""

ROUNDED, LEAST = 1e-3, 1e-8
"""Rows are stored in float32 if that changes them by at most this share of the error; ρ is at least
the second, below which rounding may make a kernel matrix indefinite."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """All rows, leaf after leaf, with the coefficients of their ridge regressions.

    `starts` (leaves + 1,) are the first rows of the leaves; V (n, q), R (n, t), counts (n,) and
    w (n, t) are mapped rows, residuals, ω and coefficients. V may be in float32, and the
    coefficients are those of the rounded rows.
    """

    kernel: Any
    tree: Tree
    starts: Indices
    V: Array
    R: Array
    counts: Array
    w: Array
    rho: float

    @classmethod
    def of(
        cls, kernel: Any, tree: Tree, rho: float, U: Array, t: int, error: float = 0.0
    ) -> Leaves:
        """Return leaves without rows, for mapped rows like U with t residuals.

        Rows will be stored in float32 if no entry of U changes by a thousandth of the error, in
        units of the kernel's bandwidth.
        """
        xp = namespace(U)
        moved = float(xp.max(xp.abs(xp.astype(xp.astype(U, xp.float32), xp.float64) - U)))
        V = xp.astype(U[:0, :], xp.float32 if moved <= ROUNDED * error else xp.float64)
        R, starts = arrays.empty((0, t), U), np.zeros(tree.n_leaves + 1, dtype=np.intp)
        return cls(kernel, tree, starts, V, R, U[:0, 0], R, rho)

    def __call__(self, U: Array, budget: Budget | None = None) -> Array:
        """Return k(u, V) w of the leaf of each mapped row u, shape (n, t)."""
        out = namespace(U).zeros((U.shape[0], self.w.shape[1]), dtype=U.dtype, device=U.device)
        visits = list(self._visits(self.tree(U)))

        def work(visit: tuple[Indices, slice]) -> Array:
            rows, at = visit
            values: Array = self._against(at)(arrays.take(U, rows)) @ self.w[at, :]
            return values

        usable = usable_threads(budget or Budget()) if arrays.is_numpy(U) else 1
        threads = max(1, min(usable, len(visits)))
        # with one BLAS thread the result does not depend on other threads of the process
        with one_blas_thread():
            for (rows, _), values in zip(visits, in_order(work, visits, threads), strict=True):
                out[arrays.place(rows, U), :] = values
        return out

    def variance(self, U: Array, *, seen: bool = False) -> Array:
        """Return the variance of observations at mapped rows, (n, t), of `seen` rows as if new.

        The amplitude is the maximum-likelihood estimate Rᵀ(K + ρ diag(1/ω))⁻¹R/n.
        """
        out = namespace(U).full((U.shape[0],), 1.0 + self.rho, dtype=U.dtype, device=U.device)
        for rows, at in self._visits(self.tree(U)):
            leaf = arrays.in_float64(self.V[at, :]), self.counts[at]
            for some in np.array_split(rows, -(-len(rows) // BLOCK)):
                found = nearest_variance(self.kernel, self.rho, arrays.take(U, some), *leaf, seen)
                out[arrays.place(some, U)] = found
        return out[:, None] * namespace(U).mean(self.R * self.w, axis=0)

    def _against(self, at: slice) -> Any:
        """Return u ↦ k(u, V) of one leaf, prepared once."""
        kept = self.__dict__.setdefault("_prepared", {})
        found = kept.get(at.start)  # another thread may clear the dictionary
        if found is None:
            if len(kept) >= PREPARED:
                kept.clear()
            found = kept[at.start] = self.kernel.against(arrays.in_float64(self.V[at, :]))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in dict(self.__dict__).items() if name != "_prepared"}

    def _visits(self, leaf: Indices) -> Iterator[tuple[Indices, slice]]:
        """Yield rows that belong to one leaf, in blocks, and the slice of that leaf."""
        order = np.argsort(leaf, kind="stable")
        cuts = np.flatnonzero(np.diff(leaf[order])) + 1
        for together in np.split(order, cuts) if len(order) else []:
            at = slice(*self.starts[leaf[together[0]] :][:2].tolist())
            if at.stop > at.start:
                size = max(64, block_bytes(self.V) // (8 * (at.stop - at.start)))
                for part in slices(0, len(together), size):
                    yield together[part], at

    def add_rows(self, rows: Any, task: Task, *aligned: Array) -> Leaves:
        """Return the leaves with more rows; leaves that have new rows are solved again.

        The task, of `leaf_rows`, returns the leaf and the data of each row.
        """
        every = self.V, self.R, self.counts, self.w
        before = [tuple(part[a:b, ...] for part in every) for a, b in pairwise(self.starts)]
        join = partial(_join_leaf, self.kernel, self.rho)
        found = rows.group(task, join, [leaf[:3] for leaf in before], *aligned)
        after = [old if new is None else new for old, new in zip(before, found, strict=True)]
        V, R, counts, w = map(namespace(self.V).concat, zip(*after, strict=True))
        starts = np.cumsum([0, *(leaf[0].shape[0] for leaf in after)])
        return replace(self, starts=starts, V=V, R=R, counts=counts, w=w)


def _join_leaf(kernel: Any, rho: float, before: tuple[Array, ...], table: Array) -> Any:
    """Return V, R, ω and w of a leaf with the rows of a table added."""
    xp, dtype, q = namespace(table), before[0].dtype, before[0].shape[1]
    new = xp.astype(table[:, :q], dtype), table[:, q:-1], table[:, -1]
    V, R, counts = map(xp.concat, zip(before, new, strict=True))
    return V, R, counts, _solve(_kernel_matrix(kernel, V), R, counts, rho)


def predict_leaf(kernel: Any, rhos: Floats, H: Array, table: Array) -> Floats:
    """Return what a leaf, a table of V, R and ω, predicts at rows H with each ρ: (r, h, t)."""
    q, last = H.shape[1], len(rhos) - 1
    V, R, counts = table[:, :q], table[:, q:-1], table[:, -1]
    K, C = _kernel_matrix(kernel, V), kernel(H, V)
    return np.stack([
        arrays.to_host(C @ _solve(K if i == last else K + 0.0, R, counts, float(rho)))
        for i, rho in enumerate(rhos)
    ])  # fmt: skip


def _kernel_matrix(kernel: Any, V: Array) -> Array:
    """Return k(V, V), shape (n, n), in float64."""
    V = arrays.in_float64(V)
    return symmetric(lambda i, j: kernel(V[i[0] : i[-1] + 1, :], V[: len(j), :]), V.shape[0])


def _solve(K: Array, R: Array, counts: Array, rho: float) -> Array:
    """Return (K + ρ diag(1/ω))⁻¹R, (n, t), or 0 if that fails by rounding; K is overwritten."""
    xp = namespace(K)
    diagonal = xp.reshape(K, (-1,))[:: K.shape[0] + 1]
    diagonal += max(rho, LEAST) / counts
    if isinstance(K, np.ndarray):
        _, found, failed = lapack.dposv(K.T, R, lower=True, overwrite_a=True)
        return np.asarray(found) if not failed else np.zeros_like(R)
    triangular = getattr(xp.linalg, "solve_triangular", None)  # which the standard does not have
    if triangular is None:
        return xp.linalg.solve(K, R)
    L = xp.linalg.cholesky(K)
    return triangular(L.T, triangular(L, R, upper=False), upper=True)


def nearest_variance(
    kernel: Any, rho: float, H: Array, V: Array, counts: Array, seen: bool = False
) -> Array:
    """Return the variance of observations at mapped rows H, over the amplitude, shape (h,).

    It is 1 + ρ − c(K + ρ diag(1/ω))⁻¹cᵀ, with c and K of the nearest rows of the leaf only, as in
    nearest-neighbour Gaussian processes (Datta et al. 2016). A row that was `seen` is its own
    nearest row, which is left out.
    """
    xp, (h, q), last = namespace(H), H.shape, V.shape[0] - seen
    C, k = kernel(H, V), min(NEAREST, last)
    if k == 0:
        return xp.full_like(C[:, 0], 1.0 + rho)
    if hasattr(xp, "topk"):  # PyTorch, which has no argpartition
        near = arrays.to_host(xp.topk(C, k + seen)[1][:, int(seen) :])
    else:
        order = xp.argpartition(C, [last - k, last + seen - 1], axis=1)
        near = arrays.to_host(order[:, last - k : last])
    c = xp.take_along_axis(C, arrays.place(near, C), axis=1)
    W = xp.reshape(arrays.take(V, near.ravel()), (h, k, q))
    W = W - W[:, :1, :]
    G, norms = W @ xp.matrix_transpose(W), xp.sum(W * W, axis=2)
    squared = xp.clip(norms[:, :, None] + norms[:, None, :] - 2 * G, min=0.0)
    noise = max(rho, LEAST) / xp.reshape(arrays.take(counts, near.ravel()), (h, k))
    K = kernel.profile(squared)[0] + noise[:, :, None] * arrays.identity(k, W)
    known = xp.sum(c * xp.linalg.solve(K, c[:, :, None])[:, :, 0], axis=1)
    return xp.clip(1.0 + rho - known, min=rho)


def map_block(kernel: Any, X: Array) -> Array:
    """Return rows in memory behind the metric, in float64, shape (n, q)."""
    x = arrays.in_float64(arrays.as_float(X))
    return arrays.dense(kernel.mapping(x)(x))


def leaf_rows(
    rows: Any, Y: Array, weights: Array | None, model: Any, tree: Tree,
    budget: Budget, asked: Any = True,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the task that groups rows by leaf, for leaves `asked` for, and its aligned tables."""
    width = rows.n_features + tree.directions.shape[1] + Y.shape[1]
    size = max(1, min(SCAN_BYTES, budget.bytes // 8) // (8 * width))
    asked = np.broadcast_to(asked, tree.n_leaves)
    task = BlockTask("leaves", _leaf_rows, (model, tree, asked, budget), size)
    return (task, Y) if weights is None else (task, Y, weights[:, None])


def _leaf_rows(
    shared: Any, X: Array, Y: Floats, weights: Floats | None = None
) -> tuple[Indices, Array]:
    """Return the leaf of each row of positive weight, and a table of U, y − g(x) and ω."""
    model, tree, asked, budget = shared
    U = map_block(model.kernel, X)
    leaf = tree(U)
    counts = np.ones((len(leaf), 1)) if weights is None else weights
    kept = np.flatnonzero((counts[:, 0] > 0) & asked[leaf])
    U, rows = arrays.take(U, kept), ArrayRows(arrays.in_float64(arrays.take(X, kept)))
    R = arrays.like(Y[kept], U) - model.evaluate(rows, budget)
    return leaf[kept], namespace(U).concat([U, R, arrays.like(counts[kept], U)], axis=1)


def rows_per_leaf(local: bool | int | str, rows: Any, width: int, budget: Budget) -> int:
    """Return how many rows a leaf has at most, so that two kernel matrices fit; 0 is no leaves.

    The leaves hold all rows, with `width` numbers for each; "auto" has leaves if these fit.
    """
    if local is False:
        return 0
    accelerated = on_device(rows.template)
    room = free_bytes(rows.template) if accelerated else budget.bytes
    needed = 16 * rows.n * width
    if needed <= room:
        most = LEAF_ROWS[accelerated] if isinstance(local, bool | str) else int(local)
        return max(1, min(most, int((room / (32 if accelerated else 16)) ** 0.5)))
    if local == "auto":
        return 0
    msg = (
        f"Leaves hold all {rows.n} rows, which takes about {format_bytes(needed)}, but max_memory "
        f"is {format_bytes(budget.bytes)}: allow more memory, or take local=False."
    )
    raise ValueError(msg)
