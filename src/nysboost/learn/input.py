"""Check and convert the settings, tables and weights that users pass to learners."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from nysboost.catalogue import METHODS, find_method
from nysboost.gram import KernelGram
from nysboost.kernels import Anova
from nysboost.kernels.metric import SCALINGS
from nysboost.learn.search.candidates import Place, uniform_landmarks
from nysboost.learn.search.regimes import Groups, make_candidates
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Numbers,
    TableLike,
    gather,
    is_lazy,
    is_sparse,
    stack_tables,
    to_host,
)
from nysboost.numerics.checks import (
    LEAVE_OUT,
    Given,
    as_bytes,
    refuse_non_finite,
    refuse_unequal,
    require_count,
    require_positive,
    to_numbers,
)
from nysboost.numerics.messages import format_value, unknown
from nysboost.rows.recognise import is_frame
from nysboost.rows.rows import Rows
from nysboost.settings import Settings
from nysboost.tables.dates import DATES
from nysboost.tables.frames import (
    RawColumn,
    Table,
    list_column_names,
    read_columns,
    refuse_unknown,
    to_narwhals,
)
from nysboost.tables.schema import Schema
from nysboost.user_error import import_optional

if TYPE_CHECKING:
    from nysboost.learn.base import BaseLearner

BUFFER_BYTES = 2**28
"""The first blocks of an iterator, up to this size, are fitted; later ones are added to it."""

SMALLEST = 1e-100
"""Squares of numbers below this, or above its inverse, are out of range."""

MOST_TIMES = 10
"""Weights are counts of rows if they are multiples of the smallest one divided by 1, 2, … or
this."""

STILL = "rpcholesky"
"""Landmarks of a kernel that learns no metric; k-means centres: 1.25 times its error (concrete)."""

SORTED_SHARE = 0.95
"""Rows are in order of time if at least this share of them is not earlier than the row above."""

SAID_OF_GROUPS = "groups, or the test sets of cv, have {} rows"

# Settings


def check_settings(learner: BaseLearner) -> None:
    """Raise if a setting of a learner has an invalid value."""
    if not isinstance(learner.n_components, str):
        require_count("n_components", learner.n_components)
    elif learner.n_components != "auto":
        given = repr(learner.n_components)
        raise ValueError(f'n_components must be a whole number or "auto", but {given} was given.')

    if isinstance(learner.local, str) and learner.local != "auto":
        given = repr(learner.local)
        raise ValueError(
            f'local must be True, False, "auto" or a positive whole number, but {given} was given.'
        )
    if not isinstance(learner.local, bool | np.bool | str):
        require_count("local", learner.local)
    if learner.max_time is not None:
        require_positive("max_time", learner.max_time)
    as_bytes(learner.max_memory)

    names = {
        "metric": (learner.metric, str | None, "a name or None"),
        "landmarks": (learner.landmarks, str, "a name"),
    }
    for name, (value, kind, what) in names.items():
        if not isinstance(value, kind):
            given = f"{name}={format_value(value)}"
            raise ValueError(f"{name} is {what}, but {given} was given.")

    scalings = (*(name for name in SCALINGS if name != "none"), None)
    choices = {
        "scale": scalings,
        "missing": ("fill", "raise"),
        "ids": ("drop", "keep"),
    }
    for name, known in choices.items():
        value = getattr(learner, name)
        if not isinstance(value, str | None) or value not in known:
            raise ValueError(unknown(f"setting of {name}", value, map(str, known)))


def candidates_for(
    kernel: Given,
    metric: str | None,
    scale: str | None,
    landmarks: str,
    rows: Rows,
) -> Groups:
    """Return the candidates for these rows under the settings of `NystroemRegressor`."""
    has_metric = not isinstance(kernel, Anova) and kernel != "anova"
    if landmarks == "target" and has_metric:
        return make_candidates(kernel, metric, scale, None, landmarks, rows)

    # without a metric, landmarks are not trained
    if landmarks == "target":
        landmarks = STILL
    place = place_of(landmarks)
    return make_candidates(kernel, metric, scale, place, landmarks, rows)


def place_of(name: object) -> Place:
    """Return the function that finds landmarks by the method with this name.

    The result of the method is used unchanged: landmarks Z, and N of its features k(x, Z) N.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(unknown("kind of landmarks", name, ("target", *METHODS)))
    if name == "uniform":
        return uniform_landmarks
    run = find_method(name)

    def place(gram: KernelGram, c: int, rng: Generator) -> tuple[Array, Array]:
        settings = Settings(n_components=c)
        approximation = run(gram, settings, rng)
        transform, _ = approximation.feature_map(settings.row_cap)

        landmarks = transform.landmarks
        if transform.kernel != gram.kernel or landmarks.points is None:
            raise ValueError(
                f"The features of {name!r} are not kernel values with landmarks: use "
                'nb.Nystroem(method=…) in a pipeline, or choose landmarks="joint".'
            )
        return landmarks.points, transform.normalization

    return place


# Tables with targets


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows X (n, d) with targets y and weights, shape (n,) or None.

    Rows of one of the `groups`, numbers of shape (n,), are held out together. If there is a table
    for `validation`, its rows are held out instead.
    """

    X: Table
    y: Table
    weights: Given = None
    groups: Indices | None = None
    validation: TrainingTable | None = None

    @classmethod
    def of(
        cls,
        X: TableLike,
        y: TableLike | None,
        weights: ArrayLike | None,
        groups: ArrayLike | str | None,
        validation: object = None,
    ) -> TrainingTable:
        """Return the table of a fit; a column with the groups is not a feature."""
        if validation is not None:
            return cls(X, y, weights, validation=_read_validation(validation))
        if groups is None:
            return cls(X, y, weights)
        values = groups
        if isinstance(groups, str):
            X, values = _split_column(X, groups)
        return cls(X, y, weights, number_groups(values))

    def counting(self) -> TrainingTable:
        """Return the table without rows of weight 0, if it is in memory."""
        in_memory = not is_lazy(self.X) and not is_lazy(self.y)
        if self.weights is None or not in_memory:
            return self
        counts = self.weights > 0
        if counts.all():
            return self

        kept = np.flatnonzero(counts)
        X = _take_rows(self.X, kept, len(self.weights))
        groups = self.groups
        if groups is not None:
            refuse_unequal(len(self.weights), len(groups), SAID_OF_GROUPS)
            groups = groups[kept]
        return replace(self, X=X, y=self.y[kept], weights=self.weights[kept], groups=groups)


def _read_validation(given: object) -> TrainingTable:
    """Return the table of a tuple (X, y) or (X, y, weights); raise for other values."""
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise ValueError(
            "validation is a tuple (X, y) or (X, y, sample_weight) of rows that are held out, but "
            f"{format_value(given)} was given."
        )
    table = TrainingTable(*given)
    if isinstance(table.X, Iterator):
        raise ValueError("validation has an iterator in place of X: pass a table.")
    return table


def _take_rows(X: Table, kept: Indices, n: int) -> Table:
    """Return some of the n rows of a table in memory."""
    if is_frame(X):
        frame = to_narwhals(X)
        refuse_unequal(frame.shape[0], n)
        return frame[kept.tolist()].to_native()

    if not hasattr(X, "shape"):
        X = np.asarray(X)
    refuse_unequal(X.shape[0], n)
    if is_sparse(X):
        X = X.tocsr()  # other formats have no rows to take
    return X[kept]


# Weights


def check_weights(weights: ArrayLike, n: int) -> Floats:
    """Return the checked weights of n rows, shape (n,)."""
    given = to_numbers(gather(weights), "sample_weight")
    if given.ndim > 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, not {given.ndim}D.")
    if given.ndim == 0:
        given = np.full(n, given)
    refuse_unequal(n, len(given), "sample_weight has {}")

    found = given.astype(np.float64)
    refuse_non_finite(found, 0, "sample_weight", LEAVE_OUT)
    if found.min() < 0:
        row = int(np.argmax(found < 0))
        raise ValueError(
            f"sample_weight has {found[row]:g} in row {row}: a weight is a positive number, or 0 "
            "where a row does not count."
        )

    # weights so different that small ones would be lost in sums
    largest = found.max()
    least = found.min(where=found > 0, initial=largest)
    if least < SMALLEST * largest:
        raise ValueError(
            f"sample_weight has values from {least:.3g} to {largest:.3g}, too different to be "
            "added up: make the largest ones smaller, or those that hardly count 0."
        )
    if largest > 0 and not SMALLEST < largest < 1 / SMALLEST:
        raise ValueError(
            f"sample_weight has values up to {largest:.3g}, whose squares are out of range: divide "
            "all of them by their mean."
        )
    if not found.sum() > 0:
        raise ValueError("sample_weight is zero for every row: give some rows a positive weight.")
    return found


def unit_of_weights(weights: Floats) -> float:
    """Return the divisor that leaves counts unchanged and gives other weights a mean of 1."""
    there = weights[weights > 0]
    least = float(there.min())

    # the least weight may stand for 1, 2, … rows
    for times in range(1, MOST_TIMES + 1):
        counts = there * (times / least)
        is_whole = np.abs(counts - np.round(counts)) <= 1e-9 * counts
        if is_whole.all():
            return least / times
    return float(there.mean())


# Groups and time


def groups_of_splits(cv: object) -> Indices | None:
    """Return the number of the split that holds out each row, shape (n,), or None for "time"."""
    if isinstance(cv, str) and cv == "time":
        return None

    # the test sets hold each row once
    tests = _test_sets(cv)
    rows = np.concatenate([np.empty(0), *tests])
    is_partition = np.array_equal(np.sort(rows), np.arange(len(rows)))
    if len(tests) < 2 or not is_partition:
        raise ValueError(
            'cv is "time", None, or a list of splits (train, test) such as '
            "list(KFold(5).split(X)), whose test sets contain each row exactly once, but "
            f"cv={_format_splits(cv)} was given."
        )

    # the number of the split of each test row, in the order of the rows
    sizes = [len(test) for test in tests]
    numbers = np.repeat(np.arange(len(tests)), sizes)
    return np.asarray(numbers[np.argsort(rows)])


def _format_splits(cv: object) -> str:
    """Return a setting of cv as a message shows it: of a list the length alone."""
    if isinstance(cv, list | tuple):
        return f"<{type(cv).__name__} of {len(cv)}>"
    return format_value(cv)


def _test_sets(splits: object) -> list[Numbers]:
    """Return the test sets of pairs (train, test), or an empty list if a pair is invalid."""
    tests: list[Numbers] = []
    if not isinstance(splits, list | tuple):
        return tests
    for split in splits:
        if not isinstance(split, list | tuple) or len(split) != 2:
            return []
        test = np.asarray(split[1])
        if test.ndim != 1:
            return []
        tests.append(test)
    return tests


def _split_column(X: Table, name: str) -> tuple[Table, Table]:
    """Return a frame without one of its columns, and the values of that column."""
    if not is_frame(X):
        raise ValueError(
            f"groups={name!r} names a column, but X is not a data frame: give the groups as an "
            "array with one value for each row."
        )
    refuse_unknown([name], list_column_names(X), "X")

    if is_lazy(X):
        return X.drop(columns=[name]), X[name]
    frame = to_narwhals(X)
    features = frame.drop(name).to_native()
    return features, frame[name].to_list()


def number_groups(groups: Table) -> Indices:
    """Return the number of each row's group, in the order of the groups' names, shape (n,)."""
    # the value of each row, on the host
    values = gather(groups)
    if hasattr(values, "device") and not isinstance(values, np.ndarray):
        values = to_host(values)
    if not isinstance(values, list):
        values = np.asarray(values)

    shape = np.shape(values)
    if len(shape) != 1:
        raise ValueError(
            f"groups should have one value for each row, shape (n,), but an array of shape {shape} "
            "was given."
        )

    cells = RawColumn.of("groups", "object", list(values))
    if cells.gaps.any():
        row = int(np.argmax(cells.gaps))
        raise ValueError(
            f"groups has no value in row {row}: give this row a group of its own, or remove it."
        )

    # numbers in the order of the names, which do not depend on the order of the rows
    names = [str(value) for value in cells.values or ()]
    rank = np.argsort(np.argsort(names, kind="stable"))
    return np.asarray(rank[cells.data])


def warn_if_unsorted(X: Table, schema: Schema) -> None:
    """Warn if no date column of a frame in memory is in increasing order."""
    dates = [column for column in schema.columns if column.kind in DATES]
    if not dates or not is_frame(X) or is_lazy(X):
        return

    cells = read_columns(X, [column.name for column in dates])
    for column, cell in zip(dates, cells, strict=True):
        seconds = column.read(cell, "fill", 0)
        steps = np.diff(seconds[~np.isnan(seconds)])
        if np.sum(steps >= 0) >= SORTED_SHARE * len(steps):
            return

    warnings.warn(
        f'cv="time" holds out the last rows, but the rows are not in the order of '
        f"{dates[0].name!r}: sort them by time first.",
        stacklevel=2,
    )


# Iterators


def read_blocks(blocks: Iterator[object], weights: ArrayLike | None) -> Iterator[TrainingTable]:
    """Yield the non-empty blocks of an iterator of (X, y) or (X, y, weights).

    `weights` (n,) are the weights of the rows of all blocks, if the blocks do not contain weights.
    """
    start = 0
    for block in blocks:
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError("An iterator should yield pairs (X, y), or (X, y, sample_weight).")
        if len(block) == 3 and weights is not None:
            msg = "sample_weight was given twice, in the blocks of the iterator and as an argument."
            raise ValueError(msg)

        # each row has a target
        table = TrainingTable(*block)
        if not hasattr(table.X, "shape"):
            table = replace(table, X=_with_shape(table.X))
        n = table.X.shape[0]
        n_targets = len(np.atleast_1d(np.asarray(table.y)))
        if n_targets != n:
            msg = f"A block of the iterator has {n} rows in X and {n_targets} values in y."
            raise ValueError(msg)

        # the weights of all rows are given in the order of the blocks
        if weights is not None:
            own = np.asarray(weights)
            if own.ndim == 0:
                own = np.full(n, own)
            else:
                own = own[start : start + n]
            table = replace(table, weights=own)
        start += n
        if n > 0:
            yield table

    if weights is not None and np.ndim(weights) > 0:
        n_weights = len(np.asarray(weights))
        if n_weights != start:
            msg = f"sample_weight has {n_weights} values, but the iterator had {start} rows."
            raise ValueError(msg)


def _with_shape(X: Table) -> Table:
    """Convert rows without a shape, such as lists, to an array."""
    if is_frame(X):
        return to_narwhals(X).to_native()
    return np.asarray(X)


def take_buffer(blocks: Iterator[TrainingTable]) -> TrainingTable:
    """Return the first rows of an iterator as one table; the iterator continues after them."""
    held: list[TrainingTable] = []
    size = 0
    for block in blocks:
        y = np.asarray(block.y)
        held.append(replace(block, y=y))
        size += 8 * math.prod(block.X.shape)
        if size >= BUFFER_BYTES:
            break
    if not held:
        raise ValueError("The iterator was empty: it should yield pairs (X, y).")

    X = _join_tables([block.X for block in held])
    shapes = {block.y.shape[1:] for block in held}
    if len(shapes) > 1:
        said = " and ".join(str(("n", *shape)) for shape in sorted(shapes))
        raise ValueError(f"The blocks of the iterator have y of shapes {said}: give one shape.")
    y = np.concatenate([block.y for block in held])
    return TrainingTable(X, y, _join_weights(held))


def _join_weights(blocks: Sequence[TrainingTable]) -> Floats | None:
    """Return the weights of all rows, 1 in blocks without; None if no block has weights."""
    if all(block.weights is None for block in blocks):
        return None

    weights = []
    for block in blocks:
        of_block = block.weights
        if of_block is None:
            of_block = np.ones(len(block.y))
        weights.append(of_block)
    return np.concatenate(weights)


def _join_tables(parts: list[Table]) -> Table:
    """Concatenate tables: frames, or arrays and CSR matrices."""
    if any(map(is_frame, parts)):
        return _join_frames(parts)

    tables = []
    widths = set()
    for part in parts:
        table = part
        if not is_sparse(part):
            table = np.asarray(part)
        if table.ndim == 2:
            widths.add(table.shape[1])
        tables.append(table)

    if len(widths) > 1:
        msg = f"Blocks have {min(widths)} to {max(widths)} columns: give all the same columns."
        raise ValueError(msg)
    return stack_tables(tables)


def _join_frames(parts: list[Table]) -> Table:
    """Concatenate data frames with the columns of the first; different types are widened."""
    import narwhals as nw

    if not all(map(is_frame, parts)):
        raise ValueError("The iterator yields data frames and arrays: give blocks of one kind.")

    # the columns of the first block, in its order
    frames = [to_narwhals(part) for part in parts]
    names = list_column_names(parts[0])
    for i, frame in enumerate(frames):
        refuse_unknown(names, frame.columns, f"Block {i} of the iterator")
    frames = [frame.select(names) for frame in frames]

    schemas = {(frame.implementation, *frame.schema.items()) for frame in frames}
    if len(schemas) == 1:
        return nw.concat(frames).to_native()

    # Arrow finds a type that holds the values of all blocks, as of whole numbers and fractions
    pa = import_optional("pyarrow")
    tables = [frame.to_arrow() for frame in frames]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        msg = f"The columns of the iterator's blocks cannot be combined: {error}."
        raise ValueError(msg) from error
