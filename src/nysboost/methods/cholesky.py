"""Columns as pivots of a partial Cholesky factorisation: greedy, random, or the best of a few."""

from __future__ import annotations

import operator

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from nysboost.features.feature_map import FeatureMap
from nysboost.features.feature_pass import FeaturePass
from nysboost.gram import Gram
from nysboost.methods.method_constants import BATCH, CANDIDATES, SMALL_PRODUCTS
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, gather, to_host
from nysboost.numerics.linalg import accept_proposals, choose_largest, pivoted_cholesky
from nysboost.numerics.tolerances import EXHAUSTED
from nysboost.rows.driver import BlockFunction, Shared


class PartialFactor:
    """The Cholesky factor F of G on the pivots chosen so far, of c: F Lᵀ = k(X, pivots).

    L is always up to date, the residual's diagonal as of the last `update`, one pass over the
    data. Where F does not fit in half of the working memory it is not kept.
    """

    def __init__(self, gram: Gram, c: int) -> None:
        self.gram = gram
        self.c = c
        fits = 8 * gram.n * c <= gram.budget.bytes // 2
        self.is_kept = fits and not gram.rows.lazy
        width = 0
        if self.is_kept:
            width = c
        self.F = np.zeros((gram.n, width), order="F")  # columns take memory when written
        self.lower: Floats = np.zeros((0, 0))
        self.pivots: Indices = np.arange(0)
        self.updated = 0

        # below the floor a residual is rounding
        self.diag = to_host(gram.diag()).astype(np.float64)
        largest = float(self.diag.max())
        self.floor = EXHAUSTED * c * gram.eps * largest

    @property
    def rank(self) -> int:
        """Number of pivots so far."""
        return len(self.pivots)

    @property
    def complete(self) -> bool:
        """Whether there are c pivots, or the residual was zero to rounding at the last update."""
        if self.rank >= self.c:
            return True
        return bool(self.diag.max() <= self.floor)

    def at(self, rows: Indices) -> Floats:
        """Return F[rows]."""
        known = self.F[rows, : self.updated]
        old = known.shape[1]
        if old == self.rank:
            return known

        # F Lᵀ = k(X, pivots), solved for the columns of F since the last update
        block = self.gram.block(rows, self.pivots[old:])
        below = self.lower[old:, :old]
        corner = self.lower[old:, old:]
        rest = floats_on_host(block) - known @ below.T
        new = _divide(rest, corner)
        return np.hstack([known, new])

    def residual(self, rows: Indices, cols: Indices) -> Floats:
        """Return (G − F Fᵀ)[rows, cols]."""
        G = floats_on_host(self.gram.block(rows, cols))
        return G - self.at(rows) @ self.at(cols).T

    def squared_norms(self, cols: Indices) -> Floats:
        """Return ‖e_j‖² of the columns of the residual, relative to its largest diagonal's."""
        right = self.at(cols).T
        coefficients = self._coefficients(right)
        scale = float(self.diag.max())
        task = self._pass("residual-columns", _squares, (coefficients, scale), cols)
        known = self._kept(self.rank)
        return self.gram.rows.fold(task, operator.add, *known)

    def append(self, pivots: Indices) -> None:
        """Extend L by these pivots, which must be independent of those before."""
        # L Lᵀ = W, with the rows of the new pivots below
        below = self.at(pivots)
        W = floats_on_host(self.gram.block(pivots, pivots))
        corner = _cholesky(W - below @ below.T)
        above = np.zeros((self.rank, len(pivots)))

        upper_rows = np.hstack([self.lower, above])
        lower_rows = np.hstack([below, corner])
        self.lower = np.vstack([upper_rows, lower_rows])
        self.pivots = np.append(self.pivots, pivots)

    def update(self) -> None:
        """Bring the residual's diagonal up to date, and F where it is kept."""
        # L⁻ᵀ of the pivots since the last update, and what earlier columns explain of theirs
        old = self.updated
        corner = self.lower[old:, old:]
        identity = np.eye(self.rank - old)
        inverse = solve_triangular(corner, identity, lower=True).T
        coefficients = self._coefficients(self.lower[old:, :old].T)

        # one pass: the columns of F since the last update, and their squares
        new = self.pivots[old:]
        task = self._pass("pivots", _subtract_columns, (coefficients, inverse), new)
        squares = self.gram.rows.map(task, 1, *self._kept(self.rank))
        explained = floats_on_host(gather(squares))[:, 0]

        self.diag = np.maximum(self.diag - explained, 0)
        self.diag[self.pivots] = 0
        self.updated = self.rank

    def _kept(self, width: int) -> tuple[Floats, ...]:
        """Return so many columns of F, as a table of a pass, where F is kept."""
        if not self.is_kept:
            return ()
        return (self.F[:, :width],)

    def _coefficients(self, right: Floats) -> Floats:
        """Return A with F · right = F A or, where F is not kept, = k(X, pivots) A."""
        if self.is_kept or self.updated == 0:
            return right
        lower = self.lower[: self.updated, : self.updated]
        solved = solve_triangular(lower, right, lower=True, trans=1)
        return np.asarray(solved)

    def _pass(
        self, name: str, function: BlockFunction, shared: Shared, cols: Indices
    ) -> FeaturePass:
        """Return the pass over G[:, cols], behind the pivots' columns where F is not kept."""
        if not self.is_kept:
            before = self.pivots[: self.updated]
            cols = np.append(before, cols)
        gram = self.gram
        columns = FeatureMap(gram.kernel, gram.landmarks(cols))
        return FeaturePass(
            columns, name, function, shared, budget=gram.budget, counter=gram.counter
        )


def greedy(gram: Gram, c: int, rng: Generator) -> Indices:  # noqa: ARG001
    """Choose the largest residual diagonal up to c times, until it vanishes: pivoted Cholesky.

    A residual diagonal only falls, so that a few rows alone tell the next pivots, as long as the
    largest of them is above what the others had at the last pass.
    """
    factor = PartialFactor(gram, c)
    while not factor.complete:
        # the few largest, and the largest of the others
        order = np.argsort(-factor.diag, kind="stable")
        few = order[:BATCH]
        following = order[BATCH : BATCH + 1]
        others = factor.diag[following]
        bound = max(factor.floor, float(others.max(initial=0.0)))

        # pivots among the few, as long as no other row can be larger
        residual = factor.residual(few, few)
        choose = choose_largest(bound)
        found = few[pivoted_cholesky(residual, choose, BATCH)]
        if len(found) == 0:
            found = order[:1]

        missing = c - factor.rank
        factor.append(found[:missing])
        if not factor.complete:
            factor.update()
    return factor.pivots


def sparse_greedy(gram: Gram, c: int, rng: Generator) -> Indices:
    """Choose the best of 59 random columns, c times (Smola and Schölkopf 2000).

    With e_j the residual of column j, it takes ‖e_j‖² / e_jj off tr(G − K̂).
    """
    factor = PartialFactor(gram, c)
    while not factor.complete:
        eligible = np.flatnonzero(factor.diag > factor.floor)
        size = min(CANDIDATES, len(eligible))
        drawn = rng.choice(eligible, size=size, replace=False)
        candidates = np.sort(drawn)

        # ‖e_j‖² / e_jj
        gains = factor.squared_norms(candidates) / factor.diag[candidates]
        best = np.argmax(gains)
        factor.append(candidates[[best]])
        factor.update()
    return factor.pivots


def rpcholesky(gram: Gram, c: int, rng: Generator) -> Indices:
    """Return c pivots, each drawn in proportion to the residual diagonal, by rejection sampling.

    Accelerated randomly pivoted Cholesky (Epperly, Tropp and Webber 2024): columns are proposed by
    the diagonal of the last pass and accepted by that of now. Fewer come back if it vanishes.
    """
    factor = PartialFactor(gram, c)
    rate = 1.0  # share of proposals that are accepted
    while not factor.complete:
        proposed = _propose(factor, rate, rng)
        pivots, rate = _accept(factor, proposed, rng)
        if len(pivots):
            factor.append(pivots)
        elif factor.rank == factor.updated:
            factor.diag[proposed] = 0  # their residual is rounding alone

        if _is_outdated(factor, factor.rank, rate):
            factor.update()
            rate = 1.0
    return factor.pivots


def _is_outdated(factor: PartialFactor, rank: int, rate: float) -> bool:
    """Whether a pass costs less than the proposals that it saves, of which `rate` are accepted.

    Costs are counted in multiplications: c² for a proposal, and d for each of its c kernel values.
    """
    c = factor.c
    old = factor.updated
    if not old < rank < c:
        return False

    # proposals that would be refused, against the rows of a pass
    d = factor.gram.rows.n_features
    refused = (c - rank) * (1 - rate)
    saved = refused * c * (c + d)
    added = rank - old
    update = factor.gram.n * added * (rank + d)
    return SMALL_PRODUCTS * saved > rate * update


def _propose(factor: PartialFactor, rate: float, rng: Generator) -> Indices:
    """Draw twice as many proposals as the missing pivots need, in so far as memory allows."""
    n = factor.gram.n
    c = factor.c
    missing = c - factor.rank
    needed = missing / max(rate, 1 / n)
    wanted = 2 * min(needed, c)

    # a row of F and of X for each proposal, and their Gram matrix
    memory = factor.gram.budget.bytes // 8
    row_bytes = 8 * (c + BATCH + factor.gram.rows.n_features)
    largest_square = int(np.sqrt(memory / 8))
    fits = min(memory // row_bytes, largest_square)

    batches = int(min(wanted, n // 16, fits)) // BATCH
    size = BATCH * max(1, batches)
    probabilities = factor.diag / factor.diag.sum()
    return rng.choice(n, size=size, p=probabilities)


def _accept(factor: PartialFactor, proposed: Indices, rng: Generator) -> tuple[Indices, float]:
    """Return the proposals accepted one after the other, and the share accepted in the end.

    It ends at the c-th pivot, where a pass is worth its cost, or where all proposals are rounding.
    """
    rows, places = np.unique(proposed, return_inverse=True)
    gram = factor.gram.restrict(rows)
    at_last_pass = factor.diag[proposed]

    # F of the proposals, a row for each
    rank = factor.rank
    F = np.zeros((len(proposed), factor.c))
    F[:, :rank] = factor.at(rows)[places]

    accepted = np.arange(0)
    rate = 1.0
    for start in range(0, len(proposed), BATCH):
        # the residual of a batch of proposals
        batch = slice(start, start + BATCH)
        known = F[batch, :rank]
        here = places[batch]
        W = floats_on_host(gram.block(here, here))
        residual = W - known @ known.T

        # accept with the probability of its diagonal now, over that by which they were drawn
        drawn_by = at_last_pass[batch]
        rate = _share_accepted(np.diag(residual), drawn_by, factor.floor)
        accept = accept_proposals(drawn_by, factor.floor, rng)
        new = pivoted_cholesky(residual, accept, factor.c - rank)
        accepted = np.append(accepted, start + new)

        # the new columns of F, for the proposals that follow
        after = slice(start + BATCH, None)
        following = places[after]
        if len(new) and len(following):
            block = gram.block(following, here[new])
            explained = F[after, :rank] @ known[new].T
            rest = floats_on_host(block) - explained
            corner = _cholesky(residual[np.ix_(new, new)])
            columns = slice(rank, rank + len(new))
            F[after, columns] = _divide(rest, corner)

        rank += len(new)
        is_done = rank in (factor.c, factor.updated)
        if is_done or _is_outdated(factor, rank, rate):
            break
    return proposed[accepted], rate


def _share_accepted(diagonal: Floats, drawn_by: Floats, floor: float) -> float:
    """Return the mean probability with which proposals are accepted, 0 of those below a floor."""
    chances = diagonal / drawn_by
    total = chances[diagonal > floor].sum()
    return float(total) / len(chances)


def _cholesky(block: Floats) -> Floats:
    """Return the factor L of a block that is symmetric but for rounding."""
    symmetric = (block + block.T) / 2
    return np.asarray(np.linalg.cholesky(symmetric), dtype=np.float64)


def _divide(values: Floats, lower: Floats) -> Floats:
    """Return values · L⁻ᵀ: rows of F from those of F Lᵀ."""
    solved = solve_triangular(lower, values.T, lower=True)
    return np.asarray(solved.T, dtype=np.float64)


# What passes do to a block of kernel values: plain functions, which can be sent to where rows are


def _residual_rows(coefficients: Floats, values: Array, *kept: Floats) -> Floats:
    """Return rows of G[:, cols] − F F[cols]ᵀ, whose second term the coefficients give."""
    n_before = values.shape[1] - coefficients.shape[1]
    on_host = floats_on_host(values)
    before, new = np.split(on_host, [n_before], axis=1)
    if kept:
        before = kept[0][:, : len(coefficients)]
    explained: Floats = before @ coefficients
    return np.subtract(new, explained, out=explained)


def _squares(shared: tuple[Floats, float], values: Array, *kept: Floats) -> Floats:
    """Return the sums of squares of the residual's columns, in units of a scale."""
    coefficients, scale = shared
    residual = _residual_rows(coefficients, values, *kept)
    squares = (residual / scale) ** 2
    return np.asarray(squares.sum(axis=0))


def _subtract_columns(shared: tuple[Floats, Floats], values: Array, *kept: Floats) -> Floats:
    """Return what new columns of F take off the diagonal; write them where F is kept."""
    coefficients, inverse = shared
    new = _residual_rows(coefficients, values, *kept) @ inverse
    if kept:
        old = len(coefficients)
        kept[0][:, old:] = new
    squared_norms = np.einsum("ij,ij->i", new, new)
    return np.asarray(squared_norms[:, None])
