"""A classifier whose weights minimise a loss of margins."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.svm import SVC

import nysboost as nb
from nysboost.learn import classification
from nysboost.learn.calibration import calibrate

X, Y = make_moons(300, noise=0.2, random_state=0)
HOW = {"kernel": "gaussian", "metric": "one", "landmarks": "uniform", "random_state": 0}


def machine(n, C, kernel, **how):
    """A support vector machine of a kernel that is given."""
    how = {"loss": "hinge", "metric": None, "random_state": 0} | how
    return nb.NystroemClassifier(n, C=C, kernel=kernel, **how)


def scores_of(model, rows):
    """Return what the classifier's mixture predicts, before it is calibrated."""
    return model._evaluate(rows, nb.NystroemClassifier._predict_mixture)


@pytest.fixture(scope="module", params=["hinge", "log"])
def model(request):
    return nb.NystroemClassifier(20, loss=request.param, **HOW).fit(X[:200], Y[:200])


def test_it_tells_the_classes_apart_and_says_how_surely(model):
    assert model.score(X[200:], Y[200:]) > 0.9
    probabilities = model.predict_proba(X[200:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    right = probabilities[np.arange(100), Y[200:]]
    assert -np.log(right).mean() < 0.35
    missed = probabilities[:, 1] - Y[200:]
    assert model.validation_error_ == pytest.approx(np.sqrt(np.mean(missed**2)), rel=0.5)
    scores = np.asarray(scores_of(model, X[200:]))
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1], atol=1e-8)


def test_more_rows_cannot_be_added_to_a_loss_of_margins(model):
    with pytest.raises(AttributeError) as refused:
        model.partial_fit(X[200:], Y[200:])
    assert 'is available with loss="squared" only' in str(refused.value.__cause__)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_several_classes_and_weights_are_taken(loss):
    flowers, kinds = load_iris(return_X_y=True)
    weights = np.where(kinds == 2, 0.0, 1.0)
    model = nb.NystroemClassifier(20, loss=loss, **HOW)
    assert model.fit(flowers, kinds).score(flowers, kinds) > 0.9
    without = model.fit(flowers, kinds, sample_weight=weights)
    assert (without.predict(flowers[kinds < 2]) == kinds[kinds < 2]).mean() > 0.95


@pytest.mark.parametrize("C", [0.5, 10.0])
def test_with_its_kernel_and_c_given_the_machine_is_svc(C):
    ours = machine(200, C, nb.Gaussian(gamma=2.0), landmarks="uniform").fit(X[:200], Y[:200])
    theirs = SVC(C=C, gamma=2.0).fit(X[:200], Y[:200])
    grid = np.random.default_rng(0).uniform(-1.5, 2.5, size=(400, 2))
    scores, exact = np.asarray(scores_of(ours, grid))[:, 1], theirs.decision_function(grid)
    assert np.corrcoef(scores, exact)[0, 1] > 0.99
    assert np.mean((scores > 0) == (exact > 0)) > 0.97


def test_a_third_of_the_landmarks_has_the_accuracy_of_svc_where_they_know_the_target():
    digits, y = load_digits(n_class=5, return_X_y=True)
    train, test = np.arange(500), np.arange(500, len(y))
    theirs = SVC(C=10.0).fit(digits[train], y[train])
    ours = machine(100, 10.0, nb.Gaussian(gamma="scale")).fit(digits[train], y[train])
    assert ours.score(digits[test], y[test]) > theirs.score(digits[test], y[test]) - 0.02


def test_rows_that_choose_c_and_calibrate_have_no_part_in_what_is_judged(monkeypatch):
    seen = []
    record = lambda judged, *beside, **how: (  # noqa: E731
        seen.append(judged) or calibrate(judged, *beside, **how)
    )
    monkeypatch.setattr(classification, "calibrate", record)
    guesses = np.random.default_rng(5).integers(2, size=len(Y))
    apart = nb.Gaussian(gamma=500.0)  # each row for itself: only rows that took part are right
    model = machine(300, 1.0, apart, landmarks="uniform").fit(X, guesses)
    (judged,) = seen
    assert model.score(X, guesses) > 0.85
    assert np.mean(judged.mean.argmax(axis=1) == judged.truth.argmax(axis=1)) < 0.75


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans"])
def test_rows_in_single_precision_under_a_wide_kernel_are_no_harm(landmarks):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 2)).astype(np.float32)
    y = np.hypot(*rows.T) > 1.1
    wide = nb.Gaussian(sigma=20.0)  # most of its spectrum is rounding
    assert machine(60, 300.0, wide, landmarks=landmarks).fit(rows, y).score(rows, y) > 0.9


KINDS = {"little memory": np.asarray, "sparse": csr_matrix}
KINDS["Dask"] = lambda rows: pytest.importorskip("dask.array").from_array(rows, chunks=(300, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_kind_have_the_same_machine(kind):
    rows = np.random.default_rng(0).normal(size=(800, 4))
    y = (np.hypot(rows[:, 0], rows[:, 1]) > 1.1).astype(int)
    given, memory = KINDS[kind](rows), {"max_memory": "1MB"} if kind == "little memory" else {}
    expected = machine(30, 10.0, nb.Gaussian(gamma=0.3)).fit(rows, y)
    found = machine(30, 10.0, nb.Gaussian(gamma=0.3), **memory).fit(given, y)
    np.testing.assert_allclose(
        np.asarray(scores_of(found, given)), np.asarray(scores_of(expected, rows)), atol=1e-4
    )
    assert np.mean(np.asarray(found.predict(given)) == y) > 0.95
