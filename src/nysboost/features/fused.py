"""F = k(X, Z) N of a radial kernel on an NVIDIA GPU, in one Triton kernel.

A program computes a tile of F, BM rows by BN features. Over the landmarks, BK at a time, it
forms the exponents ⟨x, z⟩ − ½‖x‖² − ½‖z‖², the kernel values and their product with N, all
in registers: k(X, Z) is never written to memory. Each matrix product is one of float16
factors with float32 sums, or three of them: a factor a is split into a₁ + a₂, eleven bits each,
and ab ≈ a₁b₁ + a₁b₂ + a₂b₁ has the accuracy of a float32 product at three sixteenths of its cost.
Powers of two keep all factors within the range of float16.

This module needs Triton and is imported where rows lie on a CUDA device only.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Kernels are in Triton's language, which has no types of ours.

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
import triton
import triton.language as tl

from nysboost.kernels import Gaussian, Kernel, Matern
from nysboost.numerics.tolerances import EXPONENT_LIMIT

Tensor: TypeAlias = Any

LOG2E = float(np.log2(np.e))
LARGEST_D = 128
"""Features beyond which a tile of rows no longer stays in registers and shared memory."""

POINT_BITS, VALUE_BITS = 8, 15
"""Points are multiplied by 2⁸ and kernel values by 2¹⁵; both stay below float16's 65,504."""

BLOCK = 2**20
"""Rows in one launch, and those that a metric maps at a time."""

LARGEST_POINT = 200.0
"""Coordinates of prepared landmarks beyond which 2⁸ times them leaves float16."""


@triton.jit
def _split(a):
    high = a.to(tl.float16)
    return high, (a - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _features(
    X, x_stride, centre, scale, Z1, Z2, Z, half_z, N1, N2, unscale, first, last, out, out_stride,
    far, n, d, r, c_pad, r_pad, limit,
    D: tl.constexpr, KIND: tl.constexpr, PRODUCTS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    tiles = r_pad // BN
    tile = tl.program_id(0) % tiles
    rows = (tl.program_id(0) // tiles).to(tl.int64) * BM + tl.arange(0, BM)
    feature, inside = tl.arange(0, D), rows < n
    mask = inside[:, None] & (feature < d)[None, :]
    x = tl.load(X + rows[:, None] * x_stride + feature[None, :], mask, 0.0)
    x = (x - tl.load(centre + feature, feature < d, 0.0)[None, :]) * scale
    x = tl.where(mask, x, 0.0)
    half_x = tl.sum(x * x, 1) * 0.5
    if tile == 0:
        outlying = tl.sum(tl.where(half_x <= limit, 0, 1), 0)
        if outlying > 0:
            tl.atomic_max(far, 1)
    x1, x2 = _split(x * 256.0)
    W: tl.constexpr = BN // PARTS
    left = tile * BN + tl.arange(0, W)
    F1 = tl.zeros((BM, W), tl.float32)
    if PARTS == 4:
        F2 = tl.zeros((BM, W), tl.float32)
        F3 = tl.zeros((BM, W), tl.float32)
        F4 = tl.zeros((BM, W), tl.float32)
    for start in range(tl.load(first + tile), tl.load(last + tile), BK):
        j = start + tl.arange(0, BK)
        z1 = tl.load(Z1 + feature[:, None] * c_pad + j[None, :])
        e = tl.dot(x1, z1)
        if PRODUCTS == 3:
            e = tl.dot(x1, tl.load(Z2 + feature[:, None] * c_pad + j[None, :]), e)
            e = tl.dot(x2, z1, e)
        e = e * (1 / 65536) - half_x[:, None] - tl.load(half_z + j)[None, :]
        if KIND == 1:
            close = -e < (half_x[:, None] + tl.load(half_z + j)[None, :]) * (1 / 64)
            if tl.max(tl.max(close.to(tl.int32), 1), 0) > 0:
                exact = tl.zeros((BM, BK), tl.float32)
                for i in range(d):
                    at_i = tl.load(X + rows * x_stride + i, inside, 0.0) - tl.load(centre + i)
                    gap = (at_i * scale)[:, None] - tl.load(Z + i * c_pad + j)[None, :]
                    exact -= 0.5 * gap * gap
                e = tl.where(close, exact, e)
        e = tl.minimum(e, 0.0)
        if KIND == 0:
            k = tl.exp2(e + 15.0)
        else:
            distance = tl.sqrt(-2 * e)
            k = tl.exp2(15.0 - 1.4426950408889634 * distance)
            if KIND == 3:
                k = k * (1 + distance)
            if KIND == 5:
                k = k * (1 + distance - e * (2 / 3))
        k1, k2 = _split(k)
        at = j[:, None] * r_pad + left[None, :]
        F1 = _add_product(F1, k1, k2, N1 + at, N2 + at, PRODUCTS)
        if PARTS == 4:
            F2 = _add_product(F2, k1, k2, N1 + at + W, N2 + at + W, PRODUCTS)
            F3 = _add_product(F3, k1, k2, N1 + at + 2 * W, N2 + at + 2 * W, PRODUCTS)
            F4 = _add_product(F4, k1, k2, N1 + at + 3 * W, N2 + at + 3 * W, PRODUCTS)
    _store(out, out_stride, F1, rows, left, inside, unscale, r)
    if PARTS == 4:
        _store(out, out_stride, F2, rows, left + W, inside, unscale, r)
        _store(out, out_stride, F3, rows, left + 2 * W, inside, unscale, r)
        _store(out, out_stride, F4, rows, left + 3 * W, inside, unscale, r)


@triton.jit
def _add_product(F, k1, k2, N1, N2, PRODUCTS: tl.constexpr):
    n1 = tl.load(N1)
    if PRODUCTS == 3:
        more = tl.dot(k1, tl.load(N2))
        more = tl.dot(k2, n1, more)
        more = tl.dot(k1, n1, more)
        return F + more  # tensor cores cut sums off, so that they add up a few terms only
    return tl.dot(k1, n1, F)


@triton.jit
def _store(out, out_stride, F, rows, columns, inside, unscale, r):
    F = F * tl.load(unscale + columns)[None, :]
    target = out + rows[:, None] * out_stride + columns[None, :]
    tl.store(target, F, inside[:, None] & (columns < r)[None, :])


class Tile(NamedTuple):
    """The shape of a tile, its warps and stages of loads, and the parts in which F is added up."""

    rows: int
    features: int
    landmarks: int
    warps: int
    stages: int
    parts: int


TILES = {3: Tile(128, 256, 64, 8, 2, 4), 1: Tile(128, 256, 64, 8, 2, 1)}
"""For three products and for one: the fastest of twelve on an H200, c = 1,000 and d = 54."""


class FusedMap:
    """x ↦ k(x, Z) N for float32 rows on one CUDA device, with Z (c, d) and N (c, r).

    A matrix product is 3 products, or 1, of float16 factors; `tile` None is the one of `TILES`.
    """

    def __init__(
        self, kernel: Any, Z: Tensor, N: Tensor, products: int, tile: Tile | None = None
    ) -> None:
        self.tile = tile = tile or TILES[products]
        self.r, self.products, self.mapping = N.shape[1], products, kernel.mapping(Z)
        self.kind = 0 if isinstance(kernel, Gaussian) else round(2 * kernel.nu)
        self.scale = float(kernel._rate() if self.kind else np.sqrt(2 * kernel._rate() * LOG2E))
        self.limit = EXPONENT_LIMIT["float32"] * (0.5 if self.kind else LOG2E)
        Z = self.mapping(Z)
        self.centre = Z.mean(0)
        width = max(16, int(triton.next_power_of_2(Z.shape[1])))
        self.Z = _pad(((Z - self.centre) * self.scale).T, width, tile.landmarks)
        self.half_z = (self.Z * self.Z).sum(0) / 2
        self.Z1, self.Z2 = _halves(self.Z * 2.0**POINT_BITS)
        bits = VALUE_BITS - torch.frexp(N.abs().amax(0)).exponent
        N = _pad(torch.ldexp(N, bits), tile.landmarks, tile.features)
        self.N1, self.N2 = _halves(N)
        ones = torch.ones_like(bits, dtype=N.dtype)
        self.unscale = _pad(torch.ldexp(ones, -bits - VALUE_BITS)[None, :], 1, tile.features)
        self.first, self.last = _ranges(N, tile)

    @property
    def in_range(self) -> bool:
        """Whether float16 holds the landmarks, and registers a tile of rows."""
        return self.Z.shape[0] <= LARGEST_D and bool(self.Z.abs().max() <= LARGEST_POINT)

    def __call__(self, X: Tensor, out: Tensor) -> bool:
        """Write the features of X into `out`; return whether all rows were finite and in range."""
        far = torch.zeros(1, dtype=torch.int32, device=X.device)
        for x, F in zip(X.split(BLOCK), out.split(BLOCK), strict=True):
            self._launch(self.mapping(x).contiguous(), F, far)
        return not bool(far)

    def _launch(self, X: Tensor, out: Tensor, far: Tensor) -> None:
        (n, d), (c_pad, r_pad), tile = X.shape, self.N1.shape, self.tile
        grid = (triton.cdiv(n, tile.rows) * (r_pad // tile.features),)
        _features[grid](
            X, X.stride(0), self.centre, self.scale, self.Z1, self.Z2, self.Z, self.half_z,
            self.N1, self.N2, self.unscale, self.first, self.last, out, out.stride(0),
            far, n, d, self.r, c_pad, r_pad, self.limit,
            D=self.Z.shape[0], KIND=self.kind, PRODUCTS=self.products,
            BM=tile.rows, BN=tile.features, BK=tile.landmarks, PARTS=tile.parts,
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip


def fused_map(kernel: Kernel, Z: Tensor, N: Tensor) -> FusedMap | None:
    """Return x ↦ k(x, Z) N as one GPU kernel, where there is one for this kernel and Z.

    PyTorch's `set_float32_matmul_precision` "highest" is three products, "high" and "medium" one.
    """
    if not (type(kernel) in (Gaussian, Matern) and Z.dtype == N.dtype == torch.float32):
        return None
    products = 3 if torch.get_float32_matmul_precision() == "highest" else 1
    found = FusedMap(kernel, Z, N, products)
    return found if found.in_range else None


def _pad(A: Tensor, rows: int, columns: int) -> Tensor:
    """Return A with zeros up to multiples of so many rows and columns, contiguous."""
    more = (-A.shape[1] % columns, -A.shape[0] % rows)
    return torch.nn.functional.pad(A, (0, more[0], 0, more[1])).contiguous()


def _halves(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A as the sum of two float16 arrays."""
    high = A.to(torch.float16)
    return high, (A - high.float()).to(torch.float16)


def _ranges(N: Tensor, tile: Tile) -> tuple[Tensor, Tensor]:
    """Return for each tile of features where its landmarks begin and end: N may have zeros."""
    blocks = N.reshape(-1, tile.landmarks, N.shape[1] // tile.features, tile.features)
    used = (blocks != 0).any(3).any(1).int()
    used[0] |= 1 - used.amax(0)  # argmax needs one
    first, last = used.argmax(0), len(used) - used.flip(0).argmax(0)
    return (first * tile.landmarks).int(), (last * tile.landmarks).int()
