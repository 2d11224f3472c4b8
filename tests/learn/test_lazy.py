"""Learners on Dask: the model of the run in memory, and predictions that wait to be asked for."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import nysboost as nb

pytestmark = pytest.mark.usefixtures("_in_this_thread")
N = 4000
CHUNKS = (1500, 0, 1000, 1500)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.1 * rng.normal(size=N)


SETTINGS = {"kernel": "gaussian", "local": False, "random_state": 0}


def regressor():
    return nb.NystroemRegressor(15, metric="one", **SETTINGS)


@pytest.fixture(scope="module")
def here(data):
    return regressor().fit(*data)


def lazy(X):
    return da.from_array(X, chunks=(CHUNKS, *X.shape[1:]))


def test_weights_come_from_the_workers_and_predictions_are_lazy(data, here):
    X, y = data
    there = regressor().fit(lazy(X), lazy(y))
    np.testing.assert_array_equal(there.components_, here.components_)
    predicted = there.predict(lazy(X))
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (CHUNKS,)
    np.testing.assert_allclose(predicted.compute(), here.predict(X), atol=1e-9)
    for lazily, at_once in zip(
        there.predict(lazy(X), return_std=True), here.predict(X, return_std=True), strict=True
    ):
        assert lazily.chunks == (CHUNKS,)
        np.testing.assert_allclose(lazily.compute(), at_once, rtol=1e-9)


def test_columns_of_one_data_frame_are_rows_and_target(data, here):
    X, y = data
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=y), npartitions=3)
    there = regressor().fit(frame[list("abc")], frame["y"])
    assert list(there.feature_names_in_) == ["a", "b", "c"]
    assert np.isnan(there.predict(frame[list("abc")]).shape[0])
    predicted = there.predict(frame[list("abc")]).compute()
    np.testing.assert_allclose(predicted, here.predict(X), atol=1e-9)


def test_few_rows_are_brought_here(data):
    X, y = data[0][:200], data[1][:200]
    here = regressor().fit(X, y)
    there = regressor().fit(da.from_array(X, chunks=50), da.from_array(y, chunks=70))
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-9)


def test_labels_are_told_apart_on_the_workers(data):
    X, y = data
    labels = np.where(y > 0, "up", "down")
    model = nb.NystroemClassifier(10, metric="one", **SETTINGS)
    here, there = clone(model).fit(X, labels), clone(model).fit(lazy(X), lazy(labels))
    assert list(there.classes_) == ["down", "up"]
    probabilities = there.predict_proba(lazy(X))
    assert probabilities.chunks == (CHUNKS, (2,))
    np.testing.assert_allclose(probabilities.compute(), here.predict_proba(X), atol=1e-8)
    assert (there.predict(lazy(X)).compute() == here.predict(X)).all()
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(lazy(X), lazy(np.zeros(N)))


FEW = {"n_landmarks": 30, "method": "uniform", "random_state": 0}
ANSWERS = {
    nb.KernelPCA(3, **FEW): ["transform"],
    nb.MeanEmbedding(**FEW): ["score_samples"],
    nb.GaussianProcessClassifier(**FEW): ["predict", "predict_proba"],
}


@pytest.mark.parametrize("estimator", ANSWERS, ids=lambda estimator: type(estimator).__name__)
def test_estimators_on_features_add_up_on_the_workers(
    data, estimator, chunks_are_read, monkeypatch
):
    X, y = data
    here = clone(estimator).fit(X, y > 0)
    monkeypatch.setattr("nysboost.rows.dask_rows.DaskRows.pieces", None)  # none comes by the chunk
    there = clone(estimator).fit(lazy(X), y > 0)
    for name in ANSWERS[estimator]:
        answer = getattr(there, name)(lazy(X))
        assert isinstance(answer, da.Array)
        np.testing.assert_allclose(answer.compute(), getattr(here, name)(X), atol=1e-8)


def test_the_distance_of_a_sample_on_workers_is_that_in_memory(data):
    X, _ = data
    embedding = nb.MeanEmbedding(**FEW).fit(X)
    assert embedding.distance(lazy(X[:] + 1)) == pytest.approx(embedding.distance(X + 1))
