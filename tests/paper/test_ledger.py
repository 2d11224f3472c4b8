from dataclasses import replace

import numpy as np
import pytest

from nysboost.paper import ledger, presets
from nysboost.paper.presets import Reading
from nysboost.paper.replicate import METHODS
from nysboost.paper.reproduce_command import choose_methods
from nysboost.paper.statements import (
    STATEMENTS,
    Bound,
    Comparison,
    Side,
    Statement,
    find_methods,
)
from paper.helpers import good_boosting, made_up

COLUMNS = Reading("columns", "columns")
SQUARE = Reading("square", "square")


def statement_of(number):
    (found,) = (s for s in STATEMENTS if s.number == number)
    return found


def decide(number, *results, reading=COLUMNS):
    return ledger.decide(statement_of(number), {r.preset.name: r for r in results}, reading)


def statement(*parts, **how):
    return Statement(0, "", "", "", "", parts, **how)


def urb_beats(method="ensemble-ridge", p=5, **how):
    return Comparison("simulation", Side("URB-mean", p), Side(method, p), **how)


def test_the_ledger_has_all_twenty_six_statements_of_the_paper():
    assert [s.number for s in STATEMENTS] == list(range(1, 27))
    assert all(s.quote and s.gist and s.tests and s.parts for s in STATEMENTS)


def test_every_comparison_names_things_that_exist():
    loaded = {name: presets.load(name) for name in presets.ORDER}
    for one in STATEMENTS:
        for part in one.parts:
            if isinstance(part, Bound):
                assert part.property in loaded[part.preset].properties
                continue
            for side in (part.left, part.right):
                assert side.method in METHODS
                assert side.n_learners in loaded[part.preset].counts


def reverse(method, _):
    return 0.05 if method.startswith("ensemble") else 0.1


def take(method, p):
    known = {"UUB": 1.0, "UEB": 2.0, "ensemble": 3.0, "URB": 4.0, "RRB": 5.0}
    faster = 0.9 if method.endswith("SF") else 1.0
    return faster * p * known.get(method.partition("-")[0], 9.0)


def level_off(_, p):
    return 0.1 + 1 / max(p, 16) ** 4


SIMULATION, REAL = ["simulation"], [name for name in presets.ORDER if name != "runtime"]


@pytest.mark.parametrize(
    ("number", "names", "level", "how", "expected"),
    [
        (5, SIMULATION, good_boosting, {}, "holds, Welch"),
        (5, SIMULATION, lambda *_: 0.1, {"noise": 0.3, "replicates": 5}, "undecided, "),
        (24, ["pendigits"], level_off, {"noise": 0.001}, "holds, paired"),
        (24, ["pendigits"], lambda _, p: 1 / p, {"noise": 0.001}, "does not hold"),
        (5, SIMULATION, lambda m, p: 0.2 if m == "EEB-SF" else good_boosting(m, p), {},
         "does not hold"),
        # "most" allows exceptions, and "not necessarily" asks for one
        (3, SIMULATION, lambda m, p: 0.2 if m == "RRB-SF" else good_boosting(m, p), {}, "holds"),
        (3, SIMULATION, reverse, {}, "does not hold"),
        (14, SIMULATION, lambda m, p: 0.2 if m == "UUB-SF" else good_boosting(m, p), {}, "holds"),
        (14, SIMULATION, good_boosting, {}, "does not hold"),
        # a statement about many presets needs all of them
        (25, SIMULATION, good_boosting, {}, "data missing"),
        (25, ["ijcnn"], reverse, {}, "data missing"),
        (25, REAL, good_boosting, {}, "holds"),
        # p-values are for the paper's number of replicates
        (7, SIMULATION, good_boosting, {"replicates": 100}, "holds"),
        (7, SIMULATION, lambda m, p: 0.1 if p == 2 else good_boosting(m, p), {"replicates": 10},
         "undecided"),
        (7, SIMULATION, lambda m, p: 0.1 if p == 2 else good_boosting(m, p), {"replicates": 100},
         "does not hold"),
        *((number, ["runtime"], take, {}, "holds") for number in (10, 11, 12, 13)),
    ],
)  # fmt: skip
def test_statements_hold_fall_or_lack_records(number, names, level, how, expected):
    found = decide(number, *(made_up(name, level, **how) for name in names))
    assert f"{found.verdict}, {found.rests_on}".startswith(expected)


@pytest.mark.parametrize(("value", "verdict"), [(11.0, "holds"), (300.0, "does not hold")])
def test_a_bound_is_decided_by_the_mean_of_a_property(value, verdict):
    ranks = value + np.random.default_rng(0).normal(size=10)
    result = replace(made_up("ijcnn", good_boosting), properties={"rank_99": ranks})
    assert decide(23, result).verdict == verdict
    assert decide(23, made_up("ijcnn", good_boosting)).verdict == "data missing"


def test_the_weakest_comparison_is_named_with_its_evidence():
    def one_bad(method, p):
        return 0.2 if method == "EEB-SF" and p == 10 else good_boosting(method, p)

    decision = decide(5, made_up("simulation", one_bad))
    assert decision.counts == {"hold": 23, "reversed": 1, "tied": 0, "open": 0}
    assert "EEB-SF (p = 10) < ensemble-ridge (p = 10); means 0.199 and 0.11" in decision.weakest
    assert "p-value of the opposite" in decision.weakest


def test_where_points_that_are_shared_hide_a_difference_the_paired_test_decides():
    """Replicates differ by much, and each of them has boosting ahead by a little."""

    def ahead_by_a_little(method, p):
        return 0.1 if method.startswith("ensemble") else 0.095

    results = made_up("simulation", ahead_by_a_little, noise=1e-4)
    hard = np.random.default_rng(0).uniform(1, 60, size=(10, 1))  # some samples are harder
    values = {
        reading: {method: hard * errors for method, errors in methods.items()}
        for reading, methods in results.values.items()
    }
    decision = decide(5, replace(results, values=values))
    assert decision.rests_on == "paired"
    assert decision.verdict == "holds"


def test_a_statement_without_its_presets_says_which_it_lacks():
    decision = decide(18)
    assert decision.verdict == "data missing"
    assert decision.lacks == ("mnist-linear", "mnist-gaussian")


def test_a_small_version_decides_nothing_of_the_paper():
    small = made_up("simulation", good_boosting, n_points=400)
    assert ledger.decide_all({"simulation": small}) == []


def test_readings_are_decided_apart():
    result = made_up("simulation", good_boosting)
    result.values[SQUARE] = made_up("simulation", lambda *_: 0.1).values[SQUARE]
    assert decide(5, result).verdict == "holds"
    assert decide(5, result, reading=SQUARE).verdict != "holds"


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_factor_scales_the_right_hand_side(factor):
    result = made_up("simulation", lambda m, _: 0.15 if m == "URB-mean" else 0.1)
    one = statement(urb_beats(factor=factor))
    decision = ledger.decide(one, {"simulation": result}, COLUMNS)
    assert decision.verdict == ("holds" if factor == 2 else "does not hold")


def test_the_whole_ledger_has_each_statement_under_each_reading():
    decisions = ledger.decide_all({"simulation": made_up("simulation", good_boosting)})
    assert len(decisions) == 4 * 26
    assert [len(mine) for mine in ledger.group_by_statement(decisions).values()] == [4] * 26


def test_no_difference_that_many_replicates_show_to_be_small_fails_only_in_size():
    small = made_up("simulation", lambda *_: 0.1, noise=0.01, replicates=100)
    equal = statement(urb_beats("URB-mean"))
    found = ledger.decide(equal, {"simulation": small}, COLUMNS)
    assert found.verdict == "fails only in size"
    assert found.counts == {"hold": 0, "reversed": 0, "tied": 1, "open": 0}


def test_a_statement_of_which_some_hold_and_the_others_are_shown_to_be_ties():
    result = made_up("simulation", good_boosting, noise=0.002, replicates=40)
    for values in result.values.values():
        values["EEB-SF"] = values["ensemble-ridge"] * (1 + 1e-3 * np.tile([[1], [-1]], (20, 1)))
    decision = decide(5, result)
    assert decision.verdict == "holds or ties"
    assert (decision.counts["hold"], decision.counts["tied"]) == (20, 4)


def test_as_many_replicates_as_an_undecided_statement_names_decide_it():
    """Means 5 % apart with deviations of 20 %: (1.645 + .842)² · 2 · .2² / .05² = 198."""

    def apart(method, _):
        return 0.1 if method.startswith("ensemble") else 0.095

    one = statement(urb_beats())
    named = [
        ledger.decide(one, {"simulation": few}, COLUMNS).would_decide
        for few in [made_up("simulation", apart, noise=0.2, replicates=60)]
    ]
    many = made_up("simulation", apart, noise=0.2, replicates=2000)
    assert named[0] is None or named[0] > 60
    assert ledger.decide(one, {"simulation": many}, COLUMNS).verdict == "holds"


def test_what_is_stated_of_a_preset_is_enough_for_every_statement():
    for name in presets.ORDER:
        methods = choose_methods("stated", presets.load(name))
        assert find_methods(name) <= set(methods)
        assert set(presets.load(name).drawn) <= set(methods)
    assert {m for m in choose_methods("all", presets.load("runtime"))} <= set(METHODS[:30])


def test_numbers_of_learners_of_one_run_are_always_compared_pair_by_pair():
    """Errors that fall in one number and rise in the other look too certain to Welch's test."""
    made = made_up("pendigits", level_off)
    z = np.random.default_rng(0).standard_normal(10)
    z = 0.1 * (z - z.mean()) / z.std(ddof=1)
    errors = np.ones((10, 20))
    errors[:, 15] += z
    errors[:, 19] -= z
    values = dict.fromkeys(made.values[COLUMNS], errors)
    decision = decide(24, replace(made, values={COLUMNS: values}))
    assert decision.verdict == "undecided"
