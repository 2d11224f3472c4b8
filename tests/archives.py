"""Model files changed as somebody would who knows the format, checksums and all."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from nysboost.model_files.archive import _checksum


def repacked(data: bytes, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> bytes:
    """Return a model file whose description and arrays, by their names, `change` has changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    body = json.loads(members.pop("model.json"))
    del body["checksum"]
    change(body, members)
    body["arrays"] = {name: sha256(part).hexdigest() for name, part in members.items()}
    members["model.json"] = json.dumps(body | {"checksum": _checksum(body)}).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return packed.getvalue()
