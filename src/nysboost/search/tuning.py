"""Every tuned number of the search and the leaves, with the measurement that chose it."""

from __future__ import annotations

import numpy as np

HELD_OUT = (5, 10, 1000, 16384)
"""Rows held out: a fifth at most, a tenth of many, 1000 in all at least (fifths in turn where one
is less), 16,384 at most. Housing, 455 rows: five folds .353, plain mean .386."""

PILOT_LANDMARKS, PILOT_ROWS, FIRST_STEPS = 64, 2048, 50
"""Of first steps, by Adam; six small tables: 60 have 1.005 of the error of 100, 30 have 1.018."""

STEPS = 250
"""Of the long descent; 150 and 300: bike .0108 and .0006, protein in leaves .501 and .495."""

BATCH_ROWS = (2048, 65536)
"""Of a long step, on processor and device; 4096: kin40k .0403 for .0422, pol .0578 for .0561."""

ROWS_PER_LANDMARK, ROWS_WITH_LEAVES = 8, 40
"""Rows for each landmark, at least, in a long step, and from which k-means starts; rows for each
where leaves predict as well."""

SAMPLE_BYTES = (2**28, 2**30)
"""Rows that the descent goes through take so much memory, on a processor and on a device."""

RATE = 0.05
"""First steps of Adam, in spreads; .03 and .06: kin40k .244 and .237, elevators .337 and .342."""

TRACE = 0.03
"""τ at most; c/n where that is less. Six small tables: .975 of the error of 0.1."""

START_GAMMA = 1e-2
"""γ where a search begins; Adam forgets it."""

GAMMAS = 10.0 ** np.arange(1.0, -3.1, -1.0)
"""γ of the weights, in units of the loss's; below, outlying rows run away (keggundirected: .54)."""

RHOS = 10.0 ** np.arange(0.5, -1.6, -1.0)
"""ρ of the leaves, in the same units: elevators prefers 10, pol 1, protein .1, kin40k .01. The
first candidate chooses for all: within .5 % on ten tables, kin40k on a GPU 3.7 s for 5.0."""

BASELINE_GAMMAS, BANDWIDTHS = 10.0 ** np.arange(0.0, -4.6, -1.5), 2.0 ** np.arange(-2.0, 3.1)
"""Of landmarks that are not moved, in units of √d spreads. With γ down to 3e-8 predictions in a gap
between 200 rows, whose y is within ±3, reached 40."""

WIDE, COMPONENTS = 96, 64
"""Beyond 96 features a full metric starts from 64 principal components (MNIST: 100 no better)."""

BINS, CODES, CODED_ROWS = 24, 256, 64
"""Piecewise-linear codes of a feature, and of all, at most, and rows for each. Bike has .0048 with
8 of a feature, .0005 with 24; twenty small tables .99 of the error with rows for each. Without
codes airfoil has 1.06, mpg 1.08; with codes at thresholds of a tree of y pol 1.05, census 1.01."""

LEAF_ROWS = (4096, 49152)
"""Of a leaf at most, on a processor and a device. Kin40k .040 with 4000 and .032 with all rows."""

SCORED_ROWS = 500
"""Held-out rows that score leaves, at least, where there are as many: one leaf after the other."""

SHRINKAGE, NEGLIGIBLE = 0.01, 0.05
"""λ, the pull of mixture weights towards equal ones: .001 to .1 differ by less than .5 % on four
tables. Members with a smaller weight leave the mixture."""

LANDMARKS = 256
"""The number of landmarks unless one is given: leaves do what more would (protein, 1024: .496)."""
