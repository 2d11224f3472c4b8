"""Decorators of estimators' methods: a fit happens wholly or not at all, and reports progress.

Every estimator says `@fit_method` above its `fit`, `@all_or_nothing` above other methods that fit,
and `@with_usual_errors` above those that users call on a fitted estimator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import with_callbacks

from nysboost.numerics.progress import Progress, report_progress

Method = TypeVar("Method", bound=Callable[..., object])

PARTS = 100
"""A callback of scikit-learn hears of a fit in so many parts."""

with_usual_errors = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
"""NumPy's own settings, under which the library is tested."""


def fit_method(fit: Method) -> Method:
    """Let a `fit` happen wholly or not at all, and let progress bars and callbacks follow it."""
    return all_or_nothing(report_fit(fit))


def all_or_nothing(fit: Method) -> Method:
    """Restore the estimator as it was before a call that fails or is interrupted."""
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


def report_fit(fit: Method) -> Method:
    """Let the `verbose` of a fit, and scikit-learn's callbacks, follow its progress."""

    @functools.wraps(fit)
    def reported(self: Any, X: object, y: object = None, *args: object, **kwargs: object) -> object:
        title = type(self).__name__
        if not _awaits_callbacks(self):
            with report_progress(title, self.verbose):
                return fit(self, X, y, *args, **kwargs)

        parts = CallbackParts(self, {"X": X, "y": y})
        with report_progress(title, self.verbose, parts.follow):
            fitted = fit(self, X, y, *args, **kwargs)
        parts.end()
        return fitted

    return cast("Method", with_callbacks(reported))


def _awaits_callbacks(estimator: BaseEstimator) -> bool:
    """Whether callbacks were given; a fit inside a fit has told them already."""
    has_callbacks = hasattr(estimator, "_skl_callbacks")
    has_parent = hasattr(estimator, "_parent_callback_ctx")
    is_inside = hasattr(estimator, "_callback_fit_ctx")
    return (has_callbacks or has_parent) and not is_inside


class CallbackParts:
    """The parts of a fit, of which scikit-learn's callbacks are told one by one."""

    def __init__(self, estimator: Any, data: Mapping[str, object]) -> None:
        self.estimator = estimator
        self.data = data
        self.told = 0
        self.task = estimator._init_callback_context(max_subtasks=PARTS)
        self.task.call_on_fit_task_begin(estimator=estimator, **data)

    def follow(self, progress: Progress) -> None:
        """Tell of the parts that have been done since the last call."""
        while self.told < int(PARTS * progress.share):
            self.told += 1
            part = self.task.subcontext(task_name="part")
            part.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            part.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def end(self) -> None:
        """Tell that the fit is done."""
        self.task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=dict
        )
