"""Time and error of a joint fit, against those of another version of the library.

MNIST, Covertype and kin40k, 10,000 rows, Gaussian, σ = 5, c = 240 and 480; each fit in a process of
its own, the two versions in turn. The error is that on 4000 of the rows.

    git worktree add /tmp/before TAG
    python benchmarks/versions.py --against /tmp/before/src --data-dir folder
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

FIT = """
import sys, time, numpy as np, nysboost as nb
path, c, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, kernel = np.load(path), nb.Gaussian(sigma=5.0)
nb.approximate(X[:200], "joint", kernel, n_components=20, random_state=0)
began = time.process_time()
fit = nb.approximate(X, "joint", kernel, n_components=c, random_state=seed)
seconds = time.process_time() - began
F = fit.feature_map()[0](X[:4000])
G = kernel(X[:4000], X[:4000])
print(seconds, np.linalg.norm(G - F @ F.T) / np.linalg.norm(G))
"""


def fit(source: Path, rows: Path, c: int, seed: int) -> tuple[float, float]:
    """Return the processor time and the error of a fit by the version at `source`."""
    others = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    path = os.pathsep.join([str(source.resolve()), *others])
    command = [sys.executable, "-c", FIT, str(rows), str(c), str(seed)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    seconds, error = map(float, done.stdout.split())
    return seconds, error


def main(arguments: Sequence[str] | None = None) -> None:
    import zoo

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, required=True, help="src of the other version")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--sets", nargs="+", default=["mnist", "covertype", "kin40k"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[240, 480])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    ours = Path(__file__).parent.parent / "src"
    for c in options.sizes:
        for name in options.sets:
            rows = options.out / f"{name}.npy"
            np.save(rows, zoo.table(name, options.data_dir)[: options.rows])
            pairs = [
                [fit(source, rows, c, seed) for source in (ours, options.against)]
                for seed in range(options.rounds)
            ]
            rows.unlink()
            (time, error), (before, was) = np.mean(pairs, axis=0)
            print(
                f"{name}, c = {c}: time {time:.1f} / {before:.1f} s = {time / before:.3f}, "
                f"error {error:.4e} / {was:.4e} = {error / was:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
