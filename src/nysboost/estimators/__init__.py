"""Thin scikit-learn transformers."""

from nysboost.estimators.transformers import (
    BoostedNystroem,
    EnsembleNystroem,
    Nystroem,
    StandardNystroem,
)

__all__ = ["BoostedNystroem", "EnsembleNystroem", "Nystroem", "StandardNystroem"]
