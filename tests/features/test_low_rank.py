"""Systems with a Dask array on the right: as good as a dense factorisation, and lazy."""

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import nysboost as nb

pytestmark = pytest.mark.usefixtures("_in_this_thread")
N = 600


def problem(method="joint", sigma=5.0):
    rng = np.random.default_rng(0)
    X, b = da.from_array(rng.normal(size=(N, 2)), chunks=((300, 0, 299, 1), 2)), rng.normal(size=N)
    approx = nb.approximate(X, method, nb.Gaussian(sigma=sigma), n_components=50, random_state=0)
    return approx, approx.to_dense().compute(), b


def left(K, alpha, x, b):
    return np.linalg.norm(K @ x + alpha * x - b) / np.linalg.norm(b)


@pytest.mark.parametrize("sigma", [0.3, 5.0])
@pytest.mark.parametrize("method", ["joint", "uniform"])
def test_it_leaves_as_little_as_a_dense_factorisation(method, sigma):
    approx, K, b = problem(method, sigma)
    for alpha in (1.0, 1e-6):
        x = approx.solve(da.from_array(b, chunks=200), alpha)
        assert isinstance(x, da.Array)
        assert x.shape == (N,)
        dense = np.linalg.solve(K + alpha * np.eye(N), b)
        assert left(K, alpha, x.compute(), b) < 4 * left(K, alpha, dense, b)


def test_zero_has_the_solution_zero_and_what_cannot_be_solved_is_said():
    approx, _, b = problem()
    assert not approx.solve(da.zeros((N, 2), chunks=200), 1.0).compute().any()
    with pytest.warns(ConvergenceWarning, match="raise alpha"):
        approx.solve(da.from_array(b, chunks=200), 1e-10)
    b[N - 1] = np.nan
    with pytest.raises(ValueError, match="b contains NaN"):
        approx.solve(da.from_array(b, chunks=200), 1.0)
