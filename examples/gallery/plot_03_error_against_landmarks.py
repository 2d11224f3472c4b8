"""
Error against landmarks, for every family
=========================================

This page compares one method of each family, on the same data with the same kernel. The limit is
the truncated eigendecomposition: no matrix of the same rank has a smaller error.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import nysboost as nb

X = load_digits().data[:800] / 16
kernel = nb.Gaussian(sigma="median")
SIZES = (16, 32, 64, 128)
METHODS = {
    "joint": ("joint", "#EE7733", "o-"),
    "JJB-mean": ("boosting, joint core", "#AA3377", "s-"),
    "kmeans": ("cluster centres", "#009988", "D-"),
    "rpcholesky": ("randomly pivoted Cholesky", "#0077BB", "^-"),
    "rls": ("ridge leverage scores", "#33BBEE", "v-"),
    "uniform": ("uniform: scikit-learn's", "#777777", "x-"),
    "URB-mean": ("boosting, a mixture", "#CC6677", "s--"),
    "orthogonal-fourier": ("random features", "#BBAA22", "+-"),
    "optimal": ("the limit", "black", ":"),
}

# %%
# The error is ‖K̂ − G‖ / ‖G‖ in the Frobenius norm, computed exactly and averaged over two seeds.


def error(method, c):
    """Return the mean error over two seeds; a mixture has four learners."""
    runs = [
        nb.approximate(X, method, kernel, n_components=c, n_learners=4, random_state=seed)
        for seed in range(2)
    ]
    return np.mean([run.relative_error() for run in runs])


errors = {method: [error(method, c) for c in SIZES] for method in METHODS}

# %%
# The names are in the order of the lines at their right ends, the largest error first.
figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for method, (label, colour, style) in METHODS.items():
    axes.plot(SIZES, errors[method], style, color=colour, label=label, ms=5)
order = sorted(METHODS, key=lambda method: -errors[method][-1])
handles = {line.get_label(): line for line in axes.lines}
names = [METHODS[method][0] for method in order]
figure.legend([handles[name] for name in names], names, loc="outside right center", frameon=False)
axes.set(xscale="log", yscale="log", xlabel="landmarks", ylabel="relative error of the matrix")
axes.set_xticks(SIZES, SIZES)
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.set_title("800 digits, Gaussian kernel")
plt.show()

# %%
# `joint` is the closest to the limit. Mixtures and random features are cheaper and less accurate.
