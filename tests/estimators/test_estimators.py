"""The three transformers: scikit-learn's contract, and ours."""

import pickle

import numpy as np
import pandas as pd
import pytest
from market import points, positive_part
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import nysboost as nb

SIZES = {"n_learners": 3, "n_columns": 8, "n_fit": 5, "n_tune": 5, "random_state": 0}
RIDGE = RidgeClassifier()
PAPER = {"variant": "URB-mean", **SIZES}


def estimators(**params):
    """One of each, with the parameters that it has."""
    made = []
    for kind in (nb.StandardNystroem, nb.EnsembleNystroem, nb.BoostedNystroem):
        known = kind().get_params()
        made.append(kind(**{name: value for name, value in params.items() if name in known}))
    return made


each = pytest.mark.parametrize(
    "estimator", estimators(**PAPER), ids=lambda estimator: type(estimator).__name__
)


@pytest.mark.filterwarnings("ignore:.*landmarks were asked for")  # scikit-learn's warns as well
@parametrize_with_checks([*estimators(), nb.Nystroem(), nb.Nystroem(method="rpcholesky")])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def squared(A, B, factor=1.0):
    return factor * (A @ B.T + 1) ** 2


WIDTHS = [{"gamma": gamma} for gamma in (0.5, "scale", "median")]


@each
@pytest.mark.parametrize("params", [*WIDTHS, {"kernel": squared, "kernel_params": {"factor": 2.0}}])
def test_transform_is_the_kernel_with_the_components_times_the_normalization(estimator, params):
    X, new = points(), points(11, seed=1)
    fitted = clone(estimator).set_params(**params).fit(X)
    np.testing.assert_array_equal(fitted.components_, X[fitted.component_indices_])
    for rows in (X, new):
        if "kernel" in params:
            values = squared(rows, fitted.components_, 2.0)
        else:
            gamma = fitted.approximation_.gram.kernel.gamma
            values = rbf_kernel(rows, fitted.components_, gamma=gamma)
        expected = values @ fitted.normalization_
        np.testing.assert_allclose(fitted.transform(rows), expected, atol=1e-8)


@each
def test_the_features_of_the_training_rows_make_the_approximation(estimator):
    X = points()
    fitted = clone(estimator).fit(X)
    F = fitted.transform(X)
    K = fitted.approximation_.to_dense()
    np.testing.assert_allclose(F @ F.T, positive_part(K), atol=1e-9)
    first, again = (clone(estimator).fit_transform(X) for _ in range(2))
    np.testing.assert_allclose(first, F, atol=1e-9)
    np.testing.assert_array_equal(first, again)  # the seed decides everything
    other = clone(estimator).set_params(random_state=1).fit_transform(X)
    assert other.shape != first.shape or np.abs(first - other).max() > 0


@each
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "linear", "poly", "cosine", "matern", "anova"]
)
def test_sparse_and_dense_rows_have_the_same_features(estimator, kernel):
    X, new = points(), points(9, seed=1)
    dense = clone(estimator).set_params(kernel=kernel).fit(X)
    thin = clone(estimator).set_params(kernel=kernel).fit(sparse.csr_matrix(X))
    expected = dense.transform(new)
    for fitted in (dense, thin):
        for rows in (new, sparse.csr_matrix(new), sparse.csr_array(new)):
            F = fitted.transform(rows)
            np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-7)


@each
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "cosine", "linear"])
def test_float32_in_float32_out(estimator, make, kernel):
    X = points().astype(np.float32)
    fitted = clone(estimator).set_params(kernel=kernel).fit(make(X))
    assert fitted.transform(make(X)).dtype == np.float32
    assert fitted.normalization_.dtype == np.float32
    assert fitted.components_.dtype == np.float32
    assert clone(estimator).fit(points()).transform(points()).dtype == np.float64


@each
def test_a_saved_estimator_is_small_and_works_without_its_training_rows(estimator):
    sizes = []
    for n in (200, 4000):
        X = points(n)
        fitted = clone(estimator).fit(X)
        expected = fitted.transform(X[:9])
        saved = pickle.dumps(fitted)
        sizes.append(len(saved))
        again = pickle.loads(saved)
        np.testing.assert_array_equal(again.transform(X[:9]), expected)
        np.testing.assert_array_equal(again.weights_, fitted.weights_)
        with pytest.raises(RuntimeError, match=f"needs the {n} training rows"):
            again.approximation_.relative_error()
        assert fitted.approximation_.relative_error() > 0
        assert np.isfinite(clone(again).fit(X).transform(X)).all()
    assert sizes[1] < sizes[0] + 500


@each
def test_a_precomputed_kernel_has_fewer_landmarks_than_rows(estimator):
    X, new = points(), points(11, seed=1)
    G, cross = rbf_kernel(X, gamma=0.5), rbf_kernel(new, X, gamma=0.5)
    fitted = clone(estimator).set_params(kernel="precomputed").fit(G)
    direct = clone(estimator).set_params(gamma=0.5).fit(X)
    np.testing.assert_array_equal(fitted.component_indices_, direct.component_indices_)
    assert len(fitted.component_indices_) < 80
    assert fitted.components_ is None
    expected = direct.transform(new) @ direct.transform(X).T
    whole = fitted.transform(cross)
    np.testing.assert_allclose(whole @ fitted.transform(G).T, expected, atol=1e-7)
    alone = fitted.transform(np.ascontiguousarray(cross[:, fitted.component_indices_]))
    np.testing.assert_allclose(alone, whole, atol=1e-10)
    with pytest.raises(
        ValueError, match="79 columns, but it should hold kernel values with all 80"
    ):
        fitted.transform(cross[:, :79])


def test_a_negative_weight_is_cut_and_the_cut_is_told():
    X, model = points(), nb.EnsembleNystroem("ridge", **SIZES)
    fits = (clone(model).set_params(random_state=seed).fit(X) for seed in range(100))
    fitted = next(fitted for fitted in fits if fitted.weights_.min() < -0.05)
    K = fitted.approximation_.to_dense()
    eigenvalues = np.linalg.eigvalsh(K)
    cut = -eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum()
    assert 0 < fitted.discarded_mass_ == pytest.approx(cut, abs=1e-9)
    F = fitted.transform(X)
    np.testing.assert_allclose(F @ F.T, positive_part(K), atol=1e-9)
    mended = clone(fitted).set_params(nonnegative=True).fit(X)
    assert mended.weights_.min() >= 0
    assert mended.discarded_mass_ == 0
    np.testing.assert_array_equal(mended.component_indices_, fitted.component_indices_)


def test_parameters_of_kernels_are_searched_and_cloned():
    X, y = make_moons(90, noise=0.1, random_state=0)
    given = make_pipeline(nb.StandardNystroem("precomputed", n_columns=15, random_state=0), RIDGE)
    sliced = GridSearchCV(given, {"ridgeclassifier__alpha": [0.1, 1.0]}, cv=3)
    assert sliced.fit(rbf_kernel(X, gamma=2.0), y).best_score_ > 0.8
    kernel = nb.Matern(nu=0.5, sigma=1.0)
    pipeline = make_pipeline(nb.Nystroem(kernel, n_components=20, random_state=0), RIDGE)
    grid = {"nystroem__kernel__nu": [0.5, 2.5], "nystroem__kernel__sigma": [1e-3, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_estimator_[0].kernel.sigma == 1.0
    assert kernel == nb.Matern(nu=0.5, sigma=1.0)  # never changed
    assert pipeline.get_params()["nystroem__kernel__sigma"] == 1.0
    assert clone(pipeline)[0].kernel == kernel


@pytest.mark.thread_unsafe(reason="one global seed for all threads")
def test_without_a_seed_numpys_global_one_is_followed():
    found = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002
        found.append([nb.Nystroem(n_components=5).fit(points()).components_ for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()


def test_the_approximation_of_an_estimator_takes_frames_by_the_names_of_their_columns(tmp_path):
    def table(seed):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(120, 3)) * [1, 5, 0.2], columns=list("abc"))
        return frame.assign(kind=rng.choice(["red", "blue"], 120))

    how = {"method": "kmeans", "gamma": 0.3, "n_components": 20, "random_state": 0}
    model = nb.Nystroem(**how).fit(table(0))
    new = table(1)
    turned = new[["kind", "b", "c", "a"]]
    nb.save(model, tmp_path / "model")
    for each in (model, nb.load(tmp_path / "model")):
        transform, _ = each.approximation_.feature_map()
        np.testing.assert_allclose(transform(new), model.transform(new))
        np.testing.assert_array_equal(transform(turned), transform(new))

    found = model.approximation_.certificate(X=turned, random_state=0)
    assert found == model.approximation_.certificate(X=new, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [nb.Nystroem, nb.BoostedNystroem, nb.EnsembleNystroem],
    ids=lambda one: one.__name__,
)
def test_settings_that_are_none_are_named(estimator):
    with pytest.raises(TypeError, match=r"settings is a nysboost.Settings, but a dict was given"):
        estimator(settings={"row_cap": 50}).fit(np.eye(30))
