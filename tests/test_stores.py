"""What fitting reads of a store: a sample once, whole columns once for each block of pivots."""

import numpy as np
import pytest
from peaks import peak_bytes

import nysboost as nb

METHODS = ("nystrom", "ensemble-ridge", "URB-mean", "JJB-mean", "UEB-SF", "kmeans", "joint")


class CountingStore:
    """A table of chunks that counts the rows it hands over."""

    def __init__(self, X, chunk):
        self.X, self.chunks, self.shape, self.dtype = X, (chunk, X.shape[1]), X.shape, X.dtype
        self.ndim = 2
        self.reads = np.zeros(len(X), dtype=int)

    def __getitem__(self, key):
        assert isinstance(key, slice)
        self.reads[key] += 1
        return self.X[key]


def store(n=6000, d=4, chunks=20):
    return CountingStore(np.random.default_rng(0).normal(size=(n, d)), n // chunks)


@pytest.mark.parametrize("n_learners", [2, 4, 8])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_on_a_sample_reads_no_row_twice_and_finds_the_landmarks_of_the_array(
    method, n_learners
):
    rows, kernel = store(), nb.Gaussian(sigma=1.0)
    sizes = {"n_learners": n_learners, "n_columns": 12, "row_cap": 500, "random_state": 0}
    stored = nb.approximate(rows, method, kernel, **sizes)
    scan_for_nan, sample = 1, 1
    assert rows.reads.max() <= scan_for_nan + sample
    held = nb.approximate(rows.X, method, kernel, **sizes)
    np.testing.assert_array_equal(stored.landmarks.points, held.landmarks.points)


@pytest.mark.parametrize("method", ["greedy", "rpcholesky", "rls"])
def test_whole_columns_pass_over_the_store_within_the_memory(method):
    rows, c, max_memory = store(n=20_000, d=3), 40, 4_000_000
    kernel = nb.Gaussian(sigma=3.0)
    how, stored = {"n_components": c, "random_state": 0}, []
    peak = peak_bytes(
        lambda: stored.append(nb.approximate(rows, method, kernel, max_memory=max_memory, **how))
    )
    vectors = 8 * 20_000 * 6  # the diagonal, probabilities and the like
    assert peak < max_memory + vectors < 8 * 20_000 * c
    held = nb.approximate(rows.X, method, kernel, **how)
    np.testing.assert_array_equal(stored[0].landmarks.indices, held.landmarks.indices)
