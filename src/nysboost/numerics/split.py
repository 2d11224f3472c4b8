"""A symmetric matrix as an approximation and its residual, to multiply with in float32."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    Indices,
    block_bytes,
    device,
    namespace,
    row_blocks,
    take,
    to_host,
)
from nysboost.numerics.linalg import norms, range_basis, times
from nysboost.numerics.tolerances import CANCELLED

ENOUGH = 300.0
"""F has as many features as take the residual's trace to `ENOUGH` t times what all of them leave, a
share t of the whole: float32 then loses some 1e-4 of the loss, which is nearer to t² than to t. On
Covertype a fit takes a tenth less time so; with a hundred times, whatever t, the descent came to
a halt on Pendigits, where t is 2e-3."""


@dataclass(frozen=True, eq=False)
class SplitMatrix:
    """G = F Fᵀ + E: a first approximation in float64, and what it misses in float32.

    The products of G with s×c matrices are the bulk of a joint fit. Rounding E to float32 costs
    1e-8 of the *missing* part, whatever the size of that: the products are as fast as those
    in float32, and exact enough for any error that can be reached from there.

    Parameters
    ----------
    F : array of shape (s, r)
        Features of an approximation, float64, no more of them than `ENOUGH` asks for.
    E : array of shape (s, s)
        Its residual, float32, in units of the largest entry of its diagonal.
    unit : float
        That entry: G may be so large, or small, that float32 would not hold it.
    norm : float
        ‖G‖.
    """

    F: Array
    E: Array
    unit: float
    norm: float

    @classmethod
    def of(cls, G: Array, F: Array) -> SplitMatrix:
        """Split G by the features of an approximation, those that reach most of it first."""
        xp = namespace(G)
        F = xp.astype(F, xp.float64, copy=False)
        F = F[:, : _enough(G, F)]
        # no entry of a positive semidefinite residual is larger than its diagonal
        unit = float(xp.max(xp.abs(xp.linalg.diagonal(G) - xp.sum(F * F, axis=1)))) or 1.0
        E = xp.empty(G.shape, dtype=xp.float32, device=device(G))
        for rows in row_blocks(G.shape[0], 8 * G.shape[0], block_bytes(G)):
            E[rows, :] = xp.astype((G[rows, :] - F[rows, :] @ F.T) / unit, xp.float32)
        return cls(F, E, unit, float(norms(G)) or 1.0)

    def times(self, Q: Array) -> Array:
        """Return G Q, in float64."""
        through, rest = self.towards(Q)
        return self.F @ through + rest

    def towards(self, Q: Array) -> tuple[Array, Array]:
        """Return Fᵀ Q and E Q, in float64 and G's own units: G Q is F Fᵀ Q + E Q."""
        return self.F.T @ Q, times(self.E, Q) * self.unit

    def relative_error(self, features: Array) -> float:
        """Return ‖G − Φ Φᵀ‖ / ‖G‖ for features Φ, from the residual itself."""
        return float(norms(self._minus(features @ features.T))) / self.norm

    def error(self, Q: Array, H: Array, seen: Array) -> float:
        """Return ‖G − Q H Qᵀ‖ / ‖G‖ for any Q and H, with Qᵀ G Q as seen from there.

        ‖G‖² − 2⟨H, Qᵀ G Q⟩ + ‖Q H Qᵀ‖² takes small matrices alone. Where it would cancel, an
        orthonormal basis U of Q's range says what no H reaches, and how far off this one is.
        """
        unit = H / self.norm
        HN = unit @ (Q.T @ Q)
        xp = namespace(Q)
        loss = 1 - 2 * float(xp.sum(unit * (seen / self.norm))) + float(xp.sum(HN * HN.T))
        if loss < CANCELLED:
            U, _ = range_basis(Q)
            parts, turn = self.towards(U), U.T @ Q
            best = U.T @ (self.F @ parts[0] + parts[1])
            off = float(norms(best - turn @ H @ turn.T)) / self.norm
            loss = self.loss(U, best, parts) + off**2
        return float(np.sqrt(loss))

    def part(self, rows: Indices) -> SplitMatrix:
        """Return the matrix of some of the rows, split in the same way."""
        F, E = take(self.F, rows), take(take(self.E, rows), rows, axis=1)
        xp = namespace(E)
        whole = F @ F.T + xp.astype(E, F.dtype) * self.unit
        return SplitMatrix(F, E, self.unit, float(norms(whole)) or 1.0)

    def loss(self, Q: Array, H: Array, seen: tuple[Array, Array]) -> float:
        """Return ‖G − Q H Qᵀ‖² / ‖G‖² for the optimal H = Qᵀ G Q, and what `towards` says of Q."""
        loss = 1 - (float(norms(H)) / self.norm) ** 2
        if loss < CANCELLED:
            loss = self._lost(Q, H, *seen)
        if loss < CANCELLED * self._rest**2:
            loss = (float(norms(self._minus((Q @ H) @ Q.T))) / self.norm) ** 2
        return max(loss, float(np.finfo(np.float64).tiny))

    def _lost(self, Q: Array, H: Array, through: Array, rest: Array) -> float:
        """Return the loss from what the projector P = Q Qᵀ misses of F and of E.

        With F' = (I − P) F, the part of F Fᵀ is 2⟨Fᵀ P F, F'ᵀ F'⟩ + ‖F'ᵀ F'‖², that of E is
        ‖E‖² − ‖Qᵀ E Q‖², and what they have in common is 2⟨F', E (F + P F)⟩: no difference of
        large numbers, as long as Q does not reach nearly all of E.
        """
        xp, root = namespace(Q), self.norm**0.5
        inside = through / root
        outside = self.F / root - Q @ inside.T
        reached, missed = inside @ inside.T, outside.T @ outside
        of_F = xp.sum((2 * reached + missed) * missed)
        across = xp.sum((outside.T @ rest) * inside) / self.norm
        of_both = xp.sum(outside * self._times_features) + across
        of_E = self._rest**2 - float(norms(H / self.norm - inside.T @ inside)) ** 2
        return float(of_F + 2 * of_both) + of_E

    @cached_property
    def _rest(self) -> float:
        """‖E‖ as a share of ‖G‖."""
        return float(norms(self.E)) * self.unit / self.norm

    @cached_property
    def _times_features(self) -> Array:
        """E F, in units of ‖G‖ and its root."""
        return times(self.E, self.F / self.norm**0.5) * (self.unit / self.norm)

    def _minus(self, approximation: Array) -> Array:
        """Return G less an approximation of it, the large parts first."""
        E = namespace(self.F).astype(self.E, self.F.dtype)
        return (self.F @ self.F.T - approximation) + E * self.unit


def _enough(G: Array, F: Array) -> int:
    """Return how many of the features F are worth a product in float64."""
    xp = namespace(F)
    whole = float(xp.sum(xp.astype(xp.linalg.diagonal(G), xp.float64)))
    left = whole - np.concatenate([[0.0], np.cumsum(to_host(xp.sum(F * F, axis=0)))])
    least = abs(left[-1])
    wider = max(1.0, ENOUGH * least / (whole or 1.0))
    return int(np.argmax(left <= wider * least))
