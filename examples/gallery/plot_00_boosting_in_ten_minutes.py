"""
Boosting Nyström in ten minutes
===============================

A kernel matrix holds the similarity of each pair of n points. It has n² numbers, too many for a
large n. *Nyström's method* computes m of its columns and approximates the rest from them. An
*ensemble* averages several such approximations, each on random columns. *Boosting* finds them one
after the other. Each new one uses columns that the earlier ones approximate badly. This tutorial
follows one step of Algorithm 1 of *Boosting Nyström Method* (Hamm, Lu, Ouyang and Zhang) on the
simulation of the paper.
"""

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

# %%
# The matrix
# ----------
# 1,000 points from the standard normal distribution in the plane, and the Gaussian kernel with
# σ = 1: two points are similar if they are near each other. Here we compute the whole matrix, but
# only to draw it.

X = np.random.default_rng(0).normal(size=(1000, 2))
kernel = nb.Gaussian(sigma=1.0)
G = kernel(X, X)

# %%
# One call runs the algorithm. The sizes are those of the paper: p = 20 learners, each on m = 10
# columns and of rank k = 10.

run = nb.approximate(X, "URB-mean", kernel, n_learners=20, n_columns=10, rank=10, random_state=0)
print(run)

# %%
# 1. The first learner
# --------------------
# Algorithm 1 begins with ten random columns, and a standard Nyström approximation on them. Each
# column belongs to a point, so we can draw the columns as points. The colour of a point is the norm
# of its column in the residual, which is G minus the approximation. Dark points are far from all
# ten columns.

first = run.prefix(1)
residual = G - first @ np.eye(len(X))
drawn = first.trajectory.learners[0].landmarks.points

figure, axes = plt.subplots(figsize=(5.2, 4), layout="constrained")
shown = axes.scatter(*X.T, c=np.linalg.norm(residual, axis=0), s=9, cmap="viridis_r")
axes.scatter(*drawn.T, marker="x", color="#CC3311", s=60, label="columns of the first learner")
figure.colorbar(shown, label="norm of the column of the residual")
axes.set(title=f"one learner: relative error {first.relative_error():.2f}", xticks=[], yticks=[])
axes.legend(loc="lower left")
plt.show()

# %%
# 2. The residual
# ---------------
# Step (b) draws candidates V, here 100 columns, and step (c) computes their columns of the
# residual. Each column has a value at every point. The figure shows three columns as maps. A column
# has large values around its own point, so points near each other have similar columns. The first
# two columns are similar, so the next learner needs only one of them. It also needs the third,
# which is different.

step = run.steps[0]
R = residual[:, step.V]
norms = np.linalg.norm(R, axis=0)
worst = np.argsort(-norms)
below = np.argmax(np.where(X[step.V, 1] < -1.2, norms, 0))

figure, panels = plt.subplots(1, 3, figsize=(6.2, 2.6), layout="constrained")
for panel, v in zip(panels, (worst[0], worst[4], below), strict=True):
    shown = panel.scatter(*X.T, c=R[:, v], s=6, cmap="RdBu", vmin=-1, vmax=1)
    panel.scatter(*X[step.V[v]], marker="o", s=70, facecolors="none", edgecolors="black")
    panel.set(xticks=[], yticks=[], title=f"point {step.V[v]}")
figure.colorbar(shown, ax=panels, label="residual")
plt.show()

# %%
# 3. The clusters
# ---------------
# Step (d) clusters the 100 columns of the residual into m = 10 groups and takes the column nearest
# to the centre of each. In the figure, the size of a candidate shows the norm of its column, and
# the colour shows which chosen column is nearest to it. Step (e) fits the second learner on the ten
# columns.

chosen = residual[:, step.columns]
distances = np.linalg.norm(R[:, :, None] - chosen[:, None, :], axis=0)  # shape (s, m)
groups = distances.argmin(axis=1)

figure, axes = plt.subplots(figsize=(5.2, 4), layout="constrained")
axes.scatter(*X.T, color="#DDDDDD", s=4)
axes.scatter(*X[step.V].T, c=groups, cmap="tab10", s=8 + 12 * norms)
axes.scatter(*X[step.columns].T, marker="x", color="black", s=60, label="columns of the second")
axes.set(title="candidates V in ten groups", xticks=[], yticks=[])
axes.legend(loc="lower left")
plt.show()

# %%
# 4. The mixture
# --------------
# The steps repeat until there are p learners. Step 3 weights them. In `URB-mean`, the boosting step
# has **U**niform weights, the final mixture has **R**idge weights, fitted on the columns V1, and
# the clustering is k-**mean**\ s. ``error_path`` returns the errors with 1, 2, … p learners.

ensemble = nb.approximate(X, "ensemble-ridge", kernel, n_learners=20, n_columns=10, random_state=0)
uniform = nb.approximate(X, "UUB-mean", kernel, n_learners=20, n_columns=10, random_state=0)

figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
learners = np.arange(1, 21)
for label, found, style in (
    ("ensemble-ridge", ensemble, "k--"),
    ("UUB-mean, all weights uniform", uniform, "C2-"),
    ("URB-mean, ridge weights at the end", run, "C3-"),
):
    axes.plot(learners, found.error_path(), style, label=label)
axes.set(xlabel="number of learners p", ylabel="relative error", xticks=learners[1::2])
axes.legend(frameon=False)
plt.show()

# %%
# A learner found by boosting costs more than a learner of the ensemble, which needs no clustering.
# But boosting needs fewer learners. These are the weights, and the time of each part of a step:

print("weights:", run.weights.round(2))
seconds = {letter: sum(s.seconds[letter] for s in run.steps) for letter in "abcde"}
print("milliseconds:", {letter: round(1000 * value, 1) for letter, value in seconds.items()})

# %%
# 5. Use it
# ---------
# An approximation can multiply vectors, solve linear systems, and compute features of old and new
# rows. A linear model on these features is an approximate kernel method. ``BoostedNystroem`` is a
# scikit-learn transformer for the same algorithm.

features = nb.BoostedNystroem(
    "URB-mean", kernel=kernel, n_learners=20, n_columns=10, random_state=0
)
print(features.fit_transform(X).shape)

# %%
# `Choose a variant <../variants.html>`_ compares the 27 variants.
# `Write your own rule or clustering <../own_rule.html>`_ shows how to replace a step, and
# `Reproduce the paper <../reproduce.html>`_ how to run all experiments. The algorithm itself is one
# screen of code: ``nysboost/boosting/algorithm.py``.
