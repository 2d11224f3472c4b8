"""Landmarks, the columns or points that an approximation stands on, and samples of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nysboost.kernels import Columns, Evaluator, Kernel
from nysboost.numerics.arrays import (
    Array,
    Indices,
    convert_like,
    describe_location,
    is_sparse,
    like,
    namespace,
    stack_tables,
    take,
)
from nysboost.numerics.checks import positions
from nysboost.rows.recognise import scan_rows

if TYPE_CHECKING:
    from nysboost.gram.gram import Gram


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The m columns, `indices` (m,), or `points` (m, d), that one learner stands on.

    Rows of the data have both. Columns of a precomputed matrix have no points, and points that are
    no rows of the data have no indices.
    """

    indices: Indices | None
    points: Array | None

    def __len__(self) -> int:
        if self.points is None:
            return len(self.columns)
        return int(self.points.shape[0])

    @property
    def Z(self) -> Array:  # noqa: N802
        """The points, where there are points: under a kernel there always are."""
        assert self.points is not None
        return self.points

    @property
    def columns(self) -> Indices:
        """The columns, where there are columns: of a precomputed matrix there always are."""
        assert self.indices is not None
        return self.indices

    def evaluator(self, kernel: Kernel, template: Array) -> Evaluator:
        """Return x ↦ k(x, Z) for rows like `template`, with what depends on Z prepared once."""
        if isinstance(kernel, Columns):
            return kernel.at(self.columns)

        # landmarks stay where they were fitted
        x_location = describe_location(template)
        z_location = describe_location(self.Z)
        if x_location != z_location:
            raise ValueError(
                f"X is {x_location}, but this approximation was fitted with {z_location}. "
                "Move X there, or fit where X is."
            )
        return kernel.against(convert_like(template, self.Z))

    def take(self, places: Indices) -> Landmarks:
        """Return some of the landmarks, by their places among all."""
        indices = None
        if self.indices is not None:
            indices = self.indices[places]

        points = None
        if self.points is not None:
            points = take(self.points, places)
        return Landmarks(indices, points)

    def __repr__(self) -> str:
        kind = "columns"
        if self.indices is None:
            kind = "points"
        return f"Landmarks({len(self)} {kind})"


def given_landmarks(gram: Gram, landmarks: Any) -> Landmarks:
    """Return the user's own landmarks: row numbers (m,), a mask of rows, or points (m, d)."""
    if np.ndim(landmarks) != 2:
        indices = positions(landmarks, gram.n, "landmarks")
        if len(indices) == 0:
            raise ValueError("landmarks is empty: give at least one row or point.")
        return gram.landmarks(indices)

    points = scan_rows(landmarks, name="landmarks")
    precomputed = isinstance(gram.kernel, Columns)
    if precomputed or points.n_features != gram.rows.n_features:
        raise ValueError(
            f"landmarks has shape ({points.n}, {points.n_features}), but these data take "
            f"row numbers, or points of {gram.rows.n_features} features."
        )

    # in the namespace, dtype and form of the rows
    template = gram.rows.template
    Z = points.take(slice(None))
    if not is_sparse(Z):
        Z = like(Z, template)
    return Landmarks(None, convert_like(template, Z))


def pool(parts: Sequence[Landmarks]) -> Landmarks:
    """Return all the landmarks of several learners, in order, as one set."""
    if len(parts) == 1:
        return parts[0]

    # indices, if all landmarks are columns
    indices = [part.indices for part in parts if part.indices is not None]
    pooled_indices = None
    if len(indices) == len(parts):
        pooled_indices = np.concatenate(indices)

    # points, if they are not columns of a precomputed matrix
    points = [part.points for part in parts if part.points is not None]
    pooled_points = None
    if points:
        pooled_points = stack_tables(points)
    return Landmarks(pooled_indices, pooled_points)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows at `indices` of the data, in rising order, in memory, with `gram` = G[S, S].

    `kernel` is that of the data: of a precomputed matrix it picks among all columns.
    """

    indices: Indices
    gram: Gram
    kernel: Kernel

    @classmethod
    def of(cls, gram: Gram, indices: Indices) -> Sample:
        """Take these rows, each of them once; all of them, if in memory, are not copied."""
        indices = np.unique(indices)
        if len(indices) == gram.n and gram.rows.in_memory:
            return cls(indices, gram, gram.kernel)
        return cls(indices, gram.restrict(indices), gram.kernel)

    def positions(self, indices: Indices) -> Indices:
        """Return where rows of the data stand in the sample."""
        return np.searchsorted(self.indices, indices)

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def matrix(self) -> Array:
        """All of G[S, S], evaluated once, when it is first asked for."""
        return self.gram.whole()

    @cached_property
    def single(self) -> Array:
        """The matrix in float32, where that holds it: values and products take half of the time."""
        if "matrix" in self.__dict__:  # evaluated already
            G = self.matrix
        else:
            G = self.gram.in_float32().whole()
        xp = namespace(G)

        # far from float32's smallest and largest numbers products neither vanish nor overflow
        largest = float(xp.max(xp.linalg.diagonal(G)))
        if 1e-20 < largest < 1e20:
            return xp.astype(G, xp.float32, copy=False)
        return self.matrix

    def locate(self, landmarks: Landmarks) -> Landmarks:
        """Return landmarks of the whole matrix as landmarks of the sample, which has their rows."""
        if landmarks.indices is None:
            return landmarks
        return replace(landmarks, indices=self.positions(landmarks.indices))

    def lift_to_rows(self, landmarks: Landmarks) -> Landmarks:
        """Return landmarks of the sample as landmarks of the whole matrix."""
        if landmarks.indices is None:
            return landmarks  # points are the same everywhere
        first_rows = len(self) == self.indices[-1] + 1
        if first_rows:
            return landmarks  # positions in the sample are those in the whole
        return replace(landmarks, indices=self.indices[landmarks.indices])


def take_sample(gram: Gram, size: int, rng: np.random.Generator) -> Sample:
    """Return all rows or, where there are more than `size`, a uniform sample of them."""
    if gram.n <= size:
        return Sample.of(gram, np.arange(gram.n))
    chosen = rng.choice(gram.n, size=size, replace=False)
    return Sample.of(gram, chosen)
