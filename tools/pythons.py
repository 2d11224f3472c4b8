"""Print the interpreters of these versions of Python that are here and run, one a line.

    python tools/pythons.py 3.12 3.13

They are looked for on the path, and where pyenv and uv install them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

INSTALLED = (".pyenv/versions/{version}*", ".local/share/uv/python/cpython-{version}*")
"""Folders of installed interpreters, below the home folder."""


def candidates(version: str) -> list[Path]:
    """Return paths at which an interpreter of a version may be."""
    found = []
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        found.append(Path(on_path))
    for pattern in INSTALLED:
        folders = sorted(Path.home().glob(pattern.format(version=version)))
        found.extend(folder / "bin" / f"python{version}" for folder in folders)
    return found


def runs(interpreter: Path, version: str) -> bool:
    """Whether this file is an interpreter of the version; a launcher may be of none."""
    ask = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        answer = subprocess.run(
            [interpreter, "-c", ask], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.stdout.strip() == version


def main() -> None:
    """Print the first interpreter of each version that runs."""
    for version in sys.argv[1:]:
        working = [path for path in candidates(version) if runs(path, version)]
        if working:
            print(working[0])
        else:
            print(f"Python {version} is not here.", file=sys.stderr)


if __name__ == "__main__":
    main()
