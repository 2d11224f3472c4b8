"""Try an installed NysBoost: approximate, learn, save, load; and its command."""

import importlib.metadata
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import nysboost as nb

X = np.random.default_rng(0).normal(size=(300, 3))
y = np.sin(X[:, 0]) + X[:, 1]
assert nb.approximate(X, n_components=50, random_state=0).relative_error() < 0.1
model = nb.NystroemRegressor(30, random_state=0).fit(X[:200], y[:200])
assert model.score(X[200:], y[200:]) > 0.9
with tempfile.TemporaryDirectory() as folder:
    nb.save(model, Path(folder) / "model.nysboost")
    np.testing.assert_array_equal(
        nb.load(Path(folder) / "model.nysboost").predict(X), model.predict(X)
    )
command = Path(sysconfig.get_path("scripts")) / "nysboost"
subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL)
version, python = importlib.metadata.version("nysboost"), sys.version.split()[0]
print(f"nysboost {version} works on Python {python}.")
