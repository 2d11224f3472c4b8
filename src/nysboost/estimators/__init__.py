"""Thin scikit-learn transformers."""

from nysboost.estimators.families import BoostedNystroem, EnsembleNystroem, StandardNystroem
from nysboost.estimators.nystroem import Nystroem

__all__ = ["BoostedNystroem", "EnsembleNystroem", "Nystroem", "StandardNystroem"]
