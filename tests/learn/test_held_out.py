"""Held-out rows that a user chooses, by groups or by time, and fits that end in time."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import nysboost as nb

FAST = {"n_components": 12, "kernel": "gaussian", "metric": "each", "local": False}
FAST |= {"scale": "standard", "random_state": 0}
LEARNERS = [nb.NystroemRegressor, nb.NystroemClassifier]


def customers(n_groups=40, each=5):
    """Rows of customers, each with a level of its own that no feature explains."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(n_groups), each)
    features = rng.normal(size=(n_groups, 2))[owner] + 0.01 * rng.normal(size=(len(owner), 2))
    return features, features[:, 0] + rng.normal(size=n_groups)[owner], owner


def target(kind, y):
    return y > 0 if kind is nb.NystroemClassifier else y


@pytest.mark.parametrize("kind", LEARNERS)
def test_groups_are_held_out_together(kind):
    X, y, owner = customers()
    model = kind(**FAST | {"n_components": 60})
    alone = model.fit(X, target(kind, y)).validation_error_
    together = model.fit(X, target(kind, y), groups=owner).validation_error_
    assert together > 1.3 * alone


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_groups_is_no_feature(make):
    X, y, owner = customers()
    names = np.array([f"customer {i}" for i in owner])
    expected = nb.NystroemRegressor(**FAST).fit(X, y, groups=names)
    frame = make({"a": X[:, 0], "who": names, "b": X[:, 1]})
    model = nb.NystroemRegressor(**FAST).fit(frame, y, groups="who")
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(model.predict(frame), expected.predict(X))
    np.testing.assert_allclose(model.predict(frame[["a", "b"]]), expected.predict(X))


def test_a_lazy_frame_has_a_column_of_groups_too():
    X, y, owner = customers()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(who=owner)
    expected = nb.NystroemRegressor(**FAST).fit(frame, y, groups="who")
    lazy = dd.from_pandas(frame, npartitions=3)
    model = nb.NystroemRegressor(**FAST).fit(lazy, y, groups="who")
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), atol=1e-8)


def test_neither_names_of_groups_nor_the_order_of_rows_matter():
    X, y, owner = customers()
    expected = nb.NystroemRegressor(**FAST).fit(X, y, groups=owner + 10)
    order = np.random.default_rng(1).permutation(len(y))
    names = pd.Series([f"{i + 10}" for i in owner[order]])
    model = nb.NystroemRegressor(**FAST).fit(X[order], y[order], groups=names)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


def test_rows_without_weight_belong_to_no_group():
    X, y, owner = customers()
    weights = (owner % 4 > 0).astype(float)
    kept = weights > 0
    expected = nb.NystroemRegressor(**FAST).fit(X[kept], y[kept], groups=owner[kept])
    model = nb.NystroemRegressor(**FAST).fit(X, y, weights, groups=owner)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


WRONG_GROUPS = {
    "names a column, but X is not a data frame": "who",
    "X has 200 rows, but groups, or the test sets of cv, have 3": [1, 2, 3],
    "All rows belong to one group": np.zeros(200),
    r"shape \(n,\), but an array of shape \(200, 2\)": np.zeros((200, 2)),
    "groups has no value in row 7": np.where(np.arange(200) == 7, np.nan, np.arange(200) // 5),
}


@pytest.mark.parametrize("said", WRONG_GROUPS)
def test_groups_that_are_none_are_refused(said):
    X, y, _ = customers()
    with pytest.raises(ValueError, match=said):
        nb.NystroemRegressor(**FAST).fit(X, y, groups=WRONG_GROUPS[said])


def test_groups_go_with_tables_and_not_with_time():
    X, y, owner = customers()
    frame = pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match="X has no column 'who'"):
        nb.NystroemRegressor(**FAST).fit(frame, y, groups="who")
    with pytest.raises(ValueError, match="groups, splits in cv, or validation need all rows"):
        nb.NystroemRegressor(**FAST).fit(iter([(X, y)]), groups=owner)
    with pytest.raises(ValueError, match="by groups, and also by cv"):
        nb.NystroemRegressor(cv="time", **FAST).fit(X, y, groups=owner)


def test_the_last_rows_are_held_out_where_time_matters():
    """Between rows the walk is known well; beyond the last one it goes on by chance."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 400)[:, None]
    y = np.cumsum(rng.normal(size=400))
    how = FAST | {"n_components": 40}
    shuffled = nb.NystroemRegressor(**how).fit(t, y)
    in_time = nb.NystroemRegressor(cv="time", **how).fit(t, y)
    assert in_time.validation_error_ > 1.3 * shuffled.validation_error_
    narrow, wide = (np.ptp(model.predict_interval(t[-1:])) for model in (shuffled, in_time))
    assert wide > 1.3 * narrow


def test_hints_to_hold_out_are_for_those_who_have_not_chosen_the_rows():
    X, y, owner = customers()
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame), freq="h")
    free = nb.NystroemRegressor(**FAST).fit(frame, y)
    assert "sorted by 'day'" in free.schema_.notes[0]
    later = nb.NystroemRegressor(cv="time", **FAST).fit(frame, y)
    of_groups = nb.NystroemRegressor(**FAST).fit(frame, y, groups=owner)
    own = nb.NystroemRegressor(**FAST).fit(frame, y, validation=(frame[:50], y[:50]))
    for model in (later, of_groups, own):
        assert model.schema_.notes == []
        assert model.schema_.describe() == free.schema_.describe()


def test_dates_that_are_not_in_order_are_told_of():
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    frame = pd.DataFrame({"day": days, "x": np.random.default_rng(0).normal(size=200)})
    y = frame["x"].to_numpy()
    model = nb.NystroemRegressor(cv="time", **FAST)
    with pytest.warns(UserWarning, match="not in the order of 'day': sort them by time first"):
        model.fit(frame[::-1], y[::-1])
    assert model.fit(frame, y).score(frame, y) > 0.9  # warnings are errors here


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("how", [{}, {"loss": "hinge"}])
def test_a_fit_without_time_ends_with_a_model(kind, how):
    if how and kind is nb.NystroemRegressor:
        pytest.skip("a regressor has one loss")
    X, y, _ = customers()
    hurried = kind(max_time=1e-9, random_state=0, **how).fit(X, target(kind, y))
    patient = kind(max_time=1e9, random_state=0, **how).fit(X, target(kind, y))
    assert hurried.candidates_ != patient.candidates_
    assert hurried.score(X, target(kind, y)) > 0.3


@pytest.mark.parametrize("wrong", [0, -1, np.inf, "5 min", True])
def test_a_time_that_is_none_is_refused(wrong):
    X, y, _ = customers()
    with pytest.raises(ValueError, match="max_time must be a positive number"):
        nb.NystroemRegressor(max_time=wrong).fit(X, y)


def test_the_test_sets_of_splits_are_held_out_as_groups_are():
    X, y, owner = customers()
    expected = nb.NystroemRegressor(**FAST).fit(X, y, groups=owner % 4)
    splits = [(np.flatnonzero(owner % 4 != i), np.flatnonzero(owner % 4 == i)) for i in range(4)]
    model = nb.NystroemRegressor(cv=splits, **FAST).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="by groups, and also by cv"):
        model.fit(X, y, groups=owner)
    with pytest.raises(ValueError, match=r"X has 150 rows, but .* have 200"):
        model.fit(X[:150], y[:150])


ROWS = np.arange(200)
WRONG_SPLITS = [
    5, "times", GroupKFold(3), [(ROWS[50:], ROWS[:50])], [(ROWS, ROWS)] * 2, [], [1, 2],
    [(0, 1), (1, 0)], [("train", ["a"]), ("train", ["b"])],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_SPLITS)
def test_ways_to_hold_out_rows_that_there_are_not_are_refused(wrong):
    X, y, _ = customers()
    with pytest.raises(ValueError, match=r"cv is .time., None, or a list"):
        nb.NystroemRegressor(cv=wrong).fit(X, y)


def test_metadata_routing_passes_groups_and_weights():
    X, y, owner = customers()
    weights = np.random.default_rng(0).integers(1, 3, size=len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = nb.NystroemRegressor(**FAST).set_fit_request(groups=True, sample_weight=True)
        model = model.set_score_request(sample_weight=True)
        given = {"groups": owner, "sample_weight": weights}
        scores = cross_val_score(model, X, y, cv=GroupKFold(2), params=given)
        grid = GridSearchCV(model, {"n_components": [5, 12]}, cv=GroupKFold(2))
        found = grid.fit(X, y, **given).best_estimator_
    assert scores.shape == (2,)
    expected = nb.NystroemRegressor(**FAST).set_params(**found.get_params())
    expected.fit(X, y, sample_weight=weights, groups=owner)
    np.testing.assert_allclose(found.predict(X), expected.predict(X))


def test_of_very_few_rows_in_time_the_last_one_is_held_out():
    X, y, _ = customers()
    few = slice(0, 30, 15)  # of two customers
    model = nb.NystroemRegressor(cv="time", **FAST).fit(X[few], y[few])
    assert np.ptp(model.predict_interval(X[:1])) > 0.1


def valid_rows(n=120):
    """Training rows, and twice as many for validation, whose features are shifted a little."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3 * n, 2))
    X[n:] += 0.2
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=3 * n)
    return (X[:n], y[:n]), (X[n:], y[n:])


@pytest.mark.parametrize("how", [FAST, {"random_state": 0}])
@pytest.mark.parametrize("n", [120, 6000])
def test_the_error_on_rows_for_validation_is_that_of_the_final_model(how, n):
    """It is not if the model is fitted to these rows too, or other rows are held out."""
    (X, y), (X_val, y_val) = valid_rows(n)
    model = nb.NystroemRegressor(**how).fit(X, y, validation=(X_val, y_val))
    rmse = np.sqrt(np.mean((model.predict(X_val[:16384]) - y_val[:16384]) ** 2))
    np.testing.assert_allclose(model.validation_error_ * np.std(y), rmse, rtol=1e-3)
    assert model.approximation_.shape[0] == n


@pytest.mark.parametrize("kind", LEARNERS)
def test_rows_for_validation_are_not_learned(kind):
    (X, y), (X_val, y_val) = valid_rows()
    model = kind(**FAST).fit(X, target(kind, y), validation=(X_val, target(kind, y_val)))
    order = np.random.default_rng(0).permutation(len(y_val))[:200]
    other = (X_val[order], target(kind, y_val[order]))
    changed = kind(**FAST).fit(X, target(kind, y), validation=other)
    np.testing.assert_array_equal(changed.components_, model.components_)
    if kind is nb.NystroemRegressor:
        np.testing.assert_array_equal(changed.predict(X), model.predict(X))


def test_weights_of_rows_for_validation_say_how_often_they_count():
    (X, y), (X_val, y_val) = valid_rows()
    times = np.random.default_rng(0).integers(0, 3, size=len(y_val))
    repeated = (np.repeat(X_val, times, axis=0), np.repeat(y_val, times))
    expected = nb.NystroemRegressor(**FAST).fit(X, y, validation=repeated)
    model = nb.NystroemRegressor(**FAST).fit(X, y, validation=(X_val, y_val, times))
    np.testing.assert_allclose(model.validation_error_, expected.validation_error_)
    weighed = nb.NystroemRegressor(**FAST).fit(X, y, np.full(len(y), 3.0), validation=repeated)
    np.testing.assert_allclose(weighed.validation_error_, expected.validation_error_)


CONTAINERS = {
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b"]),
    "Dask": lambda X: dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3),
    "CSR": scipy.sparse.csr_array,
    "lists": np.ndarray.tolist,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_rows_for_validation_may_be_in_any_table(make):
    (X, y), (X_val, y_val) = valid_rows()
    expected = nb.NystroemRegressor(**FAST).fit(X, y, validation=(X_val, y_val))
    model = nb.NystroemRegressor(**FAST).fit(make(X), y, validation=(make(X_val), y_val))
    np.testing.assert_allclose(model.validation_error_, expected.validation_error_)
    np.testing.assert_allclose(model.predict(make(X)), expected.predict(X), atol=1e-6)


def test_rows_for_validation_have_the_columns_of_the_others():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(list("abc"), 200), "x": rng.normal(size=200)})
    y = frame["x"] + (frame["kind"] == "b")
    train, rest = slice(0, 120), slice(120, 200)
    swapped = frame[["x", "kind"]]
    model = nb.NystroemRegressor(random_state=0)
    model.fit(frame[train], y[train], validation=(swapped[rest], y[rest]))
    assert model.validation_error_ < 0.2
    with pytest.raises(ValueError, match="In validation: X has no column 'kind'"):
        model.fit(frame[train], y[train], validation=(frame[["x"]][rest], y[rest]))


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_class_may_be_missing_from_validation_but_not_from_the_rows_of_the_fit(loss):
    (X, y), (X_val, y_val) = valid_rows()
    labels, of_val = np.digitize(y, [-0.5, 0.5]), np.digitize(y_val, [-0.5, 0.5])
    model = nb.NystroemClassifier(loss=loss, **FAST)
    two = of_val < 2
    model.fit(X, labels, validation=(X_val[two], of_val[two]))
    assert list(model.classes_) == [0, 1, 2]
    assert model.score(X, labels) > 0.5
    some = labels < 2
    with pytest.raises(ValueError, match="In validation: y has the label 2, which the rows of"):
        model.fit(X[some], labels[some], validation=(X_val, of_val))


def test_probabilities_are_calibrated_on_rows_for_validation():
    """There, more rows are of the second class than among the training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    share = np.where(np.arange(600) < 200, 0.3, 0.7)
    y = rng.uniform(size=600) < share
    model = nb.NystroemClassifier(**FAST)
    model.fit(X[:200], y[:200], validation=(X[200:], y[200:]))
    assert abs(model.predict_proba(X)[:, 1].mean() - 0.7) < 0.1


WRONG_VALIDATION = {
    "validation is a tuple": 0.2,
    "validation has an iterator in place of X": (iter([]), [1.0]),
    "In validation: .*X has 40 rows, but y has 3": (np.zeros((40, 2)), np.zeros(3)),
    "In validation: X has 3 features": (np.zeros((40, 3)), np.zeros(40)),
    "In validation: .*NaN": (np.zeros((40, 2)), np.full(40, np.nan)),
}


@pytest.mark.parametrize("said", WRONG_VALIDATION)
def test_rows_for_validation_that_are_none_are_refused(said):
    X, y, _ = customers()
    with pytest.raises(ValueError, match=said):
        nb.NystroemRegressor(**FAST).fit(X, y, validation=WRONG_VALIDATION[said])
    with pytest.raises(TypeError, match="In validation: X is a NoneType"):
        nb.NystroemRegressor(**FAST).fit(X, y, validation=(None, y))


def test_rows_for_validation_go_with_tables_and_neither_with_groups_nor_with_cv():
    X, y, owner = customers()
    valid = (X, y)
    with pytest.raises(ValueError, match="given by groups, and also by validation"):
        nb.NystroemRegressor(**FAST).fit(X, y, groups=owner, validation=valid)
    with pytest.raises(ValueError, match="given by validation, and also by cv"):
        nb.NystroemRegressor(cv="time", **FAST).fit(X, y, validation=valid)
    with pytest.raises(ValueError, match="validation need all rows at once"):
        nb.NystroemRegressor(**FAST).fit(iter([(X, y)]), validation=valid)


def test_targets_for_validation_of_another_unit_are_refused_as_such():
    X, y, _ = customers()
    with pytest.raises(ValueError, match=r"In validation: y has values .*: check their unit"):
        nb.NystroemRegressor(**FAST).fit(X, y, validation=(X, 1e200 * y))
