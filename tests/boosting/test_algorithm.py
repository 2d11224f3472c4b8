"""Algorithm 1, the ensemble, names of variants, and what a run keeps."""

import market
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learners import Recorder

import nysboost as nb
from nysboost.boosting.algorithm import boost, ensemble
from nysboost.boosting.rules import ExponentialWeights, RidgeWeights, UniformWeights
from nysboost.boosting.variants import RULES, SELECTORS, parse_method
from nysboost.joint.rule import JointCore
from nysboost.settings import Settings

selectors = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
SIZES = {"n_learners": 4, "n_columns": 6, "n_fit": 4, "n_tune": 3, "n_candidates": 20}


def run(selector, *, n=80, seed=0, rule=None, case="Gaussian", problem=None, **settings):
    gram = (problem or market.problem(case, n=n)).gram
    sizes, rng = Settings(**SIZES | settings), np.random.default_rng(seed)
    if selector is None:
        return ensemble(gram, sizes, rng)
    rule = rule or UniformWeights()
    return boost(gram, sizes, rule, selector, rule, rng)


def columns(trajectory):
    return [learner.landmarks.indices for learner in trajectory.learners]


@pytest.mark.parametrize(
    "selector", [*SELECTORS.values(), None], ids=[*SELECTORS, "ensemble of uniform columns"]
)
@given(st.integers(0, 100), st.integers(1, 6), st.integers(1, 8), st.integers(0, 40))
def test_no_column_is_used_twice_nor_as_validation(selector, seed, p, m, spare):
    trajectory = run(selector, n=p * m + 7 + spare, seed=seed, n_learners=p, n_columns=m)
    used = np.concatenate(
        [*columns(trajectory), trajectory.state.V1.cols, trajectory.state.V2.cols]
    )
    assert len(used) == len(set(used)) == p * m + 7


@pytest.mark.parametrize("clustering", SELECTORS)
@pytest.mark.parametrize("x", "UER")
def test_the_final_rule_never_changes_the_landmarks(x, clustering):
    problem, how = market.problem("Gaussian", n=80), {**SIZES, "random_state": 5}
    first, *others = (
        columns(nb.approximate(problem.X, f"{x}{y}B-{clustering}", problem.kernel, **how))
        for y in "UER"
    )
    for other in others:
        np.testing.assert_array_equal(first, other)


@selectors
def test_v_shrinks_when_the_pool_runs_out_and_the_run_records_it(selector):
    trajectory = run(selector, n=4 * 6 + 7 + 2)
    assert [len(step.V) for step in trajectory.steps] == [20, 14, 8]


@selectors
@pytest.mark.parametrize(
    "less", [{"residual_shape": "square", "validation_shape": "square"}, {"residual_rows": 30}]
)
def test_a_residual_that_is_square_or_on_few_rows_reads_fewer_entries(selector, less):
    few, whole = (run(selector, n=300, **settings) for settings in (less, {"residual_rows": 300}))
    entries = [one.state.table.gram.entries_evaluated for one in (few, whole)]
    assert entries[0] < entries[1] / 2
    assert len(np.unique(np.concatenate(columns(few)))) == 24


@selectors
def test_a_joint_core_is_boosted_on_all_rows(selector):
    np.testing.assert_array_equal(
        *(columns(run(selector, rule=JointCore(), residual_rows=r)) for r in (10, 1000))
    )


def each_residual(test):
    """Every rule x on all matrices, with each selector on a third of them."""
    each = market.in_turn(SELECTORS.values(), market.WITHOUT_TIES)
    return pytest.mark.parametrize("x", "UER")(
        pytest.mark.parametrize(("selector", "case"), each)(test)
    )


@each_residual
def test_what_is_clustered_is_the_papers_residual_on_free_columns(case, x, selector):
    """Steps (a) to (c): each column that the selector sees is one of G less the mixture."""
    problem, recorder = market.problem(case, n=60), Recorder(selector)
    trajectory = run(recorder, problem=problem, rule=RULES[x], seed=1)
    found, J = trajectory.state, columns(trajectory)
    validation = found.V1.cols, found.V2.cols
    residuals, _ = oracle.boosting(problem.G, f"{x}UB-mean", J, 6, validation)
    for i, (expected, (seen, chosen)) in enumerate(zip(residuals, recorder.seen, strict=True)):
        tolerance = {"rtol": 0, "atol": 10 * problem.tolerance}
        np.testing.assert_allclose(seen[:, chosen], expected[:, J[i + 1]], **tolerance)
        free = np.setdiff1d(np.arange(60), np.concatenate([*J[: i + 1], *validation]))
        away = np.abs(seen[:, :, None] - expected[:, None, free]).max(axis=0).min(axis=1)
        assert away.max() <= 10 * problem.tolerance
        assert seen.shape == (60, min(20, len(free)))


@each_residual
def test_on_a_sample_what_is_clustered_is_the_papers_residual_on_some_rows(case, x, selector):
    """Steps (a) to (c), with weights from the rows observed and columns as a few rows show them."""
    problem, recorder = market.problem(case, n=market.MANY), Recorder(selector)
    limits = {name: market.SAMPLED[name] for name in ("row_cap", "residual_rows", "n_candidates")}
    trajectory = run(recorder, problem=problem, rule=RULES[x], seed=1, **limits)
    found, J, S = trajectory.state, columns(trajectory), trajectory.state.sample.indices
    rows, V = S[found.rows], [S[v.cols] for v in (found.V1, found.V2)]
    assert len(rows) == limits["residual_rows"]
    parts = [oracle.nystrom(problem.G, j, 6) for j in J]
    told, scale = S[found.V1.rows], found.V1.weight  # a few rows that stand for all
    for i, (seen, chosen) in enumerate(recorder.seen, start=1):
        assert 0 < len(seen) <= limits["residual_rows"]
        assert seen.shape[1] == limits["n_candidates"]
        values = [scale * K[told] for K in (problem.G, *parts[:i])]
        w = oracle.weights(x, values[0], values[1:], *V)
        residual = (problem.G - oracle.mix(w, parts[:i]))[np.ix_(rows, J[i])]
        counted = seen[seen.any(axis=1)][:, None, chosen]
        away = np.abs(counted - residual[None]).min(axis=1)
        assert away.max() <= 10 * problem.tolerance


@selectors
@given(st.integers(0, 10**6))
def test_scaling_the_kernel_by_a_power_of_two_scales_the_result(selector, seed):
    G = market.problem("decaying spectrum", n=60).G
    problems = (market.Problem(c * G, "precomputed", G) for c in (1.0, 2.0**40))
    found = [columns(run(selector, problem=p, rule=RidgeWeights(), seed=seed)) for p in problems]
    np.testing.assert_array_equal(*found)


@selectors
def test_v_is_drawn_anew_in_each_step_among_all_unused_columns(selector):
    """Over many runs every column that is free takes part in V, and V differs between steps."""
    problem, seen = market.problem("Gaussian", n=80), set()
    for seed in range(12):
        recorder = Recorder(selector)
        trajectory = run(recorder, problem=problem, seed=seed)
        first, second = (residual for residual, _ in recorder.seen[:2])
        found, J = trajectory.state, columns(trajectory)
        before = problem.G - oracle.nystrom(problem.G, J[0], 6)
        away = np.abs(first[:, :, None] - before[:, None]).max(axis=0)
        V = away.argmin(axis=1)
        assert len(set(V)) == 20
        assert not set(V) & {*J[0], *found.V1.cols, *found.V2.cols}
        seen |= set(V)
        assert first.shape == second.shape
    assert len(seen) > 72


def test_validation_columns_are_whole_square_or_a_sample_of_rows_as_the_settings_say():
    shapes = {}, {"validation_shape": "square"}, {"row_cap": 30}
    whole, square, capped = (run(None, n=100, **how).state for how in shapes)
    np.testing.assert_array_equal(whole.V1.rows, np.arange(100))
    np.testing.assert_array_equal(square.V1.rows, square.V1.cols)
    np.testing.assert_array_equal(square.V2.rows, square.V2.cols)
    assert len(np.unique(capped.rows)) == 30
    np.testing.assert_array_equal(capped.V1.rows, capped.rows)


def test_a_name_has_two_letters_and_a_clustering():
    letters = {"U": UniformWeights(), "E": ExponentialWeights(0.01), "R": RidgeWeights()}
    for name in nb.VARIANTS:
        found = parse_method(name, Settings())
        assert found == ((letters[name[0]], SELECTORS[name[4:]]), letters[name[1]])
    assert parse_method("UEB-med", Settings(eta="tune"))[1] == ExponentialWeights("tune")
