"""Every tuned number of the search and the leaves, with the measurement that chose it."""

import numpy as np

HELD_OUT = (1000, 16384)
"""A tenth of the rows is held out, but at least and at most these numbers. If a fifth of the rows
is less than the first number, five folds are held out in turn. Half the first number of rows
chooses ρ. Housing, 455 rows: .353 with folds, .386 without."""

FOLD_ROWS = 600
"""Folds are held out in turn until they have so many rows. With 1,000 three tables of 900 to 1,500
rows take 1.2 times as long, with the same errors (five splits, geometric mean)."""

DISTINCT = 0.1
"""If fewer than this share of the rows is distinct, equal rows are held out one by one, else
together. Splitting equal rows over both sides raised the log loss of banknote 1.7-fold; with ten
rows, each measured four times, 90 % intervals covered 64 to 70 %."""

LANDMARKS = 256
"""Default number of landmarks; with leaves, more gain little (protein with 1024: .496)."""

PILOT_LANDMARKS, FIRST_STEPS = 64, 30
"""Landmarks and Adam steps of first steps. 24 tables of up to 7,000 rows: 50 steps have 1.02 times
the error."""

ROWS_WITH_LEAVES = 40
"""Least number of rows for each landmark, if there are leaves."""

PRECISE_STEPS, PRECISE = 100, 2.5
"""Steps with folds, if first steps know more bits of y than the second number. A smooth function of
six features without noise, 2,000 rows: .036 with 100 steps, .074 with 30."""

STEPS, STEPS_OF_BIT = (100, 200), 100
"""Adam steps of the long descent, which continues first steps with more landmarks and rows. The
third number is for each bit of y that first steps know, within the bounds of the first two. With
100 steps in place of 200 elevators and protein have .995 and 1.006 times the error in .7 of the
time, but kin40k 1.03 and pol 1.14."""

LAST_STEPS = 100
"""Adam steps to all rows after folds, without leaves. 3,500 rows: pol, kin40k and phoneme have .92
to .96 times the error of 50 steps everywhere, and 1.03 to 1.16 times with 30."""

STEP_ROWS, ROWS_OF_LANDMARK, SHARE_OF_ROWS = (2048, 16384), 8, 8
"""A step sees an eighth of the rows, between the first two numbers, and at least eight rows for
each landmark. 262,000 rows: RMSE 40.7 with 2,048, 38.0 with 16,384 and 37.9 with 65,536. Kin40k:
.0422 with 2,048, .0403 with 4,096. With fewer in the first half of the steps kin40k, 4,000 rows,
has 1.1 to 1.6 times the error."""

RATE = 0.05
"""Learning rate of Adam in spreads. .03 and .06: kin40k .244 and .237, elevators .337 and .342."""

FORGET, FORGET_SQUARE, STILL = 0.9, 0.99, 1e-12
"""Shares of the mean gradient and the mean squared gradient that Adam keeps in a step, and what it
adds to its denominator."""

TRACE = 0.03
"""Largest τ; it is c/n if that is less. Six small tables: .975 times the error of 0.1."""

GAMMAS = 10.0 ** np.arange(1.0, -3.1, -1.0)
"""γ of the weights over γ of the loss. Smaller values overfit outlying rows (keggundirected:
.54)."""

NEAR_TIE = 0.02
"""The largest γ is chosen whose squared error is within this share of the least: 1 % of the error.
A smaller γ hardly predicts better, but leaves the range of y between distant rows."""

RHOS = 10.0 ** np.arange(1.5, -1.6, -1.0)
"""ρ of the leaves over γ of the loss: elevators prefers 10, pol 1, protein .1, kin40k .01."""

BANDWIDTHS = 2.0 ** np.arange(-2.0, 3.1)
"""Bandwidths of landmarks that are not trained, in units of √d spreads."""

LINEAR_BANDWIDTH, LINEAR_LANDMARKS, FAR_MORE = 16.0, 1024, 1.5
"""Bandwidth of linear models, in the same units, and their largest number of landmarks. A warning
names them if columns are more than the third number times the rows."""

WIDE = 64
"""With more features a full metric is of so many principal components (MNIST: 100 no better)."""

CODES = 256
"""Piecewise-linear codes of all features together. Bike has .0048 with 8 codes of each feature, and
.0005 with 24. Without codes airfoil has 1.06 times the error, mpg 1.08."""

LEAF_ROWS = (4096, 49152)
"""Rows of a leaf, on a processor and a device. Kin40k: .040 with 4000, .032 with all rows."""

SMALL_LEAF, LEAF_GAIN = 1024, 0.013
"""Rows of the leaves that choose ρ, and the least share of squared errors that they must take away:
where they do not, as on wages, abalone and credit status, leaves of all rows gain nothing."""

LEAF_WIDTH = 128
"""Coordinates of mapped rows in leaves of many rows. Bike hours, 259: .2107 with all, .2126 with
64."""

SHRINKAGE, NEGLIGIBLE = 0.01, 0.05
"""λ, the penalty on the distance of mixture weights from equal ones: .001 to .1 are within .5 % on
four tables. Members with a smaller weight than the second number are dropped."""

NEAREST = 16
"""Rows of a leaf that give the variance of a new row: interval scores with 16, 32 and all are
within 2 % on twelve tables."""

BEYOND = 4.0
"""A row is outlying if its variance without noise is more than this many times the mean."""

CAN_WIN, WORSE = 1.2, 2.0
"""A candidate is left out if its error after first steps is more than the first number times the
least one (with 1.3 seven tables have .987 times the error of trying all). With folds it is also
left out if its squared error is larger by more than the second number of standard deviations:
abalone and wages take .6 of the time."""

AFTER_LINEAR = 65_536
"""Rows from which candidates with codes are also fitted after a linear model. Departures with
earlier delays: .90 of LightGBM's error, .99 without. With fewer rows another descent takes too
large a share of the time."""

TIME_FOR_PILOTS, TIME_FOR_TRIALS, TIME_FOR_DESCENTS, TIME_FOR_LEAVES = 0.25, 0.5, 0.7, 0.7
"""Shares of `max_time`. After the first no candidate begins, after the second none is continued,
after the third descents end, and after the fourth leaves are left out."""
