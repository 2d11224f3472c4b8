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
def test_median_is_the_median_distance_of_all_pairs(make, word):
    X = points()
    gaussian = nb.Gaussian(**{word: "median"}).resolve(as_rows(make(X)))
    assert gaussian.gamma == pytest.approx(1 / (2 * np.median(pdist(X)) ** 2))
    laplacian = nb.Laplacian(**{word: "median"}).resolve(as_rows(make(X)))
    assert laplacian.gamma == pytest.approx(1 / np.median(pdist(X, "cityblock")))
    matern = nb.Matern(sigma="median").resolve(as_rows(make(X)))
    assert matern.sigma == pytest.approx(np.median(pdist(X)))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_scale_is_scikit_learns_one_over_d_times_the_variance(make):
    X = points()
    kernel = nb.Gaussian(gamma="scale").resolve(as_rows(make(X)))
    assert kernel.gamma == pytest.approx(1 / (X.shape[1] * X.var()))
    assert nb.Gaussian(sigma="scale").resolve(as_rows(X)).gamma == pytest.approx(kernel.gamma)
    laplacian = nb.Laplacian(gamma="scale").resolve(as_rows(make(X)))
    assert laplacian.gamma == pytest.approx(1 / (X.shape[1] * X.std()))


def test_scale_gives_the_classifier_of_svcs_own_scale():
    X = points()
    y = X[:, 0] > 2
    kernel = nb.Gaussian(gamma="scale").resolve(as_rows(X))
    ours, theirs = (
        SVC(tol=1e-9, **how).fit(X, y) for how in ({"kernel": kernel}, {"gamma": "scale"})
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_scale_does_not_cancel_on_data_far_from_the_origin():
    X = points() + 1e8
    kernel = nb.Gaussian(gamma="scale").resolve(as_rows(X))
    assert kernel.gamma == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-6)


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
