"""The base class of the transformers: from kernel parameters to fitted attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted, validate_data

from nysboost.catalogue import run_method
from nysboost.estimators.estimator import (
    KernelEstimator,
    all_or_nothing,
    fit_method,
    with_usual_errors,
)
from nysboost.gram import make_gram
from nysboost.kernels import merge_parameters
from nysboost.numerics.arrays import Array, OutputLike, TableLike
from nysboost.numerics.checks import make_rng, to_table
from nysboost.rows.recognise import is_external, make_rows, make_stream
from nysboost.rows.rows import Rows, RowStream
from nysboost.settings import Settings
from nysboost.tables.frames import is_frame
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
        parameters = self._kernel_parameters()
        gram = make_gram(table, self.kernel, budget=self._budget(), **parameters)
        self.approximation_ = run_method(
            self._method(),
            gram,
            settings,
            rng,
            landmarks=self._given_landmarks(),
            y=y,
            tol=self.tol,
            named=self._named_settings(),
        )

        # x ↦ k(x, Z) N
        self._transform, self.discarded_mass_ = self.approximation_.feature_map(settings.row_cap)
        self._n_features_out = self._transform.rank
        self.weights_ = self.approximation_.weights
        self.components_ = self._transform.landmarks.points
        self.component_indices_ = self._transform.landmarks.indices
        self.normalization_ = self._transform.normalization
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
        features = self._transform.write(self._new_rows(X), out, self._budget())
        if out is not None:
            return features

        # scikit-learn's own wrapper would make a data frame of `out` too
        wrapped: Array = _wrap_data_with_container("transform", features, X, self)
        return wrapped

    def _method(self) -> str:
        """Return the name of the method in the catalogue."""
        raise NotImplementedError

    def _given_landmarks(self) -> TableLike | None:
        """Return the landmarks that the user passed."""
        return None

    def _kernel_parameters(self) -> dict[str, Any]:
        """Return the parameters of the kernel that are not None."""
        return merge_parameters(
            self.kernel_params, gamma=self.gamma, coef0=self.coef0, degree=self.degree
        )

    def _settings(self) -> Settings:
        """Return `settings`, updated by parameters that differ from their default."""
        given = {name: getattr(self, name) for name in self._named_settings()}
        base = getattr(self, "settings", None) or Settings()
        return replace(base, **given)

    def _named_settings(self) -> list[str]:
        """Return the names of settings whose parameter differs from its default."""
        names = []
        for setting in fields(Settings):
            value = getattr(self, setting.name, setting.default)
            if value is not setting.default and value != setting.default:
                names.append(setting.name)
        return names

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
