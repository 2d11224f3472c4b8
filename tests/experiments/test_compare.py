import numpy as np
import pytest

import nysboost as nb
from nysboost.experiments import compare
from nysboost.experiments.compare import Outcome, Task
from nysboost.experiments.user_error import UserError


def outcome(method, error, seconds, entries=1.0):
    return Outcome(method, error, 0.0, seconds, entries, ((1, error),))


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((150, 2))


def test_the_errors_are_those_of_approximate_itself(points):
    kernel = nb.Gaussian(sigma=1.0)
    task = Task(
        points, kernel, ("nystrom", "URB-mean", "ensemble-ridge"), 24, n_learners=3, repeats=2
    )
    found = {o.method: o for o in compare.run(task)}
    sizes = {"URB-mean": {"n_learners": 3, "n_columns": 8}, "nystrom": {"n_columns": 24}}
    for method, size in sizes.items():
        alone = [
            nb.approximate(points, method, kernel, random_state=seed, **size) for seed in range(2)
        ]
        expected = np.mean([a.relative_error() for a in alone])
        assert found[method].error == pytest.approx(expected, rel=1e-6)
        assert found[method].entries == alone[0].entries_evaluated
    assert [c for c, _ in found["URB-mean"].curve] == [8, 16, 24]
    assert [c for c, _ in found["nystrom"].curve] == [24]


def test_outcomes_come_with_the_smallest_error_first(points):
    task = Task(points, nb.Gaussian(sigma=1.0), ("ensemble-uniform", "nystrom"), 24, 3, repeats=1)
    errors = [o.error for o in compare.run(task)]
    assert errors == sorted(errors)


def test_the_front_holds_what_nothing_else_beats_on_all_counts():
    outcomes = [outcome("a", 1, 9), outcome("b", 2, 5), outcome("c", 2, 6), outcome("d", 3, 1)]
    assert compare.pareto_front(outcomes) == {"a", "b", "d"}


def test_equal_methods_are_both_on_the_front():
    assert compare.pareto_front([outcome("a", 1, 1), outcome("b", 1, 1)]) == {"a", "b"}


def test_the_smallest_error_is_recommended_with_its_reason():
    method, reason = compare.recommend([outcome("a", 0.1, 3.0), outcome("b", 0.2, 0.1)])
    assert method == "a"
    assert "smallest of the 2" in reason


def test_a_much_faster_method_of_almost_the_same_error_is_recommended():
    method, reason = compare.recommend([outcome("a", 0.100, 3.0), outcome("b", 0.104, 1.0)])
    assert method == "b"
    assert "within 5%" in reason
    assert "instead of 3 s" in reason


def test_every_method_of_the_library_can_be_compared(points):
    task = Task(points, nb.Gaussian(sigma=1.0), tuple(nb.METHODS), 24, 3, repeats=1)
    outcomes = compare.run(task)
    assert {o.method for o in outcomes} == set(nb.METHODS)
    assert all(o.curve[-1] == (24, o.error) for o in outcomes)
    assert "optimal" in [o.method for o in outcomes[:2]]  # a multiple of the identity is no rank
    assert compare.recommend(outcomes)[0] != "optimal"


def test_a_joint_core_is_fitted_anew_for_each_prefix(points):
    kernel = nb.Gaussian(sigma=1.0)
    (found,) = compare.run(Task(points, kernel, ("UJB-mean",), 24, 3, repeats=1))
    alone = nb.approximate(points, "UJB-mean", kernel, n_learners=3, n_columns=8, random_state=0)
    for (_, error), p in zip(found.curve, (1, 2, 3), strict=True):
        assert error == pytest.approx(alone.prefix(p).relative_error(), rel=1e-5)


def test_the_methods_are_those_of_the_library():
    assert compare.choose_methods(["all"]) == tuple(nb.METHODS)
    assert set(compare.choose_methods([])) <= set(nb.METHODS)
    with pytest.raises(UserError, match="URB-mean"):
        compare.choose_methods(["URB-maen"])


def test_kernels_are_chosen_by_name_and_width():
    assert compare.choose_kernel("gaussian", "2.5") == nb.Gaussian(sigma=2.5)
    assert compare.choose_kernel("gaussian", None) == nb.Gaussian(sigma="median")
    assert compare.choose_kernel("linear", None) == nb.Linear()


@pytest.mark.parametrize(
    ("name", "sigma", "says"),
    [
        ("gausian", None, "gaussian"),
        ("gaussian", "wide", "number, median or scale"),
        ("gaussian", "-1", "sigma"),
        ("linear", "2", "no sigma"),
        ("precomputed", None, "table of points"),
    ],
)
def test_wrong_kernels_are_sentences(name, sigma, says):
    with pytest.raises(UserError, match=says):
        compare.choose_kernel(name, sigma)


@pytest.mark.parametrize(
    ("budget", "learners", "says"), [(200, 4, "only 150 rows"), (3, 4, "split"), (148, 4, "rows")]
)
def test_budgets_that_cannot_be_met_are_sentences(points, budget, learners, says):
    with pytest.raises(UserError, match=says):
        compare.run(Task(points, nb.Gaussian(sigma=1.0), ("URB-mean",), budget, learners))


def test_subsampling_keeps_the_order_and_depends_on_the_seed_alone():
    X = np.arange(100.0)[:, None]
    some = compare.subsample(X, 10, 3)
    assert np.array_equal(some, compare.subsample(X, 10, 3))
    assert (np.diff(some[:, 0]) > 0).all()
    assert compare.subsample(X, 100, 3) is X
    with pytest.raises(UserError, match="at most"):
        compare.subsample(X, 10**6, 3)


def test_standardising_leaves_constant_columns_finite():
    X = np.column_stack([np.arange(4.0), np.ones(4)])
    scaled = compare.standardise(X)
    assert scaled.std(axis=0) == pytest.approx([1, 0])
    assert np.array_equal(X[:, 1], np.ones(4))


def test_a_lenient_comparison_leaves_out_what_cannot_run_and_says_why(points):
    methods, said = ("uniform", "random-fourier", "meka"), []
    task = Task(points, nb.Linear(), methods, 2, 1, repeats=1, lenient=True)
    found = compare.run(task, left_out=said.append)
    assert {o.method for o in found} == {"uniform", "meka"}
    assert len(said) == 1
    assert said[0].startswith("random-fourier was left out. Linear() is no mean of plane waves")
    with pytest.raises(UserError, match="plane waves"):
        compare.run(Task(points, nb.Linear(), methods, 2, 1, repeats=1))


def test_the_error_of_a_result_without_learners_is_its_own(points):
    kernel = nb.Gaussian(sigma=1.0)
    (found,) = compare.run(Task(points, kernel, ("spectral-shift",), 24, 3, repeats=1))
    alone = nb.approximate(points, "spectral-shift", kernel, n_components=24, random_state=0)
    assert found.error == pytest.approx(alone.relative_error(), rel=1e-6)
