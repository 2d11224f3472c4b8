"""Blocks and links against block least squares in dense form."""

import market
import numpy as np
import pytest
from scipy import sparse

import nysboost as nb
from nysboost.methods.centres import meka


def dense_blocks(problem, learner, sample):
    """Fit each block of G on the sample by its own pair of bases."""
    basis = learner.landmarks.basis
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
    F = learner.rounded_to(problem.gram).features()
    expected = dense_blocks(problem, learner, np.arange(120))
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-6)


def test_a_row_has_values_in_its_own_cluster_alone():
    problem = market.problem("Gaussian", n=120)
    learner = meka(problem.gram, 20, np.random.default_rng(0))
    values = problem.gram.cross(np.arange(120), learner.landmarks)
    basis = learner.landmarks.basis
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


def test_it_is_positive_semidefinite_and_fits_better_than_blocks_without_links():
    rng = np.random.default_rng(0)
    X = np.concatenate([centre + rng.normal(size=(60, 2)) for centre in 1.5 * np.eye(5, 2)])
    approx = nb.approximate(X, "meka", nb.Gaussian(sigma=1.0), n_components=40, random_state=0)
    assert approx.is_psd
    K, cluster = approx.to_dense(), approx.learners[0].landmarks.basis.cluster_of(X)
    G = approx.gram.block(np.arange(300), np.arange(300))
    alone = np.where(np.equal.outer(cluster, cluster), G, 0)
    assert np.linalg.norm(K - G) < 0.2 * np.linalg.norm(alone - G)
