"""F = k(X, Z) N of a radial kernel on an NVIDIA GPU, in one Triton kernel.

A program computes a tile of F, BM rows by BN features. Over the landmarks, BK at a time, it
forms the exponents ⟨x, z⟩ − ½‖x‖² − ½‖z‖², the kernel values and their product with N, all
in registers: k(X, Z) is never written to memory. Each matrix product is one of float16
factors with float32 sums, or three of them: a factor a is split into a₁ + a₂, eleven bits each,
and ab ≈ a₁b₁ + a₁b₂ + a₂b₁ has the accuracy of a float32 product at three sixteenths of its cost.
Powers of two keep all factors within the range of float16.

In this order: `fused_map` decides whether kernel, dtype and landmarks are supported. `FusedMap`
prepares Z and N as float16 arrays, once. A call starts `_features` on a grid of tiles of F.

What must stay true: the kernel has the powers of two as numbers, 2⁸ of points and 2¹⁵ of kernel
values, which are `POINT_BITS` and `VALUE_BITS` on the host. Exponents are at most 0. A row that is
not finite or out of range sets `far`, and the caller then computes the whole piece in another way.
Landmarks outside `first` to `last` of a tile have only zeros in N.

This module needs Triton, and is imported only if rows are on a CUDA device.
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
"""Largest number of features for which a tile of rows fits in registers and shared memory."""

POINT_BITS = 8
VALUE_BITS = 15
"""Points are multiplied by 2⁸ and kernel values by 2¹⁵; both stay below float16's 65,504."""

BLOCK = 2**20
"""Rows of one launch, and rows that a metric maps at once."""

LARGEST_POINT = 200.0
"""Largest coordinate of prepared landmarks: 2⁸ times a larger one overflows float16."""


@triton.jit
def _split(a):
    high = a.to(tl.float16)
    rest = a - high.to(tl.float32)
    return high, rest.to(tl.float16)


@triton.jit
def _features(
    X, x_stride, centre, scale,  # rows, and what makes coordinates of them
    Z1, Z2,  # landmarks, (D, c_pad), as the sum of two float16 arrays
    Z, half_z,  # and in float32, with ½‖z‖²
    N1, N2, unscale,  # N, (c_pad, r_pad), likewise, and the inverse of its scale
    first, last,  # the landmarks that each tile of features needs
    out, out_stride,
    far,  # set to 1 if a row is out of range
    n, d, r,
    c_pad, r_pad,
    limit,
    D: tl.constexpr,
    KIND: tl.constexpr,
    PRODUCTS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    # the rows and the tile of features that this program computes
    tiles = r_pad // BN
    tile = tl.program_id(0) % tiles
    block = (tl.program_id(0) // tiles).to(tl.int64)
    rows = block * BM + tl.arange(0, BM)
    inside = rows < n

    # x, centred and scaled, with zeros where there are no data
    feature = tl.arange(0, D)
    is_feature = feature < d
    mask = inside[:, None] & is_feature[None, :]
    at_rows = X + rows[:, None] * x_stride
    x = tl.load(at_rows + feature[None, :], mask, 0.0)
    middle = tl.load(centre + feature, is_feature, 0.0)
    x = (x - middle[None, :]) * scale
    x = tl.where(mask, x, 0.0)
    half_x = tl.sum(x * x, 1) * 0.5

    # rows that are out of range, or not finite
    if tile == 0:
        outlying = tl.sum(tl.where(half_x <= limit, 0, 1), 0)
        if outlying > 0:
            tl.atomic_max(far, 1)

    # sums over the landmarks: a tile in four parts has four sums
    x1, x2 = _split(x * 256.0)
    W: tl.constexpr = BN // PARTS
    left = tile * BN + tl.arange(0, W)
    F1 = tl.zeros((BM, W), tl.float32)
    if PARTS == 4:
        F2 = tl.zeros((BM, W), tl.float32)
        F3 = tl.zeros((BM, W), tl.float32)
        F4 = tl.zeros((BM, W), tl.float32)

    start = tl.load(first + tile)
    stop = tl.load(last + tile)
    for begin in range(start, stop, BK):
        j = begin + tl.arange(0, BK)

        # exponents e = ⟨x, z⟩ − ½‖x‖² − ½‖z‖²
        at_z = feature[:, None] * c_pad + j[None, :]
        z1 = tl.load(Z1 + at_z)
        e = tl.dot(x1, z1)
        if PRODUCTS == 3:
            z2 = tl.load(Z2 + at_z)
            e = tl.dot(x1, z2, e)
            e = tl.dot(x2, z1, e)
        half = tl.load(half_z + j)[None, :]
        e = e * (1 / 65536) - half_x[:, None] - half

        # Matérn 1/2 has a corner where two points meet: close ones again, from their difference
        if KIND == 1:
            close = -e < (half_x[:, None] + half) * (1 / 64)
            any_close = tl.max(tl.max(close.to(tl.int32), 1), 0)
            if any_close > 0:
                exact = tl.zeros((BM, BK), tl.float32)
                for i in range(d):
                    x_i = tl.load(X + rows * x_stride + i, inside, 0.0)
                    x_i = (x_i - tl.load(centre + i)) * scale
                    z_i = tl.load(Z + i * c_pad + j)
                    gap = x_i[:, None] - z_i[None, :]
                    exact -= 0.5 * gap * gap
                e = tl.where(close, exact, e)

        # F += k(X, Z) N
        k = _kernel_values(tl.minimum(e, 0.0), KIND)
        k1, k2 = _split(k)
        at = j[:, None] * r_pad + left[None, :]
        F1 = _add_product(F1, k1, k2, N1 + at, N2 + at, PRODUCTS)
        if PARTS == 4:
            at += W
            F2 = _add_product(F2, k1, k2, N1 + at, N2 + at, PRODUCTS)
            at += W
            F3 = _add_product(F3, k1, k2, N1 + at, N2 + at, PRODUCTS)
            at += W
            F4 = _add_product(F4, k1, k2, N1 + at, N2 + at, PRODUCTS)

    _store(out, out_stride, F1, rows, left, inside, unscale, r)
    if PARTS == 4:
        _store(out, out_stride, F2, rows, left + W, inside, unscale, r)
        _store(out, out_stride, F3, rows, left + 2 * W, inside, unscale, r)
        _store(out, out_stride, F4, rows, left + 3 * W, inside, unscale, r)


@triton.jit
def _kernel_values(e, KIND: tl.constexpr):
    # 2¹⁵ times the kernel at −r²/2: Gaussian (0), or Matérn of smoothness KIND / 2
    if KIND == 0:
        k = tl.exp2(e + 15.0)
    else:
        distance = tl.sqrt(-2 * e)
        k = tl.exp2(15.0 - 1.4426950408889634 * distance)
        if KIND == 3:
            k = k * (1 + distance)
        if KIND == 5:
            k = k * (1 + distance - e * (2 / 3))
    return k


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
    scaled = F * tl.load(unscale + columns)[None, :]
    target = out + rows[:, None] * out_stride + columns[None, :]
    is_feature = columns < r
    tl.store(target, scaled, inside[:, None] & is_feature[None, :])


class TileShape(NamedTuple):
    """The shape of a tile, its warps and load stages, and the parts in which F is summed."""

    rows: int
    features: int
    landmarks: int
    warps: int
    stages: int
    parts: int


TILES = {3: TileShape(128, 256, 64, 8, 2, 4), 1: TileShape(128, 256, 64, 8, 2, 1)}
"""For three products and for one: the fastest of twelve on an H200, c = 1,000 and d = 54."""


class FusedMap:
    """x ↦ k(x, Z) N for float32 rows on one CUDA device, with Z (c, d) and N (c, r).

    A matrix product consists of 3 products, or 1, of float16 factors. A `tile` of None is taken
    from `TILES`.
    """

    def __init__(
        self,
        kernel: Gaussian | Matern,
        Z: Tensor,
        N: Tensor,
        products: int,
        tile: TileShape | None = None,
    ) -> None:
        self.tile = tile or TILES[products]
        self.products = products
        self.r = N.shape[1]
        self.mapping = kernel.mapping(Z)
        self._scale_distances(kernel)
        self._split_points(self.mapping(Z))
        self._split_projection(N)

    def _scale_distances(self, kernel: Gaussian | Matern) -> None:
        """Set the kind of kernel, the scale of its points and the largest ½‖x‖² in range."""
        rate = kernel._rate()
        limit = EXPONENT_LIMIT["float32"]
        if isinstance(kernel, Gaussian):
            # exp(−rate·s) is a power of two
            self.kind = 0
            self.scale = float(np.sqrt(2 * rate * LOG2E))
            self.limit = limit * LOG2E
        else:
            self.kind = round(2 * kernel.nu)
            self.scale = float(rate)
            self.limit = limit * 0.5

    def _split_points(self, Z: Tensor) -> None:
        """Prepare Z, centred and scaled, as two float16 arrays of shape (D, c)."""
        self.centre = Z.mean(0)
        width = max(16, int(triton.next_power_of_2(Z.shape[1])))

        # d and c are padded with zeros
        scaled = (Z - self.centre) * self.scale
        self.Z = _pad(scaled.T, width, self.tile.landmarks)
        self.half_z = (self.Z * self.Z).sum(0) / 2
        self.Z1, self.Z2 = _halves(self.Z * 2.0**POINT_BITS)

    def _split_projection(self, N: Tensor) -> None:
        """Prepare N as two float16 arrays, with each column multiplied by a power of two."""
        tile = self.tile

        # by which the largest entry of a column is just below 2¹⁵
        largest = N.abs().amax(0)
        bits = VALUE_BITS - torch.frexp(largest).exponent
        scaled = _pad(torch.ldexp(N, bits), tile.landmarks, tile.features)
        self.N1, self.N2 = _halves(scaled)
        self.first, self.last = _ranges(scaled, tile)

        # by which the features are multiplied in the end
        ones = torch.ones_like(largest)
        unscale = torch.ldexp(ones, -bits - VALUE_BITS)
        self.unscale = _pad(unscale[None, :], 1, tile.features)

    @property
    def in_range(self) -> bool:
        """Whether the landmarks fit in float16, and a tile of rows in registers."""
        largest = self.Z.abs().max()
        return self.Z.shape[0] <= LARGEST_D and bool(largest <= LARGEST_POINT)

    def __call__(self, X: Tensor, out: Tensor) -> bool:
        """Write the features of X into `out`; return whether all rows were finite and in range."""
        far = torch.zeros(1, dtype=torch.int32, device=X.device)
        for begin in range(0, X.shape[0], BLOCK):
            rows: Tensor = self.mapping(X[begin : begin + BLOCK])
            self._launch(rows.contiguous(), out[begin : begin + BLOCK], far)
        return not bool(far)

    def _launch(self, X: Tensor, out: Tensor, far: Tensor) -> None:
        n, d = X.shape
        c_pad, r_pad = self.N1.shape

        # a program for each tile of rows and features
        tile = self.tile
        row_tiles = triton.cdiv(n, tile.rows)
        feature_tiles = r_pad // tile.features

        _features[(row_tiles * feature_tiles,)](
            X, X.stride(0), self.centre, self.scale,
            self.Z1, self.Z2,
            self.Z, self.half_z,
            self.N1, self.N2, self.unscale,
            self.first, self.last,
            out, out.stride(0),
            far,
            n, d, self.r,
            c_pad, r_pad,
            self.limit,
            D=self.Z.shape[0],
            KIND=self.kind,
            PRODUCTS=self.products,
            BM=tile.rows,
            BN=tile.features,
            BK=tile.landmarks,
            PARTS=tile.parts,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )  # fmt: skip


def fused_map(kernel: Kernel, Z: Tensor, N: Tensor) -> FusedMap | None:
    """Return x ↦ k(x, Z) N as one GPU kernel, if this kernel and Z are supported.

    PyTorch's `set_float32_matmul_precision` "highest" is three products, "high" and "medium" one.
    """
    if not (type(kernel) is Gaussian or type(kernel) is Matern):  # a subclass may differ
        return None
    if not Z.dtype == N.dtype == torch.float32:
        return None

    # float16 has the accuracy of TF32 with one product
    products = 1
    if torch.get_float32_matmul_precision() == "highest":
        products = 3

    found = FusedMap(kernel, Z, N, products)
    if not found.in_range:
        return None
    return found


def _pad(A: Tensor, rows: int, columns: int) -> Tensor:
    """Return a contiguous A, padded with zeros to multiples of these sizes."""
    below = -A.shape[0] % rows
    beside = -A.shape[1] % columns
    padded = torch.nn.functional.pad(A, (0, beside, 0, below))
    return padded.contiguous()


def _halves(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A as the sum of two float16 arrays."""
    high = A.to(torch.float16)
    rest = A - high.float()
    return high, rest.to(torch.float16)


def _ranges(N: Tensor, tile: TileShape) -> tuple[Tensor, Tensor]:
    """Return the first and last landmark of each tile of features, because N may have zeros."""
    n_tiles = N.shape[1] // tile.features
    blocks = N.reshape(-1, tile.landmarks, n_tiles, tile.features)
    used = (blocks != 0).any(3).any(1).int()
    used[0] |= 1 - used.amax(0)  # argmax needs one

    first = used.argmax(0)
    last = len(used) - used.flip(0).argmax(0)
    return (first * tile.landmarks).int(), (last * tile.landmarks).int()
