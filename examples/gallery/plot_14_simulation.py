"""
The paper's simulation
======================

Section 3.1 of *Boosting Nyström Method* uses 1000 points from a standard normal distribution in the
plane, a Gaussian kernel with σ = 1, and learners of m = k = 10 columns. This page is a small
version of ``nysboost reproduce simulation``, which has 100 replicates and significance tests.
"""

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

N_LEARNERS, N_COLUMNS, REPLICATES = 12, 10, 3
SIZES = {"n_learners": N_LEARNERS, "n_columns": N_COLUMNS}
METHODS = {
    "ensemble-uniform": ("#999999", ":"),
    "ensemble-ridge": ("#222222", "--"),
    "UUB-mean": ("#117733", "-"),
    "URB-mean": ("#CC6677", "-"),
    "URB-med": ("#CC6677", "--"),
    "UJB-mean": ("#EE7733", "-"),
}

# %%
# A run of twelve learners contains the shorter runs: ``error_path`` has the errors with 1, 2, …
# learners.
learners = np.arange(1, N_LEARNERS + 1)
errors = {method: np.zeros((REPLICATES, N_LEARNERS)) for method in METHODS}
limit = np.zeros(N_LEARNERS)
for r in range(REPLICATES):
    X = np.random.default_rng(r).normal(size=(1000, 2))
    squares = np.linalg.eigvalsh(nb.Gaussian(sigma=1.0)(X, X))[::-1] ** 2
    limit += (
        np.sqrt([squares[N_COLUMNS * p :].sum() / squares.sum() for p in learners]) / REPLICATES
    )
    for method, values in errors.items():
        run = nb.approximate(X, method, nb.Gaussian(sigma=1.0), **SIZES, random_state=r)
        values[r] = run.error_path()

# %%
# Left: the mixtures that the paper compares. Right: the best of them, a joint core on the same
# columns, and the smallest possible error with this number of columns.
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.3), layout="constrained")
for method, (colour, style) in METHODS.items():
    values = errors[method].mean(axis=0)
    if method != "UJB-mean":
        left.plot(learners, values, style, color=colour, label=method)
    if method in ("URB-mean", "UJB-mean"):
        right.plot(learners, values, style, color=colour, label=method)
right.plot(learners, limit, color="black", lw=0.8, label="SVD optimum")
right.set_yscale("log")
for axes in (left, right):
    axes.set(xlabel="number of learners", ylabel="relative error of the matrix")
    axes.set_xticks(learners[1::2])
    axes.grid(alpha=0.3)
left.legend(frameon=False, loc="upper right")
right.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Boosting with ridge weights has a smaller error than the ensembles, as the paper says. One joint
# core on the same columns has a far smaller error; the paper does not consider it.
