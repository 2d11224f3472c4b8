"""The one cut-off, and what it is relative to."""

import pytest

from nysboost.numerics.tolerances import cutoff


def test_the_cut_off_is_relative_to_the_precision():
    assert cutoff(10, 1e-7) == pytest.approx(1e-6)
