"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from nysboost.gram.gram import (
    ALL_ZERO,
    NOT_FINITE,
    EntryCounter,
    Gram,
    KernelGram,
    Landmarks,
    Sample,
    given_landmarks,
    make_gram,
    on_other_rows,
    pool,
    refuse_indefinite,
    require_points,
    take_sample,
)
from nysboost.gram.precomputed import PrecomputedGram

__all__ = [
    "ALL_ZERO", "NOT_FINITE", "EntryCounter", "Gram", "KernelGram", "Landmarks", "PrecomputedGram",
    "Sample", "given_landmarks", "make_gram", "on_other_rows", "pool", "refuse_indefinite",
    "require_points", "take_sample",
]  # fmt: skip
