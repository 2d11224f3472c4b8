"""Spectral clustering against scikit-learn's."""

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

import nysboost as nb

DATA = {
    "circles": (*make_circles(600, factor=0.4, noise=0.05, random_state=0), 20.0),
    "moons": (*make_moons(600, noise=0.06, random_state=0), 20.0),
    "blobs": (*make_blobs(600, centers=4, random_state=3), 0.5),
    "digits": (load_digits().data[:900] / 16, load_digits().target[:900], 0.5),
}


@pytest.mark.parametrize("rule", ["kmeans", "cluster_qr"])
@pytest.mark.parametrize("name", DATA)
def test_it_agrees_with_the_truth_as_well_as_scikit_learns(name, rule):
    X, y, gamma = DATA[name]
    k = len(set(y))
    theirs = SpectralClustering(k, gamma=gamma, assign_labels=rule, random_state=0).fit(X)
    ours = nb.SpectralClustering(k, gamma=gamma, assign_labels=rule, random_state=0).fit(X)
    scores = [adjusted_rand_score(y, fitted.labels_) for fitted in (ours, theirs)]
    assert scores[0] >= scores[1] - 0.02


def test_with_every_row_as_landmark_the_eigenpairs_are_those_of_the_dense_matrix():
    X = np.random.default_rng(0).normal(size=(80, 2))
    K = nb.Gaussian(gamma=1.0)(X, X)
    roots = np.sqrt(K.sum(axis=1))
    eigenvalues, vectors = np.linalg.eigh(K / np.outer(roots, roots))
    expected = eigenvalues[::-1][:5]
    found = nb.SpectralClustering(5, gamma=1.0, method="uniform", n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(found.eigenvalues_, expected, rtol=1e-6)
    assert found.eigenvalues_[0] == pytest.approx(1)
    embedding = vectors[:, ::-1][:, :5] / roots[:, None]
    signs = np.sign((embedding * found.embedding_).sum(axis=0))
    np.testing.assert_allclose(found.embedding_, embedding * signs, atol=1e-5)


def test_new_rows_join_the_cluster_that_they_lie_in():
    X, y, gamma = DATA["moons"]
    fitted = nb.SpectralClustering(2, gamma=gamma, random_state=0).fit(X[:400])
    assert adjusted_rand_score(y[400:], fitted.predict(X[400:])) > 0.9
    np.testing.assert_array_equal(fitted.predict(X[:400]), fitted.labels_)


def test_of_several_runs_of_k_means_the_one_with_the_smallest_loss_is_kept():
    X = np.random.default_rng(0).uniform(size=(200, 2))

    def loss(n_init):
        fitted = nb.SpectralClustering(9, gamma=20, n_init=n_init, random_state=1).fit(X)
        lengths = np.linalg.norm(fitted.embedding_, axis=1, keepdims=True)
        centres = fitted.cluster_centers_[fitted.labels_]
        return ((fitted.embedding_ / lengths - centres) ** 2).sum()

    # each number of runs begins with the runs of the smaller one
    losses = [loss(n_init) for n_init in range(1, 7)]
    assert (np.diff(losses) < 1e-12).all()
    assert losses[-1] < 0.999 * losses[0]


def test_landmarks_are_centres_and_of_a_precomputed_matrix_columns():
    X, y = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    centred = nb.SpectralClustering(3, gamma=0.5, n_landmarks=30, random_state=0).fit(X)
    K = nb.Gaussian(gamma=0.5)(X, X)
    how = {"kernel": "precomputed", "n_landmarks": 30, "random_state": 0}
    given = nb.SpectralClustering(3, **how).fit(K)
    assert adjusted_rand_score(y, centred.labels_) == 1.0
    assert adjusted_rand_score(y, given.labels_) == 1.0
    assert centred.features_.method == "kmeans"
    assert given.features_.method == "rpcholesky"


def test_no_seed_misses_an_eigenvector_of_a_dense_cluster():
    digits = DATA["digits"][0][:600]
    K = nb.Gaussian(gamma=0.3)(digits, digits)
    roots = np.sqrt(K.sum(axis=1))
    exact = np.linalg.eigvalsh(K / np.outer(roots, roots))[-10]
    for seed in range(4):
        model = nb.SpectralClustering(10, gamma=0.3, n_landmarks=80, random_state=seed).fit(digits)
        assert model.eigenvalues_[-1] > 0.85 * exact


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_gamma_beside_a_kernel_object_is_refused_whatever_its_value(gamma):
    clustering = nb.SpectralClustering(2, kernel=nb.Gaussian(sigma=3.0), gamma=gamma)
    with pytest.raises(ValueError, match="gamma was given in addition to"):
        clustering.fit(np.random.default_rng(0).normal(size=(50, 2)))
