"""Bandwidths read off the data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import nysboost as nb
from nysboost.data import rows as rows_module
from nysboost.data.recognise import as_rows
from nysboost.kernels import make_kernel
from nysboost.numerics.checks import require_positive


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


def test_scale_does_not_depend_on_the_size_of_a_block(monkeypatch):
    X = points()
    whole = nb.Gaussian(gamma="scale").resolve(as_rows(X)).gamma
    monkeypatch.setattr(rows_module, "SCAN_BYTES", 100)
    assert nb.Gaussian(gamma="scale").resolve(as_rows(X)).gamma == pytest.approx(whole)


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


def test_one_row_has_a_median_too():
    X = points(1)
    assert nb.Gaussian(sigma="median").resolve(as_rows(X)).gamma > 0


def test_a_number_stays_what_it_was():
    assert nb.Gaussian(sigma=2.0).resolve(as_rows(points())).gamma == pytest.approx(1 / 8)
    assert nb.Gaussian(gamma=3).resolve(as_rows(points())).gamma == 3


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(2)])
def test_every_positive_real_number_is_positive(value):
    require_positive("eta", value)


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, True, None, "1", 1j, [1.0], np.ones(2)])
def test_nothing_else_is(value):
    with pytest.raises(ValueError, match="eta must be a positive number"):
        require_positive("eta", value)
