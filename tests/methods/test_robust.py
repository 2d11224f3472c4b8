"""A low-rank kernel matrix recovered from a copy with wrong entries."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.cur import robust_cur


def corrupted(n, rank, share, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    G = A @ A.T
    wrong = np.triu(rng.uniform(size=(n, n)) < share, 1)
    noise = np.where(wrong, rng.uniform(-5, 5, size=(n, n)) * np.abs(G).mean(), 0)
    return G, G + noise + noise.T, wrong | wrong.T


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_corrupted_low_rank_matrix_is_recovered_and_the_corruption_found(rank, share):
    G, given, wrong = corrupted(400, rank, share, seed=rank)
    found = nb.approximate(given, "robust-cur", "precomputed", n_components=120, random_state=0)
    error = np.linalg.norm(found.to_dense() - G) / np.linalg.norm(G)
    assert error < 1e-3
    called = np.zeros((400, 400), dtype=bool)
    called[found.corrupted.row, found.corrupted.col] = True
    assert not (called & ~wrong).any()
    assert (wrong & ~called).sum() <= 0.01 * wrong.sum()
    large = np.abs(given - G) > 0.01 * np.abs(G).max()
    assert not (large & ~called).any()
    repaired = given.copy()
    repaired[found.corrupted.row, found.corrupted.col] -= found.corrupted.data
    assert np.linalg.norm(repaired - G) / np.linalg.norm(G) < 1e-3


def test_plain_methods_are_far_off_on_the_same_matrix():
    G, given, _ = corrupted(300, 3, 0.1, seed=0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        nb.approximate(given, "uniform", "precomputed", n_components=60)
    found = nb.approximate(given, "robust-cur", "precomputed", n_components=60, random_state=0)
    assert np.linalg.norm(found.to_dense() - G) / np.linalg.norm(G) < 1e-3


def test_too_many_rows_get_a_sentence():
    gram = make_gram(np.arange(10_001.0)[:, None])
    with pytest.raises(ValueError, match=r"lists the corrupted entries.*n_samples = 10001"):
        robust_cur(gram, 5, np.random.default_rng(0))
