"""Mutated model files: a sentence or the same model, and no code run, whatever is in the file.

`make fuzz` takes 10,000 of them. A file that fails is kept in tests/examples and tried again
in every run.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import repacked
from peaks import within

import nysboost as nb

COUNT = int(os.environ.get("NYSBOOST_FUZZ_FILES", "200"))
SEED = int(os.environ.get("NYSBOOST_FUZZ_SEED", "0"))
KEPT = Path(__file__).parent / "examples"
X = np.random.default_rng(0).normal(size=(80, 3))
SECONDS = 60
FORBIDDEN = ("exec", "os.system", "os.exec", "os.fork", "subprocess.Popen", "pickle.find_class")
Rng = np.random.Generator


def models() -> list[Any]:
    return [
        nb.StandardNystroem(n_components=6, random_state=0).fit(X),
        nb.BoostedNystroem("URB-mean", n_learners=2, n_columns=5, random_state=0).fit(X),
        nb.Nystroem(nb.Polynomial(degree=2), n_components=6, random_state=0).fit(X),
        nb.KernelPCA(n_components=2, n_landmarks=10, random_state=0).fit(X),
        nb.SpectralClustering(2, n_landmarks=10, random_state=0).fit(X),
        nb.NystroemRegressor(5, landmarks="uniform", random_state=0).fit(X, X[:, 0]),
        nb.NystroemClassifier(5, landmarks="uniform", random_state=0).fit(X, X[:, 0] > 0),
    ]


def answer(model: Any) -> np.ndarray:
    """Return what the model makes of X."""
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.predict(X))


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> list[tuple[bytes, np.ndarray]]:
    path = tmp_path_factory.mktemp("models") / "model"
    found = []
    for model in models():
        nb.save(model, path)
        found.append((path.read_bytes(), answer(nb.load(path))))
    return found


# Bytes


def flip(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for where in rng.integers(len(data), size=rng.integers(1, 8)):
        changed[where] = rng.integers(256)
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    return data[: rng.integers(len(data))]


def splice(data: bytes, rng: Rng) -> bytes:
    a, b, size = rng.integers(len(data), size=3)
    return data[:a] + data[b : b + size % 500] + data[a:]


def drop(data: bytes, rng: Rng) -> bytes:
    a = int(rng.integers(len(data)))
    return data[:a] + data[a + int(rng.integers(1, 300)) :]


# What somebody would change who knows the format: checksums are right again


STRANGE = [
    None, True, -1, 0, 10**30, 1e308, "text", "os.system", [], {}, [[]], {"object": 0},
    {"object": -1}, {"object": 10**9}, {"array": "0.npy"}, {"array": "nowhere"}, {"float": "nan"},
    {"float": "x"}, {"tuple": 3}, {"dict": []}, {"pairs": [[{"dict": {}}, 1]]}, {"dtype": "object"},
    {"scalar": "0.npy"}, {"names": [1]}, {"array": "0.npy", "library": "os", "device": "cpu"},
    {"array": "0.npy", "library": "torch", "device": "nowhere"}, {"unknown": 1},
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value where something else could stand."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, part in items:
        found.append((value, key))
        if isinstance(part, dict | list):
            found += places(part)
    return found


def misdescribe(body: dict, members: dict, rng: Rng) -> None:
    spots = places(body["model"])
    for _ in range(rng.integers(1, 4)):
        holder, key = spots[rng.integers(len(spots))]
        holder[key] = STRANGE[rng.integers(len(STRANGE))]


def swap(body: dict, members: dict, rng: Rng) -> None:
    names = list(members)
    a, b = (names[i] for i in rng.integers(len(names), size=2))
    members[a], members[b] = members[b], members[a]


def retype(body: dict, members: dict, rng: Rng) -> None:
    objects = body["model"]["objects"]
    a, b = rng.integers(len(objects), size=2)
    objects[a]["type"] = objects[b]["type"]


def reshape(body: dict, members: dict, rng: Rng) -> None:
    name = list(members)[rng.integers(len(members))]
    shapes = ["(10**9, 10**9)", "(1000000000000,)", "(-1, 3)", "()", "(3,)", "(0, 5)", "'x'"]
    kinds = ["<f8", "<f4", "<i8", "|O", "<U99999", "|b1", "<c16", "|V8", "<M8[s]"]
    shape, kind = (options[rng.integers(len(options))] for options in (shapes, kinds))
    text = f"{{'descr': '{kind}', 'fortran_order': {bool(rng.integers(2))}, 'shape': {shape}}}\n"
    body_bytes = rng.bytes(int(rng.integers(0, 200)))
    members[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body_bytes


MUTATIONS: list[Callable[[bytes, Rng], bytes]] = [
    flip,
    cut,
    splice,
    drop,
    *(
        lambda data, rng, change=change: repacked(data, partial(change, rng=rng))
        for change in (misdescribe, misdescribe, swap, retype, reshape)
    ),
]
BYTES_ONLY = 4


class Watch:
    """Notes, while it is on, what only code from a file would do."""

    def __init__(self) -> None:
        self.on, self.seen = False, []
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple) -> None:
        if self.on and event.startswith(FORBIDDEN) and not _installed(arguments):
            self.seen.append((event, str(arguments)[:100]))


def _installed(arguments: tuple) -> bool:
    """Whether code is that of an installed module, which an import runs: of PyTorch, say."""
    return Path(getattr(arguments[0], "co_filename", "")).is_file()


@pytest.fixture(scope="module")
def watch() -> Watch:
    with suppress(ImportError):  # it makes code of its own as it is imported
        import array_api_compat.torch  # noqa: F401
    return Watch()


def load_watched(path: Path, watch: Watch) -> Any:
    watch.seen.clear()
    watch.on = True
    try:
        with within(SECONDS, path):
            return nb.load(path)
    finally:
        watch.on = False


def try_file(data: bytes, expected: np.ndarray | None, path: Path, watch: Watch) -> None:
    path.write_bytes(data)
    try:
        model = load_watched(path, watch)
    except (nb.ModelFileError, RuntimeError) as error:
        assert str(error).rstrip().endswith((".", ")"))  # noqa: PT017
    else:
        if expected is not None:  # checksums hold, so the numbers do
            assert np.array_equal(answer(model), expected)
    assert not watch.seen


def test_mutated_files_get_a_sentence_and_run_no_code(originals, tmp_path, watch):
    rng = np.random.default_rng(SEED)
    print(f"{COUNT} files from seed {SEED}")
    for number in range(COUNT):
        data, features = originals[number % len(originals)]
        kind = int(rng.integers(len(MUTATIONS)))
        mutated = MUTATIONS[kind](data, rng)
        try:
            try_file(mutated, features if kind < BYTES_ONLY else None, tmp_path / "m", watch)
        except BaseException:
            KEPT.mkdir(exist_ok=True)
            (KEPT / f"model-{SEED}-{number}.bin").write_bytes(mutated)
            print(f"file {number} of seed {SEED} is kept in {KEPT}")
            raise


def test_files_that_once_failed_do_so_no_more(tmp_path, watch):
    for path in sorted(KEPT.glob("*.bin")):
        try_file(path.read_bytes(), None, tmp_path / "m", watch)
