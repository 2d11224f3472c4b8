from dataclasses import replace

import numpy as np
import pytest

from nysboost.paper import ledger, presets
from nysboost.paper.replicate import METHODS
from nysboost.paper.reproduce_command import choose_methods
from nysboost.paper.statements import Comparison, find_methods
from paper.helpers import good_boosting, made_up


def claim_of(number):
    (found,) = (c for c in CLAIMS if c.number == number)
    return found


def decide(number, *results, reading="columns"):
    return ledger.decide(claim_of(number), {r.preset.name: r for r in results}, reading)


def test_the_ledger_has_all_thirteen_statements_of_the_paper():
    assert {int(c.number.rstrip("abcd")) for c in CLAIMS} == set(range(1, 14))


def test_every_comparison_names_things_that_exist():
    counts = {name: presets.load(name).counts for name in presets.ORDER}
    for claim in CLAIMS:
        for c in claim.comparisons:
            for method, p in (c.left, c.right):
                assert method in METHODS
                assert p in counts[c.preset]


def reverse(method, _):
    return 0.05 if method.startswith("ensemble") else 0.1


def take(method, p):
    known = {"UUB": 1.0, "UEB": 2.0, "ensemble": 3.0, "URB": 4.0, "RRB": 5.0}
    return p * known.get(method.partition("-")[0], 9.0)


def level_off(_, p):
    return 0.1 + 1 / max(p, 16) ** 4


SIMULATION, REAL = ["simulation"], [name for name in presets.ORDER if name != "runtime"]
NEAR = ["mnist-linear", "covertype", "ijcnn", "pendigits"]


@pytest.mark.parametrize(
    ("number", "names", "level", "how", "expected"),
    [
        ("1", SIMULATION, good_boosting, {}, "holds, Welch"),
        ("1", SIMULATION, lambda *_: 0.1, {"noise": 0.3, "replicates": 5}, "undecided, "),
        ("12", ["pendigits"], level_off, {"noise": 0.001}, "holds, paired"),
        ("1", SIMULATION, lambda m, p: 0.2 if m == "RRB-SF" else good_boosting(m, p), {},
         "does not hold"),
        # a claim about many presets needs all of them, and falls with the first against it
        ("13", SIMULATION, good_boosting, {}, "undecided"),
        ("13", REAL, good_boosting, {}, "holds"),
        ("13", ["ijcnn"], reverse, {}, "does not hold"),
        # p-values are for the paper's number of replicates
        ("4", SIMULATION, good_boosting, {"replicates": 100}, "holds"),
        ("4", SIMULATION, lambda m, p: 0.1 if p == 2 else good_boosting(m, p), {"replicates": 10},
         "undecided"),
        ("4", SIMULATION, lambda m, p: 0.1 if p == 2 else good_boosting(m, p), {"replicates": 100},
         "does not hold"),
        # similar is within ten per cent
        ("9a", NEAR, lambda m, _: 0.105 if m == "UUB-mean" else 0.1, {}, "holds"),
        ("9a", NEAR, lambda m, _: 0.13 if m == "UUB-mean" else 0.1, {}, "does not hold"),
        ("12", ["pendigits"], lambda _, p: 1 / p, {"noise": 0.001}, "does not hold"),
        *((f"5{letter}", ["runtime"], take, {}, "holds") for letter in "abcd"),
    ],
)  # fmt: skip
def test_claims_hold_fall_or_lack_records(number, names, level, how, expected):
    found = decide(number, *(made_up(name, level, **how) for name in names))
    assert f"{found.verdict}, {found.rests_on}".startswith(expected)


def test_the_weakest_comparison_is_named_with_its_evidence():
    def one_bad(method, p):
        return 0.2 if method == "RRB-SF" and p == 10 else good_boosting(method, p)

    decision = decide("1", made_up("simulation", one_bad))
    assert decision.counts == {"hold": 23, "reversed": 1, "tied": 0, "open": 0}
    assert "RRB-SF (p = 10) < ensemble-ridge (p = 10); means 0.2 and 0.11" in decision.weakest
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
    decision = decide("1", replace(results, values=values))
    assert decision.rests_on == "paired"
    assert decision.verdict == "holds"


def test_a_claim_without_its_preset_was_not_run():
    decision = decide("8")
    assert decision.verdict == "not run"
    assert decision.not_run == ("mnist-linear", "mnist-gaussian")


def test_readings_are_decided_apart():
    result = made_up("simulation", good_boosting)
    result.values["square"] = made_up("simulation", lambda *_: 0.1).values["square"]
    assert decide("1", result).verdict == "holds"
    assert decide("1", result, reading="square").verdict != "holds"


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_factor_scales_the_right_hand_side(factor):
    comparison = Comparison("simulation", ("URB-mean", 5), ("ensemble-ridge", 5), factor)
    result = made_up("simulation", lambda m, _: 0.15 if m == "URB-mean" else 0.1)
    decision = ledger.decide(Claim("0", "", "", (comparison,)), {"simulation": result}, "columns")
    assert decision.verdict == ("holds" if factor == 2 else "does not hold")


def test_the_whole_ledger_has_each_claim_under_each_reading():
    decisions = ledger.decide_all({"simulation": made_up("simulation", good_boosting)})
    assert len(decisions) == 2 * len(CLAIMS)
    assert [len(d) for d in ledger.group_by_claim(decisions).values()] == [2] * len(CLAIMS)


def test_no_difference_that_many_replicates_show_to_be_small_fails_only_in_size():
    small = made_up("simulation", lambda *_: 0.1, noise=0.01, replicates=100)
    decision = decide("1", small)
    assert decision.verdict in ("fails only in size", "holds or ties")
    equal = Comparison("simulation", ("URB-mean", 5), ("URB-mean", 5))
    found = ledger.decide(Claim("0", "", "", (equal,)), {"simulation": small}, "columns")
    assert found.verdict == "fails only in size"
    assert found.counts == {"hold": 0, "reversed": 0, "tied": 1, "open": 0}


def test_a_claim_of_which_some_hold_and_the_others_are_shown_to_be_ties():
    def one_equal(method, p):
        return good_boosting("ensemble" if method == "URB-SF" else method, p)

    result = made_up("simulation", one_equal, noise=0.002, replicates=40)
    for values in result.values.values():
        values["URB-SF"] = values["ensemble-ridge"] * (1 + 1e-3 * np.tile([[1], [-1]], (20, 1)))
    decision = decide("1", result)
    assert decision.verdict == "holds or ties"
    assert (decision.counts["hold"], decision.counts["tied"]) == (20, 4)


def test_what_is_stated_of_a_preset_is_enough_for_every_claim():
    for name in presets.ORDER:
        methods = choose_methods("stated", presets.load(name))
        assert find_methods(name) <= set(methods)
        assert set(presets.load(name).drawn) <= set(methods)
    assert choose_methods("stated", presets.load("ijcnn")) == (
        "UUB-mean", "UEB-mean", "URB-mean", "RRB-mean", "ensemble-ridge",
    )  # fmt: skip
