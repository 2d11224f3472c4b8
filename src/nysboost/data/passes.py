"""Passes over rows that are here: a map and a fold, one block of rows after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, TypeVar

from nysboost.numerics.arrays import Array, empty

T = TypeVar("T")


class LocalPasses(ABC):
    """A table of n rows that is read piece by piece."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @abstractmethod
    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Array,
        task: str,  # noqa: ARG002
        size: int,
    ) -> Array:
        """Return function(shared, block, *others) for each block of rows, one below the other."""
        result: Array | None = None
        for at, block in self._blocks(size):
            part = function(shared, block, *(other[at, :] for other in beside))
            result = empty((self.n, columns), part) if result is None else result
            result[at, ...] = part
        assert result is not None  # rows are never none
        return result

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *beside: Array,
        task: str,  # noqa: ARG002
        size: int,
    ) -> T:
        """Return the merger of function(shared, block, *others) over all blocks of rows."""
        return reduce(
            merge,
            (
                function(shared, block, *(other[at, :] for other in beside))
                for at, block in self._blocks(size)
            ),
        )

    def _blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        stop = 0
        for piece in self.pieces(size):
            start, stop = stop, stop + piece.shape[0]
            yield slice(start, stop), piece
