"""The method "target": features that serve a linear model of y."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nysboost.approximation import Approximation
from nysboost.boosting.learner import Learner, Mixture
from nysboost.data.rows import Rows
from nysboost.gram import Gram, KernelGram, Landmarks
from nysboost.kernels import Matern
from nysboost.numerics.arrays import Floats, dense, floats_on_host, like, namespace, to_host
from nysboost.numerics.memory import Budget, keep_freed_memory
from nysboost.numerics.progress import Work
from nysboost.settings import Settings
from nysboost.target.candidates import Sample
from nysboost.target.few import FEW, learn_few
from nysboost.target.judged import Judged
from nysboost.target.many import learn_many
from nysboost.target.menu import Menu, menu
from nysboost.target.race import SAMPLE_BYTES, SAMPLE_ROWS, drawn, narrow, taken, trace_of
from nysboost.target.recipes import TRACE_FEW
from nysboost.target.scale import Scaling
from nysboost.target.scouts import HEAVY, scouted
from nysboost.target.size import LEAST, SEARCH_ROWS, enough

LEAST_ROWS = 40
"""With fewer rows only the simplest model is fitted: nothing else could be judged."""


def target(gram: Gram, y: Any, settings: Settings, rng: np.random.Generator) -> Approximation:
    """Return the Nyström approximation on landmarks, under a kernel and a metric, that know y.

    Of the Gram's own kernel only the family counts, and only if it is Matérn: kernel, metric and
    bandwidth are found. With few rows the best part of the mixture is returned.

    Parameters
    ----------
    gram : KernelGram
        The rows.
    y : array-like of shape (n,) or (n, t)
        Targets, or labels.
    settings : Settings
        Its number of landmarks is asked for.
    rng : numpy.random.Generator
        Source of all randomness.
    """
    if not isinstance(gram, KernelGram):
        msg = "The method 'target' moves landmarks: it needs rows, not a precomputed kernel."
        raise ValueError(msg)
    Y, c = indicators(y, gram.n), settings.landmarks(gram.n)
    kernel: Any = gram.kernel if isinstance(gram.kernel, Matern) else "auto"
    options = menu(kernel, "auto", gram.rows.n_features)
    judged = learn(gram.rows, Y, None, options, c, rng, budget=gram.budget)
    best = judged.models[int(np.argmax(judged.shares))].basis
    found = KernelGram(gram.rows, best.kernel)
    found.budget = gram.budget
    points = like(best.Z, dense(gram.rows.form))
    learner = Learner(Landmarks(None, points), like(best.N, points))
    return Approximation(found, Mixture((learner,), np.ones(1)))


def learn(
    rows: Rows,
    Y: Floats,
    weights: Floats | None,
    options: Menu,
    c: int | None,
    rng: np.random.Generator,
    *,
    budget: Budget,
    scaling: Scaling | None = None,
    work: Work | None = None,
) -> Judged:
    """Return what is found on rows with targets Y: by a race if they are many, else by folds.

    Parameters
    ----------
    rows : Rows
        n rows of numbers.
    Y : array of shape (n, t)
        Targets.
    weights : array of shape (n,) or None
        How often each row counts.
    options : Menu
        What is tried.
    c : int or None
        Number of landmarks; None for as many as lower the held-out error (`enough`).
    rng : numpy.random.Generator
        Source of all randomness.
    budget : Budget
        Memory and cores of the pass over all rows.
    scaling : callable or None
        From rows to the coordinates in which the search begins; None leaves it to scouts.
    work : Work or None
        Takes lines of progress.
    """
    keep_freed_memory()
    work = work or Work()
    constant = not bool((Y[:1] != Y).any())
    if rows.n > FEW:
        many = () if constant else options.many
        scaling = scaling or scouted(many, rows.form, HEAVY, rng)
        if c is None:
            search = rng.spawn(1)[0]  # of its own: the rest is as if c had been given
            room = max(4 * LEAST, SAMPLE_BYTES // (8 * rows.n_features))
            order = drawn(rows.n, min(rows.n, SEARCH_ROWS, room), search)
            _, _, some = taken(rows, Y, weights, order, scaling)
            trace = partial(trace_of, n=min(rows.n, SAMPLE_ROWS))
            c = enough(some, options.plain, many, trace, search, work)
        if many and narrow(rows.n, c):
            many = options.few
        return learn_many(
            rows, Y, weights, options.plain, many, c, rng,
            scaling=scaling, budget=budget, work=work,
        )  # fmt: skip
    stored = dense(rows.take(slice(None)))
    X, Y, weights = _canonical(
        namespace(stored).astype(stored, namespace(stored).float64), Y, weights
    )
    targets, of_rows = like(Y, X), None if weights is None else like(weights, X)
    tried = () if constant or X.shape[0] < LEAST_ROWS else options.few
    scaling = scaling or scouted(tried, rows.form, 0.0, rng)
    scale = scaling(X, targets, of_rows)
    sample = Sample(scale(X), targets, of_rows, scale.factor)
    if c is None:
        c = enough(sample, options.plain, tried, lambda _: TRACE_FEW, rng.spawn(1)[0], work)
    return learn_few(sample, scale, options.plain, tried, c, rng, work)


def indicators(y: Any, n: int) -> Floats:
    """Return targets as numbers, centred on nothing, shape (n, t); labels as indicators."""
    if y is None:
        msg = "The method 'target' needs y, the target that landmarks are to serve: pass y=y."
        raise ValueError(msg)
    host = to_host(y) if hasattr(y, "device") and not isinstance(y, np.ndarray) else np.asarray(y)
    if len(host) != n:
        msg = f"X has {n} rows, but y has {len(host)}: give as many of one as of the other."
        raise ValueError(msg)
    if host.dtype.kind in "fiu" and not _are_labels(host):
        Y = floats_on_host(host).reshape(n, -1)
        if not np.isfinite(Y).all():
            msg = "y contains NaN or infinity: remove such rows first."
            raise ValueError(msg)
        spread = Y.std(axis=0)
        return np.asarray((Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    labels, codes = np.unique(host, return_inverse=True)
    return np.eye(len(labels))[codes.ravel()]


def _are_labels(y: Floats) -> bool:
    """Whether numbers are labels: integers, of which each comes many times."""
    return y.ndim == 1 and y.dtype.kind in "iu" and len(np.unique(y)) <= max(2, len(y) // 20)


def _canonical(X: Any, Y: Floats, weights: Floats | None) -> tuple[Any, Floats, Floats | None]:
    """Return the rows sorted, equal ones as one with their weights added, of no weight none.

    So neither the order of the rows nor whether one is repeated or weighed twice matters.
    """
    counts = np.ones(X.shape[0]) if weights is None else weights
    both = np.concatenate([to_host(X), Y], axis=1)[counts > 0]
    distinct, group = np.unique(both, axis=0, return_inverse=True)
    added = np.bincount(group.ravel(), counts[counts > 0], minlength=len(distinct))
    d = X.shape[1]
    plain = None if (added == 1).all() else np.asarray(added, dtype=np.float64)
    return like(distinct[:, :d], X), distinct[:, d:], plain
