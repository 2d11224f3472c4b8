"""The tuned numbers of certificates and of `tol`: what each trades."""

from __future__ import annotations

import numpy as np

# Certificates

N_ENTRIES = 2 * 10**7
"""Kernel values of a certificate: about a second on one core, with the features of 54 columns."""

SPENT = 0.9
"""Share of the risk for the intervals. The rest is for the error of a normal approximation."""

PAIRS = 10**6
"""Pairs of rows that make an interval narrow enough: 2 % of the error on MNIST."""

BLOCK = 64
"""Most rows of a block of pairs: larger blocks are faster, smaller ones meet more rows."""

GRAM_BLOCK = 8
"""The same for ‖G‖, which needs no features: more rows are worth more than speed."""

GRAM_SHARE = 0.15
"""Share of the pairs for ‖G‖, which varies less than the residual."""

WORTH_ALL = 0.7
"""Share of the kernel values up to which the features of all rows are computed."""

LEAST_BLOCKS = 6
"""Blocks of pairs, at least: with fewer the rows of one block would count for all."""

# The fewest landmarks within a tolerance

CONFIDENCE = 0.95
"""Confidence of the certificates of trials."""

CURVE_ROWS = (512, 2048)
"""Rows of a sample for the curve: the larger where the smaller does not reach the tolerance."""

GROWTH = 3
"""A trial has at most so many times the landmarks of the one before, so that failures are cheap."""

CLOSE_ENOUGH = 1.2
"""The search ends when the smallest number that works is within this factor of one that fails."""

HOPELESS = 1.5
"""Given up if trials say that so many times the landmarks allowed are needed."""

SURELY_HOPELESS = 4.0
"""Given up if the sample alone says so."""

ROWS_PER_LANDMARK = 4
"""The Gram matrix of so many rows for each landmark is held in a fit."""

SHARE_OF_FIT = 0.25
"""Kernel values of a trial's certificate, as a share of those of its fit."""

ENTRIES_PER_SQUARE = 10
"""Kernel values of a trial's certificate for each pair of landmarks, at least."""

SIZES = np.exp(np.linspace(0, 20, 2000))
"""Numbers of landmarks, beyond those allowed, at which the curve is evaluated."""
