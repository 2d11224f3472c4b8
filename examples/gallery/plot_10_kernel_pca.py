"""
Kernel PCA, and its pre-images
==============================

`nysboost.KernelPCA` computes components from the features of any method, without an n×n matrix.
With ``fit_inverse_transform`` it learns pre-images, which remove noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import nysboost as nb

X = load_digits().data / 16
rng = np.random.default_rng(0)
noisy = X + 0.25 * rng.normal(size=X.shape)
train, test = noisy[:1500], noisy[1500:]

# %%
# We compute twelve components of noisy digits, with 100 landmarks.
pca = nb.KernelPCA(
    12, gamma=0.03, n_landmarks=100, fit_inverse_transform=True, alpha=1.0, random_state=0
).fit(train)
cleaned = pca.inverse_transform(pca.transform(test))

# %%
# The figure shows new digits: the original, with noise, and reconstructed from twelve components.
clean = X[1500:]
before, after = (np.sqrt(np.mean((rows - clean) ** 2)) for rows in (test, cleaned))
figure, panels = plt.subplots(3, 10, figsize=(7.2, 2.7), layout="constrained")
labels = ("as it was", f"with noise\nerror {before:.2f}", f"pre-image\nerror {after:.2f}")
for axes_row, rows, label in zip(panels, (clean, test, cleaned), labels, strict=True):
    for axes, row in zip(axes_row, rows, strict=False):
        axes.imshow(row.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    axes_row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
plt.show()

# %%
# Twelve components contain most of the digits and little of the noise.
