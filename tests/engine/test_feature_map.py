"""Feature maps: k(x, Z) N, however it is cut into blocks."""

from types import SimpleNamespace

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.data.rows import ArrayRows
from nysboost.engine import blocks, feature_map
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import make_gram
from nysboost.numerics.memory import Budget


def a_map(case="Gaussian", rotation=None, r=5):
    problem, rng = market.problem(case, n=40), np.random.default_rng(0)
    gram = problem.gram
    landmarks = gram.landmarks(np.arange(12))
    parts = tuple(rng.normal(size=shape) for shape in ((4, 3), (6, 2), (2, 2)))
    turn = None if rotation is None else rng.normal(size=(7, r))
    return problem, FeatureMap(gram, landmarks, parts, turn)


@pytest.mark.parametrize("rotation", [None, "some"])
@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum", "linear"])
def test_the_map_is_the_kernel_times_the_normalization(case, rotation):
    problem, transform = a_map(case, rotation)
    X = problem.X[15:30]
    C = problem.G[15:30, :12]
    np.testing.assert_allclose(transform(X), C @ transform.normalization, atol=1e-10)
    assert transform.n_features_out == transform.normalization.shape[1]
    assert transform(X).shape == (15, transform.n_features_out)


@pytest.mark.parametrize("shape", ["triangular", "beside it a number", "tall", "two of them"])
def test_a_triangular_projection_is_multiplied_without_its_zeros(shape, monkeypatch):
    monkeypatch.setattr(feature_map, "PANEL", 3)
    problem, _ = a_map()
    P = np.triu(np.random.default_rng(0).normal(size=(12, 12)))
    if shape == "beside it a number":
        P[11, 3] = 1.0
    parts = {"tall": (P[:, :7],), "two of them": (P[:8, :8], P[4:, 4:][:4, :4])}.get(shape, (P,))
    transform = FeatureMap(problem.gram, problem.gram.landmarks(np.arange(12)), parts)
    expected = problem.G[:, :12] @ transform.normalization
    np.testing.assert_allclose(transform(problem.X), expected, atol=1e-10)
    panels = feature_map._panels(parts[0])
    assert len(panels) == {"triangular": 4, "two of them": 3}.get(shape, 1)
    assert sum(panel.size for panel in panels) <= parts[0].size


@pytest.mark.parametrize("r", [1, 2, 5, 7])
def test_a_simplified_map_is_the_same_map(r):
    problem, transform = a_map(rotation="some", r=r)
    short = transform.simplified()
    np.testing.assert_allclose(short(problem.X), transform(problem.X), atol=1e-10)
    np.testing.assert_allclose(short.normalization, transform.normalization, atol=1e-12)


def test_float32_rows_have_float32_features():
    problem, transform = a_map()
    single = transform(problem.X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, transform(problem.X), atol=1e-4)


@pytest.mark.parametrize("rotation", [None, "some"])
@given(st.integers(1, 700), st.integers(1, 4), st.integers(8_000, 60_000))
def test_features_do_not_depend_on_threads_or_memory(rotation, n, threads, max_memory):
    _, transform = a_map(rotation=rotation)
    X = np.random.default_rng(n).normal(size=(n, transform.gram.rows.n_features))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nysboost.numerics.threads._threads_now", lambda: threads)
        patch.setattr(blocks, "SHARED_ROWS", 20)
        patch.setattr(blocks, "LEAST_ROWS", 5)
        found = transform.write(ArrayRows(X), budget=Budget(max_memory))
    dense = transform.gram.evaluate(X, transform.landmarks) @ transform.normalization
    np.testing.assert_allclose(found, dense, atol=1e-9)


@pytest.mark.parametrize(("r", "one_product"), [(1, True), (5, True), (6, False), (7, False)])
def test_a_map_is_simplified_where_one_product_costs_less_than_two(r, one_product):
    """28 + 7r operations for each row in two products, 12r in one."""
    _, transform = a_map(rotation="some", r=r)
    short = transform.simplified()
    assert (short is not transform) == (short.rotation is None) == one_product


def test_without_a_rotation_there_is_nothing_to_simplify():
    _, transform = a_map()
    assert transform.simplified() is transform


@pytest.mark.parametrize("rotation", [None, "some"])
def test_features_of_the_grams_own_rows_are_those_of_the_dense_matrix(rotation):
    problem, transform = a_map(rotation=rotation)
    dense = problem.G[:, :12] @ transform.normalization
    for rows in (np.array([7, 3, 3]), np.arange(1), slice(5, 20), np.arange(0)):
        np.testing.assert_allclose(transform.at(rows), dense[rows], atol=1e-10)
    nothing = transform(problem.X[:0].astype(np.float32))
    assert nothing.shape == (0, transform.n_features_out)
    assert nothing.dtype == np.float32


def test_features_are_written_where_they_are_wanted_but_not_over_the_rows():
    problem, transform = a_map()
    out = np.empty((40, 7))
    assert transform.write(ArrayRows(problem.X), out) is out
    np.testing.assert_allclose(out, problem.G[:, :12] @ transform.normalization, atol=1e-10)
    table = np.ones((40, transform.gram.rows.n_features + 7))
    with pytest.raises(ValueError, match="out lies in the memory of X"):
        transform.write(ArrayRows(table[:, :-7]), table[:, -7:])


class LazyRows:
    """Rows that others hold, as Dask's are: they keep what is asked of them."""

    lazy = True

    def __init__(self, X):
        self.form = X[:0]

    def map(self, function, shared, columns, *, task):
        return function, shared, columns, task


def test_lazy_rows_take_the_map_to_where_they_are_and_no_out():
    problem, transform = a_map()
    rows = LazyRows(problem.X)
    _, travelling, columns, task = transform.write(rows)
    assert (columns, task) == (7, "features")
    np.testing.assert_allclose(travelling(problem.X), transform(problem.X))
    with pytest.raises(ValueError, match="says itself where it goes"):
        transform.write(rows, np.empty((40, 7)))


def test_a_row_that_is_not_finite_is_named_by_its_number_among_all():
    _, transform = a_map()
    X = np.zeros((700, transform.gram.rows.n_features))
    X[650, 1] = np.nan
    with pytest.raises(ValueError, match="NaN, first at row 650, column 1"):
        transform.write(ArrayRows(X), budget=Budget(40_000))


def planned(transform, run):
    """Return what is asked of the planner while `run` runs."""
    asked = []

    def watched(n, **how):
        asked.append({"n": n, **how})
        return blocks.plan(n, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_map, "plan", watched)
        run(transform)
    return asked[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rotation", [None, "some"])
def test_what_is_held_is_counted_in_bytes(dtype, rotation, tmp_path):
    problem, transform = a_map(rotation=rotation)
    X = problem.X.astype(dtype)
    d, r, size = X.shape[1], transform.n_features_out, X.itemsize
    turn = transform.rotation
    wide, turned = (0, 0) if turn is None else (turn.shape[0], turn.size)
    # landmarks as given and prepared, with two norms beside them, then projections and rotation
    fixed = size * (2 * 12 * (d + 2) + 4 * 3 + 6 * 2 + 2 * 2 + turned)
    block_row = size * (2 * d + 8 + wide) + 12 * transform.gram.bytes_per_value(X)
    at_home = planned(transform, lambda f: f(X))
    to_a_file = planned(transform, lambda f: f.write(ArrayRows(X), tmp_path / "F.npy"))
    for found, piece_row in ((at_home, 0), (to_a_file, 8 * d + size * r)):
        figures = [found[name] for name in ("n", "fixed", "block_row", "piece_row", "parallel")]
        assert figures == [40, fixed, block_row, piece_row, True]


def test_values_that_are_taken_need_no_landmarks_in_memory():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    gram = make_gram(A @ A.T, "precomputed")
    transform = FeatureMap(gram, gram.landmarks(np.arange(5)), (rng.normal(size=(5, 3)),))
    found = planned(transform, lambda f: f.at(np.arange(30)))
    assert found["fixed"] == 8 * (2 * 5 * 2 + 15)
    assert found["block_row"] == 8 * 8 + 5 * gram.bytes_per_value(A)


def test_other_array_libraries_keep_their_threads_to_themselves():
    xp = pytest.importorskip("array_api_strict")
    problem, _ = a_map()
    gram = make_gram(xp.asarray(problem.X), problem.kernel)
    transform = FeatureMap(gram, gram.landmarks(np.arange(5)), (xp.ones((5, 3)),))
    assert planned(transform, lambda f: f(xp.asarray(problem.X)))["parallel"] is False


def test_a_stream_without_an_end_in_sight_is_planned_as_a_long_one():
    problem, transform = a_map()
    endless = SimpleNamespace(n=None, numbers_per_row=problem.X.shape[1])
    found = planned(transform, lambda f: f._plan(endless, problem.X, True, Budget()))
    assert found["n"] == feature_map.ENDLESS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_rows_have_no_features_of_any_number(dtype):
    gram = market.problem("Gaussian", n=40).gram
    alone = FeatureMap(gram, gram.landmarks(np.arange(4)), (np.ones((4, 3)),))
    for transform in (alone, a_map()[1], a_map(rotation="some")[1]):
        nothing = transform(np.empty((0, 3), dtype))
        assert nothing.shape == (0, transform.n_features_out)
        assert nothing.dtype == dtype
