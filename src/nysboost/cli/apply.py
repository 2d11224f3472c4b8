"""``nysboost transform`` and ``nysboost predict``: a model, rows in, a file out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.cli import cluster
from nysboost.cli.choice import Choice, as_in
from nysboost.cli.errors import wrong_call
from nysboost.cli.models import Mapper, known_columns, load_model, output_names
from nysboost.cli.progress import Progress
from nysboost.cli.sinks import open_sink, refuse_existing
from nysboost.cli.tables import open_table
from nysboost.numerics.memory import as_bytes


@dataclass(frozen=True)
class Request:
    """What was asked for; the fields are the options of the command."""

    model: Path
    data: Path
    out: Path
    dataset: str | None
    drop_missing: bool
    max_memory: str
    scheduler: str | None
    force: bool
    quiet: bool


def run(request: Request, what: str, mapper: Callable[[Any], Mapper]) -> dict[str, Any]:
    """Apply a model to all rows of a table, and return what a script wants to know.

    Parameters
    ----------
    request : Request
        Files and options.
    what : str
        What the columns of the output are called.
    mapper : callable
        Model ↦ what it does to a block of rows.
    """
    refuse_existing(request.out, request.force)
    with wrong_call():
        as_bytes(request.max_memory)
    model = load_model(request.model)
    if hasattr(model, "max_memory"):
        model.max_memory = request.max_memory
    function = mapper(model)
    table = open_table(request.data, request.dataset)
    choice = as_in(table, *known_columns(model), drop_missing=request.drop_missing)
    if request.scheduler is not None:
        how = {"force": request.force, "quiet": request.quiet}
        return cluster.apply(function, choice, request.out, request.scheduler, what=what, **how)
    return _apply_here(model, function, choice, request, what)


def _apply_here(
    model: Any, function: Mapper, choice: Choice, request: Request, what: str
) -> dict[str, Any]:
    progress = Progress(what, choice.table.n, shown=not request.quiet)
    with warnings.catch_warnings():
        # names were checked above, once for all blocks
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        takes_frames = getattr(model, "_table", None) is not None
        blocks = progress.of(choice.frames() if takes_frames else choice.blocks())
        results = (np.asarray(function(block)) for block in blocks)
        first = next(results, None)
        width = 1 if first is None else first.shape[1]
        names, n = output_names(what, width), choice.table.n
        with open_sink(request.out, names, n, force=request.force) as sink:
            if first is not None:
                sink.write(first)
            for result in results:
                sink.write(result)
    return {
        "out": str(request.out),
        "rows": sink.rows,
        "columns": width,
        "dropped_rows": choice.dropped_rows,
        "seconds": round(progress.seconds, 3),
        "rows_per_second": round(sink.rows / progress.seconds),
    }
