"""
Digits: landmarks trained on the labels
=======================================

Landmarks that approximate the kernel matrix do not use the labels. With `method="target"`,
landmarks and a metric are trained to predict them. `nysboost.NystroemClassifier` uses such
landmarks.
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
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1000, random_state=0)

# %%
# We compare the same number of landmarks in the same pipeline: scikit-learn's random rows; `joint`,
# optimised for the matrix; and landmarks trained on the labels.
gamma = 1 / (X.shape[1] * X.var())
features = {
    "random rows": kernel_approximation.Nystroem(gamma=gamma, n_components=50, random_state=0),
    "for the matrix": nb.Nystroem(gamma=gamma, n_components=50, random_state=0),
    "for the labels": nb.Nystroem(method="target", n_components=50, random_state=0),
}
scores = {
    name: make_pipeline(each, RidgeClassifier(0.01)).fit(X_train, y_train).score(X_test, y_test)
    for name, each in features.items()
}

# %%
# The landmarks themselves are pictures. The first two kinds look like digits; the third kind
# exaggerates what distinguishes one digit from another.
figure, panels = plt.subplots(1, 3, figsize=(6.4, 3), layout="constrained")
for axes, (name, each) in zip(panels, features.items(), strict=True):
    tiles = each.components_[:25].reshape(5, 5, 8, 8)
    picture = np.pad(tiles, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    axes.imshow(picture.transpose(0, 2, 1, 3).reshape(45, 45), cmap="gray_r", vmin=-4, vmax=18)
    axes.set_title(f"{name}\naccuracy {scores[name]:.3f}")
    axes.set_axis_off()
plt.show()

# %%
# The figure shows half of each set of 50 landmarks. All three have the same number of features.
