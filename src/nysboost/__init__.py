"""NysBoost: standard, ensemble and boosting Nyström approximation of kernel matrices.

One front door, `approximate`, and three scikit-learn transformers. Every approximation
has the form K̂(x, y) = k(x, Z) M k(Z, y), with landmarks Z and a small symmetric core M.
"""

from nysboost._version import __version__
from nysboost.approximation import Approximation
from nysboost.boosting.variants import JOINT_VARIANTS, VARIANTS
from nysboost.catalogue import FAMILIES, METHODS, approximate
from nysboost.estimators import (
    BoostedNystroem,
    EnsembleNystroem,
    NystroemFeatures,
    StandardNystroem,
)
from nysboost.kernels import Anova, Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial
from nysboost.learn import (
    GaussianProcessClassifier,
    KernelPCA,
    MeanEmbedding,
    SpectralClustering,
    mmd_test,
)
from nysboost.settings import Settings

__all__ = [
    "FAMILIES",
    "JOINT_VARIANTS",
    "METHODS",
    "VARIANTS",
    "Anova",
    "Approximation",
    "BoostedNystroem",
    "Cosine",
    "EnsembleNystroem",
    "Gaussian",
    "GaussianProcessClassifier",
    "KernelPCA",
    "Laplacian",
    "Linear",
    "Matern",
    "MeanEmbedding",
    "NystroemFeatures",
    "Polynomial",
    "Settings",
    "SpectralClustering",
    "StandardNystroem",
    "__version__",
    "approximate",
    "mmd_test",
]
