"""The base class of estimators: parameters, copies, HTML, fits that succeed or change nothing.

Every estimator decorates its `fit` with `@fit_method`, other methods that fit with
`@all_or_nothing`, and methods that users call on a fitted estimator with `@with_usual_errors`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags, estimator_html_repr

from nysboost.approximation import Approximation
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import MAX_MEMORY, Budget, RandomState
from nysboost.numerics.messages import unknown
from nysboost.numerics.progress import Progress, report_progress

Method = TypeVar("Method", bound=Callable[..., object])

PARTS = 100
"""Number of parts into which a fit is divided for scikit-learn's callbacks."""

with_usual_errors = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
"""NumPy's own settings, under which the library is tested."""

KernelLike = str | Kernel | Callable[..., Array]


class Estimator(CallbackSupportMixin, BaseEstimator):
    """A scikit-learn estimator with kernel parameters such as ``kernel__sigma``."""

    kernel: KernelLike
    max_memory: int | str
    n_jobs: int | None
    verbose: int | None

    def set_params(self, **params: object) -> Self:
        """Set parameters by name. Setting one of the kernel replaces the kernel object.

        Parameters
        ----------
        **params
            Names such as ``kernel__nu`` are parameters of the kernel, which has to be a kernel
            object.

        Examples
        --------
        >>> import nysboost as nb
        >>> nb.Nystroem(nb.Matern(nu=1.5)).set_params(kernel__nu=2.5).kernel
        Matern(nu=2.5)
        """
        own = {}
        of_kernel = {}
        for name, value in params.items():
            if name.startswith("kernel__"):
                of_kernel[name.removeprefix("kernel__")] = value
            else:
                own[name] = value

        # set the kernel first: `kernel__` parameters belong to the new one
        super().set_params(**own)
        if of_kernel:
            self.kernel = self._change_kernel(of_kernel)
        return self

    def _change_kernel(self, changed: Mapping[str, object]) -> Kernel:
        """Return the kernel with other parameters."""
        if not isinstance(self.kernel, Kernel):
            names = ", ".join(f"kernel__{name}" for name in changed)
            raise ValueError(
                f"{names} is a parameter of a kernel object, but kernel="
                f"{self.kernel!r} was given: pass an object, such as kernel=nysboost.Gaussian()."
            )

        known = self.kernel.get_params()
        for name in changed:
            if name not in known:
                raise ValueError(unknown(f"parameter of {self.kernel},", name, sorted(known)))

        return self.kernel.with_parameters(**changed)

    def _budget(self) -> Budget:
        return Budget.of(self.max_memory, self.n_jobs)

    def __copy__(self) -> Self:
        """Return a copy that includes the training rows."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copied = copy.copy(self)
        memo[id(self)] = copied
        attributes = copy.deepcopy(self.__dict__, memo)
        copied.__dict__.update(attributes)
        return copied

    def __getstate__(self) -> dict[str, object]:
        """Return the state to pickle: everything except the training rows."""
        # make a new dictionary: Python returns the estimator's own one
        inherited = super().__getstate__()
        state: dict[str, object] = inherited | self._saved_attributes()
        approximation = state.get("approximation_")
        if isinstance(approximation, Approximation):
            state["approximation_"] = approximation.without_data()
        return state

    def _saved_attributes(self) -> dict[str, object]:
        """Return the attributes that files and pickles hold."""
        return dict(vars(self))

    def _summary_lines(self) -> list[str]:
        """Return lines that describe the fit; no lines before a fit."""
        return []

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it what the fit found."""
        diagram: str = estimator_html_repr(self)
        lines = self._summary_lines()
        if not lines:
            return diagram
        summary = escape("\n".join(lines))
        return f"{diagram}<pre>{summary}</pre>"


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(Estimator):
    """An estimator of a kernel: its parameters, and what a fit may use."""

    kernel: KernelLike = "rbf"
    gamma: float | str | None = None
    coef0: float | None = None
    degree: float | None = None
    kernel_params: Mapping[str, object] | None = None
    max_memory: int | str = MAX_MEMORY
    n_jobs: int | None = None
    verbose: int | None = None
    random_state: RandomState = None

    def _precomputed(self) -> bool:
        """Whether the rows are those of a kernel matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        tags.input_tags.sparse = not self._precomputed()
        return tags


# Fits


def fit_method(fit: Method) -> Method:
    """Make a `fit` succeed or change nothing, and report its progress to bars and callbacks."""

    @functools.wraps(fit)
    def reported(
        self: Estimator, X: object, y: object = None, *args: object, **kwargs: object
    ) -> object:
        title = type(self).__name__
        if not _awaits_callbacks(self):
            with report_progress(title, self.verbose):
                return fit(self, X, y, *args, **kwargs)

        # callbacks see the same progress as the bar, in parts
        parts = CallbackParts(self, {"X": X, "y": y})
        with report_progress(title, self.verbose, parts.follow):
            fitted = fit(self, X, y, *args, **kwargs)
        parts.end()
        return fitted

    return cast("Method", all_or_nothing(with_callbacks(reported)))


def all_or_nothing(fit: Method) -> Method:
    """Restore the estimator if a call fails or is interrupted."""
    careful = with_usual_errors(fit)

    @functools.wraps(fit)
    def guarded(self: BaseEstimator, *args: object, **kwargs: object) -> object:
        before = dict(vars(self))
        try:
            return careful(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast("Method", guarded)


def _awaits_callbacks(estimator: BaseEstimator) -> bool:
    """Whether callbacks were given; within another fit, they are already informed."""
    has_callbacks = hasattr(estimator, "_skl_callbacks")
    has_parent = hasattr(estimator, "_parent_callback_ctx")
    is_inside = hasattr(estimator, "_callback_fit_ctx")
    return (has_callbacks or has_parent) and not is_inside


class CallbackParts:
    """The parts of a fit that are reported to scikit-learn's callbacks one by one."""

    def __init__(self, estimator: Estimator, data: Mapping[str, object]) -> None:
        self.estimator = estimator
        self.data = data
        self.told = 0
        self.task = estimator._init_callback_context(max_subtasks=PARTS)
        self.task.call_on_fit_task_begin(estimator=estimator, **data)

    def follow(self, progress: Progress) -> None:
        """Report the parts completed since the last call."""
        while self.told < int(PARTS * progress.share):
            self.told += 1
            part = self.task.subcontext(task_name="part")
            part.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            part.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def end(self) -> None:
        """Report that the fit is done."""
        self.task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=dict
        )
