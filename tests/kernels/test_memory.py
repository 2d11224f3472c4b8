"""What evaluating a kernel holds, measured, against what each kernel says it does."""

import numpy as np
import pytest
import smooth
from peaks import peak_bytes
from scipy import sparse

import nysboost as nb
from nysboost.kernels import make_kernel
from nysboost.kernels.distances import inner_products
from nysboost.rows.recognise import scan_rows

KERNELS = (
    nb.Matern(nu=0.5),
    make_kernel(lambda X, Y: np.exp(inner_products(X, Y) / 8)),
    *smooth.SMOOTH,
)
each = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel)[:20])
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
N, M, D = 600, 500, 4
OPERANDS = 8 * 8 * (N + M) * (D + 2)
"""Copies of the two sets of points: far less than one array of kernel values."""


def points(n, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(dtype)


def peak_of(evaluate, X):
    evaluate(X)  # what is imported or prepared when it is first used
    return peak_bytes(lambda: evaluate(X))


@each
@dtypes
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_kernel_holds_no_more_than_it_says(kernel, dtype, make):
    X, Y = make(points(N, dtype)), make(points(M, dtype, seed=1))
    kernel = kernel.resolve(scan_rows(X))
    peak = peak_of(kernel.against(Y), X)
    assert peak <= kernel.bytes_per_value(X) * N * M + OPERANDS


@dtypes
@pytest.mark.parametrize("kernel", [nb.Gaussian(sigma=2.0), nb.Linear()], ids=str)
def test_the_fastest_kernels_hold_their_values_alone(kernel, dtype):
    """Where blocks are planned for more, a pass is slower than it has to be."""
    X, Y = points(N, dtype), points(M, dtype, seed=1)
    assert peak_of(kernel.against(Y), X) <= X.itemsize * N * M + OPERANDS
    assert kernel.bytes_per_value(X) == X.itemsize
