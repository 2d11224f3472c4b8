"""The core from all of G: modified Nyström, and its spectral shift.

Both stand on the columns of "uniform + adaptive²" (Wang and Zhang 2013): a third of them
uniform, then two rounds by the exact squared residual.
"""

from __future__ import annotations

import numpy as np

from nysboost.boosting.core import core_projection
from nysboost.boosting.learner import Learner
from nysboost.gram import Gram
from nysboost.methods.adaptive import equal_parts, exact_residuals, in_rounds
from nysboost.methods.in_sample import InSample
from nysboost.methods.whole import refuse_large, times_gram
from nysboost.numerics.arrays import Array, Indices, floats_on_host, like, namespace, to_host
from nysboost.numerics.linalg import range_basis


def modified(gram: Gram, c: int, rng: np.random.Generator) -> Learner:
    """Return C U Cᵀ with U = C⁺ G C⁺ᵀ, the best core that these columns allow.

    Wang and Zhang (2013), "Improving CUR matrix decomposition and the Nyström approximation
    via adaptive sampling".
    """
    refuse_large(gram, "modified")
    landmarks = gram.landmarks(_columns(gram, c, rng))
    C = gram.cross(slice(None), landmarks)
    projection = core_projection(C, C[:0, :], lambda Q: times_gram(gram, Q), anchor=0.0)
    return Learner(landmarks, like(projection, C))


def spectral_shift(gram: Gram, c: int, rng: np.random.Generator) -> InSample:
    """Return C̄ Ū C̄ᵀ + δI, the best core and the best multiple of the identity.

    Wang, Zhang, Qian and Zhang (2014), "Improving the modified Nyström method using spectral
    shifting", with C̄ = (G − δ̄I) P for the columns P, and an orthonormal basis Q of C̄:

        δ = (tr G − tr QᵀGQ) / (n − rank C̄),    C̄ Ū C̄ᵀ = Q (QᵀGQ − δI) Qᵀ.

    The first shift δ̄, the mean of the tail of the spectrum, comes from the space spanned by
    P and G P where the paper takes a randomised singular value decomposition: the same
    columns serve twice, and G = low rank + δI is recovered exactly.
    """
    refuse_large(gram, "spectral-shift")
    columns = _columns(gram, c, rng)
    C = gram.cross(slice(None), gram.landmarks(columns))
    xp = namespace(C)
    C = xp.astype(C, xp.float64)
    P = xp.zeros_like(C)
    for j, row in enumerate(columns):
        P[int(row), j] = 1.0
    first, _, _ = _tail(gram, xp.concat([P * float(xp.max(xp.abs(C))), C], axis=1))
    shift, Q, inner = _tail(gram, C - first * P)
    values, Y = xp.linalg.eigh((inner + inner.T) / 2)
    rest = values - shift
    F = Q @ (Y * xp.sqrt(xp.abs(rest)))
    return InSample(gram, F, np.sign(to_host(rest)), shift=shift)


def _tail(gram: Gram, space: Array) -> tuple[float, Array, Array]:
    """Return the mean eigenvalue of G outside a space, a basis Q of the space, and QᵀGQ."""
    Q, _ = range_basis(space)
    inner = Q.T @ times_gram(gram, Q)
    rank = int(Q.shape[1])
    if rank >= gram.n:
        return 0.0, Q, inner
    trace = float(floats_on_host(gram.diag()).sum())
    within = float(np.trace(to_host(inner)))
    return max(0.0, (trace - within) / (gram.n - rank)), Q, inner


def _columns(gram: Gram, c: int, rng: np.random.Generator) -> Indices:
    return in_rounds(gram, equal_parts(c, 3), exact_residuals, rng)
