"""The machine of a benchmark: its versions, processes, threads, peak memory and devices."""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import nysboost as nb


def in_child(function: Callable[..., Any], *args: Any) -> Any:
    """Return function(*args) from a new process, whose peak memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def peak_megabytes() -> float:
    """Return the largest resident memory of this process so far, in units of 10⁶ bytes.

    Linux counts that of the parent into a child's ``ru_maxrss``, but not into ``VmHWM``.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def machine() -> dict[str, str]:
    """Return what the numbers depend on: processor, BLAS, versions, and a GPU in use."""
    blas = {
        f"{lib['internal_api']} {lib['version']} ({lib['num_threads']} threads)"
        for lib in threadpoolctl.threadpool_info()
        if lib["user_api"] == "blas"
    }
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {
        "processor": _processor(),
        "cores": str(_cores()),
        "BLAS": ", ".join(sorted(blas)),
        "Python": platform.python_version(),
        **packages,
        "nysboost": nb.__version__,
        **_gpu(),
    }


def _gpu() -> dict[str, str]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {}
    return {"GPU": torch.cuda.get_device_name(), "PyTorch": torch.__version__}


def machine_line(record: Mapping[str, str]) -> str:
    """Return the machine in one line."""
    named = ("processor", "GPU")
    parts = [value if key in named else f"{key} {value}" for key, value in record.items()]
    return ", ".join(parts)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def one_thread() -> None:
    """Have BLAS use one thread in this process, so that its processor time is that of one core."""
    threadpoolctl.threadpool_limits(1)


def placed(X: np.ndarray, device: str) -> Any:
    """Return the rows on a GPU, if one is named."""
    if device in ("", "cpu"):
        return X
    import torch

    return torch.asarray(X, device=device)
