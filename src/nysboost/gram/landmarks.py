"""Landmarks: the columns, or points, that an approximation stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nysboost.data.recognise import as_rows
from nysboost.kernels import Kernel
from nysboost.kernels.distances import in_the_form_of
from nysboost.numerics.arrays import Array, Indices, is_sparse, like, stacked, take
from nysboost.numerics.checks import positions

if TYPE_CHECKING:
    from nysboost.gram.gram import Gram


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The m columns, or points, that one learner stands on.

    Parameters
    ----------
    indices : array of shape (m,) or None
        Column numbers; None where the landmarks are points that are no rows of the data.
    points : array or CSR matrix of shape (m, d), or None
        The points themselves; None for a precomputed matrix.
    basis : Kernel or None
        The function g(x, z) whose values take the place of k(x, z) in K̂ = g(X, Z) M g(Z, Y); None
        is the kernel itself. Plane waves make random features of it, and a kernel that is
        cut to clusters a block-diagonal basis.
    """

    indices: Indices | None
    points: Array | None
    basis: Kernel | None = None

    def __len__(self) -> int:
        some = self.indices if self.points is None else self.points
        return int(some.shape[0])  # type: ignore[union-attr]

    @property
    def Z(self) -> Array:  # noqa: N802
        """The points, where there are points: under a kernel there always are."""
        assert self.points is not None
        return self.points

    def take(self, places: Indices) -> Landmarks:
        """Return some of the landmarks, by their places among all."""
        indices = None if self.indices is None else self.indices[places]
        return Landmarks(indices, None if self.points is None else take(self.points, places))

    def __repr__(self) -> str:
        return f"Landmarks({len(self)} {'points' if self.indices is None else 'columns'})"


def given_landmarks(gram: Gram, landmarks: Any) -> Landmarks:
    """Return the user's own landmarks: row numbers (or a mask of rows), or points.

    Parameters
    ----------
    gram : Gram
        G.
    landmarks : array of shape (m,) or (m, d)
        Whole numbers are rows; a table is one of points, which need not be rows of the data.
    """
    form = gram.rows.form
    if np.ndim(landmarks) != 2:
        indices = positions(landmarks, gram.n, "landmarks")
        if len(indices) == 0:
            msg = "landmarks is empty: give at least one row or point."
            raise ValueError(msg)
        return gram.landmarks(indices)
    points = as_rows(landmarks, name="landmarks")
    if gram.landmarks(np.arange(1)).points is None or points.n_features != gram.rows.n_features:
        msg = (
            f"landmarks has shape ({points.n}, {points.n_features}), but these data take "
            f"row numbers, or points of {gram.rows.n_features} features."
        )
        raise ValueError(msg)
    Z = points.take(slice(None))
    return Landmarks(None, in_the_form_of(form, Z if is_sparse(Z) else like(Z, form)))


def pooled(parts: Sequence[Landmarks]) -> Landmarks:
    """Return all the landmarks of several learners, in order, as one set."""
    if len(parts) == 1:
        return parts[0]
    indices = [part.indices for part in parts if part.indices is not None]
    points = [part.points for part in parts if part.points is not None]
    return Landmarks(
        np.concatenate(indices) if len(indices) == len(parts) else None,
        stacked(points) if points else None,
    )
