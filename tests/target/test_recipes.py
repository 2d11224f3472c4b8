"""What is done with few rows."""

import numpy as np

from nysboost.target.candidates import MATERN12, MATERN32, Candidate, Sample, loss_of
from nysboost.target.plain import SIMPLEST
from nysboost.target.recipes import LAPLACIAN_SCALES, TRACE_FEW, Moved, Still, _grown


def sample(n=80, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, :1]) + noise * rng.normal(size=(n, 1))
    return Sample(X, y, None, np.ones(3))


def test_matern_lends_its_scales_to_a_laplacian():
    rows = sample()
    found = Moved(Candidate(MATERN12, "each"))(rows, 10, np.random.default_rng(0))
    assert len(found) == 1 + len(LAPLACIAN_SCALES)
    assert {f.name for f in found[1:]} == {"Laplacian, a scale per feature"}
    assert found[1].point.Z is found[0].point.Z


def test_a_search_goes_on_from_the_best_start_and_rows_join_its_landmarks():
    rows, recipe = sample(), Moved(Candidate(MATERN32, "each"))
    good = recipe(rows, 10, np.random.default_rng(0))[0]
    poor = Candidate(MATERN32, "each").start(rows, 10, np.random.default_rng(0))
    grown = _grown(good, rows, 25, np.random.default_rng(1))
    np.testing.assert_array_equal(grown.point.Z[:10], good.point.Z)
    assert all((z == rows.X).all(axis=1).any() for z in grown.point.Z[10:])
    assert _grown(good, rows, 10, np.random.default_rng(1)).point.Z.shape == (10, 3)
    (found,) = recipe(rows, 25, np.random.default_rng(1), (poor, good))
    assert found.point.Z.shape == (25, 3)
    assert loss_of(found, rows, TRACE_FEW) <= loss_of(grown, rows, TRACE_FEW)


def test_what_stands_still_has_no_starts():
    rows, rng = sample(), np.random.default_rng
    one, other = (Still(SIMPLEST)(rows, 9, rng(0), starts) for starts in ((), (None,)))
    np.testing.assert_array_equal(one[0].point.Z, other[0].point.Z)
