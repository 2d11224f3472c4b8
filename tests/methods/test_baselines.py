"""Uniform against scikit-learn's Nystroem, k-means against its definition, optimal against SVD."""

import market
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import baselines
from nysboost.numerics.kmeans import centroids, clusters


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


def test_uniform_draws_distinct_columns():
    gram = make_gram(np.eye(30))
    found = baselines.uniform(gram, 30, np.random.default_rng(0)).indices
    np.testing.assert_array_equal(np.sort(found), np.arange(30))


def test_centroids_of_a_precomputed_kernel_are_refused():
    with pytest.raises(ValueError, match="no centroids"):
        nb.approximate(np.eye(5), "kmeans", "precomputed", n_components=2)


def test_optimal_refuses_what_is_too_large(monkeypatch):
    monkeypatch.setattr(baselines, "OPTIMAL_ROWS", 20)
    with pytest.raises(ValueError, match="n ≤ 20, but n_samples = 21"):
        nb.approximate(np.zeros((21, 1)) + np.arange(21)[:, None], "optimal", n_components=2)


def test_optimal_takes_as_many_rows_as_it_is_meant_for(monkeypatch):
    monkeypatch.setattr(baselines, "OPTIMAL_ROWS", 20)
    gram = market.problem("Gaussian", n=20).gram
    assert baselines.optimal(gram, 3, np.random.default_rng(0)).rank == 3


def test_beyond_its_rows_kmeans_sees_each_row_once_at_most(monkeypatch):
    monkeypatch.setattr(baselines, "KMEANS_ROWS", 90)
    gram = market.problem("Gaussian", n=100).gram
    rows = baselines.cluster_rows(gram, 4, np.random.default_rng(0), "kmeans").rows
    assert len(rows) == 90
    assert (np.diff(rows) > 0).all()


def test_optimal_is_meant_for_ten_thousand_rows():
    gram = make_gram(np.arange(10_001.0)[:, None])
    with pytest.raises(ValueError, match="n ≤ 10000, but n_samples = 10001"):
        baselines.optimal(gram, 2, np.random.default_rng(0))
    assert gram.entries_evaluated == 0


def test_one_optimal_component_is_the_first_eigenpair():
    problem = market.problem("Gaussian", n=50)
    learner = baselines.optimal(problem.gram, 1, np.random.default_rng(0))
    values, vectors = np.linalg.eigh(problem.G)
    F = problem.G @ learner.projection
    expected = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-9)


def test_as_many_rows_as_kmeans_sees_are_all_seen_in_order(monkeypatch):
    monkeypatch.setattr(baselines, "KMEANS_ROWS", 60)
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = baselines.cluster_rows(make_gram(X), 5, np.random.default_rng(3), "kmeans")
    centres, labels = clusters(X, 5, np.random.default_rng(3))  # nothing was drawn before
    np.testing.assert_array_equal(found.rows, np.arange(60))
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.centres.points, centres)


def test_beyond_its_rows_kmeans_sees_a_sample_of_all_of_them(monkeypatch):
    """The last tenth of the rows lies far from the others: the first rows do not show it."""
    monkeypatch.setattr(baselines, "KMEANS_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[900:] += 50
    Z = baselines.kmeans(make_gram(X), 5, np.random.default_rng(0)).points
    assert (Z.min(axis=1) > 25).any()
    assert (Z.max(axis=1) < 25).any()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_optimal_leaves_out_eigenvalues_that_are_rounding_whatever_the_scale(scale):
    B = np.random.default_rng(0).normal(size=(40, 3))
    G = scale * B @ B.T
    learner = baselines.optimal(make_gram(G, "precomputed"), 10, np.random.default_rng(0))
    assert learner.rank == 3
    F = G @ learner.projection
    np.testing.assert_allclose(F @ F.T, G, atol=1e-10 * scale)
