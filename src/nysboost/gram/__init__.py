"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from nysboost.gram.gram import (
    ALL_ZERO,
    NOT_FINITE,
    EntryCounter,
    Gram,
    KernelGram,
    make_gram,
    on_other_rows,
    refuse_indefinite,
)
from nysboost.gram.landmarks import Landmarks, Sample, given_landmarks, pool, take_sample
from nysboost.gram.precomputed import PrecomputedGram

__all__ = [
    "ALL_ZERO", "NOT_FINITE", "EntryCounter", "Gram", "KernelGram", "Landmarks", "PrecomputedGram",
    "Sample", "given_landmarks", "make_gram", "on_other_rows", "pool", "refuse_indefinite",
    "take_sample",
]  # fmt: skip
