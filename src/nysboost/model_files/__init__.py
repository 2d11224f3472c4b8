"""Save and load: models as files that are safe to share."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator

from nysboost.approximation import Approximation
from nysboost.model_files.archive import (
    DAMAGED,
    Archive,
    ModelFileError,
    read_archive,
    write_archive,
)
from nysboost.model_files.description import DeviceError, ModelDecoder, ModelEncoder, require
from nysboost.model_files.types import TYPES, WITHOUT_ROWS
from nysboost.numerics.messages import format_cell
from nysboost.rows.files import as_path

__all__ = ["ModelFileError", "load", "save"]


def save(
    model: Approximation | BaseEstimator, path: str | os.PathLike[str], *, with_rows: bool = False
) -> None:
    """Save a model to a file. The file is written completely or not at all.

    The file is a zip of .npy arrays and a JSON description: format and library version,
    parameters, fitted attributes, and a checksum of each array. It holds no code.

    .. versionadded:: 0.2

    Parameters
    ----------
    model : Approximation, transformer or learner
        A result of `approximate`, or an estimator of NysBoost, fitted or not.
    path : str or path
        The file. An existing file is replaced once the new one is complete.
    with_rows : bool
        Whether to also save the training rows of an approximation. Without them, the loaded model
        can compute features and predictions for any rows, but not entries, errors or eigenvectors
        of the approximated matrix.

    Raises
    ------
    TypeError
        If the model contains something other than data, such as your own function.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : reads the file.
    to_onnx : writes a file for other programs.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = nb.StandardNystroem(n_components=20, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.save(model, pathlib.Path(folder) / "model.nysboost")
    ...     restored = nb.load(pathlib.Path(folder) / "model.nysboost")
    >>> bool((restored.transform(X) == model.transform(X)).all())
    True
    """
    if not isinstance(model, Approximation | BaseEstimator):
        msg = f"save needs an approximation or an estimator of NysBoost, but {model!r} was given."
        raise TypeError(msg)

    # keep only the number of training rows, unless the rows are asked for
    types = WITHOUT_ROWS
    if with_rows:
        types = TYPES
    encoder = ModelEncoder(types)
    root = encoder.encode(model)
    described = {"objects": encoder.objects, "root": root}
    write_archive(as_path(path), Archive(described, encoder.arrays))


def load(path: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """Load a model that `save` wrote, without running any code from the file.

    .. versionadded:: 0.2

    Parameters
    ----------
    path : str or path
        The file.
    device : str or None
        Device for PyTorch arrays, such as "cpu"; None is the device on which they were.

    Returns
    -------
    Approximation, transformer or learner
        On the same machine, it gives the same numbers, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is truncated, damaged, or was written by another program or version. It is a
        ValueError.
    OSError
        If there is no such file, or it cannot be read.
    RuntimeError
        If the model was on a device that this machine does not have.

    See Also
    --------
    save : writes the file.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.save(nb.approximate(X, n_components=20, random_state=0), f"{folder}/model.nysboost")
    ...     nb.load(f"{folder}/model.nysboost").rank
    20
    """
    path = as_path(path)
    archive = read_archive(path)
    try:
        decoder = ModelDecoder(TYPES, archive.arrays, device)
        model = decoder.decode(archive.model["objects"], archive.model["root"])
        require(isinstance(model, Approximation | BaseEstimator), "a file and its model")
        return model

    # a device that is missing, a type of a newer version, and parts that do not fit
    except DeviceError:
        raise
    except KeyError as error:
        raise ModelFileError(
            f"The model in {str(path)!r}, written by NysBoost {archive.library_version}, holds "
            f"{format_cell(error.args[0])}, which this version does not know."
        ) from error
    except Exception as error:  # every type has its own objections to parts that do not fit
        raise ModelFileError(DAMAGED.format(str(path))) from error
