"""Landmarks: the columns, or points, that an approximation stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse, vstack

from nysboost.numerics.arrays import Array, Indices, device, namespace


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The m columns, or points, that one learner stands on.

    Parameters
    ----------
    indices : array of shape (m,) or None
        Column numbers; None where the landmarks are points that are no rows of the data.
    points : array or CSR matrix of shape (m, d), or None
        The points themselves; None for a precomputed matrix.
    """

    indices: Indices | None
    points: Array | None

    def __len__(self) -> int:
        some = self.indices if self.points is None else self.points
        return int(some.shape[0])  # type: ignore[union-attr]

    def take(self, places: Indices) -> Landmarks:
        """Return some of the landmarks, by their places among all."""
        indices = None if self.indices is None else self.indices[places]
        if self.points is None or issparse(self.points):
            return Landmarks(indices, None if self.points is None else self.points[places])
        xp = namespace(self.points)
        where = xp.asarray(places, device=device(self.points))
        return Landmarks(indices, xp.take(self.points, where, axis=0))


def pooled(parts: Sequence[Landmarks]) -> Landmarks:
    """Return all the landmarks of several learners, in order, as one set."""
    indices = [part.indices for part in parts if part.indices is not None]
    points = [part.points for part in parts if part.points is not None]
    return Landmarks(
        np.concatenate(indices) if len(indices) == len(parts) else None,
        _stacked(points) if points else None,
    )


def _stacked(points: list[Array]) -> Array:
    return (
        vstack(points, format="csr") if issparse(points[0]) else namespace(*points).concat(points)
    )
