"""Kernels against scikit-learn and against their formulas; bandwidths read off the data."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import pairwise_kernels

import nysboost as nb
from nysboost.gram import KernelGram
from nysboost.kernels import KERNELS, make_kernel
from nysboost.rows.recognise import scan_rows


def theirs(metric, **how):
    return partial(pairwise_kernels, metric=metric, **how)


def anova(X, Y, gamma, degree):
    return np.exp(-gamma * (X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2) ** degree


KERNELS_AND_FORMULAS = {
    "gaussian": (nb.Gaussian(sigma=1.3), lambda X, Y: np.exp(-(cdist(X, Y) ** 2) / (2 * 1.3**2))),
    "gaussian gamma": (nb.Gaussian(gamma=0.4), theirs("rbf", gamma=0.4)),
    "laplacian": (nb.Laplacian(sigma=2.0), theirs("laplacian", gamma=0.5)),
    **{f"matern {nu}": (nb.Matern(nu, 1.5), SklearnMatern(1.5, nu=nu)) for nu in (0.5, 1.5, 2.5)},
    "anova": (nb.Anova(gamma=0.7, degree=2), partial(anova, gamma=0.7, degree=2)),
    "linear": (nb.Linear(), theirs("linear")),
    "polynomial": (
        nb.Polynomial(degree=2, gamma=0.3, coef0=0.5),
        theirs("poly", degree=2, gamma=0.3, coef0=0.5),
    ),
    "cosine": (nb.Cosine(), theirs("cosine")),
}
OBJECTS = {name: kernel for name, (kernel, _) in KERNELS_AND_FORMULAS.items()}
FORMULAS = {name: formula for name, (_, formula) in KERNELS_AND_FORMULAS.items()}


def points(n=23, d=4, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("left", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("right", [np.asarray, sparse.csr_matrix])
def test_dense_and_sparse_rows_mix_and_the_answer_is_dense_in_the_dtype_of_x(
    name, dtype, left, right
):
    X, Y = points(23).astype(dtype), points(17, seed=1).astype(dtype)
    X[np.abs(X) < 0.5], X[2] = 0, 0  # the cosine of the origin is zero
    values = OBJECTS[name](left(X), right(Y))
    assert isinstance(values, np.ndarray)
    assert values.dtype == dtype
    expected, single = FORMULAS[name](*(A.astype(np.float64) for A in (X, Y))), dtype == np.float32
    atol = 1e-6 if single or left is not np.asarray else 1e-12
    np.testing.assert_allclose(values, expected, rtol=2e-5 if single else 1e-10, atol=atol)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_diagonal_is_the_matrixs_diagonal(name, make, dtype):
    X = points(70).astype(dtype)
    X[3] = 0
    kernel = OBJECTS[name].resolve(scan_rows(X))
    diagonal = kernel.diag(make(X))
    assert diagonal.dtype == dtype
    np.testing.assert_allclose(
        diagonal, np.diagonal(kernel(make(X), make(X))), rtol=1e-4 if dtype == np.float32 else 1e-9
    )


def test_a_callables_diagonal_is_its_matrixs_diagonal():
    X = points(150)
    kernel = make_kernel(lambda A, B: (A @ B.T) ** 2)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X, X)))


SKLEARN_NAMES = "rbf laplacian linear polynomial poly cosine chi2 sigmoid"


@pytest.mark.parametrize("name", SKLEARN_NAMES.split())
def test_scikit_learns_names_mean_what_they_mean_there(name):
    X, Y = np.abs(points(20)), np.abs(points(10, seed=1))
    kernel = make_kernel(name).resolve(scan_rows(X))
    np.testing.assert_allclose(kernel(X, Y), pairwise_kernels(X, Y, metric=name), rtol=1e-10)


def test_parameters_of_a_named_kernel_reach_it_and_a_warning_names_the_others():
    X = points()
    with pytest.warns(UserWarning, match="'linear' has no parameter gamma: gamma=0.5 has no eff"):
        assert make_kernel("linear", gamma=0.5) == nb.Linear()
    assert nb.Matern().resolve(scan_rows(X)).sigma == pytest.approx(np.sqrt(2.0))  # γ = 1/d
    assert make_kernel("poly", degree=2, gamma=0.5, coef0=None) == nb.Polynomial(2, gamma=0.5)
    with pytest.raises(ValueError, match=r"no parameter of the kernel 'poly', 'gama'.*'gamma'"):
        make_kernel("poly", gama=0.5)
    with pytest.raises(ValueError, match=r"'linear' has no parameters: leave sigma=2.0 out\.$"):
        make_kernel("linear", sigma=2.0)
    how = {"gamma": 0.1, "coef0": 2.0}
    expected = pairwise_kernels(X, metric="sigmoid", **how)
    np.testing.assert_allclose(make_kernel("sigmoid", **how)(X, X), expected)


@given(st.integers(-12, 0), st.sampled_from(["matern 0.5", "laplacian"]))
def test_close_pairs_keep_their_distance_where_the_kernel_has_a_corner(exponent, name):
    X = points(10)
    gap = 10.0**exponent
    Y = X.copy()
    Y[:, 0] += gap
    exact = (Y - X)[:, 0]
    values = np.diagonal(OBJECTS[name].resolve(scan_rows(X))(X, Y))
    r = exact / (2.0 if name == "laplacian" else 1.5)
    np.testing.assert_allclose(1 - values, -np.expm1(-r), rtol=1e-6, atol=1e-15)


def test_every_kernel_name_can_be_used():
    X = np.abs(points(30))
    for name in KERNELS:
        if name in ("precomputed", "sigmoid"):  # the latter is indefinite here
            continue
        error = nb.approximate(X, "nystrom", name, n_columns=30, random_state=0).relative_error()
        assert error < 1e-6


def test_a_kernel_of_scikit_learn_that_is_never_semidefinite_has_no_name():
    with pytest.raises(ValueError, match=r"There is no kernel 'additive_chi2'\."):
        make_kernel("additive_chi2")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("word", ["sigma", "gamma"])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_median_and_scale_are_the_median_distance_and_scikit_learns_scale(make, word, far):
    """Also far from the origin, where squares cancel."""
    X = 2.0 + points(80, 3, scale=3.0) + far
    rows, d = scan_rows(make(X)), X.shape[1]
    for kernel, median, scale in (
        (nb.Gaussian, 1 / (2 * np.median(pdist(X)) ** 2), 1 / (d * X.var())),
        (nb.Laplacian, 1 / np.median(pdist(X, "cityblock")), 1 / (d * X.std())),
    ):
        for rule, exact in (("median", median), ("scale", scale)):
            found = kernel(**{word: rule}).resolve(rows)
            assert found.gamma == pytest.approx(exact, rel=1e-6)
    matern = nb.Matern(**{word: "median"}).resolve(rows)
    assert matern.sigma == pytest.approx(np.median(pdist(X)), rel=1e-6)


@pytest.mark.parametrize("rule", ["median", "scale"])
@pytest.mark.parametrize("kernel", [nb.Gaussian, nb.Laplacian, nb.Matern])
def test_equal_points_get_some_bandwidth(rule, kernel):
    X = np.full((6, 2), 3.0)
    values = kernel(sigma=rule).resolve(scan_rows(X))(X, X)
    np.testing.assert_allclose(values, 1)


def test_a_kernel_without_a_function_says_so():
    with pytest.raises(TypeError, match=r"Nothing is not a kernel: it has no __call__"):
        type("Nothing", (nb.Kernel,), {})()(points(), points())


@pytest.mark.parametrize("kind", [nb.Gaussian, nb.Matern, nb.Linear, nb.Laplacian])
def test_a_kernel_that_is_made_of_another_is_evaluated_by_its_own_function(kind):
    class Twice(kind):
        def __call__(self, X, Y):
            return 2 * super().__call__(X, Y)

    kernel = Twice().resolve(scan_rows(points()))
    found = KernelGram(scan_rows(points()), kernel).whole()
    np.testing.assert_allclose(found, 2 * kind().resolve(scan_rows(points()))(points(), points()))


def test_a_rule_without_data_asks_for_a_number_or_for_an_estimator():
    X = points()
    for word in ("sigma", "gamma"):
        for rule in ("median", "scale"):
            with pytest.raises(ValueError, match=f'{word}="{rule}".*pass a number, or fit an est'):
                nb.Gaussian(**{word: rule})(X, X)
    with pytest.raises(ValueError, match=r"has no gamma.*pass a number, or fit an estimator"):
        nb.Polynomial()(X, X)


def test_a_power_without_real_values_says_so():
    X = points()
    with pytest.raises(ValueError, match=r"degree=2\.5.*a whole number as degree, or a"):
        nb.Polynomial(degree=2.5, gamma=1.0)(X, X)
    expected = (X @ X.T + 30.0) ** 2.5
    found = nb.Polynomial(degree=2.5, gamma=1.0, coef0=30.0)(X, X)
    np.testing.assert_allclose(found, expected)


def with_duplicates(X):
    """Return X as CSR, each entry stored as two halves."""
    whole = sparse.csr_matrix(X)
    parts = whole.indptr * 2, np.repeat(whole.indices, 2), np.repeat(whole.data / 2, 2)
    return sparse.csr_matrix((parts[2], parts[1], parts[0]), shape=X.shape)


def test_entries_of_csr_that_are_stored_in_parts_are_summed_once_on_a_copy():
    X, Q = points(40), points(20, seed=1)
    S, T = with_duplicates(X), with_duplicates(Q)
    kernel = nb.Gaussian(sigma=2.0)
    np.testing.assert_allclose(kernel(S, T), kernel(X, Q), atol=1e-12)

    how = {"kernel": kernel, "n_components": 10, "method": "uniform", "random_state": 0}
    found = nb.Nystroem(**how).fit(S).transform(T)
    np.testing.assert_allclose(found, nb.Nystroem(**how).fit(X).transform(Q), atol=1e-8)
    assert S.nnz == 2 * X.size  # the user's matrix stays as it is
    assert T.nnz == 2 * Q.size


def test_parameters_that_are_no_dictionary_are_named():
    for work in (
        lambda: nb.approximate(points(), kernel_params=[1]),
        lambda: nb.Nystroem(kernel_params=[1]).fit(points()),
    ):
        with pytest.raises(TypeError, match=r"kernel_params must be a dictionary.*\[1\] was given"):
            work()


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_a_matern_kernel_of_points_out_of_range_of_each_other_is_zero(nu):
    kernel = nb.Matern(nu=nu, sigma=1.0)
    far = kernel(np.zeros((1, 2)), np.array([[1e160, 0.0], [1e120, 0.0], [800.0, 0.0]]))
    np.testing.assert_array_equal(far, np.zeros((1, 3)))

    how = {"method": "uniform", "n_components": 5, "random_state": 0}
    X = points(40)
    model = nb.Nystroem(kernel, **how).fit(X)
    assert not model.transform(1e160 * X).any()
