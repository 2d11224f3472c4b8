"""What a type checker sees of the public interface: arrays, not Any."""

from __future__ import annotations

import inspect
import re
import typing
from importlib import resources
from pathlib import Path

from mypy import api

import nysboost

ROOT = Path(__file__).parents[1]

USES = """
import numpy as np
import nysboost as nb

X = np.random.default_rng(0).normal(size=(100, 3))
y, labels = X[:, 0], np.where(X[:, 0] > 0, "a", "b")
approx = nb.approximate(X, "kmeans", nb.Gaussian(sigma=1.0), n_components=10)
features, discarded = approx.feature_map()
regressor, classifier = nb.NystroemRegressor().fit(X, y), nb.NystroemClassifier().fit(X, labels)
pca, clusters = nb.KernelPCA(n_components=2).fit(X), nb.SpectralClustering(2).fit(X)

reveal_type(approx.features())
reveal_type(approx.features() @ approx.features().T)
reveal_type(approx.features(out="features.npy"))
reveal_type(approx.block([0, 1], slice(5)))
reveal_type(approx @ y)
reveal_type(approx.solve(y, alpha=0.1))
reveal_type(approx.eigh(3)[1])
reveal_type(approx.diag())
reveal_type(approx.to_dense())
reveal_type(approx.weights)
reveal_type(approx.gram.block(np.arange(2), np.arange(3)))
reveal_type(approx.landmarks.Z)
reveal_type(features(X))
reveal_type(features.normalization)
reveal_type(nb.Matern(nu=0.5)(X, X))
reveal_type(nb.Nystroem(n_components=5).fit(X).transform(X))
reveal_type(nb.BoostedNystroem(n_components=5).fit_transform(X))
reveal_type(regressor.predict(X))
reveal_type(regressor.predict(X, return_std=True)[1])
reveal_type(classifier.predict(X))
reveal_type(classifier.predict_proba(X))
reveal_type(classifier.decision_function(X))
reveal_type(pca.transform(X))
reveal_type(pca.fit_transform(X))
reveal_type(clusters.predict(X))
reveal_type(nb.GaussianProcessClassifier().fit(X, labels).predict_proba(X))
reveal_type(nb.MeanEmbedding().fit(X).score_samples(X))
"""

WRONG = """
import nysboost as nb

nb.approximate(None)
nb.approximate([[0.0]], n_components="many")
nb.approximate([[0.0]]).features().toarray()
nb.aproximate([[0.0]])
"""


def test_a_checker_sees_arrays_in_a_users_script_and_finds_what_is_wrong(tmp_path, monkeypatch):
    """In one run of mypy, under the project's strict settings, with the cache of `make lint`."""
    scripts = {tmp_path / "uses.py": USES, tmp_path / "wrong.py": WRONG}
    for path, text in scripts.items():
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(ROOT)
    said, trouble, _ = api.run([*map(str, scripts), "--cache-dir", str(ROOT / ".mypy_cache")])
    assert not trouble
    uses, wrong = (
        [line for line in said.splitlines() if Path(line.partition(":")[0]).name == path.name]
        for path in scripts  # of which the cache may remember other folders
    )
    revealed = [line for line in uses if "Revealed type" in line]
    assert len(revealed) == USES.count("reveal_type")
    assert [line for line in revealed if "ndarray[" not in line] == []
    assert [line for line in uses if ": error:" in line] == []
    places = [re.search(r":(\d+): error:", line) for line in wrong]
    assert [int(place[1]) for place in places if place] == [4, 5, 6, 7]


def public_functions():
    """Yield (name, function) for everything of ours that users call by a public name."""
    for name in nysboost.__all__:
        thing = getattr(nysboost, name)
        if inspect.isfunction(thing):
            yield name, thing
        for part in dir(thing) if inspect.isclass(thing) else ():
            found = inspect.getattr_static(thing, part)
            found = getattr(found, "fget", None) or getattr(found, "func", None) or found
            found = inspect.unwrap(getattr(found, "__func__", found))
            ours = (getattr(found, "__module__", None) or "").startswith("nysboost")
            shown = not part.startswith("_") or part in ("__call__", "__matmul__")
            if inspect.isfunction(found) and ours and shown:
                yield f"{name}.{part}", found


def test_no_public_function_returns_any_but_one_that_loads_a_file_of_any_model():
    returned = {name: f.__annotations__.get("return") for name, f in public_functions()}
    assert {name for name, kind in returned.items() if kind in ("Any", typing.Any)} == {"load"}


def test_the_package_says_that_it_is_typed():
    assert resources.files("nysboost").joinpath("py.typed").is_file()


def test_dir_lists_what_is_public_and_nothing_else():
    assert set(dir(nysboost)) == set(nysboost.__all__)
    assert all(name == "__version__" or not name.startswith("_") for name in dir(nysboost))
    assert "approximate" in dir(nysboost)
    assert not {"Any", "TYPE_CHECKING", "importlib", "numerics"} & set(dir(nysboost))
