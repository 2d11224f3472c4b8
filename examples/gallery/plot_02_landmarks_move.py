"""
Landmarks that move
===================

Landmarks need not be rows. `method="joint"` starts from cluster centres and lets each of them
move by gradient, to where the error of the whole matrix is smallest. Here they can be watched,
because the data lie in the plane.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import nysboost as nb

X, _ = make_moons(1500, noise=0.09, random_state=0)
kernel = nb.Gaussian(sigma=0.35)
LANDMARKS = 24

# %%
# Three ways to place as many landmarks: at random, at cluster centres, and moved.
placed = {
    name: nb.approximate(X, method, kernel, n_components=LANDMARKS, random_state=0)
    for name, method in {"rows at random": "uniform", "k-means": "kmeans", "joint": "joint"}.items()
}

# %%
# Where each approximation misses, row by row: the residual's diagonal, k(x, x) − K̂(x, x),
# which is zero where a row is represented exactly.
figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
missed = {name: np.maximum(1 - found.diag(), 1e-6) for name, found in placed.items()}
top = max(values.max() for values in missed.values())
for axes, (name, found) in zip(panels, placed.items(), strict=True):
    shown = axes.scatter(
        *X.T, c=missed[name], s=6, cmap="viridis_r", norm="log", vmin=1e-4, vmax=top
    )
    axes.scatter(*found.landmarks.points.T, s=34, color="#EE7733", edgecolor="white", lw=0.8)
    axes.set_title(f"{name}\nerror of the matrix {found.relative_error():.1e}", fontsize=10)
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=panels, label="share of a row that is missed", shrink=0.8)
plt.show()

# %%
# Centroids line up along the middle of each moon. The landmarks that moved spread over its
# width, and the same number of them misses half as much.
