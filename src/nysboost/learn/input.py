"""Settings, tables and weights as the learners take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from nysboost.catalogue import METHODS, find_method
from nysboost.gram import KernelGram
from nysboost.kernels import Anova
from nysboost.kernels.scaling import SCALINGS
from nysboost.learn.search.candidates import Place, uniform_landmarks
from nysboost.learn.search.regimes import Groups, make_candidates
from nysboost.numerics.arrays import Array, Floats, is_sparse, stack_tables
from nysboost.numerics.budget import as_bytes
from nysboost.numerics.messages import format_value, unknown
from nysboost.numerics.parameters import require_count
from nysboost.rows.checks import refuse_unequal
from nysboost.rows.lazy import is_lazy
from nysboost.rows.recognise import to_numbers
from nysboost.rows.rows import Rows
from nysboost.settings import Settings
from nysboost.tables.frames import is_frame, list_column_names, refuse_unknown, to_narwhals
from nysboost.user_error import import_optional

BUFFER_BYTES = 2**28
"""The first blocks of an iterator, up to this size, are fitted; later ones are added to it."""

SMALLEST = 1e-100
"""Numbers below this, or above its inverse, have squares out of range."""

MOST_TIMES = 10
"""Weights count rows if they are multiples of the smallest one divided by 1, 2, … or this."""

STILL = "rpcholesky"
"""Landmarks of a kernel that learns no metric; k-means centres: 1.25 times its error (concrete)."""


def check_settings(learner: Any) -> None:
    """Raise if a setting of a learner has a value that it does not take."""
    if not isinstance(learner.n_components, str):
        require_count("n_components", learner.n_components)
    elif learner.n_components != "auto":
        given = repr(learner.n_components)
        raise ValueError(f'n_components must be a whole number or "auto", but {given} was given.')
    if not isinstance(learner.local, bool) and learner.local != "auto":
        require_count("local", learner.local)
    as_bytes(learner.max_memory)
    for name in ("metric", "landmarks"):
        if not isinstance(value := getattr(learner, name), str | None):
            given = f"{name}={format_value(value)}"
            raise ValueError(f"{name} is a name or None, but {given} was given.")
    scalings = (*(s for s in SCALINGS if s != "none"), None)
    choices = {"scale": scalings, "missing": ("fill", "raise"), "ids": ("drop", "keep")}
    for name, known in choices.items():
        value = getattr(learner, name)
        if not isinstance(value, str | None) or value not in known:
            raise ValueError(unknown(f"setting of {name}", value, map(str, known)))


def check_weights(weights: Any, n: int) -> Floats:
    """Return how often each of n rows counts, shape (n,), checked."""
    given = to_numbers(weights, "sample_weight")
    if given.ndim > 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, not {given.ndim}D.")
    found: Floats = _check_sample_weight(
        given if given.ndim else given.item(), np.empty((n, 1)), ensure_non_negative=True
    )
    largest = found.max()
    if largest > 0 and not SMALLEST < largest < 1 / SMALLEST:
        raise ValueError(
            f"sample_weight has values up to {largest:.3g}, whose squares are out of range: divide "
            "all of them by their mean."
        )
    if not found.sum() > 0:
        raise ValueError("sample_weight is zero for every row: nothing is left to learn from.")
    return found


def unit_of_weights(weights: Floats) -> float:
    """Return the divisor that leaves counts as they are and gives other weights the mean 1."""
    there = weights[weights > 0]
    least = float(there.min())
    for times in range(1, MOST_TIMES + 1):
        counts = there * (times / least)
        if (np.abs(counts - np.round(counts)) <= 1e-9 * counts).all():
            return least / times
    return float(there.mean())


def drop_zero_weights(X: Any, y: Any, weights: Floats | None) -> tuple[Any, Any, Floats | None]:
    """Leave out rows of weight 0, where they are in memory."""
    elsewhere = is_lazy(X) or is_lazy(y) or isinstance(X, Iterator)
    if weights is None or (weights > 0).all() or elsewhere:
        return X, y, weights
    kept = np.flatnonzero(weights > 0)
    table: Any = to_narwhals(X) if is_frame(X) else X if hasattr(X, "shape") else np.asarray(X)
    refuse_unequal(table.shape[0], len(weights))
    if is_frame(X):
        return table[kept.tolist()].to_native(), y[kept], weights[kept]
    return (table.tocsr() if is_sparse(X) else table)[kept], y[kept], weights[kept]


Block = tuple[Any, Any, Any]
"""Rows, targets, and weights or None."""


def blocks_of(blocks: Iterator[Any], weights: Any) -> Iterator[Block]:
    """Yield the blocks of an iterator of (X, y) or (X, y, weights) that have rows.

    `weights`, of shape (n,), are those of all rows, where the blocks have none.
    """
    start = 0
    for block in blocks:
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError("An iterator should yield pairs (X, y), or (X, y, sample_weight).")
        X, y = block[0], block[1]
        if not hasattr(X, "shape"):
            X = to_narwhals(X).to_native() if is_frame(X) else np.asarray(X)
        n = X.shape[0]
        if len(block) == 3 and weights is not None:
            msg = "sample_weight was given twice: in the blocks of the iterator, and beside it."
            raise ValueError(msg)
        own = block[2] if len(block) == 3 else None
        if weights is not None:
            own = np.asarray(weights)[start : start + n]
        start += n
        if n:
            yield X, y, own
    if weights is not None and len(np.asarray(weights)) != start:
        msg = f"sample_weight has {len(np.asarray(weights))} values, but {start} rows came."
        raise ValueError(msg)


def take_buffer(blocks: Iterator[Block]) -> tuple[Block, Iterator[Block]]:
    """Return the first rows of an iterator, joined, and the blocks that remain."""
    held: list[Block] = []
    size = 0
    for X, y, weights in blocks:
        held.append((X, np.asarray(y), weights))
        size += 8 * int(np.prod(X.shape))
        if size >= BUFFER_BYTES:
            break
    if not held:
        raise ValueError("The iterator gave no block of rows: it should yield pairs (X, y).")
    weights = None
    if any(of_block is not None for _, _, of_block in held):
        weights = np.concatenate([np.ones(len(y)) if w is None else w for _, y, w in held])
    tables, y = [X for X, _, _ in held], np.concatenate([y for _, y, _ in held])
    if any(map(is_frame, tables)):
        return (_join_frames(tables), y, weights), blocks
    X = stack_tables([table if is_sparse(table) else np.asarray(table) for table in tables])
    return (X, y, weights), blocks


def _join_frames(parts: list[Any]) -> Any:
    """Return data frames as one, with the columns of the first; types that differ are widened."""
    import narwhals as nw

    if not all(map(is_frame, parts)):
        raise ValueError("The iterator gives data frames and arrays: give blocks of one kind.")
    frames, names = [to_narwhals(part) for part in parts], list_column_names(parts[0])
    for i, frame in enumerate(frames):
        refuse_unknown(names, frame.columns, f"Block {i} of the iterator")
    frames = [frame.select(names) for frame in frames]
    if len({(frame.implementation, *frame.schema.items()) for frame in frames}) == 1:
        return nw.concat(frames).to_native()
    pa = import_optional("pyarrow")
    tables = [frame.to_arrow() for frame in frames]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        msg = f"The blocks of the iterator have columns that do not go together: {error}."
        raise ValueError(msg) from error


def candidates_for(
    kernel: Any, metric: str | None, scale: str | None, landmarks: str, rows: Rows
) -> Groups:
    """Return what is tried on these rows, with the settings of `NystroemRegressor`."""
    trained = landmarks == "target" and not isinstance(kernel, Anova) and kernel != "anova"
    name = STILL if landmarks == "target" else landmarks
    place = None if trained else place_of(name)
    return make_candidates(kernel, metric, scale, place, name if place else landmarks, rows)


def place_of(name: Any) -> Place:
    """Return where the landmarks of a method's name come from; "uniform" are rows at random.

    What a method finds is taken as it is: its landmarks Z, and the N of its features k(x, Z) N.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(unknown("kind of landmarks", name, ("target", *METHODS)))
    if name == "uniform":
        return uniform_landmarks
    run = find_method(name)

    def place(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, Array]:
        settings = Settings(n_components=c)
        transform, _ = run(gram, settings, rng).feature_map(settings.row_cap)
        landmarks = transform.landmarks
        if transform.kernel != gram.kernel or landmarks.points is None:
            raise ValueError(
                f"{name!r} has features of another kind than kernel values against landmarks: "
                'compare it as nb.Nystroem(method=…) in a pipeline, or take landmarks="joint".'
            )
        return landmarks.points, transform.normalization

    return place
