"""Export models as ONNX files, which other programs and languages run without NysBoost.

All numbers are float64. A model fitted to an array has one input ``X`` of shape (n, d). A model
fitted to a data frame has one input of shape (n, 1) per column, with the column's name: numbers,
Booleans as 0 and 1, dates in seconds since 1970 (in UTC if the dates of the fit had a time zone),
durations in seconds, and text for categories. A missing value is NaN, or empty text. The file
describes the type of each input.
"""

from __future__ import annotations

import os

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nysboost.estimators import KernelPCA
from nysboost.estimators.transformers import BaseNystroem
from nysboost.learn import NystroemClassifier, NystroemRegressor
from nysboost.onnx_export.graph import Graph
from nysboost.onnx_export.inputs import read_rows
from nysboost.onnx_export.models import classify, project, regress, transform
from nysboost.rows.files import as_path, atomic_file

__all__ = ["to_onnx"]


def to_onnx(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted transformer or learner as an ONNX file.

    A regressor has the output ``prediction``, a classifier ``label`` and ``probabilities``, a
    transformer ``features``.

    .. versionadded:: 0.3

    Parameters
    ----------
    model : transformer, KernelPCA, NystroemRegressor or NystroemClassifier
        A fitted model with a Gaussian, Laplacian, Matérn, polynomial or linear kernel.
    path : str or path
        The file to write. This needs the package onnx: ``pip install 'nysboost[onnx]'``.

    See Also
    --------
    save : writes a file for NysBoost.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, onnxruntime, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = nb.Nystroem(n_components=10, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.to_onnx(model, pathlib.Path(folder) / "model.onnx")
    ...     session = onnxruntime.InferenceSession(pathlib.Path(folder) / "model.onnx")
    >>> bool(np.allclose(session.run(None, {"X": X})[0], model.transform(X)))
    True
    """
    if not isinstance(model, BaseNystroem | KernelPCA | NystroemRegressor | NystroemClassifier):
        given = type(model).__name__
        msg = f"to_onnx takes transformers, KernelPCA and learners, not {given}."
        raise TypeError(msg)

    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", ())
    g = Graph([str(name) for name in names])

    match model:
        case BaseNystroem():
            features = transform(model, read_rows(g, model))
            g.output("features", features)
        case KernelPCA():
            components = project(model, read_rows(g, model.features_))
            g.output("features", components)
        case NystroemRegressor():
            prediction = regress(model, read_rows(g, model))
            g.output("prediction", prediction, flat=model._flat)
        case NystroemClassifier():
            label, probabilities = classify(model, read_rows(g, model))
            g.output("label", label, flat=True)
            g.output("probabilities", probabilities)

    # check the whole graph before writing the file
    content = g.model().SerializeToString()
    with atomic_file(as_path(path), "The model") as file:
        file.write(content)
