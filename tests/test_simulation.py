"""The paper's simulation: boosting beats the ensemble at the same number of columns."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

import nysboost as nb

SIZES = {
    "n_learners": 8,
    "n_columns": 10,
    "rank": 10,
    "n_candidates": 100,
    "n_fit": 20,
    "n_tune": 20,
}


def errors(method):
    """Relative errors of 20 replicates, each on its own data."""
    found = []
    for seed in range(20):
        X = np.random.default_rng([2020, seed]).normal(size=(1000, 2))
        approx = nb.approximate(X, method, nb.Gaussian(sigma=1.0), **SIZES, random_state=seed)
        found.append(approx.relative_error())
    return np.array(found)


@pytest.mark.slow
def test_boosting_beats_the_ridge_ensemble_in_the_papers_simulation(capsys):
    ensemble = errors("ensemble-ridge")
    p_values = {}
    for method in ("URB-mean", "URB-med", "RRB-mean"):
        boosted = errors(method)
        test = ttest_ind(boosted, ensemble, equal_var=False, alternative="less")
        p_values[method] = test.pvalue
        with capsys.disabled():
            print(
                f"\n{method}: mean error {boosted.mean():.4f}, ensemble-ridge "
                f"{ensemble.mean():.4f}, Welch p = {test.pvalue:.2g}"
            )
    assert max(p_values.values()) < 0.01, p_values
