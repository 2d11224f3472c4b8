"""Landmarks: the columns, or points, that an approximation stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse, vstack

from nysboost.numerics.arrays import Array, Indices, namespace


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


def pooled(parts: Sequence[Landmarks]) -> Landmarks:
    """Return all the landmarks of several learners, in order, as one set."""
    if len(parts) == 1:
        return parts[0]
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
