"""Thin scikit-learn transformers."""

from nysboost.estimators.transformers import BoostedNystroem as BoostedNystroem
from nysboost.estimators.transformers import EnsembleNystroem as EnsembleNystroem
from nysboost.estimators.transformers import Nystroem as Nystroem
from nysboost.estimators.transformers import StandardNystroem as StandardNystroem
