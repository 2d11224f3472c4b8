"""Records on disk: appended as they are made, checked when read, never mixed.

A file holds one JSON line for each record, with a checksum, so that a record cut in half by
a crash is seen and made again. The name of the file carries a digest of all settings.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nysboost._version import __version__
from nysboost.data.whole import whole_text
from nysboost.experiments.user_error import UserError

Record = dict[str, Any]
SETTINGS = ".settings.json"
VERSION = "nysboost_version"
_CHECKSUM_LENGTH = 16
"""64 bits: enough against damage by chance, which is all that it guards against."""


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, floats exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """Return a short hash of the canonical text of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:_CHECKSUM_LENGTH]


def _line(record: Record) -> str:
    return canonical({"checksum": digest(record), "record": record}) + "\n"


def _parse(line: str) -> Record | None:
    try:
        wrapped = json.loads(line)
        record: Record = wrapped["record"]
        whole = wrapped["checksum"] == digest(record)
    except (ValueError, KeyError, TypeError):
        return None
    return record if whole else None


class Store:
    """The records of one preset under one choice of settings.

    Parameters
    ----------
    folder : Path
        Where the file lies; made if it is missing.
    name : str
        The beginning of the file's name.
    settings : Mapping
        All that the records depend on. Its digest is part of the file's name, and the
        settings themselves are written beside it.
    key : tuple of str
        The fields that tell one record from another.
    """

    def __init__(
        self, folder: Path, name: str, settings: Mapping[str, Any], key: tuple[str, ...]
    ) -> None:
        self.settings = dict(settings)
        self.key = key
        stem = f"{name}-{digest(self.settings)}"
        self.path = folder / f"{stem}.jsonl"
        make_writable(folder)
        # the digest leaves the version out: what numbers depend on is in the settings
        described = self.settings | {VERSION: __version__}
        beside = folder / f"{stem}{SETTINGS}"
        if not beside.exists():
            with whole_text(beside) as file:
                file.write(json.dumps(described, indent=2, sort_keys=True) + "\n")

    @classmethod
    def found(cls, path: Path, key: tuple[str, ...]) -> Store:
        """Return the store whose settings lie in this file."""
        settings: Record = {}
        with suppress(ValueError):
            settings = json.loads(path.read_text(encoding="utf-8"))
            settings.pop(VERSION, None)
        name, _, rest = path.name.rpartition("-")
        if rest != f"{digest(settings)}{SETTINGS}":
            raise UserError(f"{path} is not what was written with its records: its name says so.")
        return cls(path.parent, name, settings, key)

    def records(self) -> list[Record]:
        """Return the whole records, in the order of their key, each key once."""
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            whole = [record for record in map(_parse, lines) if record is not None]
        by_key = {tuple(record[field] for field in self.key): record for record in whole}
        return [by_key[k] for k in sorted(by_key)]

    def tidy(self) -> None:
        """Rewrite the file with its whole records in order, all at once or not at all."""
        text = "".join(map(_line, self.records()))
        with whole_text(self.path, "The records") as file:
            file.write(text)

    def append(self, record: Record) -> None:
        """Write one record and hand it to the disk before returning."""
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def alone(self) -> Iterator[None]:
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


def make_writable(folder: Path) -> None:
    """Make a folder and check that files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        message = (
            f"The folder {folder} cannot be written ({error.strerror}): "
            "give one that can be with --out."
        )
        raise UserError(message) from error
