"""Finding landmarks that know y: many rows, few rows, and the method's own name."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

import nysboost as nb
from nysboost.data.recognise import rows_of
from nysboost.numerics.memory import Budget
from nysboost.target import method
from nysboost.target.candidates import MATERN32, Candidate
from nysboost.target.menu import Menu
from nysboost.target.method import learn

ONE = (Candidate(MATERN32, "full"),)


def table(n, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4)) * [1, 100, 1, 1e-3] + [0, 0, 50, 0]
    y = np.sin(4 * X[:, 0] + 0.02 * X[:, 1]) + noise * rng.normal(size=n)
    return X, y[:, None] / 0.7


def found(X, Y, c=20, candidates=ONE, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    options = Menu(candidates, candidates)
    return learn(rows_of(X), Y, weights, options, c, rng, budget=Budget())


def error(judged, X, Y):
    models = zip(judged.shares, judged.models, strict=True)
    mean = sum(share * model.predict(model.basis(X)) for share, model in models)
    return float(np.sqrt(np.mean((mean - Y) ** 2)))


@pytest.mark.parametrize("n", [300, 4000])
def test_what_knows_the_target_beats_what_does_not(n):
    (X, Y), (fresh, truth) = table(n), table(500, seed=1)
    aware, unaware = found(X, Y), found(X, Y, candidates=())
    assert error(aware, fresh, truth) < 0.5 * error(unaware, fresh, truth)
    assert aware.notes[0][0] == "Gaussian, uniform landmarks"
    assert aware.shares.sum() == pytest.approx(1)
    assert (aware.shares > 0).all()


@pytest.mark.parametrize("n", [200, 3500])
def test_where_there_is_nothing_to_know_the_simplest_model_wins(n):
    X = table(n)[0]
    Y = np.random.default_rng(5).normal(size=(n, 1))
    judged = found(X, Y, c=10)
    assert len(judged.models) == 1
    assert judged.models[0].basis.kernel.metric.map.ndim == 1
    assert error(judged, *table(300, seed=1)[:1], np.zeros((300, 1))) < 0.5


@pytest.mark.parametrize("n", [300, 3500])
def test_what_the_judge_saw_is_about_rows_that_took_no_part(n):
    (X, Y), (fresh, truth) = table(n), table(1000, seed=1)
    judged = found(X, Y)
    held_out = float(np.sqrt(np.mean((judged.mean - judged.truth) ** 2)))
    assert held_out == pytest.approx(error(judged, fresh, truth), rel=0.5)
    assert (judged.spread > 0).all()


@pytest.mark.parametrize(("c", "tried"), [(200, "many"), (201, "few")])
def test_few_rows_for_each_landmark_have_the_candidates_of_few_rows(monkeypatch, c, tried):
    seen, (X, Y) = [], table(3200)
    options = Menu(ONE, (Candidate(MATERN32, "each"), *ONE))
    monkeypatch.setattr(method, "learn_many", lambda *given, **_: seen.append(given[4:6]))
    learn(rows_of(X), Y, None, options, c, np.random.default_rng(0), budget=Budget())
    learn(rows_of(X), 0 * Y, None, options, c, np.random.default_rng(0), budget=Budget())
    assert seen == [(getattr(options, tried), c), ((), c)]  # a constant has none


def test_few_rows_in_another_order_or_as_weights_give_the_same():
    X, Y = table(60)
    plain = found(X, Y, c=8)
    order = np.random.default_rng(3).permutation(60)
    shuffled = found(X[order], Y[order], c=8)
    twice = found(np.concatenate([X, X[:10]]), np.concatenate([Y, Y[:10]]), c=8)
    weights = np.where(np.arange(60) < 10, 2.0, 1.0)
    weighed = found(X, Y, c=8, weights=weights)
    assert error(shuffled, X, Y) == error(plain, X, Y)
    assert error(twice, X, Y) == pytest.approx(error(weighed, X, Y), rel=1e-9)


def test_the_same_seed_gives_the_same():
    X, Y = table(3500)
    one, same = found(X, Y, seed=4), found(X, Y, seed=4)
    np.testing.assert_array_equal(one.models[0].w, same.models[0].w)


def test_the_method_serves_a_linear_model_in_a_pipeline():
    (X, Y), (fresh, truth) = table(400), table(300, seed=1)
    scores = [
        make_pipeline(nb.Nystroem(method=method, n_components=25, random_state=0), Ridge(1e-4))
        .fit(X, Y[:, 0])
        .score(fresh, truth[:, 0])
        for method in ("target", "uniform")
    ]
    assert scores[0] > 0.96
    assert scores[0] > scores[1]


def test_labels_are_targets_too():
    X, y = load_digits(return_X_y=True)
    labels = np.array(["zero", "one"])[y[y < 2]]
    X = X[y < 2][:, ::4]
    approx = nb.approximate(X, "target", y=labels, n_components=8, random_state=0)
    assert approx.method == "target"
    assert approx.gram.kernel.metric is not None
    pipeline = make_pipeline(
        nb.Nystroem(method="target", n_components=8, random_state=0), RidgeClassifier()
    )
    assert pipeline.fit(X[:150], labels[:150]).score(X[150:], labels[150:]) > 0.9


def test_a_target_is_needed_and_has_a_value_for_each_row():
    X, Y = table(50)
    with pytest.raises(ValueError, match="needs y"):
        nb.approximate(X, "target", n_components=5)
    with pytest.raises(ValueError, match="50 rows, but y has 49"):
        nb.approximate(X, "target", y=Y[1:, 0], n_components=5)
    with pytest.raises(ValueError, match="NaN or infinity"):
        nb.approximate(X, "target", y=np.full(50, np.nan), n_components=5)
    with pytest.raises(ValueError, match="needs rows, not a precomputed"):
        nb.approximate(np.eye(9), "target", "precomputed", y=np.arange(9.0), n_components=3)


def test_torch_arrays_give_what_numpy_gives():
    torch = pytest.importorskip("torch")
    X, Y = table(3200)
    host = found(X, Y, c=8)
    there = found(torch.asarray(X), Y, c=8)
    fresh = table(100, seed=1)[0]
    ours = host.models[0].predict(host.models[0].basis(fresh))
    theirs = there.models[0].predict(there.models[0].basis(torch.asarray(fresh)))
    # rounding grows along a descent: what they predict agrees, not its last digits
    assert np.sqrt(np.mean((ours - np.asarray(theirs)) ** 2)) < 0.2
