"""
Landmarks at optimised positions
================================

Landmarks need not be rows. `method="joint"` starts from cluster centres and minimises the error of
the matrix over their positions, with gradients. These points are in the plane, so we can draw the
landmarks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import nysboost as nb

X, _ = make_moons(1500, noise=0.09, random_state=0)
kernel = nb.Gaussian(sigma=0.35)
LANDMARKS = 24

# %%
# The same number of landmarks, chosen in three ways: random rows, cluster centres, and optimised
# points.
placed = {
    name: nb.approximate(X, method, kernel, n_components=LANDMARKS, random_state=0)
    for name, method in {"random rows": "uniform", "k-means": "kmeans", "joint": "joint"}.items()
}

# %%
# The colour shows the error of each row: the diagonal of the residual, k(x, x) − K̂(x, x), which is
# zero if a row is represented exactly.
figure, panels = plt.subplots(1, 3, figsize=(6.4, 2.6), layout="constrained", sharey=True)
missed = {name: np.maximum(1 - found.diag(), 1e-6) for name, found in placed.items()}
top = max(values.max() for values in missed.values())
for axes, (name, found) in zip(panels, placed.items(), strict=True):
    shown = axes.scatter(
        *X.T, c=missed[name], s=6, cmap="viridis_r", norm="log", vmin=1e-4, vmax=top
    )
    axes.scatter(*found.landmarks.points.T, s=34, color="#EE7733", edgecolor="white", lw=0.8)
    axes.set_title(f"{name}\nerror {found.relative_error():.1e}")
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=panels, label="residual of a row", shrink=0.8)
plt.show()

# %%
# Cluster centres line up along the middle of each moon. Optimised landmarks spread over its width,
# and the error is half as large.
