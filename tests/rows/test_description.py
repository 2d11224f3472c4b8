"""Descriptions: values, shared objects and arrays come back; nothing else is described."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nysboost.model_files.archive import Archive, read_archive, write_archive
from nysboost.model_files.description import ModelDecoder, ModelEncoder, dataclass_type


@dataclass(frozen=True)
class Part:
    content: Any


FORMS = [dataclass_type(Part)]


def round_trip(value: Any) -> Any:
    encoder = ModelEncoder(FORMS)
    root = encoder.encode(value)
    return ModelDecoder(FORMS, encoder.arrays).decode(encoder.objects, root)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers(), inner)
        | inner.map(Part)
    ),
    max_leaves=10,
)


@given(PLAIN)
def test_values_come_back(value):
    assert round_trip(value) == value


def test_numbers_of_numpy_keep_their_type():
    for value in (np.float32(0.1), np.int8(3), np.bool_(True)):
        assert type(round_trip(value)) is type(value)
    assert np.isnan(round_trip(float("nan")))


def test_what_is_shared_stays_shared():
    array, part = np.arange(3), Part(1)
    first, second, inside = round_trip([array, array, Part(array)])
    assert first is second is inside.content
    a, b = round_trip([part, part])
    assert a is b


KINDS = st.sampled_from(["<f8", "<f4", "<i8", "|b1", "<i4", "<U3"])


@given(hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays_come_back_with_bytes_dtype_and_order(array):
    written = {"0.npy": array, "1.npy": np.asfortranarray(array)}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        write_archive(path, Archive({"x": [1, 2.5, None]}, written))
        archive = read_archive(path)
        model = archive.model
        arrays = archive.arrays
    assert model == {"x": [1, 2.5, None]}
    for name, expected in written.items():
        assert arrays[name].dtype == expected.dtype
        assert arrays[name].shape == expected.shape
        assert arrays[name].strides == expected.strides
        assert arrays[name].tobytes() == expected.tobytes()
        assert arrays[name].flags.writeable
