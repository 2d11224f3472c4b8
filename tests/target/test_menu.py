"""From settings to candidates."""

import pytest

import nysboost as nb
from nysboost.target.candidates import MATERN12, MATERN32, UNIT_GAUSSIAN, WIDE
from nysboost.target.menu import menu


def test_the_defaults_try_rough_and_smooth_with_a_full_metric_and_with_few_rows_scales_too():
    found = menu("auto", "auto", "target", 8)
    assert [(c.kernel, c.shape) for c in found.many] == [(MATERN12, "full"), (MATERN32, "full")]
    assert [c.shape for c in found.few] == ["each", "each", "full", "full"]


def test_many_features_begin_in_their_own_units_and_at_unit_spread():
    found = menu("auto", "auto", "target", WIDE + 1)
    assert {c.own_units for c in found.many} == {True, False}
    assert found.many[0].kernel == UNIT_GAUSSIAN


def test_what_is_asked_for_is_all_that_is_tried():
    found = menu(nb.Matern(nu=2.5, sigma=7.0), "one", "target", 8)
    assert [(c.kernel, c.shape) for c in found.many] == [(nb.Matern(2.5, 1.0), "one")]
    assert menu("rbf", "each", "target", 8).few[0].kernel == UNIT_GAUSSIAN
    assert menu("auto", "auto", "uniform", 8).many == ()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("linear", "auto", "target"), "cannot learn a metric"),
        (("auto", "oval", "target"), "no shape of a metric 'oval'"),
        (("auto", "auto", "joined"), "no kind of landmarks 'joined'"),
    ],
)
def test_what_is_not_known_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        menu(*settings, 8)
