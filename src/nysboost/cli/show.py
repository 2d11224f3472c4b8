"""``nysboost info`` and ``list``: describe a model file, and list methods, kernels and data."""

from __future__ import annotations

import textwrap
from argparse import Namespace

import nysboost as nb
from nysboost.cli.apply import load_model
from nysboost.cli.sinks import Found, print_found
from nysboost.cli.source import Model, schema_of
from nysboost.compare.page import ReportTable, print_table
from nysboost.kernels import KERNELS
from nysboost.model_files.archive import read_archive
from nysboost.paper import datasets, presets
from nysboost.user_error import UserError


def describe(options: Namespace) -> Found:
    """Print and return the description of a model."""
    path = options.model
    model = load_model(path)
    schema = schema_of(model)

    # describe the file and the input columns
    said: Found = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "written_by": f"nysboost {read_archive(path).library_version}",
        "model": type(model).__name__,
        "columns_in": schema.width,
    }
    if schema.named:
        said["names_in"] = [column.name for column in schema.columns]
        said["schema"] = schema.describe()

    # describe the output and the approximation
    if hasattr(model, "get_feature_names_out"):
        said["features_out"] = len(model.get_feature_names_out())
    if hasattr(model, "classes_"):
        said["classes"] = [str(label) for label in model.classes_]
    said |= _describe_approximation(getattr(model, "approximation_", model))

    # a linear learner uses a Gaussian kernel that is much wider than the data
    if hasattr(model, "predict") and model.kernel == "linear":
        said["kernel"] = "linear"

    print_found(said)
    return said


def _describe_approximation(approximation: Model) -> Found:
    """Return method, kernel and sizes of an approximation, as far as it has them."""
    said: Found = {}
    for name in ("method", "kernel", "rank", "entries_evaluated"):
        value = getattr(approximation, name, None)
        if value in (None, 0, "unnamed"):  # a learner's landmarks come from no one method
            continue
        if not isinstance(value, int):
            value = str(value)
        said[name] = value

    if hasattr(approximation, "landmarks"):
        said["landmarks"] = len(approximation.landmarks)
        said["fitted_on_rows"] = int(approximation.shape[0])
    return said


def list_all(options: Namespace) -> Found:
    """Print methods, kernels, presets and data sets, and where each data set was found."""
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"The data folder {options.data_dir} does not exist.")
    data_sets = datasets.list_all(options.data_dir)

    # print one list, or all of them
    if options.what in ("methods", "all"):
        print("methods, by family:")
        for family, names in nb.FAMILIES.items():
            print(_wrap(f"  {family}: {', '.join(names)}"))
    if options.what in ("kernels", "all"):
        print(_wrap(f"kernels: {', '.join(KERNELS)}"))
    if options.what in ("presets", "all"):
        print_table(_tabulate_presets())
    if options.what in ("data", "all"):
        rows = [list(data_set.values()) for data_set in data_sets]
        print_table(ReportTable("data sets", list(data_sets[0]), rows))

    lists: Found = {
        "methods": list(nb.METHODS),
        "kernels": list(KERNELS),
        "presets": list(presets.ORDER),
        "data": data_sets,
    }
    if options.what == "all":
        return lists
    return {options.what: lists[options.what]}


def _tabulate_presets() -> ReportTable:
    rows = []
    for name in presets.ORDER:
        preset = presets.load(name)
        rows.append([preset.name, preset.title, "; ".join(preset.figures)])
    return ReportTable("presets", ["name", "experiment", "figures of the paper"], rows)


def _wrap(text: str) -> str:
    return textwrap.fill(text, width=100, subsequent_indent="    ", break_on_hyphens=False)
