"""Kernel ridge regression in leaves, against dense equations, and as learners use it."""

import pickle

import dask.array as da
import numpy as np
import pytest
from containers import hdf5, memory_map

import nysboost as nb
from nysboost.search.leaves import Leaves, Tree, round_to_float32

QUICK = {"kernel": "matern", "metric": "each", "scale": "standard", "random_state": 0}
KERNELS = [nb.Gaussian(gamma=0.5), nb.Matern(0.5, 1.0), nb.Matern(1.5, 1.0)]


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("most", [2, 7, 64, 1000])
def test_a_tree_cuts_rows_into_leaves_that_are_no_larger_than_asked(most):
    U = np.random.default_rng(0).normal(size=(300, 3))
    tree = Tree.of(U, most)
    sizes = np.bincount(tree(U), minlength=tree.n_leaves)
    assert sizes.sum() == 300
    assert 1 <= sizes.min() <= sizes.max() <= most
    assert tree(U[:0]).shape == (0,)


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


def mapped(n, outputs=1):
    """Mapped rows, residuals and rows to predict."""
    rng = np.random.default_rng(0)
    return *(rng.normal(size=shape) for shape in ((n, 2), (n, outputs), (40, 2))), rng


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("weighed", [False, True])
def test_each_leaf_is_the_ridge_regression_of_its_rows(kernel, weighed):
    U, R, fresh, rng = mapped(120, 3)
    counts = rng.uniform(0.5, 2.0, 120) if weighed else None
    tree = Tree.of(U, 40)
    found = Leaves.fit(kernel, tree, U, R, counts, 0.1)(fresh)
    for j in range(tree.n_leaves):
        inside, there = tree(U) == j, tree(fresh) == j
        ridge = 0.1 / (counts[inside] if weighed else np.ones(inside.sum()))
        w = np.linalg.solve(kernel(U[inside], U[inside]) + np.diag(ridge), R[inside])
        np.testing.assert_allclose(found[there], kernel(fresh[there], U[inside]) @ w, atol=1e-8)


def test_a_weight_of_two_is_a_row_twice_and_rows_that_come_later_might_have_been_there():
    U, R, fresh, rng = mapped(90)
    counts, tree = rng.integers(1, 4, 90), Tree.of(U, 30)
    weighed = Leaves.fit(KERNELS[2], tree, U, R, counts.astype(float), 0.1)
    copies = (np.repeat(part, counts, axis=0) for part in (U, R))
    repeated = Leaves.fit(KERNELS[2], tree, *copies, None, 0.1)
    np.testing.assert_allclose(weighed(fresh), repeated(fresh), atol=1e-8)
    later = Leaves.fit(KERNELS[2], tree, U[:50], R[:50], None, 0.1).add_rows(U[50:], R[50:], None)
    whole = Leaves.fit(KERNELS[2], tree, U, R, None, 0.1)
    np.testing.assert_allclose(later(fresh), whole(fresh), atol=1e-8)


def test_leaves_of_other_arrays_are_the_same():
    torch = pytest.importorskip("torch")
    expected, found = (
        Leaves.fit(KERNELS[2], Tree.of(U, 30), U, R, None, 0.1)(fresh)
        for U, R, fresh in (mapped(90)[:3], map(torch.asarray, mapped(90)[:3]))
    )
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-8)


@pytest.mark.parametrize("n", [600, 6000])
def test_where_y_varies_quickly_all_rows_predict_better_than_few_landmarks(n):
    (X, y), (fresh, truth) = table(n), table(1000, seed=1)
    both, compact = (nb.NystroemRegressor(16, local=how, **QUICK) for how in ("auto", False))
    assert both.fit(X, y).score(fresh, truth) > compact.fit(X, y).score(fresh, truth)
    assert any(member.leaves is not None for member in both._members)
    assert all(member.leaves is None for member in compact._members)


def test_a_number_bounds_the_rows_of_a_leaf():
    X, y = table()
    model = nb.NystroemRegressor(16, local=100, **QUICK).fit(X, y)
    sizes = [np.diff(m.leaves.starts) for m in model._members if m.leaves is not None]
    assert sizes
    assert all(size.max() <= 100 for size in sizes)
    fresh, truth = table(500, seed=1)
    assert model.score(fresh, truth) > 0.9


@pytest.mark.parametrize("n", [600, 5200])
def test_rows_from_anywhere_have_the_same_leaves(n, tmp_path):
    X, y = table(n)
    expected = nb.NystroemRegressor(12, local=300, **QUICK).fit(X, y).predict(X[:50])
    stored = hdf5(X, tmp_path, chunks=(100, 2))
    for rows in (memory_map(X, tmp_path), stored, da.from_array(X, (400, 2))):
        model = nb.NystroemRegressor(12, local=300, **QUICK).fit(rows, y)
        np.testing.assert_allclose(model.predict(X[:50]), expected, atol=1e-6)


def test_a_file_keeps_the_leaves_and_new_rows_join_them(tmp_path):
    X, y = table()
    model = nb.NystroemRegressor(16, local=True, **QUICK).fit(X[:400], y[:400])
    nb.save(model, tmp_path / "model")
    kept = nb.load(tmp_path / "model")
    for again in (kept, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    before = kept.score(X[400:], y[400:])
    assert kept.partial_fit(X[400:], y[400:]).score(X[400:], y[400:]) > before


def test_classes_and_several_outputs_have_leaves_too():
    X, y = table()
    labels = np.where(y > 0.2, "high", "low")
    model = nb.NystroemClassifier(64, **QUICK).fit(X[:500], labels[:500])
    assert model.score(X[500:], labels[500:]) > 0.85
    both = np.stack([y, X[:, 0] ** 2], axis=1)
    regressor = nb.NystroemRegressor(16, **QUICK).fit(X[:500], both[:500])
    assert regressor.score(X[500:], both[500:]) > 0.9


def test_leaves_that_memory_cannot_hold_are_left_out_or_refused():
    X, y = table(6000)
    model = nb.NystroemRegressor(8, max_memory="250kB", **QUICK).fit(X, y)
    assert all(member.leaves is None for member in model._members)
    with pytest.raises(ValueError, match="Leaves hold all 6000 rows"):
        nb.NystroemRegressor(8, local=True, max_memory="250kB", **QUICK).fit(X, y)


@pytest.mark.parametrize("rho", [1e-6, 1e-2])
def test_mapped_rows_in_single_precision_predict_alike_and_far_ones_stay_in_double(rho):
    U, _, new, _ = mapped(300)
    y = np.sin(3 * U[:, :1])
    kept = round_to_float32(U, error=0.01)
    assert (kept.dtype, round_to_float32(U + 1e6, error=0.01).dtype) == (np.float32, np.float64)
    tree = Tree.of(U, 100)
    found = [Leaves.fit(KERNELS[1], tree, V, y, None, rho)(new) for V in (U, kept)]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-4)
