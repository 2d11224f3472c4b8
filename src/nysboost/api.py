"""What `import nysboost` offers: every public name, and where it is made."""

from nysboost._version import __version__
from nysboost.approximation import Approximation
from nysboost.boosting.algorithm import JOINT_VARIANTS, VARIANTS
from nysboost.boosting.rules import Rule
from nysboost.boosting.selectors import Selector
from nysboost.catalogue import FAMILIES, METHODS
from nysboost.certificate import Certificate
from nysboost.estimators import BoostedNystroem, EnsembleNystroem, Nystroem, StandardNystroem
from nysboost.front_door import approximate
from nysboost.kernels import (
    KERNELS,
    Anova,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Metric,
    Polynomial,
)
from nysboost.learn import (
    GaussianProcessClassifier,
    KernelPCA,
    MeanEmbedding,
    NystroemClassifier,
    NystroemRegressor,
    SpectralClustering,
    mmd_test,
)
from nysboost.model_files import ModelFileError, load, save
from nysboost.onnx_export import to_onnx
from nysboost.settings import Settings
from nysboost.tolerance import ToleranceWarning

__all__ = [
    "FAMILIES",
    "JOINT_VARIANTS",
    "KERNELS",
    "METHODS",
    "VARIANTS",
    "Anova",
    "Approximation",
    "BoostedNystroem",
    "Certificate",
    "Cosine",
    "EnsembleNystroem",
    "Gaussian",
    "GaussianProcessClassifier",
    "Kernel",
    "KernelPCA",
    "Laplacian",
    "Linear",
    "Matern",
    "MeanEmbedding",
    "Metric",
    "ModelFileError",
    "Nystroem",
    "NystroemClassifier",
    "NystroemRegressor",
    "Polynomial",
    "Rule",
    "Selector",
    "Settings",
    "SpectralClustering",
    "StandardNystroem",
    "ToleranceWarning",
    "__version__",
    "approximate",
    "load",
    "mmd_test",
    "save",
    "to_onnx",
]
