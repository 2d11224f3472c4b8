"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from nysboost.gram.gram import Gram, KernelGram
from nysboost.gram.landmarks import Landmarks, given_landmarks, pooled
from nysboost.gram.make import make_gram
from nysboost.gram.other_rows import on_other_rows
from nysboost.gram.precomputed import PrecomputedGram
from nysboost.gram.probe import ALL_ZERO, NOT_FINITE, refuse_indefinite
from nysboost.gram.sample import Sample, take_sample

__all__ = [
    "ALL_ZERO",
    "NOT_FINITE",
    "Gram",
    "KernelGram",
    "Landmarks",
    "PrecomputedGram",
    "Sample",
    "given_landmarks",
    "make_gram",
    "on_other_rows",
    "pooled",
    "refuse_indefinite",
    "take_sample",
]
