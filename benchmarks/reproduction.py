"""What reproducing the paper costs: processor time and peak memory of `nysboost reproduce`.

One replicate of MNIST with the Gaussian kernel, all 27 variants and p up to 20, V as whole
columns; and a few replicates of the simulation, from which the cost of all 100 follows. Each
runs as a command of its own, in one process.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = {"mnist-gaussian": 1, "simulation": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    print(f"{'preset':<16}{'replicates':>11}{'CPU s each':>12}{'peak MB':>9}")
    for preset, replicates in RUNS.items():
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "nysboost.cli", "reproduce", preset]
            command += ["--replicates", str(replicates), "--reading", "columns", "--jobs", "1"]
            command += ["--out", out]
            if options.data_dir:
                command += ["--data-dir", str(options.data_dir)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            each = (used.ru_utime - before) / replicates
            # the largest child so far: the presets are in falling order of memory
            print(f"{preset:<16}{replicates:>11}{each:>12.1f}{used.ru_maxrss / 1024:>9.0f}")


if __name__ == "__main__":
    main()
