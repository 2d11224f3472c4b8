"""k-means, density-weighted Nyström and MEKA against their dense formulas."""

import market
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.features.feature_map import features_of
from nysboost.gram import make_gram
from nysboost.methods.centres import cluster_rows, density_weighted, meka
from nysboost.numerics.kmeans import clusters


def test_kmeans_is_plain_nystrom_on_the_centroids():
    X = np.random.default_rng(0).normal(size=(120, 3))
    approx = nb.approximate(X, "kmeans", nb.Gaussian(gamma=0.3), n_components=10, random_state=4)
    Z, _ = clusters(X, 10, np.random.default_rng(4))
    C = rbf_kernel(X, Z, gamma=0.3)
    expected = C @ np.linalg.pinv(rbf_kernel(Z, gamma=0.3)) @ C.T
    np.testing.assert_allclose(approx.to_dense(), expected, atol=1e-8)


def test_beyond_its_rows_kmeans_sees_a_sample_of_all_of_them():
    """The last rows lie far from the others: the first rows do not show it."""
    X = np.random.default_rng(0).normal(size=(70_000, 1))
    X[69_000:] += 50
    found, rows, _ = cluster_rows(make_gram(X), 3, np.random.default_rng(0))
    assert len(rows) < 70_000
    assert (np.diff(rows) > 0).all()
    assert (found.points > 25).any()
    assert (found.points < 25).any()


def gaussian(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 2)


@pytest.mark.parametrize("rank", [1, 4, 9, 10])
def test_it_is_the_weighted_eigenproblem_in_dense_form(rank):
    problem = market.problem("Gaussian", n=90)
    found = density_weighted(problem.gram, 10, np.random.default_rng(4), rank)
    centres, _, labels = cluster_rows(problem.gram, 10, np.random.default_rng(4))
    Z, D = centres.points, np.diag(np.bincount(labels, minlength=10) ** 0.5)
    values, U = np.linalg.eigh(D @ gaussian(Z, Z) @ D)
    left = gaussian(problem.X, Z) @ D @ U[:, -rank:]
    expected = left / values[-rank:] @ left.T
    F = features_of(problem.gram, found)
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-9)


def dense_blocks(problem, learner, sample):
    """Fit each block of G on the sample by its own pair of bases."""
    basis = learner.kernel
    of_row, of_column = basis.cluster_of(problem.X), np.repeat(range(5), basis.sizes)
    C = problem.G[:, learner.landmarks.indices]
    K = np.zeros_like(problem.G)
    for s in range(5):
        for t in range(5):
            rows, cols = np.flatnonzero(of_row == s), np.flatnonzero(of_row == t)
            left, right = sample[of_row[sample] == s], sample[of_row[sample] == t]
            Bs, Bt = C[:, of_column == s], C[:, of_column == t]
            block = problem.G[np.ix_(left, right)]
            link = np.linalg.pinv(Bs[left]) @ block @ np.linalg.pinv(Bt[right]).T
            K[np.ix_(rows, cols)] = Bs[rows] @ link @ Bt[cols].T
    return K


@pytest.mark.parametrize("seed", range(3))
def test_it_is_block_least_squares_in_dense_form(seed):
    """So many landmarks that every row has its part in the fit."""
    problem = market.problem("Gaussian", n=120)
    learner = meka(problem.gram, 60, np.random.default_rng(seed))
    F = features_of(problem.gram, learner)
    expected = dense_blocks(problem, learner, np.arange(120))
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-6)


def test_a_row_has_values_in_its_own_cluster_alone():
    problem = market.problem("Gaussian", n=120)
    learner = meka(problem.gram, 20, np.random.default_rng(0))
    values = learner.kernel(problem.X, learner.landmarks.points)
    basis = learner.kernel
    inside = np.equal.outer(basis.cluster_of(problem.X), np.repeat(range(5), basis.sizes))
    assert (values[~inside] == 0).all()
    expected = problem.G[:, learner.landmarks.indices]
    np.testing.assert_allclose(values[inside], expected[inside], atol=1e-12)


def test_new_rows_and_sparse_rows_get_the_features_of_their_cluster():
    problem = market.problem("Gaussian", n=120)
    how = {"n_components": 20, "random_state": 0}
    approx = nb.approximate(problem.X, "meka", problem.kernel, **how)
    transform, _ = approx.feature_map()
    np.testing.assert_allclose(transform(problem.X[5:9]), approx.features()[5:9], atol=1e-10)
    again = nb.approximate(sparse.csr_matrix(problem.X), "meka", problem.kernel, **how)
    np.testing.assert_allclose(again.to_dense(), approx.to_dense(), atol=1e-6)
