"""A linear map before a kernel."""

import pickle
from functools import partial

import numpy as np
import pytest
from market import points
from scipy.optimize import check_grad
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

import nysboost as nb
from nysboost.kernels.metric import Quantiles
from nysboost.rows.recognise import scan_rows

KERNELS = [nb.Gaussian, nb.Matern, nb.Laplacian]
FULL = np.array([[1.0, 0.3, -0.2], [0.1, 0.8, 0.4], [0.5, -0.6, 1.2]])
WARP = Quantiles.of(np.array([[-2.0], [-1.0], [-0.1], [0.2], [2.5]]) * [1.0, 2.0, 0.5])
UNIT = {kernel: kernel(sigma=1.0) for kernel in KERNELS}
UNIT[partial(nb.Anova, 0.6, 3)] = nb.Anova(gamma=0.6, degree=3)


@pytest.mark.parametrize("kernel", UNIT, ids=[type(unit).__name__ for unit in UNIT.values()])
@pytest.mark.parametrize("A", [0.4, np.array([0.5, 2.0, 0.0]), FULL, FULL[:, :2]])
@pytest.mark.parametrize("warp", [None, WARP], ids=["linear", "warped"])
def test_a_metric_maps_the_points_first_also_in_derivatives(kernel, A, warp):
    X, Z, G = points(7), points(4, seed=1), points(7, 4, seed=2)
    k = kernel(metric=nb.Metric(A, warp))

    def mapped(P):
        P = P if warp is None else warp(P)
        return P @ A if np.ndim(A) == 2 else P * A

    expected = UNIT[kernel](mapped(X), mapped(Z))
    for found in (k(X, Z), k(csr_matrix(X), csr_matrix(Z)), k.against(Z)(X)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(k(X, X)))

    def value(z):
        return float(np.sum(G * k(X, z.reshape(Z.shape))))

    def gradient(z):
        z = z.reshape(Z.shape)
        return k.pullback(X, z, k(X, z), G).ravel()

    assert check_grad(value, gradient, Z.ravel()) < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_random_frequencies_go_through_the_metric(kernel):
    X, Y, rng = points(6), points(6, seed=1), np.random.default_rng(2)
    k = kernel(metric=nb.Metric(FULL[:, :2]))
    frequencies = k.frequencies(rng.normal(size=(100_000, 3)), rng.uniform(size=100_000))
    phases = (X[:, None, :] - Y[None, :, :]) @ frequencies.T
    np.testing.assert_allclose(np.cos(phases).mean(axis=2), k(X, Y), atol=0.02)


def test_relevance_is_the_squared_length_of_a_step():
    np.testing.assert_allclose(nb.Metric(3.0).relevance(4), [0.25] * 4)
    np.testing.assert_allclose(nb.Metric([1.0, 2.0]).relevance(2), [0.2, 0.8])
    np.testing.assert_allclose(nb.Metric([[3.0, 4.0], [0.0, 5.0]]).relevance(2), [0.5, 0.5])
    np.testing.assert_allclose(nb.Metric([0.0, 0.0]).relevance(2), [0.5, 0.5])


def test_metrics_are_values():
    one, same, other = nb.Metric([1.0, 2.0]), nb.Metric([1.0, 2.0]), nb.Metric([1.0, 3.0])
    assert one == same
    assert one != other
    assert len({one, same, other}) == 2
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(nb.Metric(np.eye(3))) == "Metric(3 features → 3)"
    given = np.ones(2)
    kept = nb.Metric(given)
    given[0] = 5
    assert kept == nb.Metric([1.0, 1.0])


def test_the_median_is_that_of_the_mapped_rows_also_behind_quantiles():
    X = np.random.default_rng(0).lognormal(size=(60, 2), sigma=3.0)
    metric = nb.Metric([1.0, 2.0], Quantiles.of(X))
    found = nb.Gaussian(sigma="median", metric=metric).resolve(scan_rows(X))
    assert found.gamma == pytest.approx(0.5 / np.median(pdist(metric(X))) ** 2)
