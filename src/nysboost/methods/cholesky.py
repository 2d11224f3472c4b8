"""Columns as pivots of a partial Cholesky factorisation: greedy, random, or best of a few."""

from __future__ import annotations

import operator

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from nysboost.features.feature_map import FeatureMap
from nysboost.features.feature_pass import FeaturePass
from nysboost.gram import Gram
from nysboost.kernels.distances import squared_norms
from nysboost.methods.method_constants import BATCH, CANDIDATES, SMALL_PRODUCTS
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, gather
from nysboost.numerics.linalg import (
    accept_proposals,
    choose_largest,
    pivoted_cholesky,
    triangular_inverse,
)
from nysboost.numerics.tolerances import EXHAUSTED
from nysboost.rows.driver import BlockFunction, Shared


class PartialFactor:
    """The Cholesky factor F of G on the pivots chosen so far, of c: F Lᵀ = k(X, pivots).

    Where F does not fit in half of the working memory it is not kept.

    Attributes
    ----------
    pivots : array of shape (rank,)
        The pivots chosen so far, and `lower` is their L, shape (rank, rank).
    updated : int
        The number of pivots at the last `update`, one pass over the data.
    F : array of shape (n, c), or (n, 0) where it is not kept
        Its first `updated` columns are known.
    diag : array of shape (n,)
        The diagonal of the residual G − F Fᵀ at the last update.
    floor : float
        A diagonal entry below it is rounding.
    """

    def __init__(self, gram: Gram, c: int) -> None:
        self.gram = gram
        self.c = c
        self.pivots: Indices = np.arange(0)
        self.lower: Floats = np.eye(0)
        self.updated = 0

        # F, whose columns take memory when they are written
        factor_bytes = 8 * gram.n * c
        fits = factor_bytes <= gram.budget.bytes // 2
        self.is_kept = fits and not gram.rows.lazy
        shape = (gram.n, c * self.is_kept)
        self.F = np.zeros(shape, order="F")

        self.diag = gram.host_diag()
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
        # where F is not kept it has no columns
        known = self.F[rows, : self.updated]
        old = known.shape[1]
        if old == self.rank:
            return known

        # F Lᵀ = k(X, pivots), solved for the columns of F since the last update
        new_pivots = self.pivots[old:]
        values = self.gram.host_block(rows, new_pivots)
        below = self.lower[old:, :old]
        corner = self.lower[old:, old:]
        explained = known @ below.T
        new = _divide(values - explained, corner)
        return np.hstack([known, new])

    def residual(self, rows: Indices, cols: Indices) -> Floats:
        """Return (G − F Fᵀ)[rows, cols]."""
        G = self.gram.host_block(rows, cols)
        left = self.at(rows)
        right = self.at(cols)
        explained = left @ right.T
        return G - explained

    def squared_norms(self, cols: Indices) -> Floats:
        """Return ‖e_j‖² of the columns of the residual, relative to its largest diagonal entry."""
        right = self.at(cols).T
        coefficients = self._coefficients(right)
        scale = float(self.diag.max())
        shared = (coefficients, scale)
        task = self._pass("residual-columns", _squares, shared, cols)
        known = self._kept(self.rank)
        return self.gram.rows.fold(task, operator.add, *known)

    def append(self, pivots: Indices) -> None:
        """Extend L by these pivots, which must be independent of the earlier ones."""
        # the rows [below, corner] of the new pivots, from L Lᵀ = W:
        # corner cornerᵀ = W − below belowᵀ
        below = self.at(pivots)
        W = self.gram.host_block(pivots, pivots)
        explained = below @ below.T
        corner = _cholesky(W - explained)

        # L = [[L, 0], [below, corner]]
        above = np.zeros_like(below.T)
        upper_half = [self.lower, above]
        lower_half = [below, corner]
        self.lower = np.block([upper_half, lower_half])
        self.pivots = np.append(self.pivots, pivots)

    def update(self) -> None:
        """Update the residual's diagonal, and F if it is kept."""
        # the new columns of F are (k(X, new pivots) − F belowᵀ) corner⁻ᵀ
        old = self.updated
        below = self.lower[old:, :old]
        corner = self.lower[old:, old:]
        coefficients = self._coefficients(below.T)
        inverse = triangular_inverse(corner).T
        shared = (coefficients, inverse)

        # one pass computes them, and their squares
        new_pivots = self.pivots[old:]
        task = self._pass("pivots", _subtract_columns, shared, new_pivots)
        columns = self._kept(self.rank)
        squares = self.gram.rows.map(task, 1, *columns)

        # the squares are what they explain of the diagonal
        on_host = floats_on_host(gather(squares))
        explained = on_host[:, 0]
        left = self.diag - explained
        self.diag = np.maximum(left, 0)
        self.diag[self.pivots] = 0
        self.updated = self.rank

    def _kept(self, width: int) -> tuple[Floats, ...]:
        """Return the first columns of F as a table for a pass, if F is kept."""
        if not self.is_kept:
            return ()
        return (self.F[:, :width],)

    def _coefficients(self, right: Floats) -> Floats:
        """Return A with F · right = F A or, if F is not kept, = k(X, pivots) A."""
        if self.is_kept or self.updated == 0:
            return right

        # F Lᵀ = k(X, pivots), so A = L⁻ᵀ · right
        lower = self.lower[: self.updated, : self.updated]
        solved = solve_triangular(lower, right, lower=True, trans=1)
        return np.asarray(solved)

    def _pass(
        self,
        name: str,
        function: BlockFunction,
        shared: Shared,
        cols: Indices,
    ) -> FeaturePass:
        """Return the pass over G[:, cols], preceded by the pivots' columns if F is not kept."""
        gram = self.gram
        if not self.is_kept:
            before = self.pivots[: self.updated]
            cols = np.append(before, cols)
        landmarks = gram.landmarks(cols)
        return FeaturePass(
            FeatureMap(gram.kernel, landmarks),
            name,
            function,
            shared,
            budget=gram.budget,
            counter=gram.counter,
        )


def greedy(gram: Gram, c: int, rng: Generator) -> Indices:  # noqa: ARG001
    """Choose the largest residual diagonal up to c times, until it vanishes: pivoted Cholesky.

    The residual's diagonal can only decrease. So a few rows determine the next pivots, while their
    largest entry is above the entries of the others at the last pass.
    """
    factor = PartialFactor(gram, c)
    while not factor.complete:
        # the few largest, and the largest of the others
        order = np.argsort(-factor.diag, kind="stable")
        few = order[:BATCH]
        others = factor.diag[order[BATCH:]]
        largest_other = others.max(initial=factor.floor)

        # pivots among the few, as long as no other row can be larger
        residual = factor.residual(few, few)
        choose = choose_largest(largest_other)
        places = pivoted_cholesky(residual, choose, BATCH)
        pivots = few[places]
        if len(pivots) == 0:
            pivots = order[:1]

        missing = c - factor.rank
        factor.append(pivots[:missing])
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
        squares = factor.squared_norms(candidates)
        gains = squares / factor.diag[candidates]
        best = np.argmax(gains)
        factor.append(candidates[[best]])
        factor.update()
    return factor.pivots


def rpcholesky(gram: Gram, c: int, rng: Generator) -> Indices:
    """Return c pivots, each drawn in proportion to the residual diagonal, by rejection sampling.

    Accelerated randomly pivoted Cholesky (Epperly, Tropp and Webber 2024): columns are proposed by
    the diagonal of the last pass, and accepted by the current one. If the diagonal vanishes, fewer
    pivots are returned.
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

        if _is_pass_worthwhile(factor, factor.rank, rate):
            factor.update()
            rate = 1.0
    return factor.pivots


def _is_pass_worthwhile(factor: PartialFactor, rank: int, rate: float) -> bool:
    """Whether a pass costs less than the proposals that it saves, if a share `rate` is accepted.

    Costs are counted in multiplications: c² for a proposal, and d for each of its c kernel values.
    """
    c = factor.c
    added = rank - factor.updated
    missing = c - rank
    if added == 0 or missing == 0:
        return False

    # a proposal costs c² for its row of F, and c·d for its kernel values
    d = factor.gram.rows.n_features
    proposal = c * (c + d)

    # a pass: n rows of the new columns
    row = added * (rank + d)
    update = factor.gram.n * row

    # each missing pivot takes (1 − rate) / rate refused proposals; as the rate may be 0, both
    # sides are multiplied by it
    refused = missing * (1 - rate)
    saved = refused * proposal
    return SMALL_PRODUCTS * saved > rate * update


def _propose(factor: PartialFactor, rate: float, rng: Generator) -> Indices:
    """Draw twice as many proposals as the missing pivots need, as far as memory allows."""
    n = factor.gram.n
    c = factor.c
    missing = c - factor.rank
    least_rate = max(rate, 1 / n)
    needed = missing / least_rate
    wanted = 2 * min(needed, c)

    # memory holds a row of F and of X for each proposal, and their Gram matrix
    d = factor.gram.rows.n_features
    memory = factor.gram.budget.bytes // 8
    row_bytes = 8 * (c + BATCH + d)
    most_rows = memory // row_bytes
    largest_square = np.sqrt(memory / 8)

    # a whole number of batches, at least one
    size = min(wanted, n // 16, most_rows, largest_square)
    batches = max(1, int(size) // BATCH)
    count = BATCH * batches
    probabilities = factor.diag / factor.diag.sum()
    return rng.choice(n, size=count, p=probabilities)


def _accept(factor: PartialFactor, proposed: Indices, rng: Generator) -> tuple[Indices, float]:
    """Return the proposals accepted one after the other, and the share accepted in the end.

    It ends at the c-th pivot, when a pass is worth its cost, or when all proposals are rounding.
    """
    proposals = Proposals(factor, proposed)
    accepted = np.arange(0)
    for start in range(0, len(proposed), BATCH):
        batch = slice(start, start + BATCH)
        residual = proposals.residual(batch)

        # accept each with the probability of its diagonal now over that at the last pass
        drawn_by = factor.diag[proposed[batch]]
        diagonal = residual.diagonal()
        rate = _share_accepted(diagonal, drawn_by, factor.floor)
        rule = accept_proposals(drawn_by, factor.floor, rng)
        missing = factor.c - proposals.rank
        places = pivoted_cholesky(residual, rule, missing)

        # what follows is judged by the residual after these pivots
        new = start + places
        accepted = np.append(accepted, new)
        if len(new):
            within = residual[np.ix_(places, places)]
            proposals.eliminate(new, within, batch.stop)

        rank = proposals.rank
        is_complete = rank == factor.c
        is_rounding = rank == factor.updated
        if is_complete or is_rounding or _is_pass_worthwhile(factor, rank, rate):
            break
    return proposed[accepted], rate


class Proposals:
    """Proposed rows, and their rows of F, to which each accepted proposal adds a column.

    Of `F`, shape (proposals, c), the first `rank` columns are known. A row may be proposed several
    times: proposal i is row `places[i]` of `gram`, which has each row once.
    """

    def __init__(self, factor: PartialFactor, proposed: Indices) -> None:
        distinct, self.places = np.unique(proposed, return_inverse=True)
        self.gram = factor.gram.restrict(distinct)

        # F of the pivots before
        self.rank = factor.rank
        shape = (len(proposed), factor.c)
        self.F = np.zeros(shape)
        known = factor.at(distinct)
        self.F[:, : self.rank] = known[self.places]

    def residual(self, batch: slice) -> Floats:
        """Return (G − F Fᵀ)[batch, batch]."""
        rows = self.places[batch]
        G = self.gram.host_block(rows, rows)
        F = self.F[batch, : self.rank]
        explained = F @ F.T
        return G - explained

    def eliminate(self, pivots: Indices, within: Floats, start: int) -> None:
        """Add the columns (G − F Fᵀ)[:, pivots] L⁻ᵀ to F, for the proposals from `start` on.

        L Lᵀ is `within`, the residual on the pivots.
        """
        old = self.rank
        self.rank += len(pivots)
        following = self.places[start:]
        if len(following) == 0:
            return

        columns = self.places[pivots]
        G = self.gram.host_block(following, columns)
        left = self.F[start:, :old]
        right = self.F[pivots, :old]
        explained = left @ right.T
        L = _cholesky(within)
        new = _divide(G - explained, L)
        self.F[start:, old : self.rank] = new


def _share_accepted(diagonal: Floats, drawn_by: Floats, floor: float) -> float:
    """Return the mean probability that proposals are accepted, which is 0 below a floor."""
    chances = diagonal / drawn_by
    chances[diagonal <= floor] = 0
    return float(chances.mean())


def _cholesky(block: Floats) -> Floats:
    """Return the factor L of a block that is symmetric up to rounding."""
    symmetric = (block + block.T) / 2
    lower = np.linalg.cholesky(symmetric)
    return np.asarray(lower, dtype=np.float64)


def _divide(values: Floats, lower: Floats) -> Floats:
    """Return values · L⁻ᵀ: rows of F from those of F Lᵀ."""
    transposed: Floats = solve_triangular(lower, values.T, lower=True)
    return transposed.T


# What passes do to a block of kernel values: plain functions, which can be sent to where rows are


def _residual_rows(coefficients: Floats, values: Array, *kept: Floats) -> Floats:
    """Return rows of G[:, cols] − F F[cols]ᵀ, with the second term computed from coefficients.

    `values` are rows of G[:, cols], behind k(X, pivots) where F is not `kept`.
    """
    # F, or k(X, pivots), times the coefficients
    n_before, n_new = coefficients.shape
    on_host = floats_on_host(values)
    before = on_host
    if kept:
        (before,) = kept
    explained: Floats = before[:, :n_before] @ coefficients

    # G[:, cols] are the last columns
    G = on_host[:, -n_new:]
    return np.subtract(G, explained, out=explained)


def _squares(shared: tuple[Floats, float], values: Array, *kept: Floats) -> Floats:
    """Return the sums of squares of the residual's columns, in units of a scale."""
    coefficients, scale = shared
    residual = _residual_rows(coefficients, values, *kept)
    squares = (residual / scale) ** 2
    return np.asarray(squares.sum(axis=0))


def _subtract_columns(shared: tuple[Floats, Floats], values: Array, *kept: Floats) -> Floats:
    """Return the decrease of the diagonal by new columns of F; store them if F is kept."""
    coefficients, inverse = shared
    residual = _residual_rows(coefficients, values, *kept)
    new = residual @ inverse
    old = len(coefficients)
    for F in kept:
        F[:, old:] = new

    decrease = floats_on_host(squared_norms(new))
    return decrease[:, None]
