"""
Uncertainty, near the data and far from them
============================================

`NystroemRegressor.predict(X, return_std=True)` returns a mean and a standard deviation. The
deviation is calibrated on held-out rows, and grows far from the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

rng = np.random.default_rng(1)
x = np.concatenate([rng.uniform(-4, -0.5, 120), rng.uniform(1.5, 4, 80)])
y = np.sin(4 * x) * np.cos(x) + 0.15 * rng.normal(size=len(x))

# %%
# There are no data in the middle and at the ends.
model = nb.NystroemRegressor(50, random_state=0).fit(x[:, None], y)
grid = np.linspace(-6.5, 6.5, 400)
mean, deviation = model.predict(grid[:, None], return_std=True)

# %%
# ±1.96 standard deviations covered 95 % of held-out rows.
figure, axes = plt.subplots(figsize=(6.4, 3.7), layout="constrained")
axes.fill_between(
    grid, mean - 1.96 * deviation, mean + 1.96 * deviation, color="#EE7733", alpha=0.25, lw=0
)
axes.plot(grid, mean, color="#EE7733", label="prediction, with 95 % interval")
axes.plot(grid, np.sin(4 * grid) * np.cos(grid), "k:", lw=1, label="the function")
axes.scatter(x, y, s=9, color="#332288", label="data", zorder=3)
axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.12))
axes.set(xlabel="x", ylabel="y", xlim=(-6.5, 6.5))
plt.show()

# %%
# There are no data in the gap between −0.5 and 1.5, nor beyond the ends. There the band widens, up
# to the spread of y. It cannot show that the function has another wave in the gap. An interval is
# calibrated for rows like those of the fit. In a gap, it assumes a smooth function and guarantees
# nothing.
truth = np.sin(4 * grid) * np.cos(grid)
inside = np.abs(truth - mean) < 1.96 * deviation
gap = (grid > -0.5) & (grid < 1.5)
data = (np.abs(grid) < 4) & ~gap
print(f"true function inside the band: {inside[data].mean():.0%} among the data, "
      f"{inside[gap].mean():.0%} in the gap")  # fmt: skip
