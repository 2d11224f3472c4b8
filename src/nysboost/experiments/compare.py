"""Which method suits this data and kernel? Error, time and entries of each, and a choice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import nysboost as nb
from nysboost.approximation import Approximation
from nysboost.boosting.variants import JOINT_VARIANTS, VARIANTS
from nysboost.experiments.errors import relative_errors
from nysboost.experiments.replicate import ENSEMBLES
from nysboost.experiments.shared_gram import SharedGram
from nysboost.experiments.user_data import Matrix
from nysboost.experiments.user_error import UserError
from nysboost.gram import make_gram
from nysboost.kernels import Kernel, make_kernel
from nysboost.numerics.arrays import floats_on_host, is_sparse
from nysboost.numerics.checks import unknown

MIXTURES = (*VARIANTS, *JOINT_VARIANTS, *ENSEMBLES)
SINGLE = ("nystrom", "nystrom-fixed-rank")
DEFAULT_METHODS = (
    "joint",
    "nystrom",
    "kmeans",
    "rpcholesky",
    "ensemble-ridge",
    "UUB-mean",
    "URB-mean",
    "RRB-mean",
    "URB-med",
)
LIMIT = "optimal"
"""No method to use but the limit for all: it decomposes the whole matrix."""
WIDEST = 20_000
"""Most rows whose exact error can be afforded: it takes all n² entries."""
CLOSE_ENOUGH = 1.05
MUCH_FASTER = 0.5
"""An error 5% larger is within what other seeds give; half the time is worth that to most."""


@dataclass(frozen=True)
class Task:
    """What is compared: points, kernel, budget.

    Attributes
    ----------
    budget : int
        The number of columns of the Gram matrix that each method may use.
    n_learners : int
        How many learners a mixture splits them between.
    repeats : int
        How many seeds each method runs with.
    lenient : bool
        Leave out a method that cannot do with these points and this kernel, and go on.
    """

    X: Matrix
    kernel: Kernel
    methods: tuple[str, ...]
    budget: int
    n_learners: int = 8
    rank: int | None = None
    repeats: int = 3
    seed: int = 0
    lenient: bool = False


@dataclass(frozen=True)
class Outcome:
    """One method on the user's data: means over repeats.

    Attributes
    ----------
    error, standard_error, seconds, entries : float
        Relative Frobenius error, processor time to fit, entries of the Gram matrix evaluated.
    curve : tuple of (columns used, error)
        The errors of its prefixes, the last one with the whole budget.
    """

    method: str
    error: float
    standard_error: float
    seconds: float
    entries: float
    curve: tuple[tuple[int, float], ...]


def choose_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Return the methods asked for: names, "all", or those that suit most people."""
    if not names:
        return tuple(m for m in DEFAULT_METHODS if m in nb.METHODS)
    if list(names) == ["all"]:
        return tuple(nb.METHODS)
    for name in names:
        if name not in nb.METHODS:
            raise UserError(unknown("method", name, nb.METHODS))
    return tuple(dict.fromkeys(names))


def choose_kernel(name: str, sigma: str | None) -> Kernel:
    """Return a kernel by name; sigma is a number, "median" or "scale"."""
    try:
        width: Any = sigma if sigma in (None, "median", "scale") else float(str(sigma))
    except ValueError as error:
        message = f"--sigma takes a number, median or scale, but {sigma!r} was given."
        raise UserError(message) from error
    if name == "precomputed":
        raise UserError("A precomputed matrix is no table of points: use nysboost.approximate.")
    try:
        has_sigma = hasattr(make_kernel(name), "sigma")
        if width is None:
            width = "median" if has_sigma else None
        elif not has_sigma:
            raise UserError(f"The kernel {name} has no sigma: leave --sigma out.")
        return make_kernel(name, sigma=width)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error


def subsample(X: Matrix, most: int, seed: int) -> Matrix:
    """Return at most this many rows, drawn at random and kept in their order."""
    if most > WIDEST:
        raise UserError(f"The exact error takes all n² entries: at most {WIDEST} rows, not {most}.")
    if X.shape[0] <= most:
        return X
    rng = np.random.default_rng(seed)
    return X[np.sort(rng.choice(X.shape[0], size=most, replace=False))]


def standardise(X: Matrix) -> Matrix:
    """Return the columns with mean 0 and standard deviation 1; constant ones become 0."""
    if is_sparse(X):
        raise UserError("A sparse table this wide cannot be standardised: it would fill up.")
    dense = np.asarray(X)
    scale = dense.std(axis=0)
    return np.asarray((dense - dense.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def run(
    task: Task,
    progress: Callable[[str], None] = lambda _: None,
    left_out: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Run every method and return what each cost and gave, smallest error first.

    Parameters
    ----------
    task : Task
        What is compared.
    progress : callable
        Called with the name of each method before it runs.
    left_out : callable
        Called with a sentence for each method that a lenient task leaves out.
    """
    n = task.X.shape[0]
    if task.budget > n:
        message = (
            f"{task.budget} columns are asked for, but there are only {n} rows: "
            "lower --columns or give more rows."
        )
        raise UserError(message)
    if task.budget < task.n_learners and set(task.methods) & set(MIXTURES):
        message = f"{task.budget} columns cannot be split between {task.n_learners} learners."
        raise UserError(message)
    runs: dict[str, list[_Run]] = {method: [] for method in task.methods}
    try:
        _run_all(task, runs, progress, left_out)
    except ValueError as error:
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        done = sum(map(bool, runs.values()))
        if not done:
            raise
        left_out(
            f"Stopped by Ctrl-C: {done} of {len(task.methods)} methods were run, with "
            f"{sum(map(len, runs.values()))} of {len(task.methods) * task.repeats} seeds."
        )
    outcomes = [_outcome(method, found) for method, found in runs.items() if found]
    return sorted(outcomes, key=lambda o: o.error)


def _run_all(
    task: Task,
    runs: dict[str, list[_Run]],
    progress: Callable[[str], None],
    left_out: Callable[[str], None],
) -> None:
    """Run every method with the first seed, then with the next: each round takes as long."""
    methods = list(task.methods)
    # With one thread, processor time is the time on an idle machine.
    with threadpool_limits(1):
        G = SharedGram(make_gram(task.X, task.kernel)).values
        for repeat in range(task.repeats):
            for method in tuple(methods):
                progress(method)
                try:
                    runs[method].append(_run_once(task, method, task.seed + repeat, G))
                except ValueError as error:
                    if not task.lenient:
                        raise
                    methods.remove(method)
                    left_out(f"{method} was left out. {error}")


def _sizes(task: Task, method: str) -> dict[str, Any]:
    if method in MIXTURES:
        n_columns = task.budget // task.n_learners
        sizes: dict[str, Any] = {"n_learners": task.n_learners, "n_columns": n_columns}
        return sizes if task.rank is None else sizes | {"rank": min(task.rank, n_columns)}
    if method in SINGLE:
        return {"n_columns": task.budget, "rank": task.rank}
    return {"n_components": task.budget}


@dataclass(frozen=True)
class _Run:
    """One method with one seed."""

    seconds: float
    entries: int
    curve: list[tuple[int, float]]


def _run_once(task: Task, method: str, seed: int, G: NDArray[np.float64]) -> _Run:
    began = time.process_time()
    approximation = nb.approximate(
        task.X, method, task.kernel, random_state=seed, **_sizes(task, method)
    )
    seconds = time.process_time() - began
    return _Run(seconds, approximation.entries_evaluated, _curve(task, approximation, G))


def _outcome(method: str, runs: Sequence[_Run]) -> Outcome:
    """Return the means over the seeds."""
    errors = np.array([[error for _, error in run.curve] for run in runs])
    spread = errors[:, -1].std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
    columns = [c for c, _ in runs[0].curve]
    return Outcome(
        method,
        float(errors[:, -1].mean()),
        float(spread),
        float(np.mean([run.seconds for run in runs])),
        float(np.mean([run.entries for run in runs])),
        tuple((c, float(e)) for c, e in zip(columns, errors.mean(axis=0), strict=True)),
    )


def _curve(task: Task, method: Approximation, G: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Return columns used and error of each prefix; of the whole alone where there is none."""
    if not method.learners:
        return [(task.budget, method.relative_error())]
    if method.trajectory is None:
        return [(task.budget, _errors([method], G)[0])]
    columns = np.cumsum([len(learner.landmarks) for learner in method.trajectory.learners])
    prefixes = [method.prefix(p) for p in range(1, len(columns) + 1)]
    return list(zip(columns.tolist(), _errors(prefixes, G), strict=True))


def _errors(approximations: list[Approximation], G: NDArray[np.float64]) -> list[float]:
    """Return relative errors; mixtures of the same learners share their features."""
    most = approximations[-1].learners
    nested = all(a.learners == most[: len(a.learners)] for a in approximations)
    groups = [approximations] if nested else [[a] for a in approximations]
    errors = []
    for group in groups:
        features = [floats_on_host(f.features(group[-1].gram)) for f in group[-1].learners]
        found = relative_errors(G, features, {i: a.weights for i, a in enumerate(group)})
        errors += [found[i] for i in range(len(group))]
    return errors


def pareto_front(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the methods that no other beats in error, time and entries together."""

    def cost(o: Outcome) -> NDArray[np.float64]:
        return np.array([o.error, o.seconds, o.entries])

    return {
        o.method
        for o in outcomes
        if not any((cost(b) <= cost(o)).all() and (cost(b) < cost(o)).any() for b in outcomes)
    }


def recommend(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return one method and the sentence that says why.

    The smallest error wins, unless a method within 5% of it takes at most half the time.
    """
    outcomes = [o for o in outcomes if o.method != LIMIT] or outcomes
    best = min(outcomes, key=lambda o: o.error)
    near = [o for o in outcomes if o.error <= CLOSE_ENOUGH * best.error]
    fastest = min(near, key=lambda o: o.seconds)
    if len(outcomes) == 1:
        reason = f"{best.method} is the only method compared: its error is {best.error:.3g}."
        return best.method, reason
    if fastest.seconds <= MUCH_FASTER * best.seconds:
        return fastest.method, (
            f"Use {fastest.method}: its error {fastest.error:.3g} is within 5% of the smallest "
            f"({best.error:.3g}, {best.method}), and it takes {fastest.seconds:.3g} s instead of "
            f"{best.seconds:.3g} s."
        )
    return best.method, (
        f"Use {best.method}: its error {best.error:.3g} is the smallest of the {len(outcomes)} "
        f"methods compared, and none within 5% of it takes half its time ({best.seconds:.3g} s)."
    )
