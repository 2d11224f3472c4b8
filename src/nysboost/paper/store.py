"""Records on disk: JSON lines with checksums, in a file named by a digest of all settings."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nysboost._version import __version__
from nysboost.compare.page import make_writable
from nysboost.data.files import whole_text
from nysboost.user_error import UserError

Record = dict[str, Any]
Key = tuple[int, str]
"""A replicate and a reading of V: what tells one record from another."""
SETTINGS = ".settings.json"
VERSION = "nysboost_version"


def to_text(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, floats exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """Return 64 bits of a hash of a value's text: enough against damage by chance."""
    return hashlib.sha256(to_text(value).encode()).hexdigest()[:16]


def _to_line(record: Record) -> str:
    return to_text({"checksum": digest(record), "record": record}) + "\n"


class Store:
    """The records of one preset, in a file named after it and a digest of its settings."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        stem = f"{name}-{digest(self.settings)}"
        self.path = folder / f"{stem}.jsonl"
        make_writable(folder)
        beside = folder / f"{stem}{SETTINGS}"
        if not beside.exists():
            # the digest leaves the version out: what numbers depend on is in the settings
            described = self.settings | {VERSION: __version__}
            with whole_text(beside) as file:
                file.write(json.dumps(described, indent=2, sort_keys=True) + "\n")

    @classmethod
    def open(cls, path: Path) -> Store:
        """Return the store whose settings lie in this file."""
        settings: Record = {}
        with suppress(ValueError):
            settings = json.loads(path.read_text(encoding="utf-8"))
            settings.pop(VERSION, None)
        name, _, rest = path.name.rpartition("-")
        if rest != f"{digest(settings)}{SETTINGS}":
            raise UserError(f"{path} is not what was written with its records: its name says so.")
        return cls(path.parent, name, settings)

    def read(self) -> dict[Key, Record]:
        """Return the whole records, each key once and in order."""
        found: dict[Key, Record] = {}
        if self.path.exists():
            with self.path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                for line in lines:
                    with suppress(ValueError, KeyError, TypeError):  # of a line that is damaged
                        wrapped = json.loads(line)
                        record = wrapped["record"]
                        if wrapped["checksum"] == digest(record):
                            found[record["replicate"], record["reading"]] = record
        return dict(sorted(found.items()))

    def tidy(self) -> None:
        """Rewrite the file with its whole records in order, all at once or not at all."""
        text = "".join(map(_to_line, self.read().values()))
        with whole_text(self.path, "The records") as file:
            file.write(text)

    def append(self, record: Record) -> None:
        """Write one record and hand it to the disk before returning."""
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(_to_line(record))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the file for this process; a second run of the same settings is refused."""
        try:
            import fcntl
        except ImportError:  # no such lock on Windows: there the rule is on the user
            yield
            return
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                message = (
                    f"Another run is writing {self.path}: wait for it, or give this one "
                    "another folder with --out."
                )
                raise UserError(message) from error
            yield
