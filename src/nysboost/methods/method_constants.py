"""The tuned numbers of the methods, and those that their papers give."""

from __future__ import annotations

# Memory

BLOCK_BYTES = 2**26
"""What is held of G, or of a residual, at a time, where a quarter of the budget allows it."""

# Adaptive sampling

ROUNDS = 5
"""As many as the cost allows: on Pendigits ten rounds gave the same error as five, to 2 %."""

# Cluster centres

KMEANS_ROWS = 2**16
"""k-means sees all rows up to this many and a uniform sample of this many beyond it."""

CLUSTERS = 5
"""Clusters of MEKA, as in most of its paper's experiments."""

LINK_ROWS = 4
"""Rows on which MEKA's links are fitted, for each landmark. The paper has two; four vary less."""

# Pivoted Cholesky

BATCH = 64
"""Rows, or proposals, among which pivots are chosen at a time: time, not error."""

SMALL_PRODUCTS = 4
"""Time of a multiplication in the small products of proposals, over one in a pass."""

CANDIDATES = 59
"""The best of 59 is, with a probability of 95 %, among the best 5 % (Smola and Schölkopf)."""

# Nuclear scores

SCORED_ROWS = 4
"""Rows of the sample of nuclear scores for each column chosen, at least."""

FALLEN = 1e-6
"""The norms of the residual's columns are computed anew where their sum has fallen by so much."""

OVERRATED = 1.01
"""A nuclear score is corrected if it is so many times what its column shows: it is rounding."""

# Leverage scores

OVERSAMPLING = 5.0
"""Columns for each effective dimension in BLESS: its scores on two groups of points were then
within a factor of five of the exact ones, with three of them of seven, with two of 22."""

FALL_OF_RIDGE = 2.0
"""The factor between two regularisations of BLESS, as in the experiments of its paper."""

# Determinants

STEPS_PER_COLUMN = 20
"""Proposals for each column: on Pendigits the error no longer falls after about ten."""

PROPOSALS = 64
"""Proposals whose kernel values are evaluated at once: time, not error."""

SEED_ROWS = 2**13
"""k-means++ looks at this many rows, drawn uniformly, where there are more."""

# Robust CUR

FALL = 0.8
"""How fast the threshold falls; 0.7 as in the paper's experiments failed at 20 % corruption."""

ABOVE_NOISE = 0.3
"""Eigenvalues of W count from this multiple of threshold·√c on; 0.3 to 0.5 are alike."""

CONVERGED = 1e-4
"""The loop ends when the entries that are not called wrong fit to this relative error."""
