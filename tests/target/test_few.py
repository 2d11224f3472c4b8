"""Candidates mixed by their out-of-fold predictions."""

import numpy as np
import pytest

from nysboost.engine.moments import Moments
from nysboost.numerics.progress import Work
from nysboost.target import few
from nysboost.target.candidates import MATERN32, Candidate, Sample
from nysboost.target.few import learn_few
from nysboost.target.linear import LinearModel
from nysboost.target.plain import SIMPLEST, Plain, at_random
from nysboost.target.recipes import Moved
from nysboost.target.scale import Scale


def sample(n=80, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, :1]) + noise * rng.normal(size=(n, 1))
    return Sample(X, y, None, np.ones(3))


def test_every_row_is_predicted_by_a_model_that_had_not_seen_it():
    rows = sample(noise=1.0)
    scale = Scale(np.zeros(3), np.ones(3))
    candidates, rng = (Candidate(MATERN32, "each"),), np.random.default_rng(0)
    judged = learn_few(rows, scale, SIMPLEST, candidates, 40, rng, Work())
    seen = sum(
        share * model.predict(model.basis(rows.X))
        for share, model in zip(judged.shares, judged.models, strict=True)
    )
    assert np.mean((judged.mean - rows.Y) ** 2) > np.mean((seen - rows.Y) ** 2)
    assert judged.truth.shape == judged.mean.shape == judged.spread.shape == (80, 1)


def test_folds_are_a_partition():
    folds = few._folds(23, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(23))
    assert len(few._folds(3, np.random.default_rng(0))) == 3


def test_the_penalty_that_folds_chose_is_relative_to_what_each_search_finds():
    rows, scale = sample(noise=0.3), Scale(np.zeros(3), np.ones(3))
    recipe = Moved(Candidate(MATERN32, "each"))
    entrant = few._Entrant("", recipe, (), 0, 3, rows.Y, 1.0)
    (model,) = few._fitted([entrant], rows, scale, 10, seed=0)
    (found,) = recipe(rows, 10, np.random.default_rng(0))
    assert model.gamma == found.gammas[3] == pytest.approx(found.gamma * 10**-0.5)


def test_threads_change_nothing_and_fewer_landmarks_serve_in_the_folds(monkeypatch):
    rows, scale = sample(), Scale(np.zeros(3), np.ones(3))
    monkeypatch.setattr(few, "IN_FOLDS", 8)
    sizes, plain = [], Moved.__call__

    def noted(recipe, sample, c, rng, starts=()):
        sizes.append((sample.n, c))
        return plain(recipe, sample, c, rng, starts)

    monkeypatch.setattr(Moved, "__call__", noted)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(few, "_threads", lambda _, threads=threads: threads)
        candidates, rng = (Candidate(MATERN32, "each"),), np.random.default_rng(0)
        found.append(learn_few(rows, scale, SIMPLEST, candidates, 20, rng, Work()))
    np.testing.assert_array_equal(found[0].mean, found[1].mean)
    np.testing.assert_array_equal(found[0].models[-1].w, found[1].models[-1].w)
    assert set(sizes) == {(64, 8), (80, 20)}
    assert found[0].models[-1].basis.Z.shape == (20, 3)


def test_landmarks_that_stand_still_are_judged_in_their_full_number(monkeypatch):
    monkeypatch.setattr(few, "IN_FOLDS", 8)
    rows, scale, sizes = sample(), Scale(np.zeros(3), np.ones(3)), set()

    def place(gram, c, rng):
        sizes.add(c)
        return at_random(gram, c, rng)

    learn_few(rows, scale, Plain(place=place), (), 20, np.random.default_rng(0), Work())
    assert sizes == {20}


def test_what_a_model_says_of_a_fold_is_by_weights_without_its_rows():
    rows, scale = sample(noise=0.3), Scale(np.zeros(3), np.ones(3))
    entrant = few._Entrant("", Moved(Candidate(MATERN32, "each")), (), 0, 3, rows.Y, 1.0)
    (model,) = few._fitted([entrant], rows, scale, 10, seed=0)
    folds = few._folds(rows.n, np.random.default_rng(0))
    mean, variance = few._held_out(model, rows, folds)
    held, rest = folds[2], np.setdiff1d(np.arange(rows.n), folds[2])
    F = model.basis(rows.X)
    alone = LinearModel.fit(model.basis, Moments.of(F[rest], rows.Y[rest]), model.gamma)
    expected = alone.spread(F[held])[:, None] * alone.noise
    np.testing.assert_allclose(variance[held], expected, rtol=1e-6)
    np.testing.assert_allclose(mean[held], alone.predict(F[held]), rtol=1e-6)
    mean, variance = few._held_out(model, rows, [np.arange(rows.n)])  # of which nothing is left
    np.testing.assert_allclose(variance, model.spread(F)[:, None] * model.noise)
    np.testing.assert_allclose(mean, model.predict(F))
