"""Arrays of other namespaces go in, the same come out, with the landmarks of the NumPy run."""

import numpy as np
import pytest

import nysboost as nb

METHODS = (
    "nystrom",
    "nystrom-fixed-rank",
    "ensemble-ridge",
    "URB-mean",
    "RRB-med",
    "EEB-SF",
    "JJB-mean",
    "kmeans",
    "rpcholesky",
    "greedy",
    "rls",
    "optimal",
    "joint",
    "density-weighted",
    "meka",
    "sparse-greedy",
    "bless",
    "dpp",
    "adaptive",
    "adaptive-partial",
    "modified",
    "spectral-shift",
    "cur",
    "cur-cross",
    "robust-cur",
    "random-fourier",
    "orthogonal-fourier",
    "quasi-fourier",
)
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
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def points(n=200, d=5, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_landmarks_of_the_numpy_run(method, torch):
    X = points()
    ours, theirs = (
        nb.approximate(data, method, nb.Gaussian(sigma=2.0), **SIZES)
        for data in (X, torch.asarray(X))
    )
    for mine, other in zip(ours.learners, theirs.learners, strict=True):
        if mine.landmarks.indices is None:
            np.testing.assert_allclose(mine.landmarks.points, other.landmarks.points, atol=1e-6)
        else:
            np.testing.assert_array_equal(mine.landmarks.indices, other.landmarks.indices)
    np.testing.assert_allclose(ours.to_dense(), theirs.to_dense(), atol=1e-8)
    np.testing.assert_allclose(ours.relative_error(), theirs.relative_error(), rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kernel_has_the_values_of_the_numpy_run(kernel, dtype, torch):
    X = points(dtype=dtype)
    for method in ("nystrom", "joint"):
        ours, theirs = (
            nb.approximate(data, method, kernel, **SIZES).to_dense()
            for data in (X, torch.asarray(X))
        )
        assert theirs.dtype == getattr(torch, np.dtype(dtype).name)
        scale = np.abs(ours).max()
        # in float32 the paths of landmarks part: both end as good, not in the same place
        tolerance = 1e-7 if dtype == np.float64 else 5e-2 if method == "joint" else 1e-3
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=tolerance)


def test_whatever_comes_out_is_a_tensor(torch):
    X = torch.asarray(points())
    approx = nb.approximate(X, "URB-mean", **SIZES)
    values, vectors = approx.eigh(3)
    v = X[:, 0]
    rows = np.arange(4)
    results = [values, vectors, approx @ v, approx @ X, approx.solve(v, 0.1), approx.diag()]
    results += [approx.features(), approx.block(rows, rows), approx.to_dense()]
    assert all(isinstance(result, torch.Tensor) for result in results)
    dense = np.asarray(approx.to_dense())
    np.testing.assert_allclose(approx @ v, dense @ np.asarray(v), atol=1e-10)
    np.testing.assert_allclose(approx @ np.asarray(v), dense @ np.asarray(v), atol=1e-10)


@pytest.mark.parametrize("kind", [nb.StandardNystroem, nb.EnsembleNystroem, nb.BoostedNystroem])
def test_a_transformer_fits_and_transforms_tensors(kind, torch):
    X, new = points(), points(50)[:, ::-1].copy()
    ours = kind(random_state=0).fit(X).transform(new)
    theirs = kind(random_state=0).fit(torch.asarray(X)).transform(torch.asarray(new))
    assert isinstance(theirs, torch.Tensor)
    np.testing.assert_allclose(np.abs(ours), np.abs(np.asarray(theirs)), atol=1e-6)


def test_a_tensor_with_other_columns_gets_a_sentence(torch):
    fitted = nb.StandardNystroem(n_columns=5).fit(torch.asarray(points()))
    with pytest.raises(ValueError, match="expecting 5 features"):
        fitted.transform(torch.asarray(points(d=4)))


def test_features_go_into_a_tensor_that_was_made_before(torch, tmp_path):
    X = torch.asarray(points())
    fitted = nb.StandardNystroem(n_columns=5, random_state=0).fit(X)
    out = torch.empty((200, 5), dtype=X.dtype)
    assert fitted.transform(X, out=out) is out
    np.testing.assert_array_equal(out, fitted.transform(X))
    blocks = (X[i : i + 30] for i in range(0, 200, 30))
    np.testing.assert_allclose(fitted.transform(blocks), out, atol=1e-12)
    np.testing.assert_array_equal(fitted.transform(X, out=tmp_path / "F.npy"), out)


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


def test_numpy_vectors_are_solved_for_with_tensors(torch):
    X = torch.asarray(points())
    approx = nb.approximate(X, "nystrom", n_columns=5, random_state=0)
    b = np.ones(200)
    np.testing.assert_allclose(approx.solve(b, 0.1), approx.solve(torch.asarray(b), 0.1))
