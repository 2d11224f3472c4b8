"""Views of rows: selected rows, encoded rows, and placeholders for unsaved rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from nysboost.numerics.arrays import Array, Indices, Selection, as_float, slices
from nysboost.rows.rows import Rows


@dataclass(frozen=True, eq=False)
class RowsView(Rows):
    """A view of another table; subclasses override the differences."""

    rows: Rows

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.rows.n_features

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""
        return self.rows.numbers_per_row

    @property
    def template(self) -> Array:
        """One row in floating point."""
        return self.rows.template

    @property
    def in_memory(self) -> bool:
        """Whether the rows of the other table take no memory of their own."""
        return self.rows.in_memory

    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices`."""
        return self.rows.take(indices)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order."""
        return self.rows.pieces(size)

    def shares_memory(self, array: object) -> bool:
        """Whether writing to the array would change the other table."""
        return self.rows.shares_memory(array)


@dataclass(frozen=True, eq=False)
class SelectedRows(RowsView):
    """Some rows of a table, in any order, which are read when needed."""

    indices: Indices

    @property
    def n(self) -> int:
        """Number of rows that are selected."""
        return len(self.indices)

    def take(self, indices: Selection) -> Array:
        """Return rows by their positions among the selected ones."""
        return self.rows.take(self.indices[indices])

    def pieces(self, size: int) -> Iterator[Array]:
        """Read the selected rows once, in order."""
        return (self.take(at) for at in slices(0, self.n, size))


@dataclass(frozen=True, eq=False)
class EncodedRows(RowsView):
    """Rows that are encoded as encoder(block, number of its first row) when they are read."""

    encoder: Callable[[Array, int], Array]
    in_memory = False

    @cached_property
    def template(self) -> Array:
        """One encoded row."""
        return as_float(self.encoder(self.rows.template, 0))

    @property
    def n_features(self) -> int:
        """Number of columns after encoding."""
        return int(self.template.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Number of values of an encoded row, which is dense."""
        return self.n_features

    def take(self, indices: Selection) -> Array:
        """Return encoded rows."""
        encoded = self.encoder(self.rows.take(indices), 0)
        return as_float(encoded)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read and encode all rows once, in order."""
        start = 0
        for piece in self.rows.pieces(size):
            yield self.encoder(piece, start)
            start += int(piece.shape[0])


class DroppedRows(Rows):
    """Placeholder for the rows of an approximation that was saved without its training data."""

    in_memory = True

    def __init__(self, n: int, n_features: int) -> None:
        self._n = n
        self._n_features = n_features

    @property
    def n(self) -> int:
        """Number of rows of the original table."""
        return self._n

    @property
    def n_features(self) -> int:
        """Number of columns of the original table."""
        return self._n_features

    @property
    def numbers_per_row(self) -> int:
        """Number of values of a row of the original table."""
        return self._n_features

    @property
    def template(self) -> Array:
        """Raise a RuntimeError, because there are no rows."""
        self._refuse()

    def take(self, indices: Selection) -> Array:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def pieces(self, size: int) -> Iterator[Array]:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def only(self, indices: Indices) -> Rows:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"This call needs the {self.n} training rows, but a saved model does not contain them. "
            "Fit again, or save an approximation with nysboost.save(model, path, with_rows=True). "
            "Features and predictions of rows that you pass work without them."
        )
