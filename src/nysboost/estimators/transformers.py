"""The transformers: one for all methods, and one for each family of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted, validate_data

from nysboost._approximate import FrameEncoder
from nysboost.boosting.algorithm import Sampling
from nysboost.boosting.state import Step
from nysboost.boosting.variants import VARIANTS, RuleLike, SelectorLike, is_variant
from nysboost.catalogue import JOINT_VARIANTS, run_method
from nysboost.estimators.estimator import (
    KernelEstimator,
    KernelLike,
    all_or_nothing,
    fit_method,
    with_usual_errors,
)
from nysboost.features.factor import Factor
from nysboost.gram import make_gram
from nysboost.kernels import KERNELS, merge_parameters
from nysboost.numerics.arrays import Array, OutputLike, TableLike, is_lazy
from nysboost.numerics.checks import make_rng, require_count, to_table
from nysboost.numerics.messages import unknown
from nysboost.rows.recognise import is_external, is_frame, make_rows, make_stream
from nysboost.rows.rows import Rows, RowStream
from nysboost.settings import (
    CANDIDATES_PER_COLUMN,
    MIN_GAIN,
    ROW_CAP,
    Settings,
    Shape,
    given_settings,
    replace_settings,
)
from nysboost.tables.rows import CHECKS, fit_rows, new_rows, note_columns, refuse_width
from nysboost.tables.schema import Schema


@dataclass(eq=False, repr=False, kw_only=True)
class BaseNystroem(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator, auto_wrap_output_keys=None
):
    """A Nyström approximation as a scikit-learn transformer; subclasses choose the method.

    Attributes
    ----------
    components_ : array or CSR matrix of shape (n_landmarks, n_features), or None
        The landmarks, learner after learner; None for a precomputed kernel.
    component_indices_ : array of shape (n_landmarks,), or None
        Their row numbers in the training data; None if they are not rows of it.
    normalization_ : array of shape (n_landmarks, n_features_out)
        The features of X are ``k(X, components_) @ normalization_``.
    weights_ : array of shape (n_learners,)
        Weights of the mixture.
    approximation_ : Approximation
        The approximation of the kernel matrix of the training rows. A saved estimator contains it
        without these rows.
    discarded_mass_ : float
        Share of the absolute eigenvalues that was negative and was discarded.
    n_features_in_ : int
        Number of features seen in fit.
    """

    n_components: int | None = None
    tol: float | None = None

    @fit_method
    def fit(self, X: TableLike, y: TableLike | None = None) -> Self:
        """Fit the approximation to the kernel matrix of X.

        Parameters
        ----------
        X : array-like, CSR matrix, memory map, HDF5 or Zarr array of shape (n_samples, n_features)
            Training data; (n_samples, n_samples) if the kernel is precomputed.
        y : array-like of shape (n_samples,) or None
            Targets for the method "target"; other methods ignore y.
        """
        table = self._training_table(X)
        settings = self._settings()
        rng = make_rng(self.random_state)

        # G, of which the method looks at some blocks
        parameters = merge_parameters(
            self.kernel_params, gamma=self.gamma, coef0=self.coef0, degree=self.degree
        )
        gram = make_gram(table, self.kernel, budget=self._budget(), **parameters)
        self.approximation_ = run_method(
            self._method(),
            gram,
            settings,
            rng,
            landmarks=getattr(self, "landmarks", None),
            y=y,
            tol=self.tol,
            named=list(given_settings(self)),
        )

        # x ↦ k(x, Z) N
        self._transform, self.discarded_mass_ = self.approximation_.feature_map(settings.row_cap)
        self._n_features_out = self._transform.rank
        self.weights_ = self.approximation_.weights
        self.components_ = self._transform.landmarks.points
        self.component_indices_ = self._transform.landmarks.indices
        self.normalization_ = self._transform.normalization

        # from here on the approximation takes data frames as `transform` does
        if self._table is not None and not self._precomputed():
            self.approximation_.with_encoder(FrameEncoder(self._table))
        return self

    @all_or_nothing
    def fit_transform(self, X: TableLike, y: TableLike | None = None) -> Array:
        """Fit to X and return the features of X; the parameters are those of `fit`."""
        return self.fit(X, y).transform(X)

    @with_usual_errors
    def transform(self, X: TableLike | Iterator[TableLike], out: OutputLike | None = None) -> Array:
        """Return the features of X, ``k(X, components_) @ normalization_``, block by block.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Any rows. X may also be a memory map, an HDF5 or Zarr array, or an iterator of tables,
            which is processed in blocks within `max_memory`. If the kernel is precomputed: kernel
            values between these rows and all training rows, or only the landmarks, in the order of
            `component_indices_`.
        out : None, array, HDF5 or Zarr array, or path of a .npy file
            Where to write the features, in the dtype of X; None returns a new array. A file is
            written under a temporary name and renamed at the end. If the call fails, the remaining
            rows of an array become NaN.

        Returns
        -------
        array of shape (n_samples, n_features_out)
            `out` itself, or the file as a read-only memory map.
        """
        check_is_fitted(self)
        rows = self._new_rows(X)
        features = self._transform.write(rows, out, self._budget())
        if out is not None or is_lazy(features):
            return features

        # scikit-learn's own wrapper would make a data frame of `out` too
        wrapped: Array = _wrap_data_with_container("transform", features, X, self)
        return wrapped

    def _method(self) -> str:
        """Return the name of the method in the catalogue."""
        raise NotImplementedError

    def _settings(self) -> Settings:
        """Return `settings`, updated by parameters that differ from their default."""
        base = getattr(self, "settings", None)
        return replace_settings(base, given_settings(self))

    def _training_table(self, X: TableLike) -> TableLike | Rows:
        """Return the table to fit to, checked, and note its columns."""
        if is_frame(X):
            rows: Rows = fit_rows(self, X, "refuse")
            return rows

        # scikit-learn would copy what is not in memory
        table = X
        if is_external(X):
            note_columns(self, None, make_rows(X).n_features)
        else:
            table = validate_data(self, to_table(X), **CHECKS)

        # an array needs no codes
        self._table = None
        self.schema_ = Schema((), self.n_features_in_)
        return table

    def _new_rows(self, X: TableLike | Iterator[TableLike]) -> RowStream:
        """Return the rows of a table, or of an iterator of tables, with the columns of the fit."""
        if self._precomputed():
            return self._new_kernel_rows(X)

        # encode columns as in the fit
        if is_frame(X) or self._table is not None:
            rows: RowStream = new_rows(self, X, "refuse")
            return rows

        # arrays of numbers need no codes
        if is_external(X):
            rows = make_stream(X)
            refuse_width(self, rows.n_features)
            return rows
        table = validate_data(self, to_table(X), reset=False, **CHECKS)
        return make_rows(table)

    def _new_kernel_rows(self, X: TableLike | Iterator[TableLike]) -> RowStream:
        """Return rows of kernel values, against all training rows or the landmarks alone."""
        values = X
        if not is_external(X):
            values = check_array(to_table(X), **CHECKS)

        rows = make_stream(values)
        n = self.n_features_in_
        c = len(self._transform.landmarks)
        if rows.n_features not in (n, c):
            raise ValueError(
                f"X has {rows.n_features} columns, but it should hold kernel values with all {n} "
                f"training rows, or with the {c} landmarks."
            )
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False)
class Nystroem(BaseNystroem):
    """Low-rank features of a kernel, by any Nyström method.

    A replacement for ``sklearn.kernel_approximation.Nystroem``, with all its parameters and their
    defaults. In scikit-learn, landmarks are random rows. Here, their positions are optimised by
    default.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernel, landmarks, settings, kernel_params
        As in `nysboost.approximate`.
    gamma, coef0, degree : float or None
        Parameters of a named kernel; gamma may be "scale" or "median".
    n_components : int or None
        Number of landmarks, and the largest number of features; ignored if `tol` or `landmarks` is
        given.
    tol : float or None
        Largest acceptable relative Frobenius error of the kernel matrix. The fit then finds a
        number of landmarks that is just large enough. If `tol` cannot be reached, it issues a
        `ToleranceWarning`.
    max_memory : int or str
        Working memory of `transform` in addition to X and the result, in bytes or as "500MB".
    n_jobs, verbose, random_state
        As in `nysboost.approximate`.
    method : str
        One of `nysboost.METHODS`, or "target", whose landmarks are trained on y. "joint" is the
        most accurate for a given number of landmarks; "uniform" draws random rows, as scikit-learn
        does.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : random rows as landmarks.
    StandardNystroem : one sample of columns, as in the paper.
    EnsembleNystroem : a mixture of independent learners.
    BoostedNystroem : learners found one after another, each where the error is large.
    approximate : the kernel matrix itself, with its error.
    NystroemRegressor : regression in one step.
    NystroemClassifier : classification in one step.

    Notes
    -----
    The features are F = k(X, Z) N with F Fᵀ = K̂. They are defined up to a rotation.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import nysboost as nb
    >>> X, y = load_digits(return_X_y=True)
    >>> nystroem = nb.Nystroem(gamma="scale", n_components=50, random_state=0)
    >>> make_pipeline(nystroem, RidgeClassifier()).fit(X, y).score(X, y) > 0.9
    True
    """

    kernel: KernelLike = "rbf"
    method: str = field(default="joint", kw_only=True)
    n_components: int | None = field(default=100, kw_only=True)
    landmarks: TableLike | None = field(default=None, kw_only=True)
    settings: Settings | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        return self.method

    def _settings(self) -> Settings:
        n_components = self.n_components
        if self.tol is not None or self.landmarks is not None:
            n_components = None
        return replace_settings(self.settings, {"n_components": n_components})


@dataclass(eq=False, repr=False)
class StandardNystroem(BaseNystroem):
    """The standard Nyström method: C W_k⁺ Cᵀ on uniformly sampled columns.

    .. versionadded:: 0.1

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params, n_components, tol
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_columns : int or None
        Number of landmarks if `n_components` is None: 120 by default, or the number of rows if
        smaller.
    rank : int or None
        k, the rank of W_k; None is `n_columns`.

    See Also
    --------
    Nystroem : every method, with better landmarks by default.

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger (2001). Using the Nyström method to speed up kernel
          machines. NIPS 13.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> nb.StandardNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (300, 20)
    """

    kernel: KernelLike = "rbf"
    n_columns: int | None = field(default=None, kw_only=True)
    rank: int | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        return "nystrom"


@dataclass(eq=False, repr=False, kw_only=True)
class _Mixture(BaseNystroem):
    """Base class of ensemble and boosting: the paper's p, m, k, v1 and v2, and the weights."""

    n_learners: int | Literal["auto"] | None = None
    n_columns: int | None = None
    rank: int | None = None
    n_fit: int | None = None
    n_tune: int | None = None
    eta: float | Literal["tune"] = 0.01
    nonnegative: bool = False
    lambdas: Sequence[float] | None = None
    validation_shape: Shape = "columns"
    row_cap: int = ROW_CAP
    rule: RuleLike | tuple[RuleLike | None, RuleLike | None] | None = None
    settings: Settings | None = None


@dataclass(eq=False, repr=False)
class EnsembleNystroem(_Mixture):
    """Ensemble Nyström: a weighted mixture of independent learners.

    .. versionadded:: 0.1

    Parameters
    ----------
    weights : "uniform", "exponential" or "ridge"
        How the learners are weighted.
    kernel, gamma, coef0, degree, kernel_params, n_components, tol
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_learners, n_columns, rank, n_fit, n_tune : int or None
        The paper's p, m, k, v1 and v2; None chooses a value based on n. If `n_components` is given,
        m is n_components // n_learners.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Whether to restrict ridge weights to non-negative values, so that K̂ is positive
        semidefinite.
    lambdas, validation_shape, row_cap
        As in `nysboost.Settings`.
    rule : Rule, function, str or None
        Replaces `weights` by a rule of your own, as in `nysboost.Settings`.
    settings : Settings or None
        All settings in one object. Parameters that differ from their default replace its fields.

    See Also
    --------
    BoostedNystroem : learners that depend on each other.
    Nystroem : every method.

    References
    ----------
    .. [1] S. Kumar, M. Mohri and A. Talwalkar (2009). Ensemble Nyström method. NIPS 22.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> ensemble = nb.EnsembleNystroem("uniform", n_components=40, n_learners=4, random_state=0)
    >>> ensemble.fit_transform(X).shape
    (300, 40)
    """

    weights: Literal["uniform", "exponential", "ridge"] = "ridge"

    def _method(self) -> str:
        known = ("uniform", "exponential", "ridge")
        if self.weights not in known:
            raise ValueError(unknown("weight rule", self.weights, known))
        return f"ensemble-{self.weights}"


@dataclass(eq=False, repr=False)
class BoostedNystroem(_Mixture):
    """Boosting Nyström: each learner takes columns where the residual is large.

    .. versionadded:: 0.1

    Parameters
    ----------
    variant : str
        One of `nysboost.VARIANTS`, which run Algorithm 1 of the paper; one of
        `nysboost.JOINT_VARIANTS`; "joint", the most accurate for a given number of landmarks; or a
        name with your own registered rules and selectors.
    kernel, gamma, coef0, degree, kernel_params, n_components, tol
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_learners, n_columns, rank, n_fit, n_tune, eta, nonnegative, lambdas, validation_shape
        As in `EnsembleNystroem`.
    row_cap, settings
        As in `EnsembleNystroem`. With more than `row_cap` rows, the fit uses a sample of them.
    n_candidates : int or None
        The paper's s, the number of columns of V; None is 10m.
    candidates_per_column, residual_shape, residual_rows
        As in `nysboost.Settings`.
    rule, selector, sampling, min_gain, callback
        As in `nysboost.Settings`.

    See Also
    --------
    EnsembleNystroem : independent learners.
    Nystroem : every method.

    References
    ----------
    .. [1] K. Hamm, Z. Lu, W. Ouyang and H. H. Zhang (2023). Boosting Nyström Method.
          arXiv:2302.11032.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> boosted = nb.BoostedNystroem("UUB-mean", n_components=40, n_learners=4, random_state=0)
    >>> boosted.fit(X).weights_
    array([0.25, 0.25, 0.25, 0.25])
    """

    variant: str = "URB-mean"
    n_candidates: int | None = field(default=None, kw_only=True)
    candidates_per_column: int = field(default=CANDIDATES_PER_COLUMN, kw_only=True)
    residual_shape: Shape = field(default="columns", kw_only=True)
    residual_rows: int | None = field(default=None, kw_only=True)
    selector: SelectorLike | None = field(default=None, kw_only=True)
    sampling: str | Sampling = field(default="uniform", kw_only=True)
    min_gain: float = field(default=MIN_GAIN, kw_only=True)
    callback: Callable[[Step], object] | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        variant = self.variant
        known = ("joint", *VARIANTS, *JOINT_VARIANTS)
        has_letters = isinstance(variant, str) and is_variant(variant)
        if variant in known or has_letters:
            return variant

        # scikit-learn's Nystroem has the kernel as its first parameter
        if variant in KERNELS:
            msg = f"{variant!r} is a kernel, not a boosting variant: pass kernel={variant!r}."
            raise ValueError(msg)
        raise ValueError(unknown("boosting variant", variant, known))


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureBasedEstimator(KernelEstimator):
    """Base class of estimators that use the features of an approximation.

    Attributes
    ----------
    features_ : Nystroem
        The fitted transformer.
    n_features_in_ : int
        Number of features seen in fit.
    """

    method: str = "joint"
    n_landmarks: int | None = None

    def _fit_features(self, X: TableLike, **given: object) -> Factor:
        """Fit the transformer to X, with these parameters replaced, and return F."""
        # some estimators have `n_components` too
        for name in ("n_landmarks", "n_components"):
            count = getattr(self, name, None)
            if count is not None:
                require_count(name, count)

        # pass on the shared parameters; the transformer's `n_components` is the number of landmarks
        names = [each.name for each in fields(FeatureBasedEstimator)]
        shared = {name: getattr(self, name) for name in names}
        shared |= given
        shared["n_components"] = shared.pop("n_landmarks")
        transformer = Nystroem(**shared).set_output(transform="default")
        self.features_ = transformer.fit(X)

        # scikit-learn expects these attributes of every estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(transformer, name):
                setattr(self, name, getattr(transformer, name))
        return Factor(transformer.approximation_.gram, transformer._transform)
