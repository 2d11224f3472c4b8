"""Thin scikit-learn transformers over the methods of the catalogue."""

from nysboost.estimators.any_method import NystroemFeatures
from nysboost.estimators.boosted import BoostedNystroem
from nysboost.estimators.ensemble import EnsembleNystroem
from nysboost.estimators.standard import StandardNystroem

__all__ = ["BoostedNystroem", "EnsembleNystroem", "NystroemFeatures", "StandardNystroem"]
