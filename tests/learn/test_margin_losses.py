"""Losses of a margin against their own definitions and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.learn.margin_losses import LOSSES, Hinge


@pytest.mark.parametrize("name", LOSSES)
@given(margin=st.floats(-5, 5))
def test_slope_and_curve_are_the_derivatives_of_a_loss(name, margin):
    loss, around = LOSSES[name], np.array([margin - 1e-6, margin, margin + 1e-6])
    values, slopes, curves = loss.value(around), loss.slope(around), loss.curve(around)
    assert slopes[1] == pytest.approx((values[2] - values[0]) / 2e-6, abs=1e-4)
    if curves.max() == pytest.approx(curves.min(), abs=0.1):  # away from a parabola's ends
        assert curves[1] == pytest.approx((slopes[2] - slopes[0]) / 2e-6, abs=1e-3)
    assert (values >= 0).all()
    assert (slopes <= 0).all()
    assert (curves >= 0).all()


def test_away_from_its_corner_the_hinge_is_the_hinge():
    margins = np.array([-2.0, 0.0, 0.89, 1.11, 3.0])
    np.testing.assert_allclose(Hinge().value(margins), np.maximum(0, 1 - margins), atol=1e-12)
