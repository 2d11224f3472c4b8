"""``nysboost fit``: a table in, a model out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nysboost as nb
from nysboost.catalogue import find_method
from nysboost.cli import cluster
from nysboost.cli.choice import Choice, all_but, find_column
from nysboost.cli.errors import CommandError, DataError, NoRoomError, wrong_call
from nysboost.cli.models import unmistakable
from nysboost.cli.progress import Progress
from nysboost.cli.sinks import NpySink, refuse_existing
from nysboost.cli.tables import ArrayTable, Table, open_table
from nysboost.experiments.user_error import need
from nysboost.kernels import KERNELS
from nysboost.numerics.checks import unknown
from nysboost.numerics.memory import as_bytes


@dataclass(frozen=True)
class Request:
    """What was asked for; the fields are the options of the command."""

    data: Path
    out: Path
    target: str | None
    task: str
    components: int
    method: str
    kernel: str
    sigma: str
    tol: float | None
    dataset: str | None
    drop_column: Sequence[str]
    drop_missing: bool
    max_memory: str
    scheduler: str | None
    seed: int
    force: bool
    quiet: bool


def run(request: Request) -> dict[str, Any]:
    """Fit a model to a table, save it, and return what a script wants to know."""
    refuse_existing(request.out, request.force)
    _refuse_wrong_options(request)
    _refuse_idle_options(request)
    begun = time.perf_counter()
    table = open_table(request.data, request.dataset)
    y = _beside(table, request.target)
    target = None if request.target is None or y is not None else find_column(table, request.target)
    left_out = [find_column(table, name) for name in request.drop_column]
    left_out += [] if target is None else [target]
    choice = all_but(table, left_out, drop_missing=request.drop_missing)
    choice.droppable = True
    if target is not None:
        y = cluster.dask_column(table, target) if request.scheduler else table.labels(target)
    where = (
        cluster.connected(request.scheduler, quiet=request.quiet)
        if request.scheduler
        else nullcontext()
    )
    with where, _rows(choice, y, request) as (X, y), _in_words_of(choice, request):
        if y is None:
            model = _transformer(request).fit(X)
        else:
            whole = request.task == "classification" and not request.scheduler
            y = unmistakable(y) if whole else y
            model = _learner(request, y).fit(X, y)
    if choice.names is not None:
        model.feature_names_in_ = np.array(choice.names, dtype=object)
    nb.save(model, request.out)
    return {
        "out": str(request.out),
        "model": type(model).__name__,
        "rows": int(model.approximation_.shape[0]),
        "columns": len(choice.columns),
        "dropped_rows": choice.dropped_rows,
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _refuse_wrong_options(request: Request) -> None:
    """Say at once what is no method, no kernel or no size, before any file is read."""
    with wrong_call():
        find_method(request.method)
        as_bytes(request.max_memory)
        if request.kernel not in KERNELS:
            raise ValueError(unknown("kernel", request.kernel, KERNELS))


@contextmanager
def _in_words_of(choice: Choice, request: Request) -> Iterator[None]:
    """Where a fit fails, look whether the file lacks something, and say where in the file."""
    try:
        yield
    except ValueError:
        if request.scheduler is None and isinstance(choice.table, ArrayTable):
            for _ in choice.blocks():
                pass
        raise


@contextmanager
def _rows(choice: Choice, y: Any, request: Request) -> Iterator[tuple[Any, Any]]:
    """Give X and y: where they are, if rows can be taken there, or in a file of their own."""
    table = choice.table
    if request.scheduler is not None:
        yield cluster.dask_table(choice), y
        return
    if y is not None:
        _refuse_no_target(choice, y)
    if choice.whole and isinstance(table, ArrayTable):
        yield table.data, y
        return
    if y is not None and table.names is not None and not choice.drop_missing:
        yield _frame(choice, request), y
        return
    with TemporaryDirectory(prefix="nysboost-") as folder:
        X = _copied(choice, Path(folder), request)
        yield X, y if choice.usable is None else y[choice.usable]


def _frame(choice: Choice, request: Request) -> Any:
    """Return the table as a data frame: a learner takes text and gaps as they are."""
    pandas, allowed, held = need("pandas", "files"), as_bytes(request.max_memory), 0
    progress, parts = Progress("read", choice.table.n, shown=not request.quiet), []
    frames: Any = progress.of(choice.table.frames(choice.columns))
    for part in frames:
        parts.append(part)
        held += int(part.memory_usage(deep=True).sum())
        if held > allowed:
            msg = (
                f"{choice.table.path} takes more than --max-memory {request.max_memory} as it is. "
                "Raise that; or give --drop-missing, and --drop-column for columns of text: then "
                "the numbers alone are read, a block at a time."
            )
            raise NoRoomError(msg)
    return pandas.concat(parts, ignore_index=True)


def _copied(choice: Choice, folder: Path, request: Request) -> Any:
    """Copy the chosen columns to a file of numbers, from which any row can be taken."""
    progress = Progress("read", choice.table.n, shown=not request.quiet)
    sink = NpySink(folder / "X.npy", [])
    for block in progress.of(choice.blocks()):
        sink.write(block)
    if sink.rows == 0:
        msg = f"{choice.table.path} has no rows without missing values."
        raise DataError(msg)
    sink.finish()
    return np.load(folder / "X.npy", mmap_mode="r")


def _refuse_idle_options(request: Request) -> None:
    """Refuse what a learner would not listen to: it finds its kernel and landmarks itself."""
    usual = {"method": "joint", "kernel": "rbf", "sigma": "median", "tol": None}
    given = [f"--{name}" for name, value in usual.items() if getattr(request, name) != value]
    if request.target is not None and given:
        msg = (
            f"{', '.join(given)} cannot be given with --target: a learner finds its kernel and "
            "its landmarks itself."
        )
        raise CommandError(msg)


def _beside(table: Table, target: str | None) -> Any:
    """Return the target, if it is an array beside that of the rows."""
    if target is None or not isinstance(table, ArrayTable):
        return None
    return table.beside(target)


def _refuse_no_target(choice: Choice, y: Any) -> None:
    """Let rows without a target be left out, or say that there are some."""
    there = np.isfinite(y) if y.dtype.kind == "f" else np.array([v is not None for v in y])
    known: NDArray[np.bool_] = np.asarray(np.asarray(there).reshape(len(y), -1).all(axis=1))
    if not known.all() and not choice.drop_missing:
        msg = (
            f"The target is missing in row {int(np.argmin(known))} of {choice.table.path}. "
            "--drop-missing leaves such rows out."
        )
        raise DataError(msg)
    choice.usable = known


def _transformer(request: Request) -> Any:
    """Return a transformer with the options of the command."""
    sigma: float | str = request.sigma
    if sigma not in ("median", "scale"):
        sigma = _number(request.sigma)
    takes_sigma = request.kernel in ("rbf", "gaussian", "laplacian", "matern")
    options: dict[str, Any] = {"tol": request.tol} if request.tol is not None else {}
    return nb.Nystroem(
        kernel=request.kernel,
        kernel_params={"sigma": sigma} if takes_sigma else None,
        method=request.method,
        n_components=request.components,
        max_memory=request.max_memory,
        verbose=not request.quiet,
        random_state=request.seed,
        **options,
    )


def _learner(request: Request, y: Any) -> Any:
    """Return a classifier for text or where it is asked for, and a regressor otherwise."""
    classes = y.dtype.kind not in "fiu" if request.task == "auto" else request.task != "regression"
    kind = nb.NystroemClassifier if classes else nb.NystroemRegressor
    return kind(
        n_components=request.components,
        max_memory=request.max_memory,
        verbose=not request.quiet,
        random_state=request.seed,
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"--sigma is a number, median or scale, but {text!r} was given."
        raise CommandError(msg) from None
