"""
More rows than memory: from disk to disk
========================================

Rows and their features may stay on disk. `max_memory` limits the working memory. Here we measure
the largest memory that NumPy uses.
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nysboost as nb

N, D, LANDMARKS = 100_000, 10, 64
folder = tempfile.TemporaryDirectory()
path = Path(folder.name)

# %%
# We write a file of rows that is larger than the allowed memory.
rows = np.lib.format.open_memmap(path / "rows.npy", "w+", dtype=np.float32, shape=(N, D))
rng = np.random.default_rng(0)
for start in range(0, N, 10_000):
    rows[start : start + 10_000] = rng.normal(size=(10_000, D))
rows.flush()

# %%
# Then we fit on a sample of the rows, and write the features of all rows to another file, with
# several limits.
fitted = nb.Nystroem(gamma="scale", method="kmeans", n_components=LANDMARKS, random_state=0).fit(
    rows
)
MEGABYTE = 2**20
budgets, peaks = (1, 2, 4, 8, 16), []
for budget in budgets:
    fitted.set_params(max_memory=f"{budget}MB", n_jobs=1)
    tracemalloc.start()
    features = fitted.transform(rows, out=path / "features.npy")
    peaks.append(tracemalloc.get_traced_memory()[1] / MEGABYTE)
    tracemalloc.stop()

# %%
# The features are a memory map: its values are read when they are used.
whole = features.nbytes / MEGABYTE
print(type(features).__name__, features.shape, f"{whole:.0f} MB on disk")
del features, rows
folder.cleanup()

# %%
# The memory never exceeds the limit, whatever the size of the file.
figure, axes = plt.subplots(figsize=(5.6, 3.5), layout="constrained")
at = np.arange(len(budgets))
axes.bar(at, peaks, width=0.6, color="#EE7733", label="held at most")
axes.hlines(budgets, at - 0.4, at + 0.4, color="black", lw=1.5, label="max_memory")
axes.axhline(whole, color="#777777", ls="--", lw=1)
axes.text(at[0] - 0.4, whole * 0.97, "the features themselves, on disk", va="top", color="#555555")
axes.set_xticks(at, [f"{budget} MB" for budget in budgets])
axes.set(xlabel="max_memory", ylabel="megabytes", title=f"{N:,} rows, {LANDMARKS} landmarks")
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.9))
plt.show()

# %%
# With a smaller limit, NysBoost uses smaller blocks and computes the same numbers.
