"""Density-weighted Nyström against its eigenproblem in dense form."""

import market
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import nysboost as nb
from nysboost.methods.baselines import cluster_rows
from nysboost.methods.clustered import density_weighted


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
    F = found.features(problem.gram)
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


def test_below_full_rank_the_weights_help():
    """Most rows are in a few tight groups: these are worth a rank, single rows far out are not."""
    rng = np.random.default_rng(0)
    crowd = 0.3 * rng.normal(size=(380, 2)) + rng.integers(3, size=(380, 1))
    X = np.concatenate([crowd, 8 * rng.normal(size=(20, 2))])
    errors = [
        [
            nb.approximate(X, method, nb.Gaussian(sigma=1.0), **how, random_state=seed)
            for seed in range(5)
        ]
        for method, how in (
            ("density-weighted", {"n_components": 30, "rank": 6}),
            ("nystrom", {"n_columns": 30, "rank": 6}),
        )
    ]
    weighted, plain = (np.mean([a.relative_error() for a in runs]) for runs in errors)
    assert weighted < 0.7 * plain
