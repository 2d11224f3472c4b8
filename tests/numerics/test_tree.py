"""Trees of rows, cut along principal directions."""

import numpy as np
import pytest

from nysboost.numerics.tree import Tree


@pytest.mark.parametrize("most", [2, 7, 64, 1000])
def test_a_tree_cuts_rows_into_leaves_that_are_no_larger_than_asked(most):
    U = np.random.default_rng(0).normal(size=(300, 3))
    tree = Tree.of(U, most)
    sizes = np.bincount(tree(U), minlength=tree.n_leaves)
    assert sizes.sum() == 300
    assert 1 <= sizes.min() <= sizes.max() <= most
    assert tree(U[:0]).shape == (0,)


@pytest.mark.parametrize("seed", range(2))
def test_leaves_of_a_sample_are_small_enough_for_all_rows(seed):
    U = np.random.default_rng(seed).normal(size=(20_000, 3))
    for most in (100, 400, 2000):
        tree = Tree.of(U[:4000], most, len(U))
        sizes = np.bincount(tree(U), minlength=tree.n_leaves)
        assert most / 20 < np.mean(sizes)
        assert max(sizes) <= most


def test_cuts_are_along_the_widest_direction_rows_that_are_alike_stay_together_and_ties_end_none():
    U = np.random.default_rng(0).normal(size=(400, 3)) * [1.0, 9.0, 1.0]
    tree = Tree.of(U, 200)
    assert tree.n_leaves == 2
    assert abs(tree.directions[0, 1]) > 0.99
    assert Tree.of(np.ones((50, 2)), 10).n_leaves == 1
    U = np.repeat(np.array([[0.0], [1.0], [2.0]]), [80, 5, 5], axis=0)
    tree = Tree.of(U, 20)
    leaf = tree(U)
    assert len({(u, where) for u, where in zip(U[:, 0], leaf, strict=True)}) == 3
    assert leaf[0] not in leaf[80:]
