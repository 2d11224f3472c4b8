"""The fused GPU kernel, in Triton's interpreter on the processor, against float64."""

import numpy as np
import pytest

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

import nysboost as nb  # noqa: E402
from nysboost.features.fused import TILES, FusedMap, TileShape, fused_map  # noqa: E402

SMALL = {3: TileShape(32, 64, 16, 4, 1, 4), 1: TileShape(32, 16, 16, 4, 1, 1)}
KERNELS = [
    nb.Gaussian(gamma=0.05),
    nb.Matern(nu=0.5, sigma=3.0),
    nb.Matern(nu=1.5, sigma=3.0),
    nb.Matern(nu=2.5, sigma=3.0, metric=None),
    nb.Gaussian(metric=nb.Metric(np.linspace(0.1, 0.4, 21))),
]


def problem(kernel, n=70, c=37, r=70, d=21):
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(n, d)) + 3, dtype=torch.float32)
    N = torch.tensor(rng.normal(size=(c, r)) * 10.0 ** rng.integers(-6, 7, size=r)).float()
    exact = kernel(X.double(), X[:c].double()) @ N.double()
    return X, X[:c], N, exact


def column_errors(F, exact):
    return float(((F - exact).norm(dim=0) / exact.norm(dim=0)).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("products", "tolerance"), [(3, 2e-6), (1, 3e-3)])
def test_features_have_the_accuracy_of_float32_or_of_tf32(kernel, products, tolerance):
    X, Z, N, exact = problem(kernel)
    out = torch.full(exact.shape, torch.nan)
    assert FusedMap(kernel, Z, N, products, SMALL[products])(X, out)
    assert column_errors(out, exact) < tolerance


def test_rows_of_another_stride_are_written_where_they_belong():
    X, Z, N, exact = problem(KERNELS[0])
    wide = torch.full((70, 100), torch.nan)
    assert FusedMap(KERNELS[0], Z, N, 3, SMALL[3])(X, wide[:, 10:80])
    assert column_errors(wide[:, 10:80], exact) < 2e-6
    assert bool(torch.isnan(wide[:, :10]).all() and torch.isnan(wide[:, 80:]).all())


def test_zeros_of_a_triangular_projection_are_left_out():
    X, Z, N, _ = problem(KERNELS[0])
    N = torch.triu(N[:, :37])
    fused = FusedMap(KERNELS[0], Z, N, 1, SMALL[1])
    assert fused.last.tolist() == [16, 32, 48]
    out = torch.full((70, 37), torch.nan)
    assert fused(X, out)
    assert column_errors(out, KERNELS[0](X.double(), Z.double()) @ N.double()) < 3e-3


@pytest.mark.parametrize("value", [1e4, float("nan"), float("inf")])
def test_a_row_out_of_range_is_reported(value):
    X, Z, N, _ = problem(KERNELS[0])
    X = X.clone()
    X[69, 0] = value
    with np.errstate(all="ignore"):
        assert not FusedMap(KERNELS[0], Z, N, 3, SMALL[3])(X, torch.empty(70, 70))


@pytest.mark.parametrize(("precision", "products"), [("highest", 3), ("high", 1), ("medium", 1)])
def test_pytorch_says_how_precise_products_are(precision, products):
    _, Z, N, _ = problem(KERNELS[0])
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(precision)
        assert fused_map(KERNELS[0], Z, N).products == products
    finally:
        torch.set_float32_matmul_precision(before)


def test_there_is_no_fused_map_of_other_kernels_dtypes_and_many_features():
    _, Z, N, _ = problem(KERNELS[0])
    assert fused_map(nb.Laplacian(sigma=1.0), Z, N) is None
    assert fused_map(KERNELS[0], Z.double(), N.double()) is None
    assert fused_map(KERNELS[0], Z.repeat(1, 7), N) is None
    assert fused_map(KERNELS[0], Z * 1e4, N) is None
    assert fused_map(KERNELS[0], Z, N).tile == TILES[3]
