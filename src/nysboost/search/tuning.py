"""Every tuned number of the search and the leaves, with the measurement that chose it."""

import numpy as np

HELD_OUT = (1000, 16384)
"""Rows held out: a tenth, so many at least, in folds where a fifth is fewer, and so many at most.
Half of the first number choose ρ. Housing, 455 rows: five folds .353, plain mean .386."""

DISTINCT = 0.9
"""Share of distinct rows from which equal ones are held out as one; below, as in a table of few
categories, one by one. One by one banknote, 2 % of its rows twice, has 1.7 of the log loss."""

LANDMARKS = 256
"""The number of landmarks unless one is given: leaves do what more would (protein, 1024: .496)."""

PILOT_LANDMARKS, FIRST_STEPS = 64, 50
"""Of first steps, by Adam; six small tables: 60 have 1.005 of the error of 100, 30 have 1.018."""

ROWS_WITH_LEAVES = 40
"""Rows for each landmark, at least, where leaves predict as well."""

STEPS = 250
"""Of the long descent; 150 and 300: bike .0108 and .0006, protein in leaves .501 and .495."""

BATCH_ROWS = (2048, 65536)
"""Of a step with 256 landmarks or fewer, on a processor and a device. 4096 on a processor: kin40k
.0403 for .0422, pol .0578 for .0561; 2048 on a device: kin40k .0332 for .0319."""

RATE = 0.05
"""First steps of Adam, in spreads; .03 and .06: kin40k .244 and .237, elevators .337 and .342."""

TRACE = 0.03
"""τ at most; c/n where that is less. Six small tables: .975 of the error of 0.1."""

GAMMAS = 10.0 ** np.arange(1.0, -3.1, -1.0)
"""γ of the weights, in units of the loss's; below, outlying rows run away (keggundirected: .54)."""

RHOS = 10.0 ** np.arange(0.5, -1.6, -1.0)
"""ρ of the leaves, in the same units: elevators prefers 10, pol 1, protein .1, kin40k .01. The
first candidate chooses for all: within .5 % on ten tables, kin40k on a GPU 3.7 s for 5.0."""

BANDWIDTHS = 2.0 ** np.arange(-2.0, 3.1)
"""Of landmarks that are not moved, in units of √d spreads."""

WIDE = 64
"""Beyond, a full metric starts from as many principal components (MNIST: 100 no better)."""

CODES = 256
"""Piecewise-linear codes of all features, at most. Bike has .0048 with 8 of each feature, .0005
with 24. Without codes airfoil has 1.06, mpg 1.08; with codes at thresholds of a tree of y pol
1.05, census 1.01."""

LEAF_ROWS = (4096, 49152)
"""Of a leaf at most, on a processor and a device. Kin40k .040 with 4000 and .032 with all rows."""

SHRINKAGE, NEGLIGIBLE = 0.01, 0.05
"""λ, the pull of mixture weights towards equal ones: .001 to .1 differ by less than .5 % on four
tables. Members with a smaller weight leave the mixture."""

NEAREST = 16
"""Rows of a leaf that give the variance at another one: interval scores with 16, 32 and all are
within 2 % of each other on twelve tables."""

BEYOND = 4.0
"""A row of which the landmarks know less than usual, by more than this factor, is outlying."""
