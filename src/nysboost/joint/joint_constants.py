"""The tuned numbers of the joint method, each with its trade-off and measurement."""

from __future__ import annotations

# The sample

ROWS_PER_LANDMARK = 4
"""Sample rows for each landmark, at least. With fewer the core overfits the sample."""

ANCHOR = 0.1
"""Weight of the landmarks' own rows in the core's sample: with 0.3 the error is a tenth larger in
sample, with 0.03 larger on other rows of Covertype (1.135e-3 against 1.125e-3)."""

WHOLE_DIAGONAL = 2**17
"""Largest n for which the residual's diagonal is evaluated on all rows, n·c kernel values. Beyond
it the sample is used alone, so that the cost of a fit does not grow with n."""

FAR = 32
"""For each FAR rows the sample gains one of those farthest from the mean: the error is 1.4e-2, not
3.9e-2, on outlying rows of Covertype, and 0 to 4 % larger on uniform ones."""

ERROR_ROWS = 250
"""Rows of the residual from which its norm is estimated where small matrices cancel. Between 250
and 500 the zoo's mean error changes by no more than chance (0.542 to 0.550)."""

# The exchange

CANDIDATES = 0.5
"""Number of candidate rows, as a share of the number of landmarks."""

EXCHANGES = 3
"""Largest number of exchanges. One is enough unless `MUCH` or `MOST` asks for another."""

MUCH = 0.25
"""Exchange again if the squared error fell below this share of what it was: with 0.3 to 0.46 left,
another exchange gains 3 to 5 % more."""

MOST = 0.75
"""Exchange again if more than this share of the candidates became landmarks."""

BATCH = 32
"""Landmarks removed between two updates of all other contributions: time, not error."""

# The refinement

STEPS_OF_ALL = 8400
"""At most STEPS_OF_ALL / c steps of L-BFGS with c landmarks: time against error."""

FEWEST_STEPS = 18
"""Steps of L-BFGS that are always allowed, however many landmarks there are."""

WORTH = 0.002
"""L-BFGS stops after two steps in a row that each reduce the loss by less than this share. With
0.0025 the error on MNIST, c = 240, is 0.3 % larger, in 4 % less time; 0.0015 takes a tenth more on
Covertype."""

POWERS = 2
"""Steps of subspace iteration for F Fᵀ ≈ G: with RANK, within 0.2 % of the error of G itself."""

RANK = 1.1
"""Columns of F for each landmark."""

REFINING = 0.9
"""Share of a joint fit's time that refinement takes, as assumed by the progress bar."""

MEMORY = 10
"""Pairs of steps in which L-BFGS keeps the curvature."""

SHRUNK = 0.1
"""Of their mean, added to squares of rows: with 1e-6 errors on Covertype are 1 % larger."""
