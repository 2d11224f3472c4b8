"""Coordinates of scaled features."""

import numpy as np

from nysboost.kernels.metric import PrincipalComponents, unit_spread


def test_principal_components_keep_distances_where_they_are_all_there_are():
    X = np.random.default_rng(0).normal(size=(20, 150))
    scale = PrincipalComponents(unit_spread, 64)(X)
    assert scale(X).shape == (20, 19)
    standard = unit_spread(X)(X)
    ratio = np.linalg.norm(scale(X)[:5] - scale(X)[5:10], axis=1)
    ratio /= np.linalg.norm(standard[:5] - standard[5:10], axis=1)
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_allclose(scale.to_rows(scale(X)), X, atol=1e-8)
