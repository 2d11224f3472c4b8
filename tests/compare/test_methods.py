import numpy as np
import pytest

import nysboost as nb
from nysboost.compare import methods
from nysboost.compare.methods import Setup
from nysboost.compare.outcomes import Outcome
from nysboost.user_error import UserError


def outcome(method, error, seconds, entries=1.0):
    return Outcome(method, {"error": [error], "seconds": [seconds], "entries": [entries]})


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((150, 2))


def test_the_errors_are_those_of_approximate_itself(points):
    kernel = nb.Gaussian(sigma=1.0)
    setup = Setup(
        points, kernel, ("nystrom", "URB-mean", "spectral-shift"), 24, n_learners=3, repeats=2
    )
    found = {o.name: o for o in methods.run(setup, print)}
    sizes = {"URB-mean": {"n_learners": 3, "n_columns": 8}, "nystrom": {"n_columns": 24}}
    sizes["spectral-shift"] = {"n_components": 24}
    for method, size in sizes.items():
        alone = [
            nb.approximate(points, method, kernel, random_state=seed, **size) for seed in range(2)
        ]
        expected = np.mean([a.relative_error() for a in alone])
        assert found[method].error == pytest.approx(expected, rel=1e-6)
        assert found[method].mean("entries") == alone[0].entries_evaluated


def test_the_front_holds_what_nothing_else_beats_on_all_counts():
    outcomes = [outcome("a", 1, 9), outcome("b", 2, 5), outcome("c", 2, 6), outcome("d", 3, 1)]
    assert methods.find_pareto_front(outcomes) == {"a", "b", "d"}
    assert methods.find_pareto_front([outcome("a", 1, 1), outcome("b", 1, 1)]) == {"a", "b"}


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ((0.1, 3.0), (0.2, 0.1), "Use a: its error, 0.1, is the smallest of 2 methods. "
         "The next is b with 0.2, in 0.1 s instead of 3 s."),
        ((0.1, 1.0), (0.104, 2.0), "b came within 5 %, but took as long or longer."),
        ((0.1, 3.0), (0.104, 1.0), "Use b: its error, 0.104, is about as small as the smallest "
         "(0.1, a), and it takes 1 s instead of 3 s."),
        ((1e-9, 3.0), (1e-7, 1.0), "Use b: its error, 1e-07, is about as small as the smallest "
         "(1e-09, a), and it takes 1 s instead of 3 s."),
    ],
)  # fmt: skip
def test_the_recommendation_weighs_error_and_time_and_says_why(first, second, says):
    method, reason = methods.recommend([outcome("a", *first), outcome("b", *second)])
    assert says in reason
    assert f"Use {method}:" in reason


def test_every_method_of_the_library_can_be_compared(points):
    setup = Setup(points, nb.Gaussian(sigma=1.0), tuple(nb.METHODS), 24, 3, repeats=1)
    outcomes = methods.run(setup, print)
    assert {o.name for o in outcomes} == set(nb.METHODS)
    assert [o.error for o in outcomes] == sorted(o.error for o in outcomes)
    assert "optimal" in [o.name for o in outcomes[:2]]  # a multiple of the identity is no rank
    assert methods.recommend(outcomes)[0] != "optimal"


def test_kernels_are_chosen_by_name_and_width():
    assert methods.choose_kernel("gaussian", "2.5") == nb.Gaussian(sigma=2.5)
    assert methods.choose_kernel("gaussian", None) == nb.Gaussian(sigma="median")
    assert methods.choose_kernel("linear", None) == nb.Linear()


def test_a_lenient_comparison_leaves_out_what_cannot_run_and_says_why(points):
    some, said = ("uniform", "random-fourier", "meka"), []
    setup = Setup(points, nb.Linear(), some, 2, 1, repeats=1, lenient=True)
    found = methods.run(setup, said.append)
    assert {o.name for o in found} == {"uniform", "meka"}
    assert len(said) == 1
    assert said[0].startswith(
        "random-fourier was left out, because it failed (ValueError: Random Fourier"
    )
    with pytest.raises(UserError, match="Random Fourier features"):
        methods.run(Setup(points, nb.Linear(), some, 2, 1, repeats=1), print)


def test_errors_that_are_rounding_are_not_ranked():
    method, reason = methods.recommend([outcome("a", 2.7e-15, 2.0), outcome("b", 5e-12, 1.0)])
    assert method == "b"
    assert reason.startswith("The methods cannot be compared: all errors are at the rounding level")
    _, reason = methods.recommend([outcome("a", 3e-15, 1.0), outcome("b", 0.1, 1.0)])
    assert "its error, below 1e-10 (rounding), is the smallest" in reason
