import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nysboost.experiments import statistics

# no two values nearer than SciPy, which warns of what it cannot tell apart, vouches for
values = st.integers(10**3, 10**6).map(lambda whole: whole / 10**5)
samples = hnp.arrays(np.float64, st.integers(2, 12), elements=values, unique=True)


@given(samples, samples)
def test_welch_agrees_with_scipy_in_both_directions(first, second):
    ours = statistics.welch(first, second)
    less = stats.ttest_ind(first, second, equal_var=False, alternative="less")
    greater = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    assert float(ours.p_smaller) == pytest.approx(less.pvalue, rel=1e-8, abs=1e-300)
    assert float(ours.p_larger) == pytest.approx(greater.pvalue, rel=1e-8, abs=1e-300)


def test_welch_works_along_the_first_axis():
    rng = np.random.default_rng(0)
    first, second = rng.random((10, 4)), rng.random((7, 4))
    expected = stats.ttest_ind(first, second, equal_var=False, alternative="less").pvalue
    assert statistics.welch(first, second).p_smaller == pytest.approx(expected)


@given(st.integers(2, 20), st.integers(0, 1000))
def test_the_paired_test_agrees_with_scipy(n, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.random(n), rng.random(n)
    expected = stats.ttest_rel(first, second, alternative="less").pvalue
    assert float(statistics.paired(first, second).p_smaller) == pytest.approx(expected)


def test_equal_constants_give_no_evidence_and_a_sure_gap_gives_certainty():
    ones, twos = np.ones(5), np.full(5, 2.0)
    assert float(statistics.welch(ones, ones).p_smaller) == pytest.approx(0.5)
    assert float(statistics.welch(ones, twos).p_smaller) == 0
    assert float(statistics.welch(ones, twos).p_larger) == 1


def test_one_replicate_decides_nothing():
    difference = statistics.welch(np.array([1.0]), np.array([2.0]))
    assert float(difference.p_smaller) == 0.5
    assert np.isnan(statistics.standard_error(np.array([1.0])))


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_decreases():
    adjusted = statistics.holm(np.array([0.01, 0.04, 0.03, 0.5]))
    assert adjusted == pytest.approx([0.04, 0.09, 0.09, 0.5])


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)))
def test_holm_is_between_the_p_value_and_bonferroni(p_values):
    adjusted = statistics.holm(p_values)
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= np.minimum(1, p_values * len(p_values)) + 1e-15)


def test_the_standard_error_is_that_of_scipy():
    values = np.random.default_rng(1).random((9, 3))
    assert statistics.standard_error(values) == pytest.approx(stats.sem(values))


def test_learners_to_match_is_the_first_that_reaches_the_target():
    errors = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    assert statistics.learners_to_match(errors, (1, 5, 9), 0.3) == 5
    assert statistics.learners_to_match(errors, (1, 5, 9), 0.1) is None
