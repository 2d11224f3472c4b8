"""Save and load: models as files that are safe to share.

`TYPES` is the whole list of what a file may hold. A new estimator or kernel joins it with a
line; its parameters and learned attributes are then saved as they are.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from nysboost import estimators, kernels
from nysboost.approximation import Approximation, Origin
from nysboost.boosting.learner import Learner, Mixture
from nysboost.data.archive import ModelFileError, damaged, read_archive, write_archive
from nysboost.data.description import (
    Describer,
    DeviceError,
    Form,
    Reader,
    of_dataclass,
    of_estimator,
)
from nysboost.data.rows import ArrayRows, ForgottenRows, MappedRows, StoredRows
from nysboost.data.survey import SurveyedRows
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, KernelGram, Landmarks, PrecomputedGram
from nysboost.gram.gram import Tally
from nysboost.numerics.memory import Budget
from nysboost.settings import Settings

__all__ = ["ModelFileError", "load", "save"]


def save(model: Any, path: str | os.PathLike[str], *, with_rows: bool = False) -> None:
    """Save a model to a file that is whole or not there at all.

    The file is a zip of .npy arrays and a JSON description: format and library version,
    parameters, fitted attributes, and a checksum of each array. It holds no code.

    Parameters
    ----------
    model : Approximation, transformer or learner
        What `approximate` returned, or an estimator of NysBoost, fitted or not.
    path : str or path
        The file; one that is there is replaced when the new one is whole.
    with_rows : bool
        Also save the training rows of an approximation. Without them a loaded model maps
        and predicts any rows, but knows no entries, errors or eigenvectors of its own.

    Raises
    ------
    TypeError
        If the model holds something that is no data, such as a function of yours.
    OSError
        If the file cannot be written.

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
    describer = Describer(TYPES if with_rows else _forgetful(TYPES))
    root = describer.describe(model)
    described = {"objects": describer.objects, "root": root}
    write_archive(Path(path), described, describer.arrays)


def load(path: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """Load a model that `save` wrote. No code from the file is run, whatever is in it.

    Parameters
    ----------
    path : str or path
        The file.
    device : str or None
        Where PyTorch arrays go, such as "cpu"; None is where they were.

    Returns
    -------
    Approximation, transformer or learner
        It gives the same numbers, bit for bit, on the same machine.

    Raises
    ------
    ModelFileError
        A ValueError: the file is cut off, damaged, of another program or a newer version.
    OSError
        If there is no such file, or it cannot be read.
    RuntimeError
        If the model lies on a device that this machine does not have.
    """
    path = Path(path)
    described, arrays, version = read_archive(path)
    try:
        reader = Reader(TYPES, arrays, device)
        return reader.put_together(described["objects"], described["root"])
    except DeviceError:
        raise
    except KeyError as error:
        msg = (
            f"The model in {str(path)!r}, written by NysBoost {version}, holds {error}, which this "
            "version does not know."
        )
        raise ModelFileError(msg) from error
    except Exception as error:  # every type has its own objections to parts that do not fit
        raise damaged(path) from error


# Approximations


def _gram_parts(gram: Gram) -> dict[str, Any]:
    parts = {"rows": gram.rows, "dtype": gram.dtype.name, "budget": gram.budget}
    parts["entries_evaluated"] = gram.entries_evaluated
    return parts | ({"kernel": gram.kernel} if isinstance(gram, KernelGram) else {})


def _gram(kind: type[Gram]) -> Form:
    def put_together(parts: dict[str, Any]) -> Gram:
        _require(parts["dtype"] in ("float32", "float64") and isinstance(parts["budget"], Budget))
        gram = kind.__new__(kind)  # rows that are gone cannot be looked at
        gram.rows, gram.n = parts["rows"], parts["rows"].n
        gram.dtype, gram.budget = np.dtype(parts["dtype"]), parts["budget"]
        gram.tally = Tally(int(parts["entries_evaluated"]))
        if isinstance(gram, KernelGram):
            _require(isinstance(parts["kernel"], kernels.Kernel))
            gram.kernel, gram.parallel = parts["kernel"], parts["kernel"].parallel
        return gram

    return Form(kind.__name__, kind, _gram_parts, put_together)


def _approximation_parts(approximation: Approximation) -> dict[str, Any]:
    return {
        "gram": approximation.gram,
        "mixture": Mixture(approximation.learners, approximation.weights),
        "method": approximation.method,
        "entries_evaluated": approximation.entries_evaluated,
    }


def _approximation(parts: dict[str, Any]) -> Approximation:
    origin = Origin(str(parts["method"]))
    approximation = Approximation(parts["gram"], parts["mixture"], origin)
    approximation.entries_evaluated = int(parts["entries_evaluated"])
    return approximation


def _checked(form: Form, fits: Any) -> Form:
    """Return the form with a check of what was put together."""

    def put_together(parts: dict[str, Any]) -> Any:
        value = form.put_together(parts)
        _require(fits(value))
        return value

    return replace(form, put_together=put_together)


def _require(fits: object) -> None:
    if not fits:
        msg = "the parts do not fit together"
        raise ValueError(msg)


def _is_map(feature_map: FeatureMap) -> bool:
    parts = feature_map.projections
    rotation = feature_map.rotation
    rows, columns = (sum(P.shape[i] for P in parts) for i in (0, 1))
    return rows == len(feature_map.landmarks) and (
        rotation is None or (rotation.ndim == 2 and rotation.shape[0] == columns)
    )


# Rows, sparse matrices, generators


def _sparse(kind: Any) -> Form:
    def put_together(parts: dict[str, Any]) -> Any:
        arrays = (parts["data"], parts["indices"], parts["indptr"])
        matrix = kind(arrays, shape=parts["shape"])
        matrix.check_format(full_check=True)
        return matrix

    names = ("data", "indices", "indptr", "shape")
    return Form(kind.__name__, kind, lambda m: {k: getattr(m, k) for k in names}, put_together)


def _generator(parts: dict[str, Any]) -> np.random.Generator:
    known = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
    name = parts["state"]["bit_generator"]
    _require(name in known)
    generator = np.random.Generator(getattr(np.random, name)())
    generator.bit_generator.state = parts["state"]
    return generator


def _random_state(parts: dict[str, Any]) -> np.random.RandomState:
    state = np.random.RandomState()
    state.set_state(parts["state"])
    return state


def _stored_elsewhere(rows: StoredRows | SurveyedRows) -> dict[str, Any]:
    msg = (
        f"The {rows.n} training rows lie in a store of their own: save the model without "
        "with_rows, and keep the store beside it."
    )
    raise TypeError(msg)


def _forgetful(types: tuple[Form, ...]) -> tuple[Form, ...]:
    """Return the table in which training rows are only remembered by their number."""

    def forget(rows: Any) -> dict[str, Any]:
        return {"n": rows.n, "n_features": rows.n_features}

    kinds = (ArrayRows, MappedRows, StoredRows, SurveyedRows)
    gone = [Form("ForgottenRows", kind, forget, lambda parts: parts) for kind in kinds]
    return (*types, *gone)


def _rows(kind: Any) -> Form:
    """Return the form of rows in an array; those of a memory map are read into one."""
    return Form(
        "ArrayRows",
        kind,
        lambda rows: {"data": rows.data},
        lambda parts: _table(parts["data"]),
    )


def _table(data: Any) -> ArrayRows:
    _require(data.ndim == 2)
    return ArrayRows(data)


TYPES: tuple[Form, ...] = (
    # kernels
    *map(of_dataclass, (kernels.Gaussian, kernels.Laplacian, kernels.Matern, kernels.Anova)),
    *map(of_dataclass, (kernels.Linear, kernels.Polynomial, kernels.Cosine)),
    of_dataclass(kernels.SklearnKernel),
    _checked(of_dataclass(kernels.CallableKernel), lambda _: False),  # saving names the function
    # approximations
    _checked(of_dataclass(Landmarks), lambda Z: Z.points is None or Z.points.ndim == 2),
    _checked(
        of_dataclass(Learner),
        lambda learner: learner.projection.shape == (len(learner.landmarks), learner.rank),
    ),
    _checked(of_dataclass(Mixture), lambda m: m.weights.shape == (len(m.learners),)),
    _checked(of_dataclass(FeatureMap), _is_map),
    _gram(KernelGram),
    _gram(PrecomputedGram),
    Form("Approximation", Approximation, _approximation_parts, _approximation),
    # rows
    of_dataclass(ForgottenRows),
    _rows(MappedRows),
    Form("StoredRows", StoredRows, _stored_elsewhere, lambda parts: parts),
    Form("SurveyedRows", SurveyedRows, _stored_elsewhere, lambda parts: parts),
    _rows(ArrayRows),
    _sparse(csr_matrix),
    _sparse(csr_array),
    # parameters
    of_dataclass(Settings),
    of_dataclass(Budget),
    Form("Generator", np.random.Generator, lambda g: {"state": g.bit_generator.state}, _generator),
    Form("RandomState", np.random.RandomState, lambda r: {"state": r.get_state()}, _random_state),
    # transformers
    of_estimator(estimators.Nystroem),
    of_estimator(estimators.StandardNystroem),
    of_estimator(estimators.EnsembleNystroem),
    of_estimator(estimators.BoostedNystroem),
)
"""Every type that a model file may hold."""
