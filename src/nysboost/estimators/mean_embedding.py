"""Kernel mean embeddings of samples, and a two-sample test based on them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.utils.validation import check_array, check_is_fitted

from nysboost.estimators.estimator import KernelLike, fit_method, with_usual_errors
from nysboost.estimators.transformers import FeatureBasedEstimator, Nystroem
from nysboost.features.factor import Factor
from nysboost.kernels import Gaussian
from nysboost.numerics.arrays import Array, Floats, TableLike, floats_on_host, gather, is_sparse
from nysboost.numerics.checks import (
    RandomState,
    as_bytes,
    make_rng,
    refuse_non_finite,
    require_count,
    to_table,
)
from nysboost.numerics.messages import unknown
from nysboost.numerics.progress import report_progress, track
from nysboost.rows.lazy import map_rows
from nysboost.rows.recognise import is_frame
from nysboost.tables.codes import Codes
from nysboost.tables.frames import list_column_names, refuse_unknown, to_narwhals
from nysboost.tables.rows import CHECKS, FitOptions, fit_codes
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import summarise_columns

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NumericTable: TypeAlias = "Array | csr_array"
"""Rows of numbers in memory, shape (n, d)."""

TIE = 1e-12
"""Statistics that differ by at most this share are equal but for rounding."""


@dataclass(eq=False, repr=False, kw_only=True)
class MeanEmbedding(FeatureBasedEstimator):
    """The Nyström mean embedding μ̂ = Σ_j α_j k(z_j, ·) of a sample (Chatalic et al. 2022).

    With features φ(x) = Nᵀ k(Z, x) it is μ̂ = (1/n) Σ_i φ(x_i), and α = N μ̂; for plain Nyström
    α = W⁺ (1/n) Σ_i k(Z, x_i). A few hundred numbers represent the whole sample.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params
        As in `Nystroem`.
    method, n_landmarks, max_memory, n_jobs, verbose, random_state
        As in `KernelPCA`.

    Attributes
    ----------
    mean_ : array of shape (r,)
        The mean of the features.
    weights_ : array of shape (n_landmarks,)
        α, the weight of each landmark in `features_.components_`.

    See Also
    --------
    mmd_test : compares two samples.

    References
    ----------
    .. [1] A. Chatalic, N. Schreuder, A. Rudi and L. Rosasco (2022). Nyström kernel mean
          embeddings. ICML.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> rng = np.random.default_rng(0)
    >>> embedding = nb.MeanEmbedding(gamma=0.5, n_landmarks=50, random_state=0)
    >>> embedding = embedding.fit(rng.normal(size=(1000, 2)))
    >>> near, far = embedding.distance(rng.normal(size=(1000, 2))), embedding.distance([[5.0, 5.0]])
    >>> near < 0.1 < far
    True
    """

    kernel: KernelLike = field(default="rbf", kw_only=False)

    @fit_method
    def fit(self, X: TableLike, y: object = None) -> MeanEmbedding:  # noqa: ARG002
        """Embed the sample X, rows as in `Nystroem.fit`; y is ignored."""
        features = self._fit_features(X)
        self.mean_: Floats = features.total() / features.shape[0]
        self.weights_: Floats = floats_on_host(self.features_.normalization_) @ self.mean_
        return self

    @with_usual_errors
    def score_samples(self, X: TableLike) -> Floats:
        """Return μ̂(x) for each row, the mean of k(x, ·) over the sample, shape (n_samples,)."""
        check_is_fitted(self)
        features = self.features_.transform(X)
        times_mean = partial(_times, self.mean_)
        scores: Floats = map_rows(features, times_mean, np.float64)
        return scores

    @with_usual_errors
    def distance(self, X: TableLike) -> float:
        """Return ‖μ̂ − μ̂_X‖, the maximum mean discrepancy between the fitted sample and X."""
        check_is_fitted(self)
        F = self.features_.transform(X)
        other = floats_on_host(gather(F.mean(axis=0)))
        return float(np.linalg.norm(self.mean_ - other))


@dataclass(frozen=True)
class TwoSampleResult:
    """The outcome of a two-sample test.

    Attributes
    ----------
    statistic : float
        The squared maximum mean discrepancy ‖μ̂_X − μ̂_Y‖².
    pvalue : float
        The share of permutations whose statistic is at least as large; the observed one counts as a
        permutation.
    """

    statistic: float
    pvalue: float


def mmd_test(
    X: TableLike,
    Y: TableLike,
    kernel: KernelLike | None = None,
    *,
    n_permutations: int = 199,
    random_state: RandomState = None,
    **options: Any,
) -> TwoSampleResult:
    """Test whether two samples come from the same distribution, by their mean embeddings.

    Under the null hypothesis, the rows of both samples are exchangeable. So the p-value of the
    permutation test is exact for any number of rows and landmarks (Gretton et al. 2012).

    .. versionadded:: 0.2

    Parameters
    ----------
    X, Y : array-like or CSR matrix of shape (n, d) and (m, d)
        The samples.
    kernel : str, Kernel, callable or None
        As in `nysboost.approximate`; None is a Gaussian kernel whose σ is the median distance.
    n_permutations : int
        Number of random permutations; the smallest possible p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState, Generator or None
        Seed.
    **options
        Further parameters of `Nystroem`, such as max_memory. The default method is "uniform", and
        n_components is 240, or the number of rows if that is smaller.

    Returns
    -------
    TwoSampleResult
        `statistic` and `pvalue`, as in SciPy's tests.

    See Also
    --------
    MeanEmbedding : the embedding of one sample.

    References
    ----------
    .. [1] A. Gretton, K. Borgwardt, M. Rasch, B. Schölkopf and A. Smola (2012). A kernel
          two-sample test. JMLR 13.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)) + 0.5
    >>> nb.mmd_test(X, Y, random_state=0).pvalue
    0.005
    """
    require_count("n_permutations", n_permutations)
    known = {field.name for field in fields(Nystroem)}
    for name in options:
        if name not in known:
            raise TypeError(unknown("option of mmd_test", name, sorted(known)))

    if kernel is None:
        kernel = Gaussian(sigma="median")
        if options.keys() & {"gamma", "coef0", "degree", "kernel_params"}:
            kernel = "rbf"
    rng = make_rng(random_state)
    options = {"method": "uniform", "n_components": None, "random_state": rng, **options}

    # both samples in one table, in random order, so that the choice of landmarks does not depend
    # on which sample a row belongs to
    both, n_x = _stack(X, Y)
    order = rng.permutation(both.shape[0])
    in_x = order < n_x

    with report_progress("mmd_test", options.get("verbose")):
        # ‖μ̂_X − μ̂_Y‖² of the samples as they are
        embedding = Nystroem(kernel, **options).fit(both[order])
        features = Factor(embedding.approximation_.gram, embedding._transform)
        observed = in_x[None, :]
        (statistic,) = _discrepancies(features, observed)

        # how many random divisions of the rows have a statistic at least as large; as many
        # divisions share a pass as memory allows
        threshold = statistic * (1 - TIE)
        division_bytes = 16 * len(order)
        most = max(1, as_bytes(embedding.max_memory) // division_bytes)
        n_larger = 0
        for first in track(range(0, n_permutations, most)):
            size = min(most, n_permutations - first)
            copies = np.tile(in_x, (size, 1))
            permuted = rng.permuted(copies, axis=1)
            statistics = _discrepancies(features, permuted)
            n_larger += int(np.sum(statistics >= threshold))

    # count the given division as one of them
    pvalue = (n_larger + 1) / (n_permutations + 1)
    return TwoSampleResult(float(statistic), pvalue)


def _stack(X: TableLike, Y: TableLike) -> tuple[NumericTable, int]:
    """Return the rows of both samples, as a CSR matrix if one is sparse, and the number of X."""
    if is_frame(X) and is_frame(Y):
        X, Y = _encode_together(X, Y)
    elif is_frame(X):
        X = _encode(X)
    elif is_frame(Y):
        Y = _encode(Y)

    # both in memory, as NumPy arrays or CSR matrices
    x: NumericTable = check_array(to_table(gather(X)), **CHECKS)
    y: NumericTable = check_array(to_table(gather(Y), name="Y"), **CHECKS)
    refuse_non_finite(x, 0)
    refuse_non_finite(y, 0, "Y")
    if x.shape[1] != y.shape[1]:
        msg = f"X has {x.shape[1]} features, but Y has {y.shape[1]}: give both the same features."
        raise ValueError(msg)

    n_x = x.shape[0]
    if is_sparse(x) or is_sparse(y):
        return vstack([x, y], format="csr"), n_x
    return np.concatenate([x, y]), n_x


def _encode(X: TableLike) -> Array:
    """Return the numbers of a data frame, with codes of its own."""
    _, rows = fit_codes(X, FitOptions("refuse"))
    numbers: Array = rows.data
    return numbers


def _encode_together(X: TableLike, Y: TableLike) -> tuple[Array, Array]:
    """Return the numbers of two data frames, with the codes of both."""
    names = list_column_names(X)
    refuse_unknown(names, list_column_names(Y), "Y")
    first = to_narwhals(X).select(names).to_native()
    second = to_narwhals(Y).select(names).to_native()

    # decide from the rows of both samples what each column is
    summaries = [summarise_columns(first), summarise_columns(second)]
    schema = Schema.from_summaries(summaries, "refuse", named=True)
    codes = Codes.of(schema)
    return codes(first, missing="refuse"), codes(second, missing="refuse")


def _discrepancies(features: Factor, in_x: NDArray[np.bool_]) -> Floats:
    """Return ‖μ̂_X − μ̂_Y‖² for each row of a mask that says which rows are X, in one pass."""
    # sums of the features over all rows, and over X in each division
    n = in_x.shape[1]
    masks = np.column_stack([np.ones(n), in_x.T])
    sums = floats_on_host(features.inner(masks)).T
    of_all = sums[0]
    of_x = sums[1:]
    of_y = of_all - of_x

    # μ̂_X − μ̂_Y
    n_x = in_x.sum(axis=1, keepdims=True)
    difference = of_x / n_x - of_y / (n - n_x)
    return np.asarray((difference**2).sum(axis=1))


# What passes do to a block of features: plain functions, which can be pickled for workers


def _times(mean: Floats, F: Array) -> Floats:
    """Return the products of a block of features with the mean, shape (b,)."""
    return np.asarray(floats_on_host(F) @ mean)
