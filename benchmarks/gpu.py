"""On a GPU, through PyTorch: transform against the bare products, and a fit of 10⁷ rows.

The floor is the two bare products X Zᵀ and C N of the same shapes, in float32 and in TF32. Errors
are those of F against float64, on the first and the last rows, relative to F; those of the same
formula in PyTorch's own operations are beside them. d = 54, standard normal rows.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from common import FLOOR, Row, benchmark, compare, time_in_turn

import nysboost as nb

with contextlib.suppress(ImportError):  # --plot needs none
    import torch

GOALS = {"highest": 0.7, "high": 1.2}
PRECISIONS = {"highest": "float32", "high": "TF32"}
FIT_SECONDS = 10.0
KERNELS = {
    "Gaussian": nb.Gaussian(gamma=0.02),
    "Matérn 1/2": nb.Matern(nu=0.5, sigma=5.0),
    "Matérn 3/2": nb.Matern(nu=1.5, sigma=5.0),
    "Matérn 5/2": nb.Matern(nu=2.5, sigma=5.0),
}


def finished(work: Callable[[], Any]) -> Callable[[int], Any]:
    """Return a function that waits for the GPU, so that its time is whole."""

    def waited(_round: int) -> Any:
        result = work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result

    return waited


def transforms(options: argparse.Namespace) -> Iterator[Row]:
    """Compare transform with the bare products, kernel by kernel, and its error with float32's."""
    n, d, c = options.rows, options.dimension, options.landmarks
    generator = torch.Generator(device=options.device).manual_seed(0)
    X = torch.randn(n, d, device=options.device, generator=generator)
    out = torch.empty(n, c, device=X.device)
    some = torch.cat([torch.arange(1000), torch.arange(n - 1000, n)]).to(X.device)
    for name, kernel in KERNELS.items():
        fitted = nb.StandardNystroem(kernel=kernel, n_columns=c, random_state=0).fit(X[:20_000])
        Z, N = fitted.components_, fitted.normalization_
        reference = kernel(X[some].double(), Z.double()) @ N.double()

        def error(F: Any, reference: Any = reference) -> str:
            return f"{float(torch.linalg.norm(F - reference) / torch.linalg.norm(reference)):.1e}"

        def floor(Z: Any = Z, N: Any = N) -> None:
            for piece, into in zip(X.split(2**20), out.split(2**20), strict=True):
                torch.matmul(piece @ Z.T, N, out=into)

        work = {
            FLOOR: finished(floor),
            "ours": finished(lambda fitted=fitted: fitted.transform(X, out=out)),
        }
        for precision, words in PRECISIONS.items():
            torch.set_float32_matmul_precision(precision)
            times = time_in_turn(work, options.rounds, clock=time.perf_counter)
            out.fill_(torch.nan)
            fitted.transform(X, out=out)
            note = f"error {error(out[some])}, PyTorch's own {error(kernel(X[some], Z) @ N)}"
            goal = GOALS[precision] if name == "Gaussian" else None
            what = f"transform, {name}, n = {n:,}, c = {c}, {words}"
            yield compare(what, "bare products", times["ours"], times[FLOOR], goal, note=note)
        torch.set_float32_matmul_precision("highest")


def fit(options: argparse.Namespace) -> Iterator[Row]:
    """Time a fit of joint."""
    n, c = options.rows, options.landmarks
    X = torch.randn(n, options.dimension, device=options.device)
    estimator = nb.BoostedNystroem("joint", gamma=0.02, n_components=c, random_state=0)
    work = {"fit": finished(lambda: estimator.fit(X))}
    times = time_in_turn(work, min(3, options.rounds), clock=time.perf_counter)
    yield compare(f"fit of joint, n = {n:,}, c = {c}", "limit", times["fit"], FIT_SECONDS, 1)


main = benchmark(
    __file__, __doc__, "Transform and fit on a GPU, d = {dimension}", (transforms, fit), rounds=5,
    options={
        "device": ("cuda", "a PyTorch device"), "rows": 10**7, "dimension": 54, "landmarks": 1000,
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
