"""Kernel ridge regression in leaves, against dense equations, and as learners use it."""

import pickle
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from containers import CountedChunks, hdf5, memory_map, zarr_array
from dask.callbacks import Callback
from hypothesis import given
from hypothesis import strategies as st
from peaks import peak_bytes

import nysboost as nb
from nysboost.learn.search.leaves import LeafTask, Leaves, nearest_variance
from nysboost.learn.search.regimes import MATERN32
from nysboost.learn.search.tuning import LEAF_WIDTH, NEAREST, ROWS_WITH_LEAVES
from nysboost.numerics.checks import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.recognise import make_rows

QUICK = {"kernel": "matern", "metric": "each", "scale": "standard", "random_state": 0}
KERNELS = [nb.Gaussian(gamma=0.5), nb.Matern(0.5, 1.0), nb.Matern(1.5, 1.0)]


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.05 * rng.normal(size=n)


def join(leaves, U, R, counts=None, max_memory=2**30):
    """Add rows that need no map to leaves, with targets whose mean is 0."""
    model = SimpleNamespace(evaluate=lambda *_: 0.0)
    rows = make_rows(U)
    grouping = LeafTask(leaves.kernel, model, leaves.tree, Budget(max_memory))
    return leaves.add_rows(rows, *grouping.over(rows, R, counts))


def test_leaves_without_rows_add_nothing():
    X, _ = table()
    leaves = Leaves.of(KERNELS[0], Tree.of(X, 200, len(X)), 0.1, X, 2)
    assert [leaves(X[:n]).tolist() for n in (0, 1)] == [[], [[0.0, 0.0]]]


def fit(kernel, tree, U, R, counts, rho, error=0.0):
    return join(Leaves.of(kernel, tree, rho, U, R.shape[1], error), U, R, counts)


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
    found = fit(kernel, tree, U, R, counts, 0.1)(fresh)
    for j in range(tree.n_leaves):
        inside, there = tree(U) == j, tree(fresh) == j
        ridge = 0.1 / (counts[inside] if weighed else np.ones(inside.sum()))
        w = np.linalg.solve(kernel(U[inside], U[inside]) + np.diag(ridge), R[inside])
        np.testing.assert_allclose(found[there], kernel(fresh[there], U[inside]) @ w, atol=1e-8)


def test_a_weight_of_two_is_a_row_twice_and_rows_that_come_later_might_have_been_there():
    U, R, fresh, rng = mapped(90)
    counts, tree = rng.integers(1, 4, 90), Tree.of(U, 30)
    weighed = fit(KERNELS[2], tree, U, R, counts.astype(float), 0.1)
    copies = (np.repeat(part, counts, axis=0) for part in (U, R))
    repeated = fit(KERNELS[2], tree, *copies, None, 0.1)
    np.testing.assert_allclose(weighed(fresh), repeated(fresh), atol=1e-8)
    later = join(fit(KERNELS[2], tree, U[:50], R[:50], None, 0.1), U[50:], R[50:])
    whole = fit(KERNELS[2], tree, U, R, None, 0.1)
    np.testing.assert_allclose(later(fresh), whole(fresh), atol=1e-8)


def test_a_leaf_without_rows_adds_nothing():
    U, R, fresh, _ = mapped(90)
    tree = Tree.of(U, 30)
    some = tree(U) > 0
    found = fit(KERNELS[2], tree, U[some], R[some], None, 0.1)(fresh)
    assert (found == 0).all(axis=1).tolist() == (tree(fresh) == 0).tolist()


def test_leaves_of_other_arrays_are_the_same():
    torch = pytest.importorskip("torch")
    expected, found = (
        fit(KERNELS[2], Tree.of(U, 30), U, mapped(90)[1], None, 0.1)(fresh)
        for U, _, fresh in (mapped(90)[:3], map(torch.asarray, mapped(90)[:3]))
    )
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-8)


@pytest.mark.parametrize("n", [600, 6000])
def test_where_y_varies_quickly_all_rows_predict_better_than_few_landmarks(n):
    (X, y), (fresh, truth) = table(n), table(1000, seed=1)
    both, compact = (nb.NystroemRegressor(16, local=how, **QUICK) for how in ("auto", False))
    assert both.fit(X, y).score(fresh, truth) > compact.fit(X, y).score(fresh, truth)
    assert any(member.leaves is not None for member in both._members)
    assert all(member.leaves is None for member in compact._members)


@pytest.mark.parametrize("how", [{"local": 100}, {"local": True, "max_memory": 16 * 100**2}])
def test_a_number_bounds_the_rows_of_a_leaf_and_so_does_memory_for_two_matrices(how):
    X, y = table()
    model = nb.NystroemRegressor(16, **how, **QUICK).fit(X, y)
    sizes = [np.diff(m.leaves.starts) for m in model._members if m.leaves is not None]
    assert sizes
    assert all(size.max() <= 100 for size in sizes)
    fresh, truth = table(500, seed=1)
    assert model.score(fresh, truth) > 0.9


def test_where_leaves_predict_a_landmark_has_many_rows():
    X, y = table(5200)
    model = nb.NystroemRegressor(150, local=True, **QUICK).fit(X, y)
    assert len(model.components_) == 5200 // ROWS_WITH_LEAVES < 150


def places(X, folder):
    """The same rows on disk, and on workers: chunks of different sizes, one of them empty."""
    chunks = (2000, 0, len(X) - 2000), X.shape[1]
    lazy = da.from_array(X, chunks if len(X) > 2000 else 400)
    return [memory_map(X, folder), hdf5(X, folder, chunks=(100, 2)), zarr_array(X, folder), lazy]


@pytest.mark.parametrize("n", [600, 5200])
def test_rows_from_anywhere_have_the_same_leaves(n, tmp_path):
    X, y = table(n)
    expected = nb.NystroemRegressor(12, local=300, **QUICK).fit(X, y).predict(X[:50])
    for rows in places(X, tmp_path):
        model = nb.NystroemRegressor(12, local=300, **QUICK).fit(rows, y)
        np.testing.assert_allclose(model.predict(X[:50]), expected, atol=1e-6)


@pytest.mark.usefixtures("_in_this_thread")
def test_so_have_weighted_rows_with_several_outputs_and_rows_that_come_later(tmp_path):
    X, y = table(6000)
    Y, weights = np.stack([y, X[:, 0] ** 2], axis=1), np.tile([1.0, 0.3, 2.5], 2000)
    first, later = places(X[:5200], tmp_path)[::3], da.from_array(X[5200:], (300, 2))
    answers = []
    for rows, more in [(X[:5200], X[5200:]), *((rows, later) for rows in first)]:
        model = nb.NystroemRegressor(12, local=300, **QUICK).fit(rows, Y[:5200], weights[:5200])
        answers.append(model.predict(X[:50]))
        answers.append(model.partial_fit(more, Y[5200:], weights[5200:]).predict(X[:50]))
        assert model.n_local_rows_ == 5200
    assert (answers[0] != answers[1]).any()
    for i, found in enumerate(answers):
        np.testing.assert_allclose(found, answers[i % 2], atol=1e-6)


@pytest.mark.usefixtures("_in_this_thread", "chunks_are_read")
def test_rows_of_dask_meet_on_workers_and_no_more_than_a_sample_and_the_model_come_here(
    monkeypatch,
):
    monkeypatch.setattr("nysboost.rows.dask_rows.DaskRows.pieces", None)  # none comes by the chunk
    X, y = table(6000)
    X = np.tile(X, 4)  # 8 columns, of which a quarter of max_memory holds 3,750 rows
    labels, counts = np.where(y > 0.2, "high", "low"), []

    def rows_in(result):
        if isinstance(result, list | tuple):
            return sum(map(rows_in, result))
        return len(result) if np.ndim(result) == 2 and result.shape[1] > 1 else 0

    def count(key, result, *_):
        counts.append((rows_in(result), str(key)))

    options = {"n_components": 12, "local": 200, "max_memory": 16 * 6000 * 10, **QUICK}
    here = nb.NystroemClassifier(**options).fit(X, labels)
    rows = CountedChunks(X, 500).array
    with Callback(posttask=count):
        there = nb.NystroemClassifier(**options).fit(rows, labels)
    assert there.n_local_rows_ == 6000
    assert max(np.diff(m.leaves.starts).max() for m in there._members if m.leaves) <= 200
    assert max(counts)[0] <= 4750, max(counts)  # the sample, 1,000 more held out
    np.testing.assert_allclose(there.predict_proba(X[:50]), here.predict_proba(X[:50]), atol=1e-6)


def test_a_file_keeps_the_leaves_and_new_rows_join_them(tmp_path):
    X, y = table()
    model = nb.NystroemRegressor(16, local=True, **QUICK).fit(X[:400], y[:400])
    nb.save(model, tmp_path / "model")
    kept = nb.load(tmp_path / "model")
    for again in (kept, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    before = kept.score(X[400:], y[400:])
    assert kept.partial_fit(X[400:], y[400:]).score(X[400:], y[400:]) > before


@pytest.fixture(scope="module")
def of_codes():
    """A model whose leaves have few coordinates of codes: y is a chessboard."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5600, 6))
    odd = np.floor(6 * X[:, :2]) % 2 == 1
    y = (odd[:, 0] != odd[:, 1]) + 0.1 * rng.normal(size=5600)
    model = nb.NystroemRegressor(12, kernel="matern", local=400, random_state=0)
    return model.fit(X[:5200], y[:5200]), X[5200:], y[5200:]


def test_rows_with_many_codes_are_in_leaves_by_few_coordinates_of_the_metric(of_codes):
    model, fresh, truth = of_codes
    widths = {m.leaves.V.shape[1] for m in model._members if m.codes is not None}
    assert widths == {LEAF_WIDTH}
    for member in model._members:
        if member.codes is not None:
            coded = member.codes(fresh)
            exact = member.model.kernel(coded, coded)
            np.testing.assert_allclose(member.leaf_kernel(coded, coded), exact, atol=0.02)
    assert model.score(fresh, truth) > 0.5


def test_such_leaves_are_kept_in_a_file_take_new_rows_and_have_variances(of_codes, tmp_path):
    model, fresh, truth = of_codes
    nb.save(model, tmp_path / "model")
    kept = nb.load(tmp_path / "model")
    np.testing.assert_array_equal(kept.predict(fresh), model.predict(fresh))
    _, std = model.predict(fresh, return_std=True)
    assert (std > 0.05).all()
    before = kept.score(fresh, truth)
    assert kept.partial_fit(fresh, truth).score(fresh, truth) > before


def test_such_leaves_are_exported(of_codes, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, fresh, _ = of_codes
    nb.to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    name = session.get_inputs()[0].name
    found = session.run(None, {name: fresh})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(fresh), atol=1e-6)


def test_leaves_that_memory_cannot_hold_are_left_out_or_refused():
    X, y = table(6000)
    model = nb.NystroemRegressor(8, max_memory="250kB", **QUICK).fit(X, y)
    assert all(member.leaves is None for member in model._members)
    with pytest.raises(ValueError, match="Leaves hold all 6000 rows"):
        nb.NystroemRegressor(8, local=True, max_memory="250kB", **QUICK).fit(X, y)


def test_rows_of_a_store_are_grouped_in_the_memory_that_holds_them(tmp_path):
    n, d = 100_000, 8
    U = np.random.default_rng(0).normal(size=(n, d))
    leaves = Leaves.of(KERNELS[0], Tree.of(U[:20_000], 400, n), 0.1, U[:20_000], 1, error=0.01)
    rows, R, needed = memory_map(U, tmp_path), U[:, :1] ** 2, 16 * n * (d + 1)
    matrices = 5 * 8 * 400**2
    peak = peak_bytes(lambda: join(leaves, rows, R, max_memory=needed))
    assert peak < needed + matrices


@pytest.mark.parametrize("rho", [1e-6, 1e-2])
def test_mapped_rows_in_single_precision_predict_alike_and_far_ones_stay_in_double(rho):
    U, _, new, _ = mapped(300)
    y = np.sin(3 * U[:, :1])
    tree = Tree.of(U, 100)
    single, double = (fit(KERNELS[1], tree, U, y, None, rho, error) for error in (0.01, 0.0))
    assert (single.V.dtype, double.V.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single(new), double(new), rtol=0, atol=1e-4)
    assert fit(KERNELS[1], tree, U + 1e6, y, None, rho, 0.01).V.dtype == np.float64


@given(st.integers(1, 40), st.integers(0, 50))
def test_the_variance_of_a_leaf_is_that_of_a_gaussian_process_or_more(n, seed):
    """Nearest rows alone know less than all of them, and few rows are all nearest."""
    rng = np.random.default_rng(seed)
    V, H, counts = rng.normal(size=(n, 3)), rng.normal(size=(5, 3)), rng.uniform(0.5, 2, size=n)

    def exact(H, V, counts):
        K, C = MATERN32(V, V) + 0.1 * np.diag(1 / counts), MATERN32(H, V)
        return 1.1 - np.sum(C * np.linalg.solve(K, C.T).T, axis=1)

    found = nearest_variance(MATERN32, 0.1, H, V, counts)
    assert (found >= exact(H, V, counts) - 1e-9).all()
    if n <= NEAREST:
        np.testing.assert_allclose(found, exact(H, V, counts), rtol=1e-9)
    if 1 < n <= NEAREST:
        others = [np.arange(n) != i for i in range(n)]
        without = [exact(V[i : i + 1], V[at], counts[at])[0] for i, at in enumerate(others)]
        found = nearest_variance(MATERN32, 0.1, V, V, counts, seen=True)
        np.testing.assert_allclose(found, without, rtol=1e-9)


def test_held_out_rows_are_predicted_as_new_rows_are():
    """With another ridge for held-out rows the error was five times that of new rows."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(700, 2))
    y = np.sin(5 * X[:, 0]) * np.cos(5 * X[:, 1])
    model = nb.NystroemRegressor(10, **QUICK).fit(X[:300], y[:300])
    missed = np.std(model.predict(X[300:]) - y[300:]) / np.std(y)
    assert 0.6 * missed < model.validation_error_ < 1.6 * missed
