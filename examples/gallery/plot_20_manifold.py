"""
Unrolling a manifold
====================

Twenty thousand points lie on a rolled-up sheet. The leading eigenvectors of the normalised kernel
matrix, Laplacian eigenmaps, recover the sheet's own coordinate. The exact method would need a
matrix of 20,000 × 20,000. With 300 landmarks (Talwalkar, Kumar and Rowley 2008) it takes a second
or two.
"""

import matplotlib.pyplot as plt
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll

import nysboost as nb

X, angle = make_swiss_roll(20_000, noise=0.05, random_state=0)

# %%
# The kernel must be narrower than the gap between two layers of the roll, so that only points near
# each other along the sheet are similar. `SpectralClustering` stores the eigenvectors in
# `embedding_`; the first one is constant.
found = nb.SpectralClustering(
    3, gamma=0.5, method="kmeans", n_landmarks=300, n_init=1, random_state=0
).fit(X)
coordinate = found.embedding_[:, 1]
agreement = abs(spearmanr(coordinate, angle)[0])
print(f"rank correlation of the second eigenvector with the angle: {agreement:.4f}")

# %%
# Left: the roll, coloured by the eigenvector. Right: the eigenvector against the true angle.
figure = plt.figure(figsize=(7.2, 3.3), layout="constrained")
roll = figure.add_subplot(121, projection="3d")
roll.scatter(*X[::10].T, c=coordinate[::10], s=4, cmap="viridis")
roll.set(xticks=[], yticks=[], zticks=[])
line = figure.add_subplot(122)
line.scatter(angle[::10], coordinate[::10], c=coordinate[::10], s=4, cmap="viridis")
line.set(xlabel="true angle along the roll", ylabel="second eigenvector")
plt.show()
