"""The tuned numbers of the methods, and the numbers given in their papers."""

from __future__ import annotations

# Memory

BLOCK_BYTES = 2**26
"""Bytes of G, or of a residual, in memory at a time, if a quarter of the budget allows it."""

# Adaptive sampling

ROUNDS = 5
"""Number of rounds: on Pendigits, ten rounds gave the same error as five, to 2 %."""

# Cluster centres

KMEANS_ROWS = 2**16
"""k-means uses at most this many rows; with more, it uses a uniform sample."""

CLUSTERS = 5
"""Clusters of MEKA, as in most of its paper's experiments."""

LINK_ROWS = 4
"""Rows per landmark on which MEKA's links are fitted. The paper has two; with four, the error
varies less."""

# Pivoted Cholesky

BATCH = 64
"""Rows, or proposals, among which pivots are chosen at a time. It affects the time, not the
error."""

SMALL_PRODUCTS = 4
"""Time of a multiplication in the small products of proposals, relative to one in a pass."""

CANDIDATES = 59
"""The best of 59 is, with a probability of 95 %, among the best 5 % (Smola and Schölkopf)."""

# Nuclear scores

SCORED_ROWS = 4
"""Fewest rows of the sample for nuclear scores per chosen column."""

FALLEN = 1e-6
"""The norms of the residual's columns are recomputed when their sum has fallen by this factor."""

OVERRATED = 1.01
"""If a nuclear score exceeds the exact one by this factor, it is due to rounding, and is
corrected."""

# Leverage scores

OVERSAMPLING = 5.0
"""Columns for each effective dimension in BLESS: its scores on two groups of points were then
within a factor of five of the exact ones, with three of them of seven, with two of 22."""

FALL_OF_RIDGE = 2.0
"""The factor between two regularisations of BLESS, as in the experiments of its paper."""

# Determinants

STEPS_PER_COLUMN = 20
"""Proposals per column: on Pendigits, the error no longer falls after about ten."""

PROPOSALS = 64
"""Proposals whose kernel values are evaluated together. It affects the time, not the error."""

SEED_ROWS = 2**13
"""k-means++ uses at most this many rows, drawn uniformly."""

# Robust CUR

FALL = 0.8
"""Factor by which the threshold falls; 0.7, as in the paper's experiments, failed at 20 %
corruption."""

ABOVE_NOISE = 0.3
"""Eigenvalues of W are used above this multiple of threshold·√c; 0.3 to 0.5 are equally good."""

CONVERGED = 1e-4
"""The loop ends when the entries considered correct are fitted to this relative error."""
