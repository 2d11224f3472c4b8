"""The judge: a sample of rows, with all that decides what landmarks serve there."""

from __future__ import annotations

from dataclasses import dataclass

from nysboost.boosting.core import ANCHOR, core_projection
from nysboost.boosting.learner import Learner, fit_learner
from nysboost.gram import Landmarks, Sample
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.numerics.linalg import range_basis
from nysboost.numerics.split import SplitMatrix
from nysboost.numerics.tolerances import NEAR_ROUNDING


@dataclass(frozen=True, eq=False)
class Judge:
    """A sample and its Gram matrix, in a form that is fast to multiply with.

    Parameters
    ----------
    sample : Sample
        The rows; landmarks that are columns are given by their positions in it.
    matrix : SplitMatrix
        G[S, S].
    """

    sample: Sample
    matrix: SplitMatrix

    @classmethod
    def of(cls, sample: Sample, learner: Learner) -> Judge:
        """Evaluate the sample's Gram matrix, split by an approximation of it."""
        return cls(sample, SplitMatrix.of(sample.matrix, learner.features(sample.gram)))

    @classmethod
    def on(cls, sample: Sample, landmarks: Landmarks) -> Judge:
        """Split the sample's Gram matrix by plain Nyström on these landmarks."""
        return cls.of(sample, fit_learner(sample.gram, landmarks, len(landmarks)))

    def seen_from(self, landmarks: Landmarks) -> tuple[Floats, Floats]:
        """Return Qᵀ C and Qᵀ G Q, with Q orthonormal on the range of C = k(S, Z)."""
        C = self.sample.gram.cross(slice(None), landmarks)
        Q, _ = range_basis(C)
        H = Q.T @ self.matrix.times(Q)
        return to_host(Q.T @ like(C, Q)), to_host((H + H.T) / 2)

    def fit(self, landmarks: Landmarks) -> Learner:
        """Return the best approximation on these landmarks: its core is fitted here.

        Points join the sample at a small weight; columns are in it already. Where the error
        comes near rounding, the fit loses digits that plain Nyström has.
        """
        gram = self.sample.gram
        A, W = gram.cross(slice(None), landmarks), gram.within(landmarks)
        anchor = ANCHOR if landmarks.indices is None else 0.0
        fitted = Learner(landmarks, like(core_projection(A, W, self.matrix.times, anchor), A))
        error = self.error(A @ fitted.projection)
        if error > NEAR_ROUNDING:
            return fitted
        plain = fit_learner(gram, landmarks, len(landmarks))
        return plain if self.error(A @ plain.projection) < error else fitted

    def error(self, F: Array) -> float:
        """Return the relative error of an approximation F Fᵀ, from its features here."""
        return self.matrix.relative_error(namespace(F).astype(F, self.matrix.F.dtype))
