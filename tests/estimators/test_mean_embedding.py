"""Mean embeddings in dense form, and the size and power of the test that they make."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binomtest

import nysboost as nb

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(150, 2)), RNG.normal(size=(100, 2)) + np.array([0.6, 0.0])
KERNEL = nb.Gaussian(sigma=1.0)


def quadratic_test(X, Y, kernel, rng, n_permutations=199):
    """The exact test: ‖μ_X − μ_Y‖² from the whole kernel matrix, with permutations."""
    both, n = np.concatenate([X, Y]), len(X)
    K = kernel(both, both)

    def statistic(order):
        h = np.where(np.arange(len(both)) < n, 1 / n, -1 / (len(both) - n))[np.argsort(order)]
        return h @ K @ h

    observed = statistic(np.arange(len(both)))
    drawn = [statistic(rng.permutation(len(both))) for _ in range(n_permutations)]
    return observed, (1 + np.sum(np.array(drawn) >= observed)) / (n_permutations + 1)


def test_the_weights_are_the_pseudoinverse_of_w_times_the_mean_column():
    fitted = nb.MeanEmbedding(KERNEL, method="uniform", n_landmarks=20, random_state=0).fit(X)
    Z = fitted.features_.components_
    expected = np.linalg.pinv(KERNEL(Z, Z), rcond=1e-14) @ KERNEL(Z, X).mean(axis=1)
    np.testing.assert_allclose(KERNEL(X, Z) @ fitted.weights_, KERNEL(X, Z) @ expected, atol=1e-7)
    np.testing.assert_allclose(fitted.score_samples(X), KERNEL(X, Z) @ fitted.weights_, atol=1e-7)


def test_with_every_row_as_landmark_distance_and_statistic_are_the_exact_ones():
    both = np.concatenate([X, Y])
    fitted = nb.MeanEmbedding(KERNEL, method="uniform", random_state=0).set_params(n_landmarks=250)
    fitted.fit(both)
    exact = KERNEL(both, both).mean() - 2 * KERNEL(both, X).mean() + KERNEL(X, X).mean()
    assert fitted.distance(X) == pytest.approx(np.sqrt(exact), rel=1e-5)
    np.testing.assert_allclose(fitted.score_samples(X), KERNEL(X, both).mean(axis=1), atol=1e-7)
    expected, _ = quadratic_test(X, Y, KERNEL, np.random.default_rng(0), 1)
    found = nb.mmd_test(X, Y, KERNEL, n_components=250, n_permutations=9, random_state=0)
    assert found.statistic == pytest.approx(expected, rel=1e-6)


def test_the_size_of_the_test_is_right_under_the_null():
    rng, rejected, runs = np.random.default_rng(1), 0, 500
    for _ in range(runs):
        both = rng.exponential(size=(40, 2))
        how = {"n_components": 10, "n_permutations": 39, "random_state": rng}
        rejected += nb.mmd_test(both[:25], both[25:], KERNEL, **how).pvalue <= 0.05
    assert binomtest(rejected, runs, 0.05).pvalue > 0.01


def test_the_power_is_nearly_that_of_the_exact_quadratic_test():
    rng, found = np.random.default_rng(2), {"ours": 0, "exact": 0}
    for _ in range(60):
        A, B = rng.normal(size=(60, 2)), rng.normal([0.5, 0.0], 1.0, size=(60, 2))
        ours = nb.mmd_test(A, B, KERNEL, n_components=20, n_permutations=99, random_state=rng)
        found["ours"] += ours.pvalue <= 0.05
        found["exact"] += quadratic_test(A, B, KERNEL, rng, 99)[1] <= 0.05
    assert 20 < found["exact"] < 60
    assert found["ours"] >= found["exact"] - 6


def test_permutations_in_parts_are_as_good_as_all_at_once():
    how = {"n_components": 20, "n_permutations": 99, "random_state": 0}
    whole = nb.mmd_test(X, Y, KERNEL, **how)
    parts = nb.mmd_test(X, Y, KERNEL, **how, max_memory=50_000)
    assert parts.statistic == pytest.approx(whole.statistic, rel=1e-9)
    assert abs(parts.pvalue - whole.pvalue) < 0.05


def test_sparse_samples_and_unequal_sizes_are_taken():
    how = {"n_components": 20, "n_permutations": 19, "random_state": 0}
    dense, thin = (
        nb.mmd_test(make(X), make(Y), KERNEL, **how) for make in (np.asarray, sparse.csr_matrix)
    )
    assert thin.statistic == pytest.approx(dense.statistic, rel=1e-4)
    assert thin.pvalue == dense.pvalue


def test_rare_categories_of_one_distribution_are_no_difference():
    rng = np.random.default_rng(0)
    samples = [pd.DataFrame({"c": pd.Categorical(rng.integers(0, 200, 50))}) for _ in range(20)]
    pairs = zip(samples[::2], samples[1::2], strict=True)
    found = [nb.mmd_test(*pair, random_state=0).pvalue for pair in pairs]
    assert np.median(found) > 0.2


KERNEL_DOORS = {
    "mmd_test": lambda table: nb.mmd_test(table, table, n_permutations=9, random_state=0),
    "approximate": lambda table: nb.approximate(table, n_components=3, random_state=0),
    "Nystroem": lambda table: nb.Nystroem(n_components=3, random_state=0).fit(table),
}


@pytest.mark.parametrize("door", KERNEL_DOORS)
def test_a_date_beside_other_columns_of_a_kernel_is_a_warning(door):
    days = pd.date_range("2026-01-01", periods=40, freq="D")
    table = pd.DataFrame({"day": days, "size": np.arange(40.0)})
    with pytest.warns(UserWarning, match="dates are seconds, .*the column 'day'"):
        KERNEL_DOORS[door](table)

    # what the sentence asks for
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KERNEL_DOORS[door](table.assign(day=(days - days[0]).days.astype(float)))


def test_samples_of_dask_with_sparse_blocks_are_those_in_memory():
    how = {"n_components": 20, "n_permutations": 19, "random_state": 0}
    blocks = da.from_array(X, chunks=(20, X.shape[1])).map_blocks(sparse.csr_array)
    assert nb.mmd_test(blocks, Y, KERNEL, **how) == nb.mmd_test(
        sparse.csr_array(X), Y, KERNEL, **how
    )
