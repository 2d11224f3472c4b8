"""Robust CUR: a low-rank kernel matrix from a copy of which some entries are wrong."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from nysboost.gram import Gram
from nysboost.methods.in_sample import InSample
from nysboost.methods.whole import strips
from nysboost.numerics.arrays import Floats, Indices, floats_on_host, like

ROBUST_ROWS = 10_000
"""The corrupted entries are listed, and a tenth of n² of them takes 160 MB here."""

FALL = 0.8
"""How fast the threshold falls; 0.7 as in the paper's experiments failed at 20 % corruption."""

ABOVE_NOISE = 0.3
"""Eigenvalues of W count from this multiple of threshold·√c on.

Chosen on matrices of rank 8 and Gaussian ones with 5, 10 and 20 % of wrong entries: 0.1 lets
corruption in, 2 keeps the matrix out, and 0.3 to 0.5 are alike."""

CONVERGED = 1e-4
"""The loop ends when the entries that are not called wrong fit to this relative error."""


def robust_cur(gram: Gram, c: int, rng: np.random.Generator) -> InSample:
    """Return the low-rank part of G = low rank + sparse, and which entries are the sparse one.

    The iterated robust CUR of Cai, Hamm, Huang, Li and Wang (2021), for a symmetric matrix, whose
    rows are its columns. In each round c fresh columns J are compared with the low rank L so far:
    entries that differ by more than a threshold, which falls from round to round, are replaced
    by L's. Of these columns C the next L is C W_r⁺ Cᵀ. The paper is given the rank r; here it
    counts the eigenvalues of W that stand out of what a remainder below the threshold can make.
    """
    if gram.n > ROBUST_ROWS:
        msg = (
            f'"robust-cur" lists the corrupted entries of all n², which is meant for n ≤ '
            f"{ROBUST_ROWS}, but n_samples = {gram.n} were given. Pass a principal submatrix."
        )
        raise ValueError(msg)
    everything = np.arange(gram.n)
    F, threshold, missing = np.zeros((gram.n, 0)), np.inf, np.inf
    while missing > CONVERGED and threshold > 0:
        J = rng.choice(gram.n, size=c, replace=False)
        given = floats_on_host(gram.block(everything, J))
        threshold = min(threshold, float(np.abs(given).max()))
        low = F @ F[J].T
        wrong = np.abs(given - low) > threshold
        C = np.where(wrong, low, given)
        F, saturated = _low_rank(C, J, ABOVE_NOISE * threshold * np.sqrt(c))
        scale = float(np.abs(C).max()) or 1.0
        rest = np.where(wrong, 0.0, given - F @ F[J].T) / scale
        missing = float(np.linalg.norm(rest) / (np.linalg.norm(C / scale) or 1.0))
        if saturated:
            break
        threshold *= FALL
    form = gram.block(everything[:1], everything[:1])
    corrupted = _wrong_entries(gram, F, threshold)
    return InSample(gram, like(F, form), np.ones(F.shape[1]), corrupted=corrupted)


def _low_rank(C: Floats, J: Indices, floor: float) -> tuple[Floats, bool]:
    """Return F with F Fᵀ = C W_r⁺ Cᵀ, r eigenvalues of W = C[J] being above the floor.

    At most a third of them count, or there are too few columns for their number.
    """
    W = C[J]
    eigenvalues, U = np.linalg.eigh((W + W.T) / 2)
    most = max(1, len(J) // 3)
    r = min(most, int(np.sum(eigenvalues > floor)))
    F: Floats = C @ (U[:, ::-1][:, :r] / np.sqrt(eigenvalues[::-1][:r]))
    return F, r == most


def _wrong_entries(gram: Gram, F: Floats, threshold: float) -> coo_array:
    """Return G − F Fᵀ where it is above the threshold, as a sparse array."""
    rows, columns, values, start = [], [], [], 0
    for strip in strips(gram):
        rest = floats_on_host(strip) - F[start : start + strip.shape[0]] @ F.T
        i, j = np.nonzero(np.abs(rest) > threshold)
        rows.append(i + start)
        columns.append(j)
        values.append(rest[i, j])
        start += strip.shape[0]
    where = (np.concatenate(rows), np.concatenate(columns))
    return coo_array((np.concatenate(values), where), shape=(gram.n, gram.n))
