"""The tuned numbers of certificates and of `tol`, each with its trade-off."""

from __future__ import annotations

import numpy as np

# Certificates

N_ENTRIES = 2 * 10**7
"""Kernel values of a certificate: about a second on one core, with the features of 54 columns."""

SPENT = 0.9
"""Share of the risk δ for the intervals. The rest covers the error of the normal approximation."""

PAIRS = 10**6
"""Pairs of rows that make an interval narrow enough: 2 % of the error on MNIST."""

BLOCK = 64
"""Largest number of rows of a block of pairs: larger blocks are faster, smaller ones include more
different rows."""

GRAM_BLOCK = 8
"""The same for ‖G‖, which needs no features, so that more different rows are worth the time."""

GRAM_SHARE = 0.15
"""Share of the pairs for ‖G‖, which varies less than the residual."""

WORTH_ALL = 0.7
"""The features of all rows are computed if they take at most this share of the kernel values."""

LEAST_BLOCKS = 6
"""Smallest number of blocks of pairs: with fewer, one block would dominate the estimate."""

# The fewest landmarks within a tolerance

CONFIDENCE = 0.95
"""Confidence of the certificates of trials."""

CURVE_ROWS = (512, 2048)
"""Sizes of the sample for the curve; the larger is used if the smaller does not reach the
tolerance."""

GROWTH = 3
"""Largest factor between the landmarks of successive trials, so that failures are cheap."""

CLOSE_ENOUGH = 1.2
"""The search ends when the smallest number that works is within this factor of one that fails."""

HOPELESS = 1.5
"""The search gives up if trials predict that this many times the allowed landmarks are needed."""

SURELY_HOPELESS = 4.0
"""The same factor if only the sample predicts it."""

ROWS_PER_LANDMARK = 4
"""A fit holds the Gram matrix of this many rows per landmark in memory."""

SHARE_OF_FIT = 0.25
"""Kernel values of a trial's certificate, as a share of those of its fit."""

ENTRIES_PER_SQUARE = 10
"""Kernel values of a trial's certificate for each pair of landmarks, at least."""

SIZES = np.exp(np.linspace(0, 20, 2000))
"""Numbers of landmarks, beyond those allowed, at which the curve is evaluated."""
