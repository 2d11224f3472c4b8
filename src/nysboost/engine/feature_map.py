"""Feature maps: x ↦ k(x, Z) N, the form in which every approximation meets new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nysboost.data.outputs import make_output
from nysboost.data.rows import ArrayRows, Stream, as_float, refuse_non_finite
from nysboost.engine.blocks import Plan, Scratch, each_block, plan
from nysboost.gram import Gram, Landmarks
from nysboost.kernels import Evaluator
from nysboost.kernels.distances import in_the_form_of
from nysboost.numerics.arrays import (
    Array,
    Indices,
    block_bytes,
    dense,
    dtype_name,
    empty,
    is_numpy,
    like,
    product_into,
    take,
    to_host,
)
from nysboost.numerics.memory import Budget

ENDLESS = 2**30
"""Where only the end will tell how many rows there are, there may be many."""

PANEL = 128
"""Columns of a triangular N that are multiplied at a time, without the zeros below them: with 500
landmarks two thirds of the time of the whole product, in float32 and on one core."""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """x ↦ k(x, Z) N, with N = blockdiag(P_1, …, P_p) · rotation.

    Parameters
    ----------
    gram : Gram
        Evaluates the kernel.
    landmarks : Landmarks
        All landmarks Z, learner after learner.
    projections : tuple of arrays of shape (m_i, k_i)
        The learners' projections, scaled by the roots of their weights; none at all are the
        kernel values themselves, N = I.
    rotation : array of shape (Σk_i, r) or None
        Mixes the learners' features; None leaves them side by side.
    """

    gram: Gram
    landmarks: Landmarks
    projections: tuple[Array, ...] = ()
    rotation: Array | None = None

    @property
    def n_features_out(self) -> int:
        """Number of features r."""
        if self.rotation is not None:
            return int(self.rotation.shape[1])
        if not self.projections:
            return len(self.landmarks)
        return sum(int(P.shape[1]) for P in self.projections)

    @property
    def normalization(self) -> Array:
        """N as one dense array of shape (Σm_i, r)."""
        parts, first = self.projections, self.projections[0]
        shape = (len(self.landmarks), sum(int(P.shape[1]) for P in parts))
        dense = like(np.zeros(shape), first)
        row = column = 0
        for P in parts:
            dense[row : row + P.shape[0], column : column + P.shape[1]] = P
            row, column = row + P.shape[0], column + P.shape[1]
        return dense if self.rotation is None else dense @ self.rotation

    def __repr__(self) -> str:
        return (
            f"FeatureMap({len(self.landmarks)} landmarks → {self.n_features_out} features, "
            f"{self.gram!r})"
        )

    def with_gram(self, gram: Gram) -> FeatureMap:
        """Return the same map over another Gram of the same kernel."""
        return replace(self, gram=gram)

    def alone(self) -> FeatureMap:
        """Return the same map without the data it was fitted on: what travels to a worker."""
        return self.with_gram(self.gram.forget_rows())

    def simplified(self) -> FeatureMap:
        """Return the same map through N itself, where that costs fewer operations."""
        if self.rotation is None:
            return self
        r = self.n_features_out
        in_two = sum(P.shape[0] * P.shape[1] for P in self.projections)
        in_two += self.rotation.shape[0] * r
        if in_two <= len(self.landmarks) * r:
            return self
        return FeatureMap(self.gram, self.landmarks, (self.normalization,))

    def __call__(self, X: Array) -> Array:
        """Return the features of the rows of an array or CSR matrix, shape (n, r)."""
        if X.shape[0] == 0:
            return empty((0, self.n_features_out), as_float(dense(X)))
        return self.write(ArrayRows(X))

    def at(self, rows: Indices | slice) -> Array:
        """Return the features of the Gram's own rows, shape (len(rows), r)."""
        if not isinstance(rows, slice) and len(rows) == 0:
            return empty((0, self.n_features_out), self.gram.rows.form)
        X, evaluate = self.gram.operands(rows, self.landmarks)
        return self._pass(ArrayRows(X), evaluate, None, self.gram.budget)

    def write(self, rows: Stream, out: Any = None, budget: Budget | None = None) -> Array:
        """Write the features of all rows, one block at a time: the engine of every pass.

        Parameters
        ----------
        rows : Stream
            Rows, wherever they come from.
        out : None, array, HDF5 or Zarr array, or path of a .npy file
            Where the features go; None is a new array.
        budget : Budget or None
            Memory and cores; None is the Gram's.

        Returns
        -------
        array of shape (n, r)
            `out` itself, or the file as a memory map.
        """
        evaluate = self.gram.against(self.landmarks, rows.form)
        if rows.lazy:
            return self._lazily(rows, out)
        _refuse_overlap(rows, out)
        return self._pass(rows, evaluate, out, budget or self.gram.budget)

    def _lazily(self, rows: Any, out: Any) -> Array:
        """Return the features of Dask rows as a Dask array: its tasks call this map."""
        if out is not None:
            msg = (
                "The features of a Dask collection are a Dask array, which says itself where it "
                "goes: transform(X).to_zarr(path), or dask.array.store(transform(X), out)."
            )
            raise ValueError(msg)
        whole = (FeatureMap.__call__, self.alone(), self.n_features_out)
        features: Array = rows.map(*whole, task="features")
        return features

    def _pass(self, rows: Stream, evaluate: Evaluator, out: Any, budget: Budget) -> Array:
        """Read pieces of rows, share their blocks among the cores, and write F = k(X, Z) N."""
        form = rows.form
        parts = [_panels(like(P, form)) for P in self.projections]
        rotation = None if self.rotation is None else like(self.rotation, form)
        output = make_output(out, rows.n, self.n_features_out, form)
        plan = self._plan(rows, form, not (rows.in_memory and output.in_memory), budget)
        scratch = Scratch(len(self.landmarks), form)

        def fill(X: Array, start: int, space: Array, block: slice) -> None:
            x = in_the_form_of(form, as_float(take(X, block)))
            refuse_non_finite(x, start + block.start)
            values = evaluate(x, scratch(x.shape[0]))
            if rotation is None:
                _multiply_blocks(values, parts, space[block, :])
            else:
                wide = empty((x.shape[0], rotation.shape[0]), form)
                _multiply_blocks(values, parts, wide)
                product_into(wide, rotation, space[block, :])

        output.begin()
        try:
            for piece in rows.pieces(plan.piece):
                space = output.room(piece.shape[0])
                each_block(partial(fill, piece, output.written, space), piece.shape[0], plan)
                output.write(space)
            return output.finish()
        except BaseException:
            output.abandon()
            raise

    def _plan(self, rows: Stream, form: Array, streamed: bool, budget: Budget) -> Plan:
        """Share out the memory: prepared operands, blocks of kernel values, pieces of rows."""
        c, d, r = len(self.landmarks), rows.numbers_per_row, self.n_features_out
        itemsize = np.dtype(dtype_name(form)).itemsize
        wide = 0 if self.rotation is None else self.rotation.shape[0]
        narrow = sum(P.shape[0] * P.shape[1] for P in self.projections) + wide * r
        held = d if self.landmarks.points is not None else 0  # values are taken, not computed
        # other libraries have threads of their own, and modes that belong to a thread
        shared = self.gram.parallel and is_numpy(form)
        per_value = (self.landmarks.basis or self.gram).bytes_per_value(form)
        return plan(
            ENDLESS if rows.n is None else rows.n,
            fixed=itemsize * (2 * c * (held + 2) + narrow),
            block_row=itemsize * (2 * held + 8 + wide) + per_value * c,
            piece_row=(8 * d + itemsize * r) if streamed else 0,
            budget=budget,
            cache_bytes=block_bytes(form),
            parallel=shared,
        )


def _refuse_overlap(rows: Stream, out: Any) -> None:
    """Raise if features would be written over rows that are still to be read."""
    both = (getattr(rows, "data", None), out)
    if all(isinstance(part, np.ndarray) for part in both) and np.may_share_memory(*both):
        msg = "out lies in the memory of X: give it memory of its own."
        raise ValueError(msg)


def _panels(P: Array) -> list[Array]:
    """Return a projection as panels of columns where it is upper triangular, else in one piece.

    A panel ends at its last row that is not zero.
    """
    height, width = P.shape
    host = to_host(P)
    if height != width or width <= PANEL or host[1:, 0].any() or np.tril(host, -1).any():
        return [P]
    stops = [*range(PANEL, width, PANEL), width]
    return [P[:stop, start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def _multiply_blocks(values: Array, parts: list[list[Array]], out: Array) -> None:
    """Write values · blockdiag(parts) into `out`: p products of m×k, not one of pm×pk."""
    row = column = 0
    if not parts:
        out[...] = values
    for panels in parts:
        for P in panels:
            m, k = P.shape
            product_into(values[:, row : row + m], P, out[:, column : column + k])
            column += k
        row += m
