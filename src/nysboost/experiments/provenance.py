"""Which code made a record: the version, the commit, and a digest of what numbers depend on."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from pathlib import Path

from nysboost._version import __version__

PACKAGE = Path(__file__).parents[1]
NUMBERS_COME_FROM = (
    "settings.py",
    "numerics",
    "kernels",
    "gram",
    "engine",
    "boosting",
    "experiments/errors.py",
    "experiments/replicate.py",
    "experiments/shared_gram.py",
)
"""All that one replicate runs through, below the report: a change anywhere here may change it."""


def made_with() -> str:
    """Return the version and, where it is known, the commit: "0.2.0 (957d4a1c2b3e)"."""
    return f"{__version__} ({commit()})" if commit() else __version__


@functools.cache
def commit() -> str:
    """Return the commit of this code, with a "+" if files were changed since; "" if unknown.

    ``NYSBOOST_COMMIT`` says it for a copy that left its repository behind.
    """
    if given := os.environ.get("NYSBOOST_COMMIT", ""):
        return given
    # a package that is installed may lie in the folder of a repository that is not its own
    tracked = _git("ls-files", "--error-unmatch", "_version.py")
    return (
        _git("describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+") if tracked else ""
    )


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


@functools.cache
def code_digest() -> str:
    """Return a hash of the source that numbers come from: records of other code are not mixed."""
    found = hashlib.sha256()
    for part in NUMBERS_COME_FROM:
        path = PACKAGE / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0")
            found.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return found.hexdigest()[:16]
