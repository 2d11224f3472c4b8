"""Any method of the catalogue as a transformer."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import nysboost as nb

X = np.random.default_rng(0).normal(size=(80, 3))
WITH_FEATURES = tuple(m for m in nb.METHODS if m not in ("spectral-shift", "robust-cur"))


@parametrize_with_checks(
    [nb.NystroemFeatures(method, random_state=0) for method in ("joint", "meka", "quasi-fourier")]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", WITH_FEATURES)
def test_features_make_the_positive_part_of_the_approximation(method):
    transformer = nb.NystroemFeatures(method, nb.Gaussian(sigma=1.0), random_state=0)
    F = transformer.set_params(n_components=16).fit_transform(X)
    assert F.shape[0] == 80
    assert F.shape[1] <= 16
    assert np.isfinite(F).all()
    K = transformer.approximation_.to_dense()
    if transformer.approximation_.is_psd and F.shape[1] == K.shape[1]:
        np.testing.assert_allclose(F @ F.T, K, atol=1e-8)
    if "cross" in method:
        return  # on eight columns the crossing can be as good as singular
    G = transformer.approximation_.gram.block(np.arange(80), np.arange(80))
    assert np.linalg.norm(F @ F.T - G) < 1.05 * np.linalg.norm(G)


def test_an_unknown_method_gets_the_nearest_names():
    with pytest.raises(ValueError, match=r"no method 'mekka'.*'meka'"):
        nb.NystroemFeatures("mekka").fit(X)


@pytest.mark.parametrize("method", ["spectral-shift", "robust-cur"])
def test_a_method_without_features_gets_a_sentence(method):
    with pytest.raises(ValueError, match="no features for others"):
        nb.NystroemFeatures(method, n_components=9).fit(X)
