"""The judge: a sample of rows, with all that decides what landmarks serve there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.boosting.core import ANCHOR, optimal_core, square_root
from nysboost.boosting.learner import Learner, fit_learner
from nysboost.gram import Landmarks, Sample
from nysboost.numerics.arrays import Array, like, namespace, to_host
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

    def seen_from(self, landmarks: Landmarks) -> tuple[Array, Array]:
        """Return Qᵀ C and Qᵀ G Q, with Q orthonormal on the range of C = k(S, Z).

        Points join the sample at a small weight; columns are in it already.
        """
        A, W = self._values(landmarks)
        Q, _, H, _ = optimal_core(A, W, self.matrix.times, _anchor(landmarks))
        C = namespace(A).concat([A, _anchor(landmarks) * W])[: Q.shape[0], :]
        return Q.T @ like(C, Q), H

    def fit(self, landmarks: Landmarks) -> tuple[Learner, float]:
        """Return the joint approximation on landmarks, its core fitted here, and its error."""
        A, W = self._values(landmarks)
        Q, T, H, alone = optimal_core(A, W, self.matrix.times, _anchor(landmarks))
        learner = Learner(landmarks, like(T @ square_root(H), A))
        rows = Q[: A.shape[0], :]
        return learner, self.matrix.error(rows, H, alone)

    def best(self, *fits: tuple[Learner, float]) -> Learner:
        """Return the approximation with the smallest error here, of those that `fit` has given.

        A fitted core loses digits near rounding, where plain Nyström is one more candidate.
        """
        if min(error for _, error in fits) < NEAR_ROUNDING:
            learners = [learner for learner, _ in fits]
            learners += [self.plain(learner.landmarks) for learner in learners]
            fits = tuple((learner, self.error(learner)) for learner in learners)
        return min(fits, key=lambda pair: pair[1])[0]

    def error(self, learner: Learner) -> float:
        """Return the relative error of an approximation here."""
        F = learner.features(self.sample.gram)
        return self.matrix.relative_error(namespace(F).astype(F, self.matrix.F.dtype))

    def plain(self, landmarks: Landmarks) -> Learner:
        """Return plain Nyström, with landmarks in units of their own size: (D W D)⁺ between two D.

        Where W's entries span many orders of magnitude, as a polynomial kernel's do, eigenvalues
        that are nothing beside the largest are no rounding: on centroids of protein, c = 240, the
        error on other rows is 3.3e-12 so, and 5.5e-7 without.
        """
        gram = self.sample.gram
        W = gram.within(landmarks)
        sizes = to_host(namespace(W).linalg.diagonal(W)).astype(np.float64)
        return fit_learner(gram, landmarks, len(landmarks), 1 / np.where(sizes > 0, sizes, 1.0))

    def _values(self, landmarks: Landmarks) -> tuple[Array, Array]:
        gram = self.sample.gram
        return gram.cross(slice(None), landmarks), gram.within(landmarks)


def _anchor(landmarks: Landmarks) -> float:
    return ANCHOR if landmarks.indices is None else 0.0
