"""
A certificate, and a tolerance instead of a size
================================================

How good is an approximation of a matrix that is too large to evaluate? `Approximation.certificate`
returns an interval for the error, from a number of kernel values that need not grow with n. With
`tol=`, you set the largest acceptable error instead of the number of landmarks.
"""

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

X = np.random.default_rng(0).normal(size=(4000, 3))
kernel = nb.Gaussian(sigma=1.5)

# %%
# We compute intervals from an increasing number of kernel values. The matrix has 16 million.
approx = nb.approximate(X, "kmeans", kernel, n_components=60, random_state=0)
truth = approx.relative_error()
BUDGETS = (30_000, 100_000, 300_000, 1_000_000, 3_000_000)
certificates = [approx.certificate(0.95, n_entries=n, random_state=0) for n in BUDGETS]
print(certificates[-1])

# %%
# Now we set a tolerance, and the fit chooses the number of landmarks.
TOLERANCES = (0.1, 0.03, 0.01, 0.003)
reached = [nb.approximate(X, "kmeans", kernel, tol=tol, random_state=0) for tol in TOLERANCES]

# %%
# Left: each bar is an interval that contains the true error with 95 % confidence. Right: the
# number of landmarks found, and the error reached.
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
at = np.arange(len(BUDGETS))
low, high = np.array([certificate.frobenius for certificate in certificates]).T
left.vlines(at, low, high, color="#EE7733", lw=9)
left.axhline(truth, color="black", ls=":", lw=1)
left.plot(at, np.sqrt(low * high), "o", color="#EE7733", ms=5)
left.text(at[-1] - 0.4, 1.06 * truth, "true error", ha="center", va="bottom")
left.set_xticks(at, ["30k", "100k", "300k", "1M", "3M"])
left.set(xlabel="kernel values, at most", ylabel="relative error", yscale="log")
right.plot(TOLERANCES, TOLERANCES, "k:", lw=1)
right.plot(TOLERANCES, [found.relative_error() for found in reached], "o", color="#EE7733")
for tol, found in zip(TOLERANCES, reached, strict=True):
    right.annotate(f"{found.rank} landmarks", (tol, found.relative_error()), xytext=(8, -12),
                   textcoords="offset points", fontsize=9)  # fmt: skip
right.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="error reached", xlim=(0.002, 0.6))
right.set_ylim(0.0017, None)
plt.show()

# %%
# Each error is below its tolerance, but not far below.
