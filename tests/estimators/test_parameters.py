"""What estimators say about themselves, and fits that happen wholly or not at all."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.externals._numpydoc.docscrape import ClassDoc, NumpyDocString

import nysboost as nb
from nysboost import plots

PUBLIC = [getattr(nb, name) for name in nb.__all__]
ESTIMATORS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, BaseEstimator)]


def described_parameters(kind):
    """Return the names in the section "Parameters" of a docstring."""
    entries = ClassDoc(kind)["Parameters"]
    return {name for entry in entries for name in entry.name.split(", ")}


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_described(kind):
    assert set(kind().get_params()) <= described_parameters(kind)


def names_in_see_also(subject):
    """Return the names of this library in the section "See Also" of a docstring."""
    entries = NumpyDocString(inspect.getdoc(subject))["See Also"]
    return {name.rpartition(".")[2] for each, _ in entries for name, _ in each}


def test_see_also_leads_there_and_back():
    displays = [plots.IntervalDisplay, plots.CoverageDisplay]
    subjects = {each.__name__: each for each in [*ESTIMATORS, *displays, nb.mmd_test]}
    linked = {name: names_in_see_also(each) for name, each in subjects.items()}
    for name, others in linked.items():
        for other in others & subjects.keys():
            assert name in linked[other], f"{other} does not lead back to {name}"
    assert "BoostedNystroem" in linked["Nystroem"]


@pytest.mark.parametrize("kind", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_the_reference_has_fit_first(kind):
    """The reference lists methods in the order of the source."""
    methods = [
        name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))
    ]
    assert methods[:2] == ["fit", "partial_fit"]


def test_the_html_shows_parameters_and_what_a_fit_found():
    assert "n_components" in nb.KernelPCA(n_components=3)._repr_html_()
    fitted = regressor().fit(X, Y)
    assert "<pre>" in fitted._repr_html_()


RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = (Y > 0).astype(int)
FEW = {"n_components": 20, "landmarks": "uniform", "random_state": 0, "verbose": 0}


def regressor(**how):
    return nb.NystroemRegressor(**(FEW | how))


@pytest.mark.parametrize(
    "bad",
    [
        (X, np.where(np.arange(200) == 3, np.nan, 1e6 * Y)),
        (X * np.inf, Y + 5e5),
        (X[:, :2], Y[:5]),
        (pd.DataFrame({"a": Y, "b": 1j}), 1e6 * Y),
    ],
)
@pytest.mark.parametrize("add", [False, True])
def test_a_refit_that_is_refused_changes_nothing(bad, add):
    model = regressor().fit(X, Y)
    before, names = model.predict(X), dict(vars(model))
    with pytest.raises(ValueError):  # noqa: PT011
        (model.partial_fit if add else model.fit)(*bad)
    np.testing.assert_array_equal(model.predict(X), before)
    assert list(vars(model)) == list(names)


PCA = nb.KernelPCA(2, n_landmarks=10, random_state=0)
MODELS = [regressor(), PCA, nb.Nystroem(n_components=10, random_state=0)]


@pytest.mark.parametrize("model", [*MODELS, nb.NystroemClassifier(**FEW)])
def test_a_refit_that_is_interrupted_changes_nothing(model):
    model.fit(X, LABELS)
    answer = model.predict if hasattr(model, "predict") else model.transform
    before = np.asarray(answer(X))

    calls = iter(range(10))

    def stop(*_):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return np.ones(200)

    kernel = model.kernel
    model.set_params(kernel=lambda a, b: stop())
    with pytest.raises((KeyboardInterrupt, ValueError, TypeError)):
        model.fit(X * 5, 1 - LABELS)
    model.set_params(kernel=kernel)
    np.testing.assert_array_equal(np.asarray(answer(X)), before)


def test_what_numpy_is_told_to_raise_does_not_break_a_fit():
    with np.errstate(all="raise"):
        regressor(landmarks="target").fit(100 * X, Y).predict(1e4 * X)
        nb.NystroemClassifier(**FEW).fit(100 * X, LABELS).predict_proba(1e4 * X)
        nb.approximate(100 * X, n_components=10, sigma=0.01, random_state=0)
        nb.KernelPCA(2, n_landmarks=20, random_state=0).fit_transform(50 * X)
        nb.mmd_test(50 * X, X[:50], random_state=0)


MODELS += [
    *(kind(n_learners=2, n_columns=5) for kind in (nb.EnsembleNystroem, nb.BoostedNystroem)),
    *(kind(n_landmarks=10) for kind in (nb.GaussianProcessClassifier, nb.MeanEmbedding)),
    nb.SpectralClustering(2, n_landmarks=10),
]


@pytest.mark.parametrize("model", MODELS)
def test_outputs_may_be_frames_everywhere(model):
    frame = pd.DataFrame(X, columns=list("abc"))
    with sklearn.config_context(transform_output="pandas"):
        fitted = model.fit(frame, LABELS)
        if hasattr(fitted, "transform"):
            assert fitted.transform(frame).shape[0] == 200
        elif hasattr(fitted, "predict"):
            assert fitted.predict(frame).shape == (200,)
