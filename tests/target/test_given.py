"""A kernel that stays as it is given, and landmarks that move under it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

import nysboost as nb
from nysboost.data.rows import ArrayRows
from nysboost.kernels import Metric
from nysboost.target.candidates import Sample
from nysboost.target.given import TRACE, Given, Towards, towards_target
from nysboost.target.loss import Point, TargetLoss
from nysboost.target.plain import at_random

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, 0.0]
Y = np.sin(X[:, :1]) + 0.1 * RNG.normal(size=(300, 1))

KERNELS = [
    nb.Gaussian(gamma=0.3),
    nb.Gaussian(sigma=0.7),
    nb.Matern(1.5, sigma=2.0),
    nb.Gaussian(metric=Metric([1.0, 0.0, 2.0])),
    nb.Gaussian(metric=Metric(RNG.normal(size=(3, 2)))),
]


def sample(factor=(1.0, 0.2, 5.0), weights=None):
    return Sample((X - X.mean(axis=0)) * np.array(factor), Y, weights, np.array(factor))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", [Given, Towards])
def test_in_the_coordinates_of_the_search_it_is_the_same_kernel(kernel, kind):
    rows = sample()
    kernel = kernel.resolve(ArrayRows(X))
    (found,) = kind(kernel, at_random, "uniform").found(rows, 20, np.random.default_rng(1))
    ours = replace(found.kernel, metric=Metric(found.point.A))
    np.testing.assert_allclose(
        ours(rows.X[:50], rows.X[50:90]), kernel(X[:50], X[50:90]), atol=1e-10
    )
    assert found.point.Z.shape == (20, 3)


@pytest.mark.parametrize("scale", ["standard", None])
@pytest.mark.parametrize("n", [300, 3100])
def test_a_learner_without_a_metric_has_the_users_kernel(scale, n):
    rows = np.random.default_rng(2).normal(size=(n, 3)) * [1.0, 3.0, 0.2]
    y = np.sin(rows[:, 0])
    kernel = nb.Gaussian(gamma="scale")
    model = nb.NystroemRegressor(15, kernel=kernel, metric=None, scale=scale, random_state=0)
    model.fit(rows, y)
    exact = nb.Gaussian(gamma=1 / (3 * rows.var()))
    np.testing.assert_allclose(
        model.kernel_(rows[:40], rows[40:60]), exact(rows[:40], rows[40:60]), rtol=1e-6
    )
    assert model.n_components_ == 15
    assert len(model.candidates_) == 1


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.1, 2.0, size=300)], ids=["", "weighted"])
def test_steps_lower_the_loss_of_the_target(weights):
    rows = sample(weights=weights)
    Z = towards_target(nb.Gaussian(gamma=0.5), np.ones(()), rows, 8)
    start = rows.X[np.random.default_rng(0).permutation(300)[:8]]
    loss = TargetLoss(nb.Gaussian(gamma=0.5), rows.X, Y - rows.mean, weights, TRACE)
    best = [
        min(loss(Point(at, np.ones(()), g))[0] for g in np.arange(-8.0, 1.0)) for at in (Z, start)
    ]
    assert best[0] < best[1] - 0.02


def test_of_many_features_landmarks_stay_among_the_leading_directions():
    rng = np.random.default_rng(3)
    many = rng.normal(size=(200, 120)) * np.r_[np.full(5, 10.0), np.full(115, 1e-6)]
    rows = Sample(many, many[:, :1] / 10, None, np.ones(120))
    Z = towards_target(nb.Gaussian(gamma=1e-3), np.ones(()), rows, 6)
    assert np.abs(Z[:, :5]).max() > 1
    np.testing.assert_allclose(Z[:, 5:], 0, atol=1e-4)


def test_a_constant_feature_is_left_alone():
    rows = sample(factor=(1.0, 0.0, 5.0))
    (found,) = Towards(nb.Gaussian(gamma=0.3)).found(rows, 10, np.random.default_rng(0))
    assert np.isfinite(found.point.Z).all()
    assert (found.point.Z[:, 1] == 0).all()


@pytest.mark.parametrize("kernel", ["auto", "linear", nb.Polynomial(degree=2)], ids=str)
def test_a_kernel_that_cannot_stay_is_refused_in_a_sentence(kernel):
    points, labels = make_moons(60, random_state=0)
    model = nb.NystroemClassifier(10, kernel=kernel, metric=None)
    with pytest.raises(ValueError, match="metric=None leaves the kernel as it is"):
        model.fit(points, labels)


@pytest.mark.parametrize("kernel", [nb.Laplacian(gamma=0.5), nb.Anova(0.5, degree=2)], ids=str)
def test_a_kernel_whose_landmarks_cannot_move_has_those_of_pivoted_cholesky(kernel):
    points, labels = make_moons(200, noise=0.1, random_state=0)
    model = nb.NystroemClassifier(20, kernel=kernel, metric=None, random_state=0)
    model.fit(points, labels)
    assert model.score(points, labels) > 0.9
    distances = np.abs(np.asarray(model.components_)[:, None] - points[None]).sum(axis=2)
    assert distances.min(axis=1).max() < 1e-9  # landmarks are rows


def test_other_arrays_than_numpys_give_the_same_landmarks():
    torch = pytest.importorskip("torch")
    rows = sample()
    other = Sample(torch.asarray(rows.X), torch.asarray(Y), None, rows.factor)
    both = [towards_target(nb.Gaussian(gamma=0.5), np.ones(()), each, 8) for each in (rows, other)]
    assert isinstance(both[1], torch.Tensor)
    np.testing.assert_allclose(np.asarray(both[1]), both[0], atol=1e-6)


def test_landmarks_stay_at_rows_where_these_leave_little_of_the_trace():
    rows, kernel = sample(), nb.Gaussian(gamma=0.5, metric=Metric([1.0, 0.2, 5.0]))
    still, moved = (
        replace(Towards(kernel, at_random, "target"), captured=captured).basis(
            rows, 60, np.random.default_rng(0)
        )
        for captured in (0.99, 0.0)
    )
    every = {tuple(row) for row in rows.X}
    assert all(tuple(z) in every for z in still.Z)
    assert not any(tuple(z) in every for z in moved.Z)
    F = still(rows.X)
    assert (np.sum(F * F, axis=1) < 1 + 1e-6).all()  # the features are those of the rows
