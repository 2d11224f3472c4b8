"""Kernel PCA against scikit-learn's exact one."""

import numpy as np
import pytest
import sklearn
from market import points
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import KernelPCA

import nysboost as nb

DIGITS = load_digits().data[:700] / 16.0


def pair(X, k, gamma, **how):
    theirs = KernelPCA(k, kernel="rbf", gamma=gamma).fit(X)
    ours = nb.KernelPCA(k, gamma=gamma, random_state=0, **how).fit(X)
    return ours, theirs


def test_with_every_row_as_landmark_it_is_scikit_learns():
    X = np.random.default_rng(0).normal(size=(120, 4))
    ours, theirs = pair(X, 6, 0.2, method="uniform", n_landmarks=120)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-7)
    new = np.random.default_rng(1).normal(size=(15, 4))
    for data in (X, new):
        mine, other = ours.transform(data), theirs.transform(data)
        signs = np.sign((ours.transform(X) * theirs.transform(X)).sum(axis=0))
        np.testing.assert_allclose(mine, other * signs, atol=1e-6)


def test_few_landmarks_find_the_leading_subspace():
    ours, theirs = pair(DIGITS, 10, 0.05, n_landmarks=100)
    angles = subspace_angles(ours.transform(DIGITS), theirs.transform(DIGITS))
    assert angles.max() < 0.05
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=0.01)


def test_components_are_uncorrelated_centred_and_have_the_share_of_the_variance_they_claim():
    G = nb.Gaussian(gamma=0.05)(DIGITS, DIGITS)
    total = np.trace(G) / len(G) - G.mean()
    ours, theirs = pair(DIGITS, 8, 0.05, n_landmarks=150)
    expected = theirs.eigenvalues_ / len(G) / total
    np.testing.assert_allclose(ours.explained_variance_ratio_, expected, rtol=0.02)
    T = ours.transform(DIGITS)
    np.testing.assert_allclose(T.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.cov(T.T), np.diag(ours.explained_variance_), atol=1e-10)
    assert (np.diff(ours.explained_variance_) <= 0).all()
    few = nb.KernelPCA(gamma=0.05, n_landmarks=15, random_state=0).fit(DIGITS)
    assert few.explained_variance_ratio_.sum() < 0.99


def test_pre_images_are_as_near_as_scikit_learns():
    X, _ = make_circles(400, factor=0.4, noise=0.05, random_state=0)
    train, test = X[:300], X[300:]
    theirs = KernelPCA(6, kernel="rbf", gamma=2.0, fit_inverse_transform=True, alpha=1e-3)
    theirs.fit(train)
    ours = nb.KernelPCA(6, gamma=2.0, n_landmarks=100, fit_inverse_transform=True, random_state=0)
    ours.fit(train)
    gaps = [
        np.linalg.norm(pca.inverse_transform(pca.transform(test)) - test) for pca in (ours, theirs)
    ]
    assert gaps[0] < 1.1 * gaps[1]
    without = nb.KernelPCA(2, n_landmarks=20, random_state=0).fit(train)
    with pytest.raises(AttributeError, match="inverse_transform"):
        without.inverse_transform(np.zeros((1, 2)))


def test_a_precomputed_kernel_gives_the_same_components():
    G = nb.Gaussian(gamma=0.05)(DIGITS[:200], DIGITS[:200])
    how = {"method": "rpcholesky", "n_landmarks": 50, "random_state": 0}
    ours = nb.KernelPCA(4, kernel="precomputed", **how).fit(G)
    points = nb.KernelPCA(4, gamma=0.05, **how).fit(DIGITS[:200])
    np.testing.assert_allclose(ours.transform(G), points.transform(DIGITS[:200]), atol=1e-8)


def test_fewer_components_than_asked_come_back_where_there_are_no_more():
    X = np.repeat(np.eye(3), 20, axis=0)
    pca = nb.KernelPCA(10, gamma=1.0, method="uniform", random_state=0)
    assert pca.fit_transform(X).shape == (60, 2)
    assert list(pca.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]


def test_more_landmarks_than_rows_are_told_of_in_their_own_words():
    with pytest.warns(UserWarning, match="200 landmarks were asked for, but there are only 50"):
        pca = nb.KernelPCA(2, n_landmarks=200, random_state=0).fit(points(50))
    assert pca.transform(points(50)).shape == (50, 2)


def test_frames_as_output_of_all_transformers_leave_pre_images_as_they_are():
    pca = nb.KernelPCA(2, n_landmarks=20, fit_inverse_transform=True, random_state=0)
    expected = pca.fit(points(60)).inverse_transform(pca.transform(points(60)))
    with sklearn.config_context(transform_output="pandas"):
        components = pca.fit(points(60)).transform(points(60))
        found = pca.inverse_transform(components)
    assert list(components.columns) == ["kernelpca0", "kernelpca1"]
    np.testing.assert_allclose(found, expected)
