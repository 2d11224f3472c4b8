"""Uniform against scikit-learn's Nystroem, k-means against its definition, optimal against SVD."""

import market
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import adaptive, centres
from nysboost.numerics.kmeans import centroids


def test_kmeans_is_plain_nystrom_on_the_centroids():
    X = np.random.default_rng(0).normal(size=(120, 3))
    approx = nb.approximate(X, "kmeans", nb.Gaussian(gamma=0.3), n_components=10, random_state=4)
    Z = centroids(X, 10, np.random.default_rng(4))
    C = rbf_kernel(X, Z, gamma=0.3)
    expected = C @ np.linalg.pinv(rbf_kernel(Z, gamma=0.3)) @ C.T
    np.testing.assert_allclose(approx.to_dense(), expected, atol=1e-8)


@pytest.mark.parametrize("case", ["Gaussian", "linear", "decaying spectrum", "float32 Gaussian"])
def test_optimal_has_the_error_of_the_truncated_svd(case):
    problem = market.problem(case, n=80)
    approx = nb.approximate(problem.X, "optimal", problem.kernel, n_components=6)
    values = np.linalg.svd(problem.G.astype(np.float64), compute_uv=False)
    expected = np.sqrt((values[6:] ** 2).sum() / (values**2).sum())
    np.testing.assert_allclose(approx.relative_error(), expected, rtol=1e-4, atol=1e-6)


def test_optimal_is_meant_for_ten_thousand_rows():
    gram = make_gram(np.arange(10_001.0)[:, None])
    with pytest.raises(ValueError, match="n ≤ 10000, but n_samples = 10001"):
        adaptive.optimal(gram, 2, np.random.default_rng(0))
    assert gram.entries_evaluated == 0


def test_beyond_its_rows_kmeans_sees_a_sample_of_all_of_them():
    """The last rows lie far from the others: the first rows do not show it."""
    X = np.random.default_rng(0).normal(size=(70_000, 1))
    X[69_000:] += 50
    found = centres.cluster_rows(make_gram(X), 3, np.random.default_rng(0), "kmeans")
    assert len(found.rows) < 70_000
    assert (np.diff(found.rows) > 0).all()
    assert (found.centres.points > 25).any()
    assert (found.centres.points < 25).any()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_optimal_leaves_out_eigenvalues_that_are_rounding_whatever_the_scale(scale):
    B = np.random.default_rng(0).normal(size=(40, 3))
    G = scale * B @ B.T
    learner = adaptive.optimal(make_gram(G, "precomputed"), 10, np.random.default_rng(0))
    assert learner.rank == 3
    F = G @ learner.projection
    np.testing.assert_allclose(F @ F.T, G, atol=1e-10 * scale)
