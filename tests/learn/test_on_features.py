"""scikit-learn's contract for every learner, and passes over the features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import nysboost as nb

X = np.random.default_rng(0).normal(size=(90, 3))
Y = (X[:, 0] > 0).astype(int)
ESTIMATORS = [
    nb.KernelPCA(n_components=3, random_state=0),
    nb.SpectralClustering(n_clusters=3, n_init=2, random_state=0),
    nb.MeanEmbedding(random_state=0),
    nb.GaussianProcessClassifier(n_landmarks=None, method="uniform", random_state=0),
]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
GIVEN = {"kernel": "gaussian", "metric": None, "landmarks": "uniform", "random_state": 0}
LEARNERS = [
    nb.NystroemRegressor(20, scale="quantile", **GIVEN),
    nb.NystroemClassifier(8, **GIVEN),
    nb.NystroemClassifier(8, loss="hinge", C=1.0, **GIVEN),
    nb.KernelPCA(n_components=2, fit_inverse_transform=True, random_state=0),
]


def outcome(estimator, data=X):
    for name in ("predict_proba", "transform", "predict", "score_samples"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name)(data))
    raise AssertionError


@parametrize_with_checks([*ESTIMATORS, *LEARNERS])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@each
def test_the_memory_allowed_changes_nothing_but_the_memory(estimator):
    wide, narrow = clone(estimator), clone(estimator).set_params(max_memory=400_000)
    found = [outcome(e.set_params(n_landmarks=20).fit(X, Y)) for e in (wide, narrow)]
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


@each
def test_sparse_rows_are_as_good_as_dense_ones(estimator):
    how = {"method": "uniform", "n_landmarks": 20}  # landmarks that stay where they are
    found = [
        outcome(clone(estimator).set_params(**how).fit(rows, Y), rows)
        for rows in (X, sparse.csr_matrix(X))
    ]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


@each
@pytest.mark.parametrize("method", ["kmeans", "meka", "orthogonal-fourier", "URB-mean", "dpp"])
def test_any_method_with_features_will_do(estimator, method):
    fitted = clone(estimator).set_params(method=method, n_landmarks=16).fit(X, Y)
    assert np.isfinite(outcome(fitted)).all()


@each
def test_a_method_without_features_gets_a_sentence(estimator):
    with pytest.raises(ValueError, match="no features for new rows"):
        clone(estimator).set_params(method="spectral-shift", n_landmarks=9).fit(X, Y)
