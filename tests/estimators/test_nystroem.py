"""One transformer for every method, in the place of scikit-learn's."""

import inspect

import numpy as np
import pytest
from market import points, positive_part
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb

METHODS = ("joint", "uniform", "kmeans", "rpcholesky", "URB-mean", "ensemble-ridge", "nystrom")


def test_every_parameter_of_scikit_learns_is_here_with_its_default_and_its_place():
    ours, theirs = (inspect.signature(kind).parameters for kind in (nb.Nystroem, Nystroem))
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind


@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 0.3},
        {"kernel": "laplacian", "gamma": 0.3},
        {"kernel": "polynomial", "degree": 2, "coef0": 1.5, "gamma": 0.2},
        {"kernel": "cosine"},
        {"kernel": "linear", "n_components": 3},
        {"kernel": lambda x, y, a: np.exp(a * (x @ y.T)), "kernel_params": {"a": 0.1}},
        {"kernel": "precomputed"},
    ],
)
def test_with_all_rows_as_landmarks_it_is_scikit_learns_kernel(params):
    """The products of the features: scikit-learn's, which are G itself."""
    X = points(30)
    if params.get("kernel") == "precomputed":
        X = rbf_kernel(X, gamma=0.3)
    theirs = params
    if callable(params.get("kernel")):  # theirs take two rows at a time, ours all at once
        theirs = {"kernel": lambda x, y: np.exp(0.1 * (x @ y))}
    F, E = (
        kind(random_state=0, **{"n_components": 30} | how).fit_transform(X)
        for kind, how in ((nb.Nystroem, {"method": "uniform"} | params), (Nystroem, theirs))
    )
    np.testing.assert_allclose(F @ F.T, E @ E.T, atol=1e-6 * np.abs(E @ E.T).max())


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_the_one_of_that_name_with_as_many_landmarks(method):
    X = points()
    fitted = nb.Nystroem(method=method, n_components=24, gamma=0.5, random_state=3).fit(X)
    approx = nb.approximate(X, method, gamma=0.5, n_components=24, random_state=3)
    assert fitted.approximation_.method == method
    assert len(fitted.components_) == len(approx.landmarks)
    F = fitted.transform(X)
    np.testing.assert_allclose(F @ F.T, positive_part(approx.to_dense()), atol=1e-8)


def test_own_landmarks_are_the_components():
    X, Z = points(), points(9, seed=1)
    for method in ("joint", "nystrom"):
        fitted = nb.Nystroem(method=method, landmarks=Z, gamma=0.5).fit(X)
        np.testing.assert_array_equal(fitted.components_, Z)
        assert fitted.component_indices_ is None
        expected = rbf_kernel(X, Z, gamma=0.5) @ fitted.normalization_
        np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-9)
        rows = nb.Nystroem(method=method, landmarks=[5, 0, 7], gamma=0.5).fit(X)
        np.testing.assert_array_equal(rows.component_indices_, [5, 0, 7])
