"""
scikit-learn's Nystroem with better landmarks
=============================================

`nysboost.Nystroem` has the parameters of `sklearn.kernel_approximation.Nystroem`, so that only the
import changes. scikit-learn uses random rows as landmarks; `method="joint"` optimises their
positions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import kernel_approximation
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import nysboost as nb

X, y = load_digits(return_X_y=True)
gamma = 1 / (X.shape[1] * X.var())

# %%
# We run the same pipeline with both transformers, for several numbers of landmarks and three seeds.
SIZES = (10, 20, 40, 80, 160)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1000, random_state=0)


def accuracy(transformer, c):
    """Return the accuracy on the test rows with c landmarks, for three seeds."""
    transformers = [
        transformer(gamma=gamma, n_components=c, random_state=seed) for seed in range(3)
    ]
    pipelines = [
        make_pipeline(each, RidgeClassifier()).fit(X_train, y_train) for each in transformers
    ]
    return [pipeline.score(X_test, y_test) for pipeline in pipelines]


theirs = np.array([accuracy(kernel_approximation.Nystroem, c) for c in SIZES])
ours = np.array([accuracy(nb.Nystroem, c) for c in SIZES])

# %%
# With fewer landmarks, their positions matter more.
figure, axes = plt.subplots(figsize=(5.6, 3.7), layout="constrained")
curves = (("scikit-learn's Nystroem", theirs, "#777777"), ("nysboost.Nystroem", ours, "#EE7733"))
for name, values, colour in curves:
    axes.plot(SIZES, values.mean(axis=1), "o-", color=colour, label=name)
    axes.fill_between(SIZES, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2, lw=0)
axes.set(xscale="log", xlabel="landmarks", ylabel="accuracy", title="Digits, ridge classifier")
axes.set_xticks(SIZES, SIZES, minor=False)
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend(frameon=False, loc="lower right")
plt.show()
