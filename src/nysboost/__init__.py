"""NysBoost: standard, ensemble and boosting Nyström approximation of kernel matrices.

One front door, `approximate`, and three scikit-learn transformers. Every approximation
has the form K̂(x, y) = k(x, Z) M k(Z, y), with landmarks Z and a small symmetric core M.
"""

from nysboost._version import __version__
from nysboost.approximation import Approximation
from nysboost.boosting.variants import JOINT_VARIANTS, VARIANTS
from nysboost.catalogue import METHODS, approximate
from nysboost.certificate import Certificate
from nysboost.estimators import BoostedNystroem, EnsembleNystroem, StandardNystroem
from nysboost.kernels import Anova, Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial
from nysboost.settings import Settings

__all__ = [
    "JOINT_VARIANTS",
    "METHODS",
    "VARIANTS",
    "Anova",
    "Approximation",
    "BoostedNystroem",
    "Certificate",
    "Cosine",
    "EnsembleNystroem",
    "Gaussian",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Settings",
    "StandardNystroem",
    "__version__",
    "approximate",
]
