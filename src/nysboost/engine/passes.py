"""Passes over the features of all rows: map and fold, here or on Dask's workers.

Products, spectra, systems and sums are all one of two passes. A *map* makes something of
each block of F = k(X, Z) N; a *fold* makes something small of each and merges these. What
they do to a block is a plain function of a *shared* value, the block and, where rows have
company, the same rows of other tables: such a function can be sent to a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nysboost.data.rows import Rows
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.arrays import Array

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Features:
    """F of all rows, in blocks.

    Parameters
    ----------
    rows : Rows
        X; or F itself, where there was room to keep it.
    transform : FeatureMap or None
        x ↦ k(x, Z) N; None if the rows are F already.
    size : int
        Rows of a block; of Dask rows the chunks are the blocks.
    """

    rows: Rows
    transform: FeatureMap | None
    size: int

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any = None,
        *beside: Array,
        task: str,
    ) -> T:
        """Return the merger of function(shared, F[block], *others[block]) over all blocks.

        Parameters
        ----------
        function : callable
            Makes something small of a block.
        merge : callable
            Makes one of two neighbours.
        shared : object
            What `function` needs at every block.
        *beside : arrays of shape (n, q)
            Tables of the same rows.
        task : str
            What this is called in Dask's dashboard.
        """
        load: Any = (self.transform, function, shared)
        done: T = self.rows.fold(_on_features, merge, load, *beside, task=task, size=self.size)
        return done

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Array,
        task: str,
    ) -> Array:
        """Return function(shared, F[block], *others[block]) for all blocks, one below the other.

        Parameters
        ----------
        function : callable
            Returns an array of shape (len(block), columns).
        shared, *beside, task
            As in `fold`.
        columns : int
            Number of columns of the result.

        Returns
        -------
        array of shape (n, columns)
            Of Dask rows a Dask array, yet to be computed.
        """
        load = (self.transform, function, shared)
        return self.rows.map(_on_features, load, columns, *beside, task=task, size=self.size)


def _on_features(
    load: tuple[FeatureMap | None, Callable[..., T], Any], block: Array, *beside: Array
) -> T:
    """Do to the features of a block of rows what is to be done: this is what a worker runs."""
    transform, function, shared = load
    return function(shared, block if transform is None else transform(block), *beside)
