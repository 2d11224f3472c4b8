"""Estimates against what is known: coverage over many draws, and values that were not drawn."""

import numpy as np
import pytest

from nysboost.certificates.estimates import Estimate, deviations, mean_of_pairs, mean_of_rows

DELTA = 0.025


def covered(estimate, truth, size):
    low, high = estimate.interval(deviations(DELTA, size))
    return low <= truth <= high


@pytest.mark.parametrize("probability", [0.5, 0.02, 0.002, 0.0002])
def test_a_mean_of_rare_ones_is_covered_also_where_none_is_drawn(probability):
    rng = np.random.default_rng(0)
    draws = (rng.random((400, 500)) < probability).astype(np.float64)
    found = [covered(mean_of_rows(values, 1.0, DELTA), probability, 500) for values in draws]
    assert np.mean(found) >= 0.93


def blocks_of(matrix, rng, size=8, groups=20):
    n = len(matrix)
    drawn = [(rng.integers(n, size=size), rng.integers(n, size=size)) for _ in range(groups)]
    return [np.where(i[:, None] == j, 0.0, matrix[np.ix_(i, j)]) for i, j in drawn]


def correlations(rng, n=200, rank=5):
    F = rng.normal(size=(n, rank))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    return F @ F.T


def test_the_mean_over_pairs_has_the_error_that_it_says():
    """Against the spread over many independent samples."""
    rng = np.random.default_rng(0)
    matrix = correlations(rng)
    estimates = [mean_of_pairs(blocks_of(matrix, rng), np.ones(1), 1.0, DELTA) for _ in range(300)]
    values = np.array([estimate.value for estimate in estimates])
    errors = np.array([estimate.error for estimate in estimates])
    truth = ((matrix**2).sum() - len(matrix)) / matrix.size
    assert values.mean() == pytest.approx(truth, abs=4 * values.std() / np.sqrt(300))
    assert np.sqrt((errors**2).mean()) == pytest.approx(values.std(), rel=0.25)


@pytest.mark.parametrize("pairs", [0, 2, 20, 200])
def test_rare_pairs_of_equal_rows_are_covered(pairs):
    """The first so many rows are there twice, and everything else is independent."""
    rng = np.random.default_rng(0)
    n = 2000
    matrix = np.eye(n)
    one, other = np.arange(pairs), n - 1 - np.arange(pairs)
    matrix[one, other] = matrix[other, one] = 1.0
    truth = 2 * pairs / n**2
    found = [
        covered(mean_of_pairs(blocks_of(matrix, rng), np.ones(1), 1.0, DELTA), truth, 160)
        for _ in range(200)
    ]
    assert np.mean(found) >= 0.93


@pytest.mark.parametrize("usual", [1.0, 0.01])
@pytest.mark.parametrize("share", [0.001, 0.005, 0.03])
def test_a_small_group_of_equal_rows_is_covered(share, usual):
    """Also where all other rows have next to nothing, and few blocks are drawn."""
    rng = np.random.default_rng(0)
    n = 2000
    matrix, group = usual * np.eye(n), int(share * n)
    matrix[:group, :group] = 1.0
    truth = (group**2 - group) / n**2
    found = []
    for _ in range(200):
        blocks, drawn = blocks_of(matrix, rng, size=40, groups=4), rng.integers(n, size=320)
        estimate = mean_of_pairs(blocks, np.diagonal(matrix)[drawn], 1.0, DELTA)
        found.append(covered(estimate, truth, 160))
    assert np.mean(found) >= 0.93


def test_rows_and_columns_of_the_blocks_count_alike():
    blocks = list(np.random.default_rng(0).normal(size=(20, 8, 8)) * np.arange(8))
    one, other = (
        mean_of_pairs(drawn, np.zeros(1), 1.0, DELTA) for drawn in (blocks, [B.T for B in blocks])
    )
    assert one.unseen == pytest.approx(other.unseen)
    assert (one.value, one.error) == pytest.approx((other.value, other.error))


def test_estimates_add_and_scale_and_rows_not_drawn_add_what_they_have_at_most():
    one, other = Estimate(3.0, 0.5, 0.25), Estimate(1.0, 0.125, 2.0)
    assert (one + other) * 2 == Estimate(8.0, 1.25, 4.5)
    assert one.interval(2.0) == (2.0, 4.25)
    values = np.array([0.1, 0.3, 0.2, 0.4] * 50)
    estimate, share = mean_of_rows(values, 2.0, DELTA), np.log(1 / DELTA) / 200
    with_them = (1 - share) * values.mean() + share * 2.0
    assert estimate.value + estimate.unseen == pytest.approx(with_them)
