"""Rows of another table, seen otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from nysboost.numerics.arrays import Array, Indices, as_float
from nysboost.rows.rows import Rows, RowsView


@dataclass(frozen=True, eq=False)
class EncodedRows(RowsView):
    """Rows that become encoder(block, number of its first row) as they are read."""

    encoder: Callable[[Array, int], Array]
    in_memory = False

    @cached_property
    def template(self) -> Array:
        return as_float(self.encoder(self.rows.template, 0))

    @property
    def n_features(self) -> int:
        return int(self.template.shape[1])

    numbers_per_row = n_features

    def take(self, indices: Indices | slice) -> Array:
        return as_float(self.encoder(self.rows.take(indices), 0))

    def pieces(self, size: int) -> Iterator[Array]:
        start = 0
        for piece in self.rows.pieces(size):
            yield self.encoder(piece, start)
            start += int(piece.shape[0])


@dataclass(frozen=True)
class DroppedRows(Rows):
    """Placeholder for the rows of an approximation that was saved without its data."""

    n: int
    n_features: int
    in_memory = True

    def take(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "This approximation was restored from a saved estimator, which does not keep the "
            f"{self.n} training rows. Call transform on the rows you need, or fit again."
        )

    template = property(take)
    pieces = map = fold = fold_pairs = group = only = take
