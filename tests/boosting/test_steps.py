"""What a run says of itself, and the parts of Algorithm 1 that a user puts in its place."""

import market
import numpy as np
import oracle
import pytest
from scipy import sparse

import nysboost as nb
from nysboost.boosting.rules import GRID, Combination

SIZES = {"n_learners": 5, "n_columns": 6, "n_fit": 5, "n_tune": 5, "random_state": 0}


def run(method="URB-mean", n=90, **settings):
    problem = market.problem("Gaussian", n=n)
    return problem, nb.approximate(problem.X, method, problem.kernel, **SIZES | settings)


@pytest.mark.parametrize("method", ["URB-mean", "RRB-SF", "EUB-med"])
def test_a_step_says_what_it_did(method):
    problem, approx = run(method)
    assert len(approx.steps) == 4
    used = set(approx.learners[0].landmarks.indices)
    for i, step in enumerate(approx.steps, start=1):
        assert step.number == i
        np.testing.assert_array_equal(step.columns, approx.learners[i].landmarks.indices)
        assert set(step.columns) <= set(step.V)
        assert not used & set(step.V)
        used |= set(step.columns)
        assert len(step.V) == min(60, 90 - 10 - 6 * i)
        assert set(step.seconds) == set("abcde")
        parts = [oracle.nystrom(problem.G, J.landmarks.indices, 6) for J in approx.learners[:i]]
        residual = problem.G - oracle.mix(step.weights, parts)
        assert step.residual_norm == pytest.approx(np.linalg.norm(residual[:, step.V]), rel=1e-8)
    parameters = {"U": {None}, "R": set(GRID), "E": {0.01}}[method[0]]
    assert {step.parameter for step in approx.steps} <= parameters


def test_on_a_sample_a_step_speaks_of_the_rows_of_the_data():
    _, approx = run(n=market.MANY, **market.SAMPLED)
    assert "fitted on 12 rows" in repr(approx)
    for step, learner in zip(approx.steps, approx.learners[1:], strict=True):
        np.testing.assert_array_equal(step.columns, learner.landmarks.indices)
        assert set(step.columns) <= set(step.V)


def test_a_callback_gets_each_step_when_it_is_done():
    seen = []
    _, approx = run(callback=seen.append)
    assert tuple(seen) == approx.steps


@pytest.mark.parametrize("method", ["URB-mean", "UUB-mean", "ensemble-ridge", "UJB-mean"])
def test_the_error_path_has_the_errors_of_all_prefixes(method):
    _, approx = run(method)
    expected = [approx.prefix(p).relative_error() for p in range(1, 6)]
    np.testing.assert_allclose(approx.error_path(), expected, rtol=1e-9)
    assert len(approx.prefix(3).error_path()) == (5 if "J" in method else 3)


def test_the_error_path_does_not_depend_on_the_size_of_a_block():
    _, approx = run(n=300)
    _, small = run(n=300, max_memory="1MB")
    np.testing.assert_allclose(small.error_path(), approx.error_path(), rtol=1e-9)


def test_boosting_stops_where_learners_gain_little():
    few, many = (run(n=300, n_learners="auto", min_gain=gain)[1] for gain in (0.3, 0.03))
    count = len(few.learners)
    assert 4 <= count < len(many.learners) <= (300 - 10) // 6
    _, same = run(n=300, n_learners=count)
    np.testing.assert_array_equal(few.landmarks.indices, same.landmarks.indices)
    np.testing.assert_allclose(few.weights, same.weights)


def newest(V1, V2, p):
    return np.eye(p)[-1]


def longest(residual, m, rng):
    return np.argsort(-np.linalg.norm(residual, axis=0))[:m]


def test_a_rule_and_a_selector_of_ones_own_take_the_place_of_the_names():
    problem, approx = run(rule=newest, selector=longest)
    np.testing.assert_array_equal(approx.weights, np.eye(5)[-1])
    for step, before in zip(approx.steps, approx.learners, strict=False):
        residual = problem.G - oracle.nystrom(problem.G, before.landmarks.indices, 6)
        lengths = np.linalg.norm(residual[:, step.V], axis=0)
        expected = step.V[np.argsort(-lengths)[:6]]
        assert set(step.columns) == set(expected)
    _, ensemble = run("ensemble-ridge", rule=newest)
    np.testing.assert_array_equal(ensemble.weights, np.eye(5)[-1])


def test_a_pair_of_rules_is_for_the_step_and_for_the_end():
    _, pair = run("EEB-mean", rule=("U", "R"))
    _, named = run("URB-mean")
    np.testing.assert_array_equal(pair.weights, named.weights)
    boosted = nb.BoostedNystroem(rule=("U", newest), n_learners=3, n_columns=6, random_state=0)
    np.testing.assert_array_equal(boosted.fit(market.points(90)).weights_, [0, 0, 1])


@pytest.fixture
def registered():
    nb.register_rule("Z", newest)
    nb.register_selector("longest", longest)


@pytest.mark.usefixtures("registered")
def test_registered_names_are_methods():
    _, named = run("UZB-longest")
    _, given = run("URB-mean", rule=("U", newest), selector=longest)
    np.testing.assert_array_equal(named.to_dense(), given.to_dense())
    boosted = nb.BoostedNystroem("UZB-longest", n_learners=3, n_columns=6, random_state=0)
    np.testing.assert_array_equal(boosted.fit(market.points(90)).weights_, [0, 0, 1])
    with pytest.raises(ValueError, match="choose another"):
        nb.register_rule("U", newest)
    with pytest.raises(ValueError, match="choose another"):
        nb.register_selector("mean", longest)


@pytest.mark.parametrize("sampling", ["uniform", "leverage", "kmeans", "rpcholesky"])
@pytest.mark.parametrize("case", ["Gaussian", "few distinct rows"])
def test_the_first_learner_stands_on_columns_that_a_sampling_draws(sampling, case):
    problem = market.problem(case, n=90)
    approx = nb.approximate(problem.X, "URB-mean", problem.kernel, sampling=sampling, **SIZES)
    used = np.concatenate([learner.landmarks.indices for learner in approx.learners])
    assert len(set(used)) == 30
    first = approx.learners[0].landmarks.indices
    same = {"uniform": "uniform", "leverage": "rls", "rpcholesky": "rpcholesky"}.get(sampling)
    if case == "Gaussian" and same is not None:
        method = nb.approximate(problem.X, same, problem.kernel, n_components=6, random_state=0)
        np.testing.assert_array_equal(first, method.landmarks.indices)


def test_a_sampling_of_ones_own_is_a_function():
    _, approx = run(sampling=lambda gram, m, rng: np.arange(m))
    np.testing.assert_array_equal(approx.learners[0].landmarks.indices, np.arange(6))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "X"}, "no rule 'X'"),
        ({"rule": 3}, "A rule is a nysboost.Rule"),
        ({"rule": ("U", "R", "E")}, "a pair, for X and Y"),
        ({"rule": ""}, "no rule ''"),
        ({"selector": ""}, "no selector ''"),
        ({"selector": "median"}, "no selector 'median'"),
        ({"sampling": "random"}, "no sampling 'random'"),
        ({"sampling": 3}, "sampling is a function"),
        ({"callback": 3}, "callback is a function"),
        ({"p": 3}, "the paper's p is 'n_learners' here"),
        ({"v1": 3}, "the paper's v1 is 'n_fit' here"),
    ],
)
def test_what_is_no_part_of_the_algorithm_is_named(wrong, words):
    with pytest.raises((ValueError, TypeError), match=words):
        run(**wrong)


@pytest.mark.parametrize("how", ["sparse", "memory map"])
def test_a_kernel_matrix_may_be_sparse_or_on_disk(how, tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 2))
    away = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    G = np.exp(-away) * (away < 4)  # compact support, and a diagonal that makes it definite
    G[np.diag_indices(120)] += 2.0
    if how == "sparse":
        given = sparse.csr_matrix(G)
    else:
        np.save(tmp_path / "G.npy", G)
        given = np.load(tmp_path / "G.npy", mmap_mode="r")
    found, expected = (
        nb.approximate(one, "URB-mean", "precomputed", **SIZES) for one in (given, G)
    )
    np.testing.assert_array_equal(found.landmarks.indices, expected.landmarks.indices)
    np.testing.assert_allclose(found.to_dense(), expected.to_dense(), atol=1e-12)
    assert found.relative_error() == pytest.approx(expected.relative_error(), rel=1e-10)
    np.testing.assert_allclose(found.error_path(), expected.error_path(), rtol=1e-9)


@pytest.mark.parametrize(("sigma", "dtype"), [(1.0, "float32"), (30.0, "float64")])
def test_a_part_of_the_rows_is_observed_in_float32_only_where_errors_are_clear_in_it(sigma, dtype):
    X = np.random.default_rng(0).normal(size=(600, 3))
    sizes = {"n_learners": 6, "n_columns": 12, "residual_rows": 200}
    kernel = nb.Gaussian(sigma=sigma)
    fast = nb.approximate(X, "URB-mean", kernel, **sizes, random_state=0)
    whole = nb.approximate(X, "URB-mean", kernel, **sizes | {"residual_rows": 600}, random_state=0)
    assert fast.trajectory.state.table.gram.dtype == dtype
    assert fast.features().dtype == "float64"
    assert fast.relative_error() < 1.3 * whole.relative_error()


NO_POSITIONS = {
    "none": lambda m: None,
    "a number": lambda m: 3,
    "one too few": lambda m: np.arange(m - 1),
    "one too many": lambda m: np.arange(m + 1),
    "equal ones": lambda m: np.zeros(m, int),
    "negative ones": lambda m: -1 - np.arange(m),
    "those of no row": lambda m: 1000 + np.arange(m),
    "huge ones": lambda m: [10**30 + i for i in range(m)],
    "floats": lambda m: np.arange(m) + 0.0,
    "nan": lambda m: np.full(m, np.nan),
    "a mask": lambda m: np.ones(m, bool),
    "words": lambda m: ["a"] * m,
    "a column": lambda m: np.arange(m)[:, None],
    "lists of unequal lengths": lambda m: [[0], [1, 2]],
    "a set": lambda m: set(range(m)),
    "an iterator": lambda m: iter(range(m)),
}


@pytest.mark.parametrize("what", NO_POSITIONS)
@pytest.mark.parametrize("role", ["selector", "sampling"])
def test_a_function_that_does_not_choose_m_columns_is_named(role, what):
    def wrong(_, m, rng):
        return NO_POSITIONS[what](m)

    sentence = f"A {role} returns m = 6 distinct whole numbers from 0 to .*, but wrong returned "
    with pytest.raises(ValueError, match=sentence):
        run(**{role: wrong})


def in_order(_, m, rng):
    return np.arange(m)


@pytest.mark.parametrize("kind", [list, tuple, np.uint8, np.int16])
def test_columns_are_chosen_as_whole_numbers_of_any_kind(kind):
    def first(_, m, rng):
        if isinstance(kind, type) and issubclass(kind, np.integer):
            return np.arange(m, dtype=kind)
        return kind(range(m))

    _, approx = run(selector=first, sampling=first)
    _, expected = run(
        selector=lambda _, m, __: np.arange(m), sampling=lambda _, m, __: np.arange(m)
    )
    np.testing.assert_array_equal(approx.landmarks.indices, expected.landmarks.indices)


def test_a_selector_may_write_into_the_residual_that_it_gets():
    def overwrite(residual, m, rng):
        chosen = longest(residual, m, rng)
        residual[:] = 7.0
        return chosen

    _, approx = run(selector=overwrite)
    _, expected = run(selector=longest)
    np.testing.assert_array_equal(approx.to_dense(), expected.to_dense())
    for step, same in zip(approx.steps, expected.steps, strict=True):
        assert step.residual_norm == same.residual_norm


NO_WEIGHTS = {
    "nan": lambda p: np.full(p, np.nan),
    "infinite": lambda p: np.full(p, np.inf),
    "complex": lambda p: np.ones(p) + 0j,
    "boolean": lambda p: np.ones(p, bool),
    "words": lambda p: ["1"] * p,
    "objects": lambda p: np.ones(p).astype(object),
    "dates": lambda p: np.zeros(p, "M8[s]"),
    "one too few": lambda p: np.ones(p - 1),
    "one too many": lambda p: np.ones(p + 1),
    "a column": lambda p: np.ones((p, 1)),
    "none": lambda p: None,
    "a number": lambda p: 1.0,
    "lists of unequal lengths": lambda p: [[1.0], [1.0, 2.0]],
}


class OwnRule(nb.Rule):
    def __init__(self, weights):
        self.weights = weights

    def mixture(self, state, p):
        return Combination(state.learners[:p], self.weights(p))

    def __repr__(self):
        return "wrong"


@pytest.mark.parametrize("what", NO_WEIGHTS)
def test_weights_of_a_rule_are_finite_real_numbers(what):
    def wrong(V1, V2, p):
        return NO_WEIGHTS[what](p)

    sentence = r"finite real numbers of shape \(1,\), but wrong returned "
    with pytest.raises(ValueError, match=sentence):
        run(rule=wrong)
    with pytest.raises(ValueError, match=sentence):
        run(rule=OwnRule(NO_WEIGHTS[what]))
    with pytest.raises(ValueError, match="but wrong returned"):
        run(rule=(None, wrong))


def test_weights_of_a_rule_are_in_range():
    with pytest.raises(ValueError, match="of wrong are out of range"):
        run(rule=OwnRule(lambda p: np.full(p, 1e300)))


def test_a_rule_is_an_object_and_no_class():
    with pytest.raises(TypeError, match="A rule is an object, but the class Rule was given"):
        run(rule=nb.Rule)


def test_a_rule_returns_a_combination():
    class Empty(nb.Rule):
        def mixture(self, state, p):
            return None

    with pytest.raises(TypeError, match="A rule returns a Combination of learners, but"):
        run(rule=Empty())


@pytest.mark.parametrize("weights", [lambda p: [1] * p, lambda p: np.ones(p, np.float32)])
def test_weights_of_a_rule_may_be_whole_numbers_or_in_float32(weights):
    _, approx = run(rule=OwnRule(weights))
    assert approx.weights.dtype == np.float64
    np.testing.assert_array_equal(approx.weights, np.ones(5))
