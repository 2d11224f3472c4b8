"""From settings to candidates."""

import pytest

import nysboost as nb
from nysboost.target.candidates import MATERN12, MATERN32, UNIT_GAUSSIAN, WIDE
from nysboost.target.menu import menu, without_target
from nysboost.target.plain import SIMPLEST, at_random


def test_the_defaults_try_rough_and_smooth_with_a_full_metric_and_with_few_rows_scales_too():
    found = menu("auto", "auto", 8)
    assert [(c.kernel, c.shape) for c in found.many] == [(MATERN12, "full"), (MATERN32, "full")]
    assert [c.shape for c in found.few] == ["each", "each", "full", "full"]


def test_many_features_begin_in_their_own_units_and_at_unit_spread():
    found = menu("auto", "auto", WIDE + 1)
    assert {c.own_units for c in found.many} == {True, False}
    assert {c.shape for c in found.many} == {"full", "each"}
    assert found.many[0].kernel == UNIT_GAUSSIAN


def test_what_is_asked_for_is_all_that_is_tried():
    found = menu(nb.Matern(nu=2.5, sigma=7.0), "one", 8)
    assert [(c.kernel, c.shape) for c in found.many] == [(nb.Matern(2.5, 1.0), "one")]
    assert menu("rbf", "each", 8).few[0].kernel == UNIT_GAUSSIAN
    assert menu("auto", "auto", 8).plain == SIMPLEST


def test_landmarks_that_do_not_know_the_target_are_tried_alone():
    found = without_target("auto", at_random, "uniform")
    assert (found.many, found.few, found.plain) == ((), (), SIMPLEST)
    assert without_target("matern", at_random, "uniform").plain.kernel == MATERN32


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("linear", "auto"), "cannot learn a metric"),
        (("auto", "oval"), "no shape of a metric 'oval'"),
    ],
)
def test_what_is_not_known_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        menu(*settings, 8)
