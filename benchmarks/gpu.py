"""On a GPU, through PyTorch: transform against the bare matrix products, and a fit of 10⁷ rows.

Each time is the median of several runs between synchronisations, and the ratio is to the
floor: the two bare products X Zᵀ and C N of the same shapes and dtype. TF32 is PyTorch's own
switch for faster, less precise products: the user's choice, and its error is in the table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import nysboost as nb

GAMMA = 0.02


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    run()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def transform(n: int, d: int, c: int) -> list[dict[str, object]]:
    generator = torch.Generator(device="cuda").manual_seed(0)
    X = torch.randn(n, d, device="cuda", generator=generator)
    fitted = nb.StandardNystroem(gamma=GAMMA, n_columns=c, random_state=0).fit(X)
    Z, N = fitted.components_, fitted.normalization_
    sample = X[:2000]
    exact = nb.StandardNystroem(gamma=GAMMA, n_columns=c, random_state=0).fit(X.double())
    reference = exact.transform(sample.double())
    records: list[dict[str, object]] = []
    # the floor in pieces, because X Zᵀ whole would not leave room for the result
    pieces = [slice(i, i + 2**20) for i in range(0, n, 2**20)]
    out = torch.empty(n, c, device="cuda")

    def floor() -> None:
        for piece in pieces:
            torch.matmul(X[piece] @ Z.T, N, out=out[piece])

    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        bare = seconds(floor)
        ours = seconds(lambda: fitted.transform(X))
        kernel = fitted.transform(sample)
        error = torch.linalg.norm(kernel @ kernel.T - reference @ reference.T)
        records.append(
            {
                "what": f"transform, n = {n:.0e}, d = {d}, c = {c}",
                "precision": "TF32" if tf32 else "float32",
                "bare_s": bare,
                "ours_s": ours,
                "ratio": ours / bare,
                "error": float(error / torch.linalg.norm(reference @ reference.T)),
            }
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/gpu.json"))
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    records = [*transform(10**6, 54, 1000), *transform(10**7, 54, 1000)]
    X = torch.randn(10**7, 54, device="cuda")
    estimator = nb.BoostedNystroem("joint", gamma=GAMMA, n_components=1000, random_state=0)
    fit = seconds(lambda: estimator.fit(X), repeats=3)
    records.append({"what": "fit of joint, n = 1e7, d = 54, c = 1000", "ours_s": fit})
    for record in records:
        print({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in record.items()}, flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
