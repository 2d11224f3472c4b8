"""Counting kernel values: a cost that does not depend on the hardware."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from nysboost.kernels import Evaluator
from nysboost.numerics.arrays import Array


class EntryCounter:
    """How many kernel values have been evaluated, by all threads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def add(self, n_rows: int, n_columns: int) -> None:
        """Count the entries of a block."""
        with self._lock:
            self.count += int(n_rows) * int(n_columns)

    def counted(self, evaluate: Evaluator) -> Evaluator:
        """Return the same evaluator, with every value counted."""
        return CountedEvaluator(evaluate, self)

    def __reduce__(self) -> tuple[type[EntryCounter], tuple[int]]:
        return EntryCounter, (self.count,)


@dataclass(frozen=True, eq=False)
class CountedEvaluator(Evaluator):
    """An evaluator that adds the number of its values to a counter."""

    evaluate: Evaluator
    counter: EntryCounter

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(X, Z), shape (n, m)."""
        values = self.evaluate(X, out)
        self.counter.add(values.shape[0], values.shape[1])
        return values
