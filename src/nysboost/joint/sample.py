"""A sample of rows with its Gram matrix: all that the search for landmarks sees."""

from __future__ import annotations

from dataclasses import dataclass

from nysboost.boosting.core import core_projection
from nysboost.boosting.learner import Learner
from nysboost.gram import Gram, Landmarks
from nysboost.joint.losses import SplitMatrix
from nysboost.numerics.arrays import Floats, Indices, like, namespace, to_host
from nysboost.numerics.linalg import range_basis

ANCHOR = 0.3
"""Weight of the landmarks in the core's sample: 1 costs accuracy there, 0.1 binds too little."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of the data, and their Gram matrix.

    Parameters
    ----------
    gram : Gram
        Where the rows come from.
    rows : array of int
        Their numbers, in order and each once.
    matrix : SplitMatrix
        G[rows, rows].
    """

    gram: Gram
    rows: Indices
    matrix: SplitMatrix

    @classmethod
    def of(cls, rows: Indices, gram: Gram, learner: Learner) -> Sample:
        """Evaluate the Gram matrix of the rows, split by an approximation of it."""
        G, F = gram.block(rows, rows), learner.features(gram, rows)
        return cls(gram, rows, SplitMatrix.of(G, F))

    def seen_from(self, landmarks: Landmarks) -> tuple[Floats, Floats]:
        """Return Qᵀ C and Qᵀ G Q, with Q orthonormal on the range of C = k(S, Z)."""
        C = self.gram.cross(self.rows, landmarks)
        Q, _ = range_basis(C)
        H = Q.T @ self.matrix.times(Q)
        return to_host(Q.T @ like(C, Q)), to_host((H + H.T) / 2)

    def fit(self, landmarks: Landmarks) -> Learner:
        """Return the joint approximation on these landmarks, its core fitted here.

        Points join the sample at a small weight; columns are in it already.
        """
        A, W = self.gram.cross(self.rows, landmarks), self.gram.within(landmarks)
        anchor = ANCHOR if landmarks.indices is None else 0.0
        return Learner(landmarks, like(core_projection(A, W, self.matrix.times, anchor), A))

    def error(self, learner: Learner) -> float:
        """Return the relative error of an approximation here."""
        F = learner.features(self.gram, self.rows)
        return self.matrix.relative_error(namespace(F).astype(F, self.matrix.F.dtype))
