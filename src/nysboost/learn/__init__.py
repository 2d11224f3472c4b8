"""What users do with an approximation: linear algebra on the features of any method."""

from nysboost.learn.clustering import SpectralClustering
from nysboost.learn.gaussian_process import GaussianProcessClassifier
from nysboost.learn.kernel_pca import KernelPCA
from nysboost.learn.mean_embedding import MeanEmbedding, TwoSampleResult, mmd_test

__all__ = [
    "GaussianProcessClassifier",
    "KernelPCA",
    "MeanEmbedding",
    "SpectralClustering",
    "TwoSampleResult",
    "mmd_test",
]
