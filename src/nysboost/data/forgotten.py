"""Rows that are no longer there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from nysboost.numerics.arrays import Indices


@dataclass(frozen=True)
class ForgottenRows:
    """What is left of the rows of an approximation that was saved without its data."""

    n: int
    n_features: int
    in_memory = True
    lazy = False

    @property
    def numbers_per_row(self) -> int:
        """How many numbers a row took."""
        return self.n_features

    def take(self, indices: Indices | slice) -> NoReturn:  # noqa: ARG002
        """Say that the rows are gone."""
        msg = (
            "This approximation was restored from a saved estimator, which does not keep the "
            f"{self.n} training rows. Call transform on the rows you need, or fit again."
        )
        raise RuntimeError(msg)

    @property
    def form(self) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))

    def pieces(self, size: int) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, size))

    def map(self, *_: Any, **__: Any) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))

    def fold(self, *_: Any, **__: Any) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))
