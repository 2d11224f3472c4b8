"""
Regression on a table, against gradient-boosted trees
=====================================================

`nysboost.NystroemRegressor` learns a metric, a linear map of the inputs before the kernel. On
smooth functions it needs far fewer rows than trees.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

import nysboost as nb

# %%
# Friedman's function depends on five features. We add five features that y does not depend on:
#
# .. math:: y = 10 \sin(\pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5 + \varepsilon
X, y = make_friedman1(3000, n_features=10, noise=1.0, random_state=0)
X_test, y_test = X[1000:], y[1000:]
SIZES = (100, 250, 500, 1000)
models = {
    "gradient-boosted trees": lambda: HistGradientBoostingRegressor(random_state=0),
    "random landmarks": lambda: nb.NystroemRegressor(50, landmarks="uniform", random_state=0),
    "NystroemRegressor": lambda: nb.NystroemRegressor(50, metric="each", random_state=0),
}
errors, fitted = {}, {}
for name, make in models.items():
    errors[name] = []
    for n in SIZES:
        fitted[name] = make().fit(X[:n], y[:n])
        residual = fitted[name].predict(X_test) - y_test
        errors[name].append(np.sqrt(np.mean(residual**2)))

# %%
# Left: the error on new rows against the number of training rows; the noise is 1. Right: the
# importance of each feature, which is its share of the increase in error when features are
# shuffled.
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
for (name, values), colour in zip(errors.items(), ("#0077BB", "#777777", "#EE7733"), strict=True):
    left.plot(SIZES, values, "o-", color=colour, label=name)
left.axhline(1, color="black", ls=":", lw=1)
left.text(SIZES[0], 1.03, "noise", va="bottom")
left.set(xscale="log", xlabel="training rows", ylabel="root mean squared error", ylim=(0.8, None))
left.set_xticks(SIZES, SIZES)
left.minorticks_off()
figure.legend(frameon=False, loc="outside lower left", ncols=3)
left.grid(alpha=0.3)
relevance = fitted["NystroemRegressor"].feature_importances_
right.bar(np.arange(1, 11), relevance, color=["#EE7733"] * 5 + ["#BBBBBB"] * 5)
right.set(xlabel="feature", ylabel="share", title="feature importance")
right.set_xticks(np.arange(1, 11))
plt.show()

# %%
# The five noise features have an importance near 0. If y jumps at thresholds, trees are as good and
# faster: compare both on your own table with ``nysboost learn``.
