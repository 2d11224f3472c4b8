"""Sums over rows, streamed and in memory."""

import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_matrix

import nysboost as nb
from nysboost.data.recognise import rows_of, stream_of
from nysboost.engine.factor import Moments, moments_of
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.resources import Budget

N, D, C = 3000, 4, 9


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    basis = FeatureMap.of(nb.Matern(1.5, 2.0), X[:C].copy())
    return X, rng.normal(size=(N, 2)), rng.uniform(size=N), basis


def assert_same(found, expected, tolerance=1e-9):
    for name in ("weight", "F", "Y", "FF", "FY", "YY"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=tolerance)


@pytest.mark.parametrize("kind", ["array", "memory map", "hdf5", "zarr", "csr", "blocks"])
@pytest.mark.parametrize("budget", [Budget(), Budget(2 * 10**5)])
def test_streamed_sums_equal_those_in_memory(problem, tmp_path, kind, budget):
    X, Y, weights, basis = problem
    expected = Moments.of(basis(X), Y, weights)
    if kind == "memory map":
        np.save(tmp_path / "x.npy", X)
        source = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "hdf5":
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(100, D))
        source = h5py.File(tmp_path / "x.h5")["X"]
    elif kind == "zarr":
        source = zarr.array(X, chunks=(100, D))
    elif kind == "csr":
        source = csr_matrix(X)
    elif kind == "blocks":
        source = iter(np.array_split(X, 7))
    else:
        source = X
    rows = stream_of(source)
    found = moments_of(basis, rows, Y, weights=weights, budget=budget)
    assert_same(found, expected)


def test_float32_rows_are_summed_in_float64(problem):
    X, Y, _, basis = problem
    narrow = X.astype(np.float32)
    found = moments_of(basis, rows_of(narrow), Y)
    assert found.FF.dtype == np.float64
    assert_same(found, Moments.of(basis(narrow.astype(np.float64)), Y), 1e-8)


def test_weights_of_two_equal_doubled_rows(problem):
    X, Y, _, basis = problem
    counts = np.arange(N) % 3
    weighed = moments_of(basis, rows_of(X), Y, weights=counts.astype(float))
    doubled = np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    assert_same(weighed, Moments.of(basis(doubled[0]), doubled[1]))


def test_moments_add_and_subtract(problem):
    X, Y, _, basis = problem
    one, other = Moments.of(basis(X[:99]), Y[:99]), Moments.of(basis(X[99:]), Y[99:])
    whole = Moments.of(basis(X), Y)
    assert_same(one + other, whole)
    assert_same(whole - other, one)
    np.testing.assert_allclose(whole.mean, Y.mean(axis=0))
