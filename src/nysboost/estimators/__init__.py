"""Estimators based on features: transformers, kernel PCA, clustering, two-sample tests."""

from nysboost.estimators.clustering import SpectralClustering as SpectralClustering
from nysboost.estimators.gaussian_process import (
    GaussianProcessClassifier as GaussianProcessClassifier,
)
from nysboost.estimators.kernel_pca import KernelPCA as KernelPCA
from nysboost.estimators.mean_embedding import MeanEmbedding as MeanEmbedding
from nysboost.estimators.mean_embedding import TwoSampleResult as TwoSampleResult
from nysboost.estimators.mean_embedding import mmd_test as mmd_test
from nysboost.estimators.transformers import BoostedNystroem as BoostedNystroem
from nysboost.estimators.transformers import EnsembleNystroem as EnsembleNystroem
from nysboost.estimators.transformers import Nystroem as Nystroem
from nysboost.estimators.transformers import StandardNystroem as StandardNystroem
