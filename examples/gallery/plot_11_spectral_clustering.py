"""
Spectral clustering of a photograph
===================================

Every pixel is a row: its colour and its position. The matrix of 17,000 rows would have 290 million
entries; `nysboost.SpectralClustering` uses the features of 150 landmarks, in two passes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import nysboost as nb

photo = load_sample_image("flower.jpg")[::4, ::4] / 255
height, width, _ = photo.shape

# %%
# Colour has a larger weight than position.
i, j = np.indices((height, width))
place = np.stack([i, j], axis=-1) / width
X = np.concatenate([photo, 0.35 * place], axis=-1).reshape(-1, 5)
model = nb.SpectralClustering(5, gamma=12.0, n_landmarks=150, random_state=0)
labels = model.fit_predict(X).reshape(height, width)
print(f"{len(X)} rows, eigenvalues {np.round(model.eigenvalues_, 3)}")

# %%
# We draw each cluster in its mean colour.
segments = np.zeros_like(photo)
for label in range(5):
    segments[labels == label] = photo[labels == label].mean(axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.imshow(photo)
left.set_title("the photograph")
right.imshow(segments)
right.contour(labels, levels=np.arange(0.5, 5), colors="white", linewidths=0.4)
right.set_title("five clusters, in their mean colours")
for axes in (left, right):
    axes.set_axis_off()
plt.show()

# %%
# Flower, leaves and background are separate clusters. New pixels can be assigned with ``predict``.
