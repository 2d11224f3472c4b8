"""Dask in, Dask out: every result is that of the run in memory, and chunks are read twice."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from containers import CountedChunks
from scipy.sparse import csr_matrix

import nysboost as nb

pytestmark = pytest.mark.usefixtures("_in_this_thread")

KERNEL = nb.Gaussian(sigma=1.5)
UNEVEN = (400, 0, 350, 749, 1)
N = sum(UNEVEN)


@pytest.fixture(scope="module")
def X():  # noqa: N802
    return np.random.default_rng(0).normal(size=(N, 3))


def chunked(X, columns=3):
    return da.from_array(X, chunks=(UNEVEN, columns))


def pair(X, method="joint", **options):
    """Return the approximation in memory and that of the Dask array."""
    options = {"n_components": 40, "row_cap": 300, "random_state": 0} | options
    return (
        nb.approximate(X, method, KERNEL, **options),
        nb.approximate(chunked(X), method, KERNEL, **options),
    )


SAMPLING = ("joint", "nystrom", "uniform", "kmeans", "ensemble-ridge", "URB-mean", "JJB-mean")


@pytest.mark.parametrize("method", SAMPLING)
def test_landmarks_are_those_of_the_run_in_memory_and_chunks_are_read_twice(
    X, method, chunks_are_read, monkeypatch
):
    monkeypatch.setattr("nysboost.joint.method.WHOLE_DIAGONAL", 0)
    rows, options = CountedChunks(X, 300), {"n_components": 40, "row_cap": 300, "random_state": 0}
    there = nb.approximate(rows.array, method, KERNEL, **options)
    assert max(rows.reads.values()) <= 2
    here = nb.approximate(X, method, KERNEL, **options)
    np.testing.assert_array_equal(there.landmarks.points, here.landmarks.points)
    np.testing.assert_allclose(there.weights, here.weights)


EVERY_ROW = ("rpcholesky", "greedy", "sparse-greedy", "rls", "bless", "adaptive-partial")


@pytest.mark.parametrize(
    ("method", "kernel"),
    [*((method, KERNEL) for method in EVERY_ROW), ("greedy", nb.Polynomial(degree=2))],
)
def test_methods_that_look_at_every_row_send_their_passes_to_the_workers(
    X, method, kernel, chunks_are_read
):
    options = {"n_components": 40, "random_state": 0}
    there = nb.approximate(chunked(X), method, kernel, **options)
    here = nb.approximate(X, method, kernel, **options)
    np.testing.assert_array_equal(there.landmarks.indices, here.landmarks.indices)


@pytest.mark.parametrize("rule", ["median", "scale"])
def test_bandwidths_that_come_from_the_data_are_the_same(X, rule):
    options = {"n_components": 20, "random_state": 0}
    here = nb.approximate(X, "nystrom", nb.Gaussian(sigma=rule), **options)
    there = nb.approximate(chunked(X), "nystrom", nb.Gaussian(sigma=rule), **options)
    assert there.kernel.gamma == pytest.approx(here.kernel.gamma, rel=1e-12)


@pytest.mark.parametrize("method", ["joint", "ensemble-ridge"])
def test_products_spectra_and_systems_are_those_in_memory(X, method):
    here, there = pair(X, method)
    V = np.random.default_rng(1).normal(size=(N, 2))
    lazy = da.from_array(V, chunks=(700, 1))
    size = np.abs(here @ V).max()
    for given, product in [(V, there @ V), (lazy, there @ lazy)]:
        assert type(product) is type(given)
        np.testing.assert_allclose(np.asarray(product), here @ V, atol=1e-12 * size)
    np.testing.assert_allclose((there @ lazy[:, 0]).compute(), here @ V[:, 0], atol=1e-12 * size)
    np.testing.assert_allclose(there.diag().compute(), here.diag(), rtol=1e-10)
    assert there.trace() == pytest.approx(here.trace())
    (values, vectors), (expected, basis) = there.eigh(3), here.eigh(3)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(np.abs(vectors.compute()), np.abs(basis), atol=1e-8)
    alpha = 2 * float(expected[0])
    for given, solution in [(V, there.solve(V, alpha)), (lazy, there.solve(lazy, alpha))]:
        assert type(solution) is type(given)
        np.testing.assert_allclose(np.asarray(solution), here.solve(V, alpha), rtol=1e-10)
    np.testing.assert_allclose(there.to_dense()[:5, :5].compute(), here.to_dense()[:5, :5])


@pytest.mark.parametrize("norm", ["frobenius", "trace", "spectral"])
@pytest.mark.parametrize("method", ["joint", "ensemble-ridge"])
def test_errors_are_those_in_memory(X, norm, method):
    here, there = pair(X, method)
    for rows in (None, np.arange(0, N, 7)):
        expected = here.relative_error(rows, norm)
        assert there.relative_error(rows, norm) == pytest.approx(expected)


def test_features_are_lazy_with_the_chunks_and_the_dtype_of_the_rows(X):
    here, there = pair(X.astype(np.float32))
    F = there.features()
    assert isinstance(F, da.Array)
    assert F.chunks == (UNEVEN, (40,))
    assert F.dtype == np.float32
    assert F._meta.dtype == np.float32
    np.testing.assert_allclose(F.compute(), here.features(), atol=1e-5)  # rounding: float32


def test_features_of_negative_weights_have_the_signs_of_those_in_memory(X, chunks_are_read):
    options = {"n_components": 20, "random_state": 0}
    here = nb.EnsembleNystroem(**options).fit(X)
    there = nb.EnsembleNystroem(**options).fit(chunked(X))
    assert min(here.approximation_.weights) < 0  # else there is no rotation to agree on
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-10)


def test_transform_of_new_rows_is_lazy_whatever_was_fitted_on(X):
    model = nb.Nystroem(n_components=30, random_state=0).fit(X)
    expected = model.transform(X)
    np.testing.assert_allclose(model.transform(chunked(X, 2)).compute(), expected, atol=1e-13)
    again = nb.Nystroem(n_components=30, random_state=0).fit(chunked(X))
    np.testing.assert_allclose(again.transform(X), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_features_are_lazy_whatever_set_output_says(X, kind):
    model = nb.Nystroem(n_components=5, random_state=0).fit(X).set_output(transform=kind)
    found = model.transform(da.from_array(X, chunks=(100, -1)))
    assert isinstance(found, da.Array)


def test_data_frames_keep_their_names_and_unknown_sizes_stay_unknown(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    parts = dd.from_pandas(frame, npartitions=3)
    model = nb.Nystroem(method="rpcholesky", n_components=30, random_state=0).fit(parts)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    features = model.transform(parts)
    assert np.isnan(features.shape[0])
    here = nb.Nystroem(method="rpcholesky", n_components=30, random_state=0).fit(frame)
    np.testing.assert_allclose(features.compute(), here.transform(frame), atol=1e-10)
    turned = model.transform(parts[["c", "b", "a"]])  # columns go by their names
    np.testing.assert_allclose(turned.compute(), features.compute())
    with pytest.raises(ValueError, match="no column 'c'"):
        model.transform(parts[["a", "b"]])


def test_sparse_blocks_give_the_features_of_the_sparse_matrix(X):
    S = csr_matrix(np.where(X > 0.5, X, 0))
    blocks = da.from_array(S.toarray(), chunks=(500, 3)).map_blocks(csr_matrix)
    here = nb.approximate(S, "nystrom", KERNEL, n_components=20, random_state=0)
    there = nb.approximate(blocks, "nystrom", KERNEL, n_components=20, random_state=0)
    np.testing.assert_allclose(there.features().compute(), here.features(), rtol=1e-12)


def test_a_nan_in_new_rows_is_found_when_they_are_computed(X):
    model = nb.Nystroem(n_components=10, random_state=0).fit(X)
    wrong = X.copy()
    wrong[401, 2] = np.nan
    features = model.transform(chunked(wrong))
    with pytest.raises(ValueError, match=r"In chunk 2, .* NaN, first at row 1, column 2"):
        features.compute()


def test_wrong_rows_are_refused_before_anything_is_computed(X):
    model = nb.Nystroem(n_components=10, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.transform(chunked(X[:, :2], 2))
    with pytest.raises(ValueError, match="precomputed kernel matrix"):
        nb.approximate(chunked(X), kernel="precomputed")
