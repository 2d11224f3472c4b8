"""One function for every method: `approximate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysboost.approximation import Approximation
from nysboost.catalogue import ROBUST, find_method, run_method
from nysboost.gram import make_gram
from nysboost.kernels import Kernel, merge_parameters
from nysboost.numerics.arrays import Array, TableLike
from nysboost.numerics.checks import MAX_MEMORY, Budget, RandomState, make_rng
from nysboost.numerics.progress import report_progress
from nysboost.settings import Settings
from nysboost.tables.codes import Codes
from nysboost.tables.frames import is_frame
from nysboost.tables.rows import fit_codes


@np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
def approximate(
    X: TableLike,
    method: str = "joint",
    kernel: str | Kernel | Callable[..., Array] = "rbf",
    *,
    n_components: int | None = None,
    tol: float | None = None,
    landmarks: TableLike | None = None,
    y: TableLike | None = None,
    settings: Settings | None = None,
    kernel_params: dict[str, Any] | None = None,
    gamma: float | str | None = None,
    sigma: float | str | None = None,
    max_memory: int | str = MAX_MEMORY,
    n_jobs: int | None = None,
    verbose: int | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> Approximation:
    """Approximate the Gram matrix of the rows of X by one of the Nyström methods.

    .. versionadded:: 0.1

    Parameters
    ----------
    X : array-like of shape (n, d), or (n, n) if `kernel` is "precomputed"
        Data points (dense or CSR), or kernel values.
    method : str
        One of `METHODS`, or "target", whose landmarks are trained on y.
    kernel : str, Kernel or callable
        A kernel object such as ``Gaussian(sigma=5.0)``, one of scikit-learn's names,
        "precomputed", or any vectorised function ``k(X, Y)``.
    n_components : int or None
        Number of landmarks in all, whatever the method; a mixture shares them out among its
        learners. More than there are rows is a warning, and all rows are taken.
    tol : float or None
        A relative Frobenius error to reach, with as few landmarks as the method can: their
        number is found, and a certificate says that it was reached. `n_components` is then the
        most that may be taken. Out of reach is a `ToleranceWarning`, with a result all the same.
    landmarks : array of row numbers, or of points, or None
        Your own landmarks, for "joint", which fits its core to them, and for "nystrom".
    y : array-like of shape (n,) or (n, t), or None
        Targets or labels, for "target": kernel, metric and landmarks are then fitted to
        them. Other methods refuse it.
    settings : Settings or None
        All sizes and choices of a run at once. Fields that are given by name replace its own.
    gamma, sigma : float, "median", "scale" or None
        Bandwidth of a named kernel.
    kernel_params : dict or None
        Further parameters of a named kernel or of a kernel function.
    max_memory : int or str
        Working memory of products, eigenpairs, features and errors, beyond their result, in
        bytes or as "500MB". Fitting has its own, which does not depend on n.
    n_jobs : int or None
        Cores at most; None and -1 are all that matrix products use.
    verbose : int or None
        None shows a bar with the time left on a terminal and in a notebook, if a run takes more
        than two seconds; 0 nothing; 1 also a line for each step, on standard error.
    random_state : int, RandomState, Generator or None
        Seed of all random numbers.
    **options
        Fields of `Settings` by name: the paper's p, m, k, s, v1 and v2 as `n_learners`,
        `n_columns`, `rank`, `n_candidates`, `n_fit` and `n_tune`; `eta`, `nonnegative`,
        `lambdas`; `residual_shape`, `validation_shape`, `row_cap`, `residual_rows`; and what
        stands in the place of parts of Algorithm 1: `rule`, `selector`, `sampling`, `callback`.

    Returns
    -------
    Approximation
        K̂, as a linear operator with entries, features, eigenpairs and errors.

    See Also
    --------
    Nystroem : the same as a scikit-learn transformer.
    NystroemRegressor : predicts a target, with landmarks trained on it.
    Approximation.certificate : an interval for the error.

    Notes
    -----
    Every method returns K̂ = k(X, Z) M k(Z, X) with landmarks Z and a small core M. Beyond
    `row_cap` rows the cost of a fit does not grow with n.

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger (2001). Using the Nyström method to speed up kernel
          machines. NIPS 13.
    .. [2] K. Hamm, Z. Lu, W. Ouyang and H. H. Zhang (2023). Boosting Nyström Method.
          arXiv:2302.11032.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> approx = nb.approximate(X, "URB-mean", nb.Gaussian(sigma=1.0),
    ...                         n_learners=8, n_columns=10, random_state=0)
    >>> approx.relative_error() < 0.1
    True
    >>> nb.approximate(X, n_components=50, sigma=1.0, random_state=0).rank
    50
    >>> nb.approximate(X, "kmeans", tol=0.1, sigma=1.0, random_state=0).relative_error() < 0.1
    True
    """
    find_method(method)
    if y is not None and method != "target":
        msg = f"The method {method!r} does not look at y: leave y out, or take method='target'."
        raise ValueError(msg)
    settings = _settings(settings, n_components, options)
    given_sizes = {"n_components": n_components, **options}
    names = [name for name, value in given_sizes.items() if value is not None]

    # a data frame of points becomes numbers
    encoder = None
    is_matrix = isinstance(kernel, str) and kernel == "precomputed"
    if is_frame(X) and not is_matrix:
        codes, X = fit_codes(X, "refuse")
        encoder = FrameEncoder(codes)

    # G
    parameters = merge_parameters(kernel_params, gamma=gamma, sigma=sigma)
    gram = make_gram(
        X,
        kernel,
        budget=Budget.of(max_memory, n_jobs),
        corrupted=method in ROBUST,
        **parameters,
    )

    # K̂
    with report_progress(method, verbose):
        found = run_method(
            method,
            gram,
            settings,
            make_rng(random_state),
            landmarks=landmarks,
            y=y,
            tol=tol,
            named=names,
        )
    return found.with_encoder(encoder)


@dataclass(frozen=True)
class FrameEncoder:
    """Turns a data frame into numbers, with the codes of the frame that was approximated."""

    codes: Codes

    def __call__(self, X: Any) -> Any:
        """Return a data frame's numbers, and any other table as it is."""
        if is_frame(X):
            return self.codes(X, missing="refuse")
        return X


def _settings(
    settings: Settings | None, n_components: int | None, options: dict[str, Any]
) -> Settings:
    """Return the settings that were given whole, with fields replaced by those given by name."""
    if settings is None:
        settings = Settings()
    if not isinstance(settings, Settings):
        msg = f"settings is a nysboost.Settings, but a {type(settings).__name__} was given."
        raise TypeError(msg)
    if n_components is not None:
        options = options | {"n_components": n_components}
    return replace(settings, **options)
