"""Archives: what is written is what is read, whole or not at all; tests/test_model_files.py has
the files that are none."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nysboost.data.archive import read_archive, write_archive

KINDS = st.sampled_from(["<f8", "<f4", "<i8", "|b1", "<i4", "<U3"])


@given(hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays_come_back_with_bytes_dtype_and_order(array):
    written = {"0.npy": array, "1.npy": np.asfortranarray(array)}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        write_archive(path, {"x": [1, 2.5, None]}, written)
        model, arrays, _ = read_archive(path)
    assert model == {"x": [1, 2.5, None]}
    for name, expected in written.items():
        assert arrays[name].dtype == expected.dtype
        assert arrays[name].shape == expected.shape
        assert arrays[name].strides == expected.strides
        assert arrays[name].tobytes() == expected.tobytes()
        assert arrays[name].flags.writeable


def test_objects_are_not_written_at_all(tmp_path):
    with pytest.raises(ValueError, match="Object arrays"):
        write_archive(tmp_path / "a", {}, {"0.npy": np.array([object()])})
    assert list(tmp_path.iterdir()) == []
