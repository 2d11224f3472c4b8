"""
Boosting, step by step
======================

Algorithm 1 of *Boosting Nyström Method* adds learners one at a time. Each new learner uses columns
on which the earlier learners have a large error. To find them, the algorithm clusters the residual
of some candidate columns V, and takes the columns nearest to the cluster centres.
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
# One run of URB-mean has six learners with eight columns each. ``steps`` holds a record of each
# boosting step, and ``prefix(p)`` returns the mixture of the first p learners.
approx = nb.approximate(
    X, "URB-mean", nb.Gaussian(sigma=0.7), n_learners=6, n_columns=8, random_state=3
)
first = approx.prefix(1)
step = approx.steps[0]


def column_norms(mixture):
    """Return the norm of each column of the residual G − K̂."""
    G = nb.Gaussian(sigma=0.7)(X, X)
    return np.linalg.norm(G - mixture @ np.eye(len(X)), axis=0)


# %%
# 1. The first learner uses random columns, mostly from the large group. The colour
#    of a row is the norm of its column in the residual.
# 2. V is drawn among the unused columns.
# 3. Its residual is clustered; the columns of the next learner are where the residual differs.
# 4. The mixture of both has a smaller error.
figure, panels = plt.subplots(2, 2, figsize=(5.6, 5.1), layout="constrained", sharey=True)
residual = column_norms(first)
colours = {"cmap": "viridis_r", "vmin": 0, "vmax": residual.max(), "s": 8}
grey = {"color": "#CCCCCC", "s": 4}
cross = {"marker": "x", "s": 45, "color": "#CC3311", "lw": 1.8}

shown = panels[0, 0].scatter(*X.T, c=residual, **colours)
panels[0, 0].scatter(*first.trajectory.learners[0].landmarks.points.T, **cross)
panels[0, 0].set_title("after the first learner")

panels[0, 1].scatter(*X.T, **grey)
panels[0, 1].scatter(*X[step.V].T, c=residual[step.V], **colours)
panels[0, 1].set_title("V, and its residual")

panels[1, 0].scatter(*X.T, **grey)
panels[1, 0].scatter(*X[step.V].T, c=residual[step.V], **colours)
panels[1, 0].scatter(*X[step.columns].T, **cross)
panels[1, 0].set_title("next columns")

panels[1, 1].scatter(*X.T, c=column_norms(approx.prefix(2)), **colours)
panels[1, 1].scatter(*X[step.columns].T, **cross)
panels[1, 1].set_title("after both learners")

for axes in panels.flat:
    axes.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=panels, label="norm of a column of the residual", shrink=0.9)
plt.show()

# %%
# The error of the mixture falls with each learner. The ensemble draws all columns at random.
ensemble = nb.approximate(
    X, "ensemble-ridge", nb.Gaussian(sigma=0.7), n_learners=6, n_columns=8, random_state=3
)
learners = np.arange(1, 7)
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.plot(learners, approx.error_path(), "o-", label="URB-mean")
axes.plot(learners, ensemble.error_path(), "k--", label="ensemble-ridge")
axes.set(xlabel="number of learners", ylabel="relative error", xticks=learners)
axes.legend(frameon=False)
plt.show()
