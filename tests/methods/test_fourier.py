"""Random features: unbiased for each kernel, and beside scikit-learn's."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import RBFSampler

import nysboost as nb
from nysboost.methods import fourier

X = np.random.default_rng(0).normal(size=(12, 3))
KERNELS = {
    "Gaussian": (nb.Gaussian(sigma=1.3), np.exp(-cdist(X, X, "sqeuclidean") / (2 * 1.3**2))),
    "Laplacian": (nb.Laplacian(sigma=2.0), np.exp(-cdist(X, X, "cityblock") / 2.0)),
    **{
        f"Matern {nu}": (nb.Matern(nu=nu, sigma=1.5), Matern(1.5, nu=nu)(X))
        for nu in (0.5, 1.5, 2.5)
    },
}
METHODS = ("random-fourier", "orthogonal-fourier", "quasi-fourier")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_mean_over_seeds_is_the_kernel_within_its_standard_error(method, name):
    kernel, expected = KERNELS[name]
    runs = np.array(
        [
            nb.approximate(X, method, kernel, n_components=12, random_state=seed).to_dense()
            for seed in range(100)
        ]
    )
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    away = np.abs(runs.mean(axis=0) - expected) / np.maximum(error, 1e-12)
    off_diagonal = ~np.eye(len(X), dtype=bool)
    assert away[off_diagonal].max() < 5
    np.testing.assert_allclose(np.einsum("sii->si", runs), 1, atol=1e-12)


def test_scikit_learns_features_are_about_as_near():
    points, seeds = np.random.default_rng(1).normal(size=(60, 3)), range(40)
    G = np.exp(-cdist(points, points, "sqeuclidean") / 2)

    def theirs(seed):
        F = RBFSampler(gamma=0.5, n_components=48, random_state=seed).fit_transform(points)
        return np.linalg.norm(F @ F.T - G)

    def ours(method, seed):
        how = {"n_components": 48, "random_state": seed}
        approx = nb.approximate(points, method, nb.Gaussian(sigma=1.0), **how)
        return np.linalg.norm(approx.to_dense() - G)

    reference = np.mean([theirs(seed) for seed in seeds])
    errors = {method: np.mean([ours(method, seed) for seed in seeds]) for method in METHODS}
    assert errors["random-fourier"] < 1.1 * reference
    assert errors["orthogonal-fourier"] < 0.95 * errors["random-fourier"]
    assert errors["quasi-fourier"] < 0.95 * errors["random-fourier"]


def test_orthogonal_points_are_orthogonal_in_groups_of_d():
    points, _ = fourier.orthogonal(7, 3, np.random.default_rng(0))
    for group in (points[:3], points[3:6]):
        products = group @ group.T
        np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("c", [1, 2, 9])
def test_any_number_of_features_will_do(method, c):
    approx = nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=c, random_state=0)
    assert approx.features().shape == (12, max(2, c // 2 * 2))
