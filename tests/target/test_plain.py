"""Landmarks that do not know y."""

import numpy as np
import pytest

from nysboost.kernels import Gaussian
from nysboost.target.candidates import UNIT_LAPLACIAN, Sample, judged
from nysboost.target.plain import BANDWIDTHS, SIMPLEST, Plain, at_random
from nysboost.target.scale import each_alone


def sample(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Sample(X, np.sin(2 * X[:, :1]), None, np.ones(d))


def test_the_simplest_model_has_the_bandwidth_that_the_judge_prefers():
    fit, judge = sample(), sample(seed=1)
    found = SIMPLEST.best(fit, judge, 10, np.random.default_rng(0))
    all_of_them = SIMPLEST.found(fit, 10, np.random.default_rng(0))
    assert found.error == min(judged(each, fit, judge).error for each in all_of_them)
    assert len(all_of_them) == len(BANDWIDTHS)


def test_its_landmarks_are_rows_the_same_at_every_bandwidth():
    rows = sample()
    for plain, typical in ((SIMPLEST, 2.0), (Plain(UNIT_LAPLACIAN), 4.0)):
        tried = plain.found(rows, 10, np.random.default_rng(0))
        for found, bandwidth in zip(tried, BANDWIDTHS, strict=True):
            np.testing.assert_array_equal(found.point.Z, tried[0].point.Z)
            assert float(found.point.A) == pytest.approx(1 / (bandwidth * typical))
        assert all((z == rows.X).all(axis=1).any() for z in tried[0].point.Z)
        assert len(np.unique(tried[0].point.Z, axis=0)) == 10


def test_features_of_a_method_are_taken_as_they_are_and_mean_the_same_in_other_units():
    rows, N = sample(), np.arange(12.0).reshape(4, 3)
    plain = Plain(place=lambda gram, c, _: (gram.rows.take(np.arange(c)), N), landmarks="own")
    found = plain.found(rows, 4, np.random.default_rng(0))[2]
    bare = Gaussian(sigma=1 / float(found.point.A))
    np.testing.assert_allclose(found.basis()(rows.X), bare(rows.X, rows.X[:4]) @ N)
    assert found.name == "Gaussian, own landmarks"
    raw = 5 + 30 * rows.X
    scale = each_alone(raw)
    there = plain.found(Sample(scale(raw), rows.Y, None, scale.factor), 4, _rng())[2]
    np.testing.assert_allclose(scale.undone(there)(raw), there.basis()(scale(raw)), atol=1e-9)


def _rng():
    return np.random.default_rng(0)


def test_landmarks_that_are_alike_at_every_bandwidth_are_found_once():
    rows, calls = sample(), []

    def place(gram, c, rng):
        calls.append(c)
        return at_random(gram, c, rng)

    alike = Plain(place=place, alike=True).found(rows, 10, np.random.default_rng(0))
    apart = Plain(place=place).found(rows, 10, np.random.default_rng(0))
    assert len(calls) == 1 + len(BANDWIDTHS)
    for one, other in zip(alike, apart, strict=True):
        np.testing.assert_array_equal(one.point.Z, other.point.Z)
        assert one.point.A == other.point.A
