"""The result of every method: K̂ = Σ_i w_i C_i P_i P_iᵀ C_iᵀ, as a linear operator."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from nysboost.boosting.algorithm import Trajectory
from nysboost.boosting.rules import Rule
from nysboost.boosting.state import Step
from nysboost.certificates.certificate import N_ENTRIES, Certificate, certify
from nysboost.features.factor import Factor
from nysboost.features.feature_map import (
    EncodedMap,
    Encoder,
    FeatureMap,
    Mixture,
    make_triangular,
    side_by_side,
)
from nysboost.features.low_rank import LowRankMatrix
from nysboost.features.residual import ERRORS, Residual, mixture_errors
from nysboost.gram import ALL_ZERO, Gram, KernelGram, Landmarks, on_other_rows, pool
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, Floats, OutputLike, TableLike, like
from nysboost.numerics.checks import RandomState, make_rng, positions, require_count
from nysboost.numerics.messages import unknown
from nysboost.rows.rows import DroppedRows


class Approximation(LowRankMatrix):
    """A low-rank approximation K̂ of a Gram matrix G, neither of which is stored.

    .. versionadded:: 0.1

    Parameters
    ----------
    gram : Gram
        The matrix G that is approximated.
    mixture : Mixture
        Learners and weights.
    trajectory : Trajectory or None
        The boosting or ensemble run that found the learners.
    rule : Rule or None
        The rule that computed the final weights.

    Attributes
    ----------
    method : str
        The method's name.
    kernel : Kernel or None
        The kernel, with its parameters as numbers; None for a precomputed matrix.
    learners : tuple of FeatureMap
        The p learners, each with its `landmarks`, `projection` and `rank`.
    weights : array of shape (p,)
        Their weights; ridge weights may be negative.
    rank : int
        The number of features, an upper bound of the rank of K̂.
    landmarks : Landmarks
        All landmarks, learner after learner: `indices` and `points`.
    entries_evaluated : int
        Number of kernel values that the fit evaluated; a prefix has the number of the whole run.
    has_features : bool
        Whether features of new rows can be computed. With negative weights this takes the rows of
        the fit, which a saved approximation lacks unless it was saved with them.
    shift : float
        δ, if the method adds a multiple δI of the identity to its low-rank matrix; 0 for most
        methods.

    See Also
    --------
    approximate : makes one.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> approx = nb.approximate(X, "kmeans", nb.Gaussian(sigma=2.0), n_components=50,
    ...                         random_state=0)
    >>> approx.method, approx.kernel, approx.rank, len(approx.landmarks)
    ('kmeans', Gaussian(gamma=0.125), 50, 50)
    >>> approx.relative_error() < 0.01
    True
    >>> (approx @ np.ones(500)).shape
    (500,)
    """

    method = "unnamed"
    encoder: Encoder | None = None

    def __init__(
        self,
        gram: Gram,
        mixture: Mixture,
        trajectory: Trajectory | None = None,
        rule: Rule | None = None,
    ) -> None:
        n = gram.n
        super().__init__(dtype=gram.dtype, shape=(n, n))
        ranks = [learner.rank for learner in mixture.learners]
        if ranks and not any(ranks):
            raise ValueError(ALL_ZERO)

        self.gram = gram
        self.learners = mixture.learners
        self.weights: Floats = mixture.weights
        self.trajectory = trajectory
        self.rule = rule
        self.entries_evaluated: int = gram.entries_evaluated

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, with its parameters as numbers; None for a precomputed matrix."""
        if isinstance(self.gram, KernelGram):
            return self.gram.kernel
        return None

    @cached_property
    def landmarks(self) -> Landmarks:
        """All landmarks, learner after learner."""
        return pool([learner.landmarks for learner in self.learners])

    @property
    def rank(self) -> int:
        """The number of features, an upper bound of the rank of K̂."""
        return len(self._factor.weights)

    def prefix(self, p: int) -> Approximation:
        """Return the mixture of the first p learners, with new weights."""
        require_count("p", p)
        if self.trajectory is None or self.rule is None:
            if p == len(self.learners) == 1:
                return self
            msg = "Only ensemble and boosting runs have prefixes, and only before they are saved."
            raise ValueError(msg)

        # the weights of step 3, for p learners
        mixture = self.trajectory.mixture(self.rule, p)
        shorter = Approximation(self.gram, mixture, self.trajectory, self.rule)
        shorter.method = self.method
        shorter.encoder = self.encoder

        # errors asked for since then are no part of finding it
        shorter.entries_evaluated = self.entries_evaluated
        return shorter

    @property
    def steps(self) -> tuple[Step, ...]:
        """Records of the boosting steps; empty for other methods and after saving.

        A record has the candidates `V`; the chosen `columns`; the `weights` μ of step (a) and their
        λ or η, `parameter`; the `residual_norm` on V; and the `seconds` of (a) to (e).
        """
        if self.trajectory is None:
            return ()
        return self.trajectory.steps

    @property
    def is_psd(self) -> bool:
        """Whether no weight is negative, so that K̂ is positive semidefinite."""
        return bool(self.weights.min() >= 0)

    @property
    def has_features(self) -> bool:
        """Whether features of new rows can be computed."""
        has_rows = not isinstance(self.gram.rows, DroppedRows)
        return has_rows or self.is_psd

    @property
    def saw_everything(self) -> bool:
        """Whether the method evaluated at least as many entries as G has."""
        n = self.shape[0]
        return bool(self.entries_evaluated >= n**2)

    def with_name(self, method: str) -> Approximation:
        """Set the name of the method and return the approximation."""
        self.method = method
        return self

    def with_encoder(self, encoder: Encoder | None) -> Approximation:
        """Let the approximation accept the user's tables, which the encoder converts to numbers."""
        self.encoder = encoder
        return self

    # Features

    def features(self, out: OutputLike | None = None) -> Array:
        """Return F of shape (n, r) with F Fᵀ the positive semidefinite part of K̂.

        Parameters
        ----------
        out : None, array, HDF5 or Zarr array, or path of a .npy file
            Where to write the features; None returns a new array.
        """
        transform, _ = self.feature_map()
        gram = self.gram
        return transform.write(gram.rows, out, gram.budget, gram.counter)

    def feature_map(self, row_cap: int | None = None) -> tuple[FeatureMap, float]:
        """Return the map x ↦ features, for any rows, and the share of K̂ that it discards.

        With non-negative weights the learners' features stand side by side. Otherwise K̂ is
        projected onto the positive semidefinite cone, by the eigenvectors of all rows or of
        a sample of them.

        Parameters
        ----------
        row_cap : int or None
            Number of rows used for the projection, evenly spaced; None uses all.

        Returns
        -------
        transform : FeatureMap
        discarded_mass : float
            The negative eigenvalues' share of the sum of all absolute eigenvalues.
        """
        if self.weights.min() >= 0:
            # √w_i N_i side by side, each as a triangle
            roots = np.sqrt(self.weights)
            scaled = []
            for learner, root in zip(self.learners, roots.tolist(), strict=True):
                N = make_triangular(learner.normalization)
                scaled.append(replace(learner, projection=N * root))
            return self._encoded(side_by_side(scaled)), 0.0

        # the rotation depends on the rows of the fit
        if not self.has_features:
            raise RuntimeError(
                "This approximation has negative weights, so that computing features needs the "
                f"{self.gram.n} training rows, but it was saved without them. Fit again, and save "
                "it with nysboost.save(model, path, with_rows=True)."
            )

        # F T for a rotation T onto the positive eigenvectors
        rotation, mass = self._factor.positive_part(row_cap)
        projected = self._factor.transform.times(rotation)
        return self._encoded(projected), mass

    @cached_property
    def _factor(self) -> Factor:
        """F with S, which has a learner's weight once for each of its features."""
        ranks = [learner.rank for learner in self.learners]
        weights = np.repeat(self.weights, ranks)
        return Factor(self.gram, side_by_side(self.learners), weights)

    @cached_property
    def _weights_like(self) -> Array:
        reference = self.learners[0].normalization
        return like(self._factor.weights, reference)

    def _encoded(self, transform: FeatureMap) -> FeatureMap:
        """Return a map that accepts the same kind of tables as the fit."""
        if self.encoder is None:
            return transform
        return EncodedMap(
            transform.kernel,
            transform.landmarks,
            transform.projection,
            encoder=self.encoder,
        )

    # Errors

    def relative_error(
        self,
        rows: ArrayLike | slice | None = None,
        norm: Literal["frobenius", "trace", "spectral"] = "frobenius",
    ) -> float:
        """Return ‖K̂ − G‖ / ‖G‖, computed from blocks of the residual.

        Parameters
        ----------
        rows : positions, a mask, a slice or None
            Restrict both matrices to rows × rows. None uses all rows, which takes n² kernel values.
        norm : "frobenius", "trace" or "spectral"
            "trace" is ``|tr(K̂ − G)| / tr G``.
        """
        if norm not in ERRORS:
            raise ValueError(unknown("norm", norm, ERRORS))
        factor = self._factor
        chosen = np.arange(self.shape[0])
        if rows is not None:
            chosen = positions(rows, self.shape[0])
            factor = factor.only(chosen)
        if len(chosen) == 0:
            msg = "No rows were given, so there is no error to measure: give at least one row."
            raise ValueError(msg)

        # features are kept where they fit
        factor.keep()
        return ERRORS[norm](Residual(self.gram, factor, self.shift), chosen)

    def error_path(self) -> Floats:
        """Return the relative Frobenius errors with p = 1, 2, … learners, in one pass over G.

        The weights are fitted again for each p, as `prefix` does. A joint core differs for each p,
        so it takes one pass for each p.

        Examples
        --------
        >>> import numpy as np, nysboost as nb
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> approx = nb.approximate(X, "URB-mean", nb.Gaussian(sigma=1.0), n_learners=4,
        ...                         n_columns=10, random_state=0)
        >>> errors = approx.error_path()
        >>> bool(errors[3] < errors[0])
        True
        """
        if self.trajectory is None or self.rule is None:
            return np.array([self.relative_error()])

        # one joint core, which is another for each p
        if len(self.learners) == 1:
            counts = range(1, len(self.trajectory) + 1)
            return np.array([self.prefix(p).relative_error() for p in counts])

        # the weights for each p, and all errors in one pass
        weights: list[Floats] = []
        for p in range(1, len(self.learners) + 1):
            mixture = self.trajectory.mixture(self.rule, p)
            weights.append(mixture.weights)
        ranks = [learner.rank for learner in self.learners]
        return mixture_errors(self._factor, ranks, weights)

    def certificate(
        self,
        confidence: float = 0.95,
        X: TableLike | None = None,
        *,
        n_entries: int = N_ENTRIES,
        random_state: RandomState = None,
    ) -> Certificate:
        """Return confidence intervals for the relative errors, from a sample of kernel values.

        Parameters
        ----------
        confidence : float
            At least this share of such intervals contain the truth.
        X : array-like of shape (n, d), or None
            New rows to measure the error on; None measures it on the rows of the fit.
        n_entries : int
            Largest number of kernel values to evaluate; it need not grow with the number of rows.
        random_state : int, numpy.random.Generator, numpy.random.RandomState or None
            Seed of the sample.

        Returns
        -------
        Certificate
            Its attributes `frobenius` and `trace` are pairs (low, high). ``print`` shows a
            sentence.

        Examples
        --------
        >>> import numpy as np, nysboost as nb
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> approx = nb.approximate(X, "kmeans", nb.Gaussian(sigma=1.0), n_components=30,
        ...                         random_state=0)
        >>> certificate = approx.certificate(n_entries=10**6, random_state=0)
        >>> low, high = certificate.frobenius
        >>> low < approx.relative_error(np.arange(4000)) < high
        True
        """
        other = None
        if X is not None:
            if self.encoder is not None:
                X = self.encoder(X)
            other = on_other_rows(self.gram, X)

        residual = self._residual(other)
        rng = make_rng(random_state)
        are_new = other is not None
        return certify(residual, confidence, n_entries, rng, new_rows=are_new)

    def _residual(self, other: Gram | None) -> Residual:
        """Return G − K̂, on the rows of the fit or on others."""
        if other is None:
            return Residual(self.gram, self._factor, self.shift)
        factor = Factor(other, self._factor.transform, self._factor.weights)
        return Residual(other, factor)

    def without_data(self) -> Approximation:
        """Return this approximation without the data rows, for saving with an estimator."""
        kept = copy.copy(self)  # without what is derived
        kept.gram = self.gram.forget_rows()
        kept.trajectory = None
        kept.rule = None
        return kept

    def __repr__(self) -> str:
        n = self.shape[0]
        kernel = self.kernel or "precomputed"
        parts = [repr(self.method), str(kernel), f"n={n}"]

        if len(self.learners) > 1:
            parts.append(f"{len(self.learners)} learners")
        parts.append(f"{len(self.landmarks)} landmarks")
        parts.append(f"rank={self.rank}")

        # a run on a sample, or on a part of its rows
        if self.trajectory is not None:
            n_rows = len(self.trajectory.state.rows)
            if n_rows < n:
                parts.append(f"fitted on {n_rows} rows")
        parts.append(f"{self.entries_evaluated} kernel values evaluated")
        return f"Approximation({', '.join(parts)})"

    def __getstate__(self) -> dict[str, object]:
        derived = ("_factor", "_spectrum", "_triangle", "_weights_like", "landmarks")
        state: dict[str, object]
        state = super().__getstate__()  # SciPy 1.18 keeps a module, which it hides
        for name in derived:
            state.pop(name, None)
        return state
