"""The wheel with the core's dependencies alone: what works, and what each door says it needs.

Run by ``make test-core`` from a folder without the sources, so that the wheel is what is tested.
"""

import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nysboost as nb

HINT = "pip install 'nysboost[all]'"
EXTRAS = ("pandas", "pyarrow", "h5py", "zarr", "dask", "matplotlib", "rich", "jinja2", "onnx")

X = np.random.default_rng(0).normal(size=(200, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = np.where(Y > 0, "high", "low")
CSV = "a,b,y\n" + "".join(f"{a:.3f},{b:.3f},{y:.3f}\n" for (a, b, _), y in zip(X, Y, strict=True))


@pytest.mark.parametrize("package", EXTRAS)
def test_no_extra_is_installed(package):
    assert find_spec(package) is None


def test_the_wheel_is_what_is_tested():
    assert "site-packages" in nb.__file__


@pytest.mark.parametrize("method", nb.METHODS)
def test_every_method_approximates(method):
    approximation = nb.approximate(X, method, "rbf", sigma=3.0, n_components=40, random_state=0)
    assert approximation.relative_error() < 1


@pytest.mark.parametrize(
    "estimator",
    [
        nb.Nystroem(n_components=20, random_state=0),
        nb.StandardNystroem(n_components=20, random_state=0),
        nb.EnsembleNystroem(n_components=40, n_learners=2, random_state=0),
        nb.BoostedNystroem(n_components=40, n_learners=2, random_state=0),
        nb.KernelPCA(2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_transformer_transforms(estimator):
    fitted = estimator.fit(X)
    assert np.isfinite(fitted.transform(X)).all()


def test_the_mean_of_a_sample_is_embedded():
    embedding = nb.MeanEmbedding(random_state=0).fit(X)
    assert np.isfinite(embedding.score_samples(X)).all()


def test_clusters_are_found():
    labels = nb.SpectralClustering(2, random_state=0).fit_predict(X)
    assert set(labels) == {0, 1}


@pytest.mark.parametrize("learner", [nb.NystroemClassifier, nb.GaussianProcessClassifier])
def test_classifiers_learn(learner):
    assert learner(random_state=0).fit(X, LABELS).score(X, LABELS) > 0.9


def test_a_regressor_learns_predicts_intervals_and_is_saved(tmp_path):
    model = nb.NystroemRegressor(random_state=0).fit(X[:150], Y[:150])
    mean, std = model.predict(X[150:], return_std=True)
    assert model.score(X[150:], Y[150:]) > 0.9
    assert (std > 0).all()
    nb.save(model, tmp_path / "model.nysboost")
    np.testing.assert_array_equal(nb.load(tmp_path / "model.nysboost").predict(X[150:]), mean)


def test_two_samples_are_compared():
    assert nb.mmd_test(X, X + 3, random_state=0).pvalue < 0.05


def run_command(*words, cwd):
    """Return the exit status and what `nysboost` said on standard error."""
    command = str(Path(sysconfig.get_path("scripts")) / "nysboost")
    ended = subprocess.run([command, *words], capture_output=True, text=True, cwd=cwd)
    return ended.returncode, ended.stderr


def assert_one_sentence_with_the_hint(said):
    assert HINT in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "table.csv", "--target", "y", "--out", "fitted.nysboost"),
        ("learn", "table.csv", "--target", "y", "--out", "report"),
        ("compare", "table.csv", "--out", "report"),
        ("transform", "features.nysboost", "table.csv", "--out", "features.npy"),
        ("predict", "model.nysboost", "table.csv", "--out", "predictions.csv"),
        ("predict", "model.nysboost", "table.h5", "--out", "predictions.npy"),
        ("reproduce", "simulation", "--quick", "--out", "report"),
        ("list",),
    ],
    ids=" ".join,
)
def test_every_command_works_or_says_what_to_install(words, tmp_path):
    (tmp_path / "table.csv").write_text(CSV)
    (tmp_path / "table.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    model = nb.NystroemRegressor(random_state=0).fit(X[:, :2], Y)
    nb.save(model, tmp_path / "model.nysboost")
    transformer = nb.Nystroem(n_components=9, random_state=0).fit(X[:, :2])
    nb.save(transformer, tmp_path / "features.nysboost")
    status, said = run_command(*words, cwd=tmp_path)
    assert "Traceback" not in said
    if status:
        assert_one_sentence_with_the_hint(said)


def test_help_needs_nothing(tmp_path):
    assert run_command("--help", cwd=tmp_path) == (0, "")


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: nb.to_onnx(nb.Nystroem(n_components=9).fit(X), folder / "model.onnx"),
        lambda _: nb.plots.CoverageDisplay.from_estimator(
            nb.NystroemRegressor(random_state=0).fit(X, Y), X, Y
        ),
    ],
    ids=["to_onnx", "plots"],
)
def test_every_door_of_the_library_says_what_to_install(call, tmp_path):
    with pytest.raises(Exception, match=r"pip install 'nysboost\[all\]'"):
        call(tmp_path)


def test_importing_the_library_imports_no_learner():
    code = "import sys, nysboost; print('sklearn' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert printed.strip() == "False"
