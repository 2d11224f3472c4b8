"""Regression and classification: landmarks learn the metric, then all rows are used to predict."""

from nysboost.learn import target as target  # registers the method "target"
from nysboost.learn.classification import NystroemClassifier as NystroemClassifier
from nysboost.learn.regression import NystroemRegressor as NystroemRegressor
