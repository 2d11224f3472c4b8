"""Block-Nyström against the mean of dense Nyström approximations."""

import market
import numpy as np
import oracle
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.block_nystrom import block_nystrom

HOW = {"n_learners": 4, "n_columns": 10, "random_state": 3}


@pytest.mark.parametrize("case", market.FLOAT64)
def test_it_is_the_mean_of_the_nystrom_approximations_of_its_blocks(case):
    problem = market.problem(case, n=120)
    approx = nb.approximate(problem.X, "block-nystrom", problem.kernel, **HOW)
    blocks = [learner.landmarks.indices for learner in approx.learners]
    assert [len(set(block)) for block in blocks] == [10] * 4
    expected = np.mean([oracle.nystrom(problem.G, block, 10) for block in blocks], axis=0)
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=problem.tolerance)
    assert approx.is_psd


def test_blocks_are_drawn_apart_by_leverage_scores():
    """Ten rows far from 190 others have most of the scores, and come in nearly every block."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.05 * rng.normal(size=(190, 2)), 3 + rng.normal(size=(10, 2))])
    gram = make_gram(X, nb.Gaussian(sigma=0.5))
    mixture = block_nystrom(gram, 20, 12, np.random.default_rng(0))
    rare = [np.sum(learner.landmarks.indices >= 190) for learner in mixture.learners]
    assert np.mean(rare) > 3  # uniformly .6
    assert len({tuple(sorted(learner.landmarks.indices)) for learner in mixture.learners}) > 15


def test_several_blocks_estimate_the_tail_of_a_flat_spectrum_better_than_one_large_one():
    """The effective dimension, Σ λ/(λ + α), of a kernel with slow decay; the same work, q m³."""
    X = np.random.default_rng(0).normal(size=(1500, 6))
    kernel = nb.Laplacian(sigma=2.0)
    G = kernel(X, X)
    alpha = 1e-4 * np.trace(G)

    def dimension(values):
        return np.sum(values / (values + alpha))

    truth = dimension(np.linalg.eigvalsh(G))
    gaps = {}
    for q, m in ((8, 40), (1, 80)):
        found = [
            nb.approximate(X, "block-nystrom", kernel, n_learners=q, n_columns=m, random_state=s)
            for s in range(2)
        ]
        gaps[q] = np.mean([abs(dimension(a.eigh()[0]) - truth) for a in found])
    assert gaps[8] < gaps[1]


def test_it_does_not_look_at_the_whole_matrix():
    gram = make_gram(np.random.default_rng(0).normal(size=(20_000, 3)), nb.Gaussian(sigma=2.0))
    block_nystrom(gram, 4, 20, np.random.default_rng(0))
    assert gram.entries_evaluated < 20_000 * 100
