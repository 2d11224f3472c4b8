"""Where an array lives: the processor's memory or a device, and how much is free there."""

from __future__ import annotations

import array_api_compat as compat
from array_api_compat import device

from nysboost.numerics.arrays import Array, is_numpy, library
from nysboost.numerics.blocks import CACHE_BYTES

DEVICE_BYTES = 2**30  # a block that keeps a GPU busy for longer than its kernels take to start


def describe_location(array: Array) -> str:
    """Return in words what kind of array it is and where it lives."""
    if is_numpy(array):
        return "a NumPy array"
    return f"a {library(array).replace('torch', 'PyTorch')} array on {device(array)}"


def on_device(array: Array) -> bool:
    """Whether the array is in the memory of a device, not in that of the processor."""
    return not is_numpy(array) and "cpu" not in str(device(array)).lower()


def block_bytes(array: Array) -> int:
    """Return the size of a block that suits where the array lives."""
    return DEVICE_BYTES if on_device(array) else CACHE_BYTES


def free_bytes(array: Array) -> int:
    """Return the free memory of the device where an array of PyTorch or CuPy lives."""
    if compat.is_torch_array(array):
        import torch

        return int(torch.cuda.mem_get_info(array.device)[0])
    import cupy  # type: ignore[import-not-found]

    return int(cupy.cuda.runtime.memGetInfo()[0])
