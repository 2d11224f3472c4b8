"""What is tried."""

import numpy as np
import pytest

from nysboost.target.candidates import (
    MATERN12,
    MATERN32,
    NARROW,
    UNIT_GAUSSIAN,
    Candidate,
    Sample,
    judged,
    loss_of,
    moved,
)


def sample(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Sample(X, np.sin(2 * X[:, :1]), None, np.ones(d))


@pytest.mark.parametrize(("shape", "form"), [("one", ()), ("each", (4,)), ("full", (4, 4))])
def test_a_search_begins_with_centroids_and_a_round_metric(shape, form):
    found = Candidate(MATERN32, shape).start(sample(), 10, np.random.default_rng(0))
    assert found.point.A.shape == form
    assert found.point.Z.shape == (10, 4)
    F = found.basis()(sample().X)
    assert np.all(np.sum(F**2, axis=1) <= 1 + 1e-6)


@pytest.mark.parametrize("own_units", [True, False])
def test_many_features_begin_with_principal_components(own_units):
    wide = sample(d=120)
    wide = Sample(wide.X, wide.Y, None, np.r_[np.full(60, 1.0), np.full(60, 1e3)])
    found = Candidate(UNIT_GAUSSIAN, "full", own_units).start(wide, 7, np.random.default_rng(0))
    assert found.point.A.shape == (120, NARROW)
    small = np.abs(found.point.A[60:]).max() < 0.05 * np.abs(found.point.A[:60]).max()
    assert small == own_units  # features that are small in their own units count for little there
    mapped = wide.X @ found.point.A
    assert np.sum(mapped.var(axis=0)) == pytest.approx(1, rel=0.1)


def test_steps_lower_the_loss_and_the_judge_gains():
    fit, judge, rng = sample(), sample(seed=1), np.random.default_rng(0)
    start = Candidate(MATERN12, "each").start(fit, 10, rng)
    end = moved(start, fit, 0.1, 30)
    assert loss_of(end, fit, 0.1) < loss_of(start, fit, 0.1)
    assert judged(end, fit, judge).error < 0.5 * judged(start, fit, judge).error
    assert "Matérn 0.5, a scale per feature" in (start.name, end.name)
