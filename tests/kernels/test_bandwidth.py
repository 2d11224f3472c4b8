"""Bandwidths read off the data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import nysboost as nb
from nysboost.data.recognise import as_rows
from nysboost.kernels import make_kernel


def points(n=80, d=3, seed=0):
    return np.random.default_rng(seed).normal(loc=2.0, scale=3.0, size=(n, d))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("word", ["sigma", "gamma"])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_median_and_scale_are_the_median_distance_and_scikit_learns_scale(make, word, far):
    """Also far from the origin, where squares cancel."""
    X = points() + far
    rows, d = as_rows(make(X)), X.shape[1]
    for kernel, median, scale in (
        (nb.Gaussian, 1 / (2 * np.median(pdist(X)) ** 2), 1 / (d * X.var())),
        (nb.Laplacian, 1 / np.median(pdist(X, "cityblock")), 1 / (d * X.std())),
    ):
        for rule, exact in (("median", median), ("scale", scale)):
            found = kernel(**{word: rule}).resolve(rows)
            assert found.gamma == pytest.approx(exact, rel=1e-6)
    matern = nb.Matern(**{word: "median"}).resolve(rows)
    assert matern.sigma == pytest.approx(np.median(pdist(X)), rel=1e-6)


def test_scale_gives_the_classifier_of_svcs_own_scale():
    X = points()
    y = X[:, 0] > 2
    kernel = nb.Gaussian(gamma="scale").resolve(as_rows(X))
    ours, theirs = (
        SVC(tol=1e-9, **how).fit(X, y) for how in ({"kernel": kernel}, {"gamma": "scale"})
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_without_a_bandwidth_the_default_is_scikit_learns():
    X = points()
    np.testing.assert_allclose(
        make_kernel("rbf").resolve(as_rows(X))(X, X), rbf_kernel(X), atol=1e-12
    )
    assert nb.Matern().resolve(as_rows(X)).sigma == pytest.approx(np.sqrt(1.5))


@pytest.mark.parametrize("rule", ["median", "scale"])
@pytest.mark.parametrize("kernel", [nb.Gaussian, nb.Laplacian, nb.Matern])
def test_equal_points_get_some_bandwidth(rule, kernel):
    X = np.full((6, 2), 3.0)
    values = kernel(sigma=rule).resolve(as_rows(X))(X, X)
    np.testing.assert_allclose(values, 1)
