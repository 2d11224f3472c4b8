"""On a GPU, through PyTorch: transform against the bare products, a fit of 10⁷ rows, the peers.

The floor is the two bare products X Zᵀ and C N of the same shapes and dtype. TF32 is PyTorch's
own switch for faster, less precise products: the user's choice, and its error is in the table.
Error against time is that of fit and transform of 10⁶ synthetic rows, d = 54, over the number of
landmarks. Where matplotlib is missing, copy the JSON and draw it elsewhere with --plot.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from common import FLOOR, Report, compare, machine, parser, race, run, synthetic
from error_time import GAMMA, Judge, curves, fit_transform

import nysboost as nb

with contextlib.suppress(ImportError):  # --plot needs none
    import torch

GOALS = {False: 1.15, True: 1.6}
FIT_SECONDS = 10.0


def finish() -> None:
    """Wait for the GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def finished(run_: Callable[[], Any]) -> Callable[[int], Any]:
    """Return a contestant that waits for the GPU, so that its time is whole."""

    def contestant(_round: int) -> Any:
        result = run_()
        finish()
        return result

    return contestant


def transform(report: Report, n: int, c: int, options: argparse.Namespace) -> None:
    X = _normal(n, options)
    how: dict[str, Any] = {"gamma": GAMMA, "n_columns": c, "random_state": 0}
    fitted, sample = nb.StandardNystroem(**how).fit(X), X[:2000]
    reference = nb.StandardNystroem(**how).fit(X.double()).transform(sample.double())
    Z, N = fitted.components_, fitted.normalization_
    out = torch.empty(n, N.shape[1], device=X.device)

    def floor() -> None:
        # in pieces, because X Zᵀ whole would not leave room for the result
        for piece, into in zip(X.split(2**20), out.split(2**20), strict=True):
            torch.matmul(piece @ Z.T, N, out=into)

    contestants = {FLOOR: finished(floor), "ours": finished(lambda: fitted.transform(X))}
    for tf32, goal in GOALS.items():
        torch.backends.cuda.matmul.allow_tf32 = tf32
        times = race(contestants, options.rounds)
        F = fitted.transform(sample)
        error = torch.linalg.norm(F @ F.T - reference @ reference.T)
        note = f"error {float(error / torch.linalg.norm(reference @ reference.T)):.1e}"
        what = f"transform, n = {n:,}, c = {c}, {'TF32' if tf32 else 'float32'}"
        report.add(compare(what, "bare products", times["ours"], times[FLOOR], goal, note=note))
    torch.backends.cuda.matmul.allow_tf32 = False


def fit(report: Report, n: int, c: int, options: argparse.Namespace) -> None:
    X = _normal(n, options)
    estimator = nb.BoostedNystroem("joint", gamma=GAMMA, n_components=c, random_state=0)
    times = race({"fit": finished(lambda: estimator.fit(X))}, min(3, options.rounds))
    report.add(compare(f"fit of joint, n = {n:,}, c = {c}", "limit", times["fit"], FIT_SECONDS, 1))


def measure(options: argparse.Namespace) -> Report:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    title = f"Fit and transform on a GPU, synthetic data, n = {options.curve_rows:,}, float32"
    report = Report(title, machine(GPU=gpu, PyTorch=torch.__version__))
    for n in options.rows:
        transform(report, n, max(options.landmarks), options)
    fit(report, max(options.rows), max(options.landmarks), options)

    rows = synthetic(options.curve_rows, 54)
    X = torch.asarray(rows, dtype=torch.float32, device=options.device)
    methods = ("joint", "kmeans", "rpcholesky", "uniform", FLOOR)
    for method in ("joint", FLOOR):  # libraries loaded, memory taken
        fit_transform(method, max(options.landmarks), X, 0)
    sizes = dict.fromkeys(methods, options.landmarks)
    report.curves += curves(Judge(X, options.sample), sizes, options.curve_rounds, finish)
    return report


def _normal(n: int, options: argparse.Namespace) -> Any:
    generator = torch.Generator(device=options.device).manual_seed(0)
    return torch.randn(n, 54, device=options.device, generator=generator)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=5)
    options.add_argument("--curve-rounds", type=int, default=1)
    options.add_argument("--device", default="cuda", help="a PyTorch device")
    options.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    options.add_argument("--curve-rows", type=int, default=10**6)
    options.add_argument("--landmarks", type=int, nargs="+", default=[125, 250, 500, 1000])
    options.add_argument("--sample", type=int, default=5000, help="rows on which errors are taken")
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
