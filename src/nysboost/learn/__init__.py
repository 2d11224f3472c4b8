"""What users do with an approximation: learning, and linear algebra on features."""

from nysboost.learn.classification import NystroemClassifier
from nysboost.learn.clustering import SpectralClustering
from nysboost.learn.gaussian_process import GaussianProcessClassifier
from nysboost.learn.kernel_pca import KernelPCA
from nysboost.learn.mean_embedding import MeanEmbedding, TwoSampleResult, mmd_test
from nysboost.learn.regression import NystroemRegressor

__all__ = [
    "GaussianProcessClassifier",
    "KernelPCA",
    "MeanEmbedding",
    "NystroemClassifier",
    "NystroemRegressor",
    "SpectralClustering",
    "TwoSampleResult",
    "mmd_test",
]
