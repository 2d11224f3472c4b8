"""Arrays of other namespaces go in, the same come out, with the landmarks of the NumPy run.

array-api-strict, which allows nothing that the standard does not promise, is always there;
PyTorch where it is installed: `make test-full` installs it.
"""

import array_api_strict
import numpy as np
import pytest
from market import LEADING

import nysboost as nb
from nysboost.numerics.arrays import to_host

KERNELS = (
    nb.Gaussian(sigma=2.0),
    nb.Laplacian(sigma="median"),
    nb.Matern(nu=1.5),
    nb.Linear(),
    nb.Polynomial(degree=2),
    nb.Cosine(),
    nb.Anova(),
)
SIZES = {"n_learners": 3, "n_columns": 12, "random_state": 0}


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: make test-full")


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    return request.getfixturevalue("torch") if request.param == "torch" else array_api_strict


def is_array_of(xp, array):
    return type(array) is type(xp.asarray([1.0]))


def close(ours, theirs, **tolerances):
    np.testing.assert_allclose(to_host(ours), to_host(theirs), **tolerances)


def points(n=200, d=5, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("method", LEADING)
def test_every_method_finds_the_landmarks_of_the_numpy_run(method, xp):
    X = points()
    ours, theirs = (
        nb.approximate(data, method, nb.Gaussian(sigma=2.0), **SIZES) for data in (X, xp.asarray(X))
    )
    errors = ours.relative_error(), theirs.relative_error()
    if method == "joint":
        # the steps of a descent carry rounding on, more or less by the BLAS: landmarks that moved
        # end elsewhere, and are as good
        np.testing.assert_allclose(*errors, rtol=2e-2)
        return
    np.testing.assert_allclose(*errors, rtol=1e-6)
    for mine, other in zip(ours.learners, theirs.learners, strict=True):
        if mine.landmarks.indices is None:
            close(mine.landmarks.points, other.landmarks.points, atol=1e-6)
        else:
            np.testing.assert_array_equal(mine.landmarks.indices, other.landmarks.indices)
    close(ours.to_dense(), theirs.to_dense(), atol=1e-6 if "J" in method else 1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kernel_has_the_values_of_the_numpy_run_and_is_as_good_under_joint(kernel, dtype, xp):
    """A descent amplifies rounding: both end as good, not in the same place."""
    X = points(dtype=dtype)
    (ours, mine), (theirs, other) = (
        [nb.approximate(data, method, kernel, **SIZES) for method in ("nystrom", "joint")]
        for data in (X, xp.asarray(X))
    )
    dense, there = ours.to_dense(), theirs.to_dense()
    assert there.dtype == getattr(xp, np.dtype(dtype).name)
    close(dense, there, atol=(1e-7 if dtype == np.float64 else 1e-3) * np.abs(dense).max())
    errors = mine.relative_error(), other.relative_error()
    np.testing.assert_allclose(*errors, rtol=0.02, atol=1e-5)


@pytest.mark.parametrize("method", ["URB-mean", "ensemble-ridge", "joint"])
def test_whatever_comes_out_is_an_array_of_the_same_kind(method, xp):
    X = xp.asarray(points())
    approx = nb.approximate(X, method, **SIZES)
    values, vectors = approx.eigh(3)
    v = X[:, 0]
    rows = np.arange(4)
    results = [values, vectors, approx @ v, approx @ X, approx.solve(v, 5.0), approx.diag()]
    results += [approx.features(), approx.block(rows, rows), approx.to_dense()]
    assert all(is_array_of(xp, result) for result in results)
    K, host = to_host(approx.to_dense()), to_host(v)
    close(approx @ v, K @ host, atol=1e-9)
    np.testing.assert_allclose(approx @ host, K @ host, atol=1e-9)
    close(approx.solve(v, 5.0), np.linalg.solve(K + 5.0 * np.eye(200), host), atol=1e-9)
    np.testing.assert_allclose(approx.solve(host, 5.0), to_host(approx.solve(v, 5.0)))
    close(values, np.sort(np.linalg.eigvalsh(K))[:-4:-1], rtol=1e-8)
    close(approx.diag(), np.diagonal(K), atol=1e-10)
    assert approx.trace() == pytest.approx(np.trace(K))


@pytest.mark.parametrize("kind", [nb.StandardNystroem, nb.EnsembleNystroem, nb.BoostedNystroem])
def test_a_transformer_fits_and_transforms_arrays(kind, xp):
    X, new = points(), points(50)[:, ::-1].copy()
    ours = kind(random_state=0).fit(X).transform(new)
    theirs = kind(random_state=0).fit(xp.asarray(X)).transform(xp.asarray(new))
    assert is_array_of(xp, theirs)
    close(np.abs(ours), np.abs(to_host(theirs)), atol=1e-6)


def test_an_array_with_other_columns_gets_a_sentence(xp):
    fitted = nb.StandardNystroem(n_columns=5).fit(xp.asarray(points()))
    with pytest.raises(ValueError, match="expecting 5 features"):
        fitted.transform(xp.asarray(points(d=4)))


def test_features_go_into_an_array_that_was_made_before(xp, tmp_path):
    X = xp.asarray(points())
    fitted = nb.StandardNystroem(n_columns=5, random_state=0).fit(X)
    out = xp.empty((200, 5), dtype=X.dtype)
    assert fitted.transform(X, out=out) is out
    np.testing.assert_array_equal(to_host(out), to_host(fitted.transform(X)))
    blocks = (X[i : i + 40, :] for i in range(0, 200, 40))
    close(fitted.transform(blocks), out, atol=1e-12)
    np.testing.assert_array_equal(fitted.transform(X, out=tmp_path / "F.npy"), to_host(out))


def test_an_array_in_the_wrong_place_is_named(torch):
    X = torch.asarray(points())
    tensors, arrays = (nb.StandardNystroem(n_columns=5).fit(data) for data in (X, points()))
    there = "but this approximation was fitted with"
    with pytest.raises(ValueError, match=f"X is a NumPy array, {there} a PyTorch array on cpu"):
        tensors.transform(points())
    with pytest.raises(ValueError, match=f"X is a PyTorch array on cpu, {there} a NumPy array"):
        arrays.transform(X)
    with pytest.raises(ValueError, match=f"X is a PyTorch array on meta, {there} a PyTorch"):
        tensors.transform(X.to("meta"))
    out = np.empty((200, 5))
    with pytest.raises(ValueError, match="out is a NumPy array, but the features are a PyTorch"):
        tensors.transform(X, out=out)


def test_gradients_are_neither_needed_nor_in_the_way(torch):
    X = torch.asarray(points(600)).requires_grad_()
    fitted = nb.StandardNystroem(n_columns=5, random_state=0).fit(X)
    with torch.inference_mode():
        inside = fitted.transform(X)
    np.testing.assert_array_equal(fitted.transform(X), inside)
