"""One function for every method: `approximate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysboost.approximation import Approximation
from nysboost.catalogue import ROBUST, find_method, run_method
from nysboost.gram import make_gram
from nysboost.kernels import Kernel, Parameter, merge_parameters
from nysboost.numerics.arrays import Array, TableLike
from nysboost.numerics.checks import MAX_MEMORY, Budget, RandomState, make_rng
from nysboost.numerics.progress import report_progress
from nysboost.rows.recognise import is_frame
from nysboost.settings import Option, Settings, replace_settings
from nysboost.tables.codes import Codes
from nysboost.tables.frames import Table
from nysboost.tables.rows import FitOptions, fit_codes


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
    kernel_params: dict[str, Parameter] | None = None,
    gamma: float | str | None = None,
    sigma: float | str | None = None,
    max_memory: int | str = MAX_MEMORY,
    n_jobs: int | None = None,
    verbose: int | None = None,
    random_state: RandomState = None,
    **options: Option,
) -> Approximation:
    """Approximate the kernel matrix of the rows of X with one of the Nyström methods.

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
        Total number of landmarks, for every method; a mixture divides them among its learners. If
        it exceeds the number of rows, all rows become landmarks, with a warning.
    tol : float or None
        Largest acceptable relative Frobenius error. The fit finds a number of landmarks that is
        just large enough, at most `n_components`, and a certificate confirms the error. If `tol`
        cannot be reached, a `ToleranceWarning` is issued and the best result is returned.
    landmarks : array of row numbers, or of points, or None
        Your own landmarks, for "joint", which fits its core to them, and for "nystrom".
    y : array-like of shape (n,) or (n, t), or None
        Targets or labels for the method "target", which fits kernel, metric and landmarks to them.
        Other methods raise an error if y is given.
    settings : Settings or None
        All sizes and options of a run in one object. Options given by name replace its fields.
    gamma, sigma : float, "median", "scale" or None
        Bandwidth of a named kernel.
    kernel_params : dict or None
        Further parameters of a named kernel or of a kernel function.
    max_memory : int or str
        Working memory of products, eigenpairs, features and errors, in addition to their result, in
        bytes or as "500MB". A fit needs additional memory that does not depend on n.
    n_jobs : int or None
        Largest number of cores; None and -1 use as many as matrix products do.
    verbose : int or None
        None shows a progress bar with the remaining time on a terminal and in a notebook, if a run
        takes more than two seconds. 0 prints nothing. 1 also prints a line for each step on
        standard error.
    random_state : int, RandomState, Generator or None
        Seed of all random numbers.
    **options
        Fields of `Settings` by name: the paper's p, m, k, s, v1 and v2 as `n_learners`,
        `n_columns`, `rank`, `n_candidates`, `n_fit` and `n_tune`; `eta`, `nonnegative`,
        `lambdas`; `residual_shape`, `validation_shape`, `row_cap`, `residual_rows`; and `rule`,
        `selector`, `sampling` and `callback`, which replace or watch parts of Algorithm 1.

    Returns
    -------
    Approximation
        K̂, as a linear operator with entries, features, eigenpairs and errors.

    See Also
    --------
    Nystroem : the same as a scikit-learn transformer.
    NystroemRegressor : predicts a target, with landmarks trained on the target.
    Approximation.certificate : an interval for the error.

    Notes
    -----
    Nearly every method returns K̂ = k(X, Z) M k(Z, X) with landmarks Z and a small core M. With
    more than `row_cap` rows, the cost of a fit does not grow with n.

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
    # refuse wrong arguments before looking at any row
    find_method(method)
    if y is not None and method != "target":
        msg = f"The method {method!r} does not use y: leave y out, or choose method='target'."
        raise ValueError(msg)

    # merge the settings, and note which were given
    if n_components is not None:
        options["n_components"] = n_components
    settings = replace_settings(settings, options)
    names = [name for name, value in options.items() if value is not None]

    # encode a data frame of points as numbers
    encoder = None
    is_matrix = isinstance(kernel, str) and kernel == "precomputed"
    if is_frame(X) and not is_matrix:
        codes, X = fit_codes(X, FitOptions("refuse"))
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
    """Converts a data frame to numbers, with the codes learned from the approximated frame."""

    codes: Codes

    def __call__(self, X: Table) -> Table:
        """Return a data frame as numbers, and any other table unchanged."""
        if is_frame(X):
            return self.codes(X, missing="refuse")
        return X
