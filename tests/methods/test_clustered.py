"""Density-weighted Nyström against its eigenproblem in dense form."""

import market
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import nysboost as nb
from nysboost.methods.centres import cluster_rows, density_weighted


def gaussian(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 2)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_it_is_the_weighted_eigenproblem_in_dense_form(rank):
    problem = market.problem("Gaussian", n=90)
    found = density_weighted(problem.gram, 10, np.random.default_rng(4), rank)
    clusters = cluster_rows(problem.gram, 10, np.random.default_rng(4), "kmeans")
    Z, D = clusters.centres.points, np.diag(np.bincount(clusters.labels, minlength=10) ** 0.5)
    values, U = np.linalg.eigh(D @ gaussian(Z, Z) @ D)
    left = gaussian(problem.X, Z) @ D @ U[:, -rank:]
    expected = left / values[-rank:] @ left.T
    F = found.rounded_to(problem.gram).features()
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-9)


@pytest.mark.parametrize("case", ["Gaussian", "constant columns", "linear"])
def test_at_full_rank_it_is_plain_nystrom_on_the_centres(case):
    problem = market.problem(case, n=90)
    how = {"n_components": 8, "random_state": 1}
    plain, weighted = (
        nb.approximate(problem.X, method, problem.kernel, **how).to_dense()
        for method in ("kmeans", "density-weighted")
    )
    np.testing.assert_allclose(weighted, plain, atol=problem.tolerance)
