"""A certificate holds the truth, says what it rests on, and costs what it may."""

from itertools import product

import market
import numpy as np
import pytest
from containers import hdf5

import nysboost as nb

SEVERAL = ["uniform", "joint", "ensemble-ridge"]


def fitted(X, method="uniform", kernel=None, seed=0, c=20):
    sizes = {"n_components": c}
    if method == "ensemble-ridge":
        sizes = {"n_learners": 2, "n_columns": c // 2, "n_fit": 5, "n_tune": 5}
    return nb.approximate(X, method, kernel or nb.Gaussian(sigma=1.0), random_state=seed, **sizes)


def heavy_tailed(n, rng):
    """A narrow cloud, and one row in a hundred anywhere."""
    X = rng.normal(size=(n, 3))
    X[::100] = rng.standard_cauchy(size=(len(X[::100]), 3)) * 20
    return X


def holds(interval, truth):
    return interval[0] <= truth <= interval[1]


def misses(approx, n_entries, confidence, runs=25):
    """How many of the intervals, Frobenius and trace, do not contain the truth."""
    errors = [approx.relative_error(norm=norm) for norm in ("frobenius", "trace")]
    given = [
        approx.certificate(confidence, n_entries=n_entries, random_state=seed)
        for seed in range(runs)
    ]
    assert not any(certificate.exact_frobenius for certificate in given)
    assert all(certificate.entries_evaluated <= n_entries for certificate in given)
    return [
        sum(not holds(getattr(certificate, norm), error) for certificate in given)
        for norm, error in zip(("frobenius", "trace"), errors, strict=True)
    ]


@pytest.mark.parametrize(
    ("method", "points"),
    [
        *product(SEVERAL, [market.cloud, heavy_tailed, market.few_distinct]),
        *product(["random-fourier", "meka", "cur"], [heavy_tailed]),  # no kernel values
    ],
)
def test_intervals_hold_the_truth_with_some_rows_and_with_all(method, points):
    approx = fitted(points(800, np.random.default_rng(0)), method, c=16)
    for n_entries in (8_000, 40_000):
        assert max(misses(approx, n_entries, 0.95)) <= 2


@pytest.mark.parametrize("case", market.NAMES)
def test_the_market_is_covered_from_samples_far_below_n(case):
    problem = market.problem(case, n=400)
    approx = nb.approximate(problem.X, "uniform", problem.kernel, n_components=15, random_state=0)
    for n_entries in (6_000, 15_000):
        assert max(misses(approx, n_entries, 0.95, runs=20)) <= 1


def test_few_rows_are_evaluated_whole():
    approx = fitted(market.cloud(300, np.random.default_rng(0)))
    certificate = approx.certificate()
    assert certificate.frobenius == (approx.relative_error(),) * 2
    assert certificate.trace == (approx.relative_error(norm="trace"),) * 2
    assert certificate.exact_frobenius
    assert certificate.exact_trace
    assert certificate.rows == certificate.rows_seen == 300


def test_with_values_enough_for_every_row_the_trace_is_known_and_no_row_hides():
    X = market.cloud(3000, np.random.default_rng(0))
    X[17] = 1e3  # alone: it has no landmark, and no uniform sample of 300 rows contains it
    approx = fitted(X, "joint", c=30)
    some = approx.certificate(n_entries=50_000, random_state=0)
    every = approx.certificate(n_entries=200_000, random_state=0)
    assert some.rows_seen < 1000
    assert not some.exact_trace
    assert every.rows_seen == 3000
    assert every.exact_trace
    np.testing.assert_allclose(every.trace, approx.relative_error(norm="trace"), rtol=1e-6)
    widths = [high - low for low, high in (every.frobenius, some.frobenius)]
    assert widths[0] < 0.2 * widths[1]


def test_the_width_falls_with_the_number_of_kernel_values():
    X, widths = market.cloud(3000, np.random.default_rng(0)), []
    for n_entries in (20_000, 100_000, 1_000_000):
        approx = fitted(X)
        before = approx.gram.entries_evaluated
        certificate = approx.certificate(n_entries=n_entries, random_state=0)
        assert certificate.entries_evaluated == approx.gram.entries_evaluated - before
        widths.append(certificate.frobenius[1] - certificate.frobenius[0])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05 * approx.relative_error()


def test_the_number_of_kernel_values_does_not_grow_with_the_rows():
    X = market.cloud(40_000, np.random.default_rng(0))
    spent = [fitted(X[:n]).certificate(n_entries=50_000).entries_evaluated for n in (3000, 40_000)]
    assert 45_000 < spent[0] == spent[1] <= 50_000


@pytest.mark.parametrize("method", SEVERAL)
def test_new_rows_have_a_certificate_of_their_own(method):
    rng = np.random.default_rng(0)
    approx, new = fitted(market.cloud(800, rng), method), market.cloud(1200, rng) * 1.2
    G = np.exp(-((new[:, None] - new) ** 2).sum(-1) / 2)
    F = approx._factor.transform(new)
    error = np.linalg.norm(G - (F * approx._factor.weights) @ F.T) / np.linalg.norm(G)
    exact = approx.certificate(X=new)
    np.testing.assert_allclose(exact.frobenius, error)
    assert exact.new_rows
    assert "1,200 new rows" in str(exact)
    sampled = [approx.certificate(X=new, n_entries=40_000, random_state=s) for s in range(20)]
    assert sum(not holds(certificate.frobenius, error) for certificate in sampled) <= 1


def test_plain_nystrom_has_bounds_that_no_sample_decides():
    approx = fitted(market.cloud(1500, np.random.default_rng(0)), c=100)
    certificate = approx.certificate(n_entries=400_000, random_state=0)
    assert certificate.positive_semidefinite
    assert certificate.bounds is not None
    assert certificate.bounds[0] <= certificate.frobenius[0]
    assert certificate.frobenius[1] <= certificate.bounds[1]
    G, K = approx.gram.block(np.arange(1500), np.arange(1500)), approx.to_dense()
    nuclear = np.linalg.norm(G - K, "nuc")
    np.testing.assert_allclose(certificate.bounds[1], nuclear / np.linalg.norm(K), rtol=1e-6)
    assert "With certainty" in str(certificate)


def test_new_rows_of_a_precomputed_matrix_have_no_values():
    problem = market.problem("decaying spectrum")
    approx = nb.approximate(problem.X, "uniform", "precomputed", n_components=10, random_state=0)
    assert approx.certificate().exact_frobenius
    with pytest.raises(ValueError, match="no values for new rows"):
        approx.certificate(X=problem.X)


@pytest.mark.parametrize("n_entries", [12_000, 60_000])
@pytest.mark.parametrize("library", ["h5py", "torch"])
def test_stores_and_other_arrays_have_the_certificate_of_the_array(tmp_path, library, n_entries):
    X = market.cloud(1500, np.random.default_rng(0))
    there = hdf5(X, tmp_path) if library == "h5py" else pytest.importorskip("torch").from_numpy(X)
    expected, given = (
        fitted(rows).certificate(n_entries=n_entries, random_state=0) for rows in (X, there)
    )
    assert given.entries_evaluated == expected.entries_evaluated
    np.testing.assert_allclose(given.frobenius, expected.frobenius, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_entries", "some", "every"), [(12_000, 1, 0), (60_000, 0, 0), (3_000_000, 0, 1)]
)
def test_a_dask_array_has_that_of_the_array_and_its_rows_stay_where_they_are(
    n_entries, some, every
):
    da = pytest.importorskip("dask.array")
    X = market.cloud(1500, np.random.default_rng(0))
    expected = fitted(X).certificate(n_entries=n_entries, random_state=0)
    there = fitted(da.from_array(X, chunks=((500, 0, 600, 400), 3)))
    given = there.certificate(n_entries=n_entries, random_state=0)
    assert (given.exact_trace, given.exact_frobenius) == (not some, bool(every))
    assert given.entries_evaluated <= n_entries
    assert holds(given.frobenius, fitted(X).relative_error())
    np.testing.assert_allclose(given.trace, expected.trace, rtol=1e-9)
    if some or every:
        np.testing.assert_allclose(given.frobenius, expected.frobenius, rtol=1e-9)


def test_an_approximation_without_features_has_one_of_its_own_rows_alone():
    X = market.cloud(600, np.random.default_rng(0))
    approx = nb.approximate(
        X, "spectral-shift", nb.Gaussian(sigma=1.0), n_components=10, random_state=0
    )
    assert max(misses(approx, 50_000, 0.95, runs=20)) <= 1
    with pytest.raises(ValueError, match="has no features for"):
        approx.certificate(X=X)


def test_an_approximation_without_its_rows_can_speak_of_others():
    X = market.cloud(300, np.random.default_rng(0))
    kept = fitted(X).without_data()
    assert kept.certificate(X=X).frobenius == pytest.approx(fitted(X).certificate().frobenius)
    with pytest.raises(RuntimeError, match="needs the 300 training rows"):
        kept.certificate()
