"""What users do with an approximation: learning, and linear algebra on features."""

from nysboost.learn.classification import NystroemClassifier as NystroemClassifier
from nysboost.learn.clustering import SpectralClustering as SpectralClustering
from nysboost.learn.gaussian_process import GaussianProcessClassifier as GaussianProcessClassifier
from nysboost.learn.kernel_pca import KernelPCA as KernelPCA
from nysboost.learn.mean_embedding import MeanEmbedding as MeanEmbedding
from nysboost.learn.mean_embedding import TwoSampleResult as TwoSampleResult
from nysboost.learn.mean_embedding import mmd_test as mmd_test
from nysboost.learn.regression import NystroemRegressor as NystroemRegressor
