"""
Boosting, step by step
======================

Algorithm 1 of *Boosting Nyström Method* adds learners one at a time. Each takes columns
on which the learners before it have a large error: the residual of some candidates is
clustered, and the centres of the clusters are the next columns.
"""

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

rng = np.random.default_rng(0)
centres = np.array([(0, 0), (4, 1), (1, 4), (5, 5)])
sizes = (700, 200, 60, 40)  # small groups are easily missed
X = np.concatenate(
    [centre + 0.6 * rng.normal(size=(n, 2)) for centre, n in zip(centres, sizes, strict=True)]
)

# %%
# One run of four learners with eight columns each. `prefix(p)` is the mixture of its first p
# learners.
approx = nb.approximate(
    X, "UJB-mean", nb.Gaussian(sigma=0.7), n_learners=4, n_columns=8, random_state=3
)
steps = [approx.prefix(p) for p in range(1, 5)]

# %%
# The colour of a row is the residual of the mixture so far, k(x, x) − K̂(x, x). Crosses are
# the columns that the next learner takes.
figure, panels = plt.subplots(2, 2, figsize=(7, 5.4), layout="constrained", sharey=True)
for p, (axes, step) in enumerate(zip(panels.flat, steps, strict=True), start=1):
    missed = np.clip(1 - step.diag(), 1e-3, 1)
    shown = axes.scatter(*X.T, c=missed, s=7, cmap="viridis_r", norm="log", vmin=1e-3, vmax=1)
    if p < len(steps):
        following = approx.trajectory.learners[p].landmarks.points
        axes.scatter(*following.T, marker="x", s=45, color="#CC3311", lw=1.8)
    axes.set_title(f"{p} learner{'s' * (p > 1)}, error {step.relative_error():.1e}", fontsize=10)
    axes.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=panels, label="residual of a row", shrink=0.9)
plt.show()

# %%
# The first learner, drawn at random, has columns in the large group mostly. The next ones take
# columns where the residual is large, until every group has some.
