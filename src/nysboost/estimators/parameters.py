"""What every estimator shares: parameters, whole fits, callbacks, copies and its HTML."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from types import FunctionType
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import RandomState, unknown
from nysboost.numerics.progress import Progress, report_progress
from nysboost.numerics.resources import MAX_MEMORY, Budget

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")
ANSWERS = ("transform", "inverse_transform", "predict", "predict_proba", "predict_log_proba",
           "decision_function", "score_samples", "distance")  # fmt: skip
"""The methods that users call."""

USUAL_ERRORS: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""NumPy's own settings, under which the library is tested."""


class Estimator(CallbackSupportMixin, BaseEstimator):
    """A scikit-learn estimator whose kernel's parameters are set as ``kernel__sigma``."""

    kernel: Any
    max_memory: int | str
    n_jobs: int | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in (*FITS, *ANSWERS):
            if isinstance(method := vars(cls).get(name), FunctionType):
                setattr(
                    cls, name, restore_on_error(report_fit(method) if name == "fit" else method)
                )

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; those of the kernel give this estimator another kernel.

        Parameters
        ----------
        **params
            ``kernel__nu`` and the like are parameters of the kernel, which has to be an object.

        Examples
        --------
        >>> import nysboost as nb
        >>> nb.Nystroem(nb.Matern(nu=1.5)).set_params(kernel__nu=2.5).kernel
        Matern(nu=2.5)
        """
        inner = {name: params.pop(name) for name in [*params] if name.startswith("kernel__")}
        super().set_params(**params)
        if inner and not isinstance(self.kernel, Kernel):
            raise ValueError(
                f"{', '.join(inner)} is a parameter of a kernel object, but kernel="
                f"{self.kernel!r} was given: pass one, as kernel=nysboost.Gaussian()."
            )
        changed = {name.removeprefix("kernel__"): value for name, value in inner.items()}
        for name in changed:
            if name not in (known := self.kernel.get_params()):
                raise ValueError(unknown(f"parameter of {self.kernel},", name, sorted(known)))
        if changed:
            self.kernel = replace(self.kernel, **changed)
        return self

    def _budget(self) -> Budget:
        return Budget.of(self.max_memory, self.n_jobs)

    def __copy__(self) -> Self:
        """Return a copy with all that this one has, the training rows among it."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = copy.copy(self)
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Return what is saved: all but the training rows."""
        state: dict[str, Any] = super().__getstate__()
        if "approximation_" in state:
            kept = state["approximation_"].without_data()
            state = state | {"approximation_": kept}
            if "_transform" in state:
                state["_transform"] = state["_transform"].with_gram(kept.gram)
        return state

    def _summary_lines(self) -> list[str]:
        """Return lines that say what a fit found; none before it."""
        return []

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, what was found, and what each parameter does."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(repr(value))}</td><td>{escape(text)}</td></tr>"
            for name, value in self.get_params(deep=False).items()
            for text in [describe_parameters(type(self)).get(name, "")]
        )
        found = "\n".join(self._summary_lines())
        return (
            f"{estimator_html_repr(self)}{f'<pre>{escape(found)}</pre>' if found else ''}"
            f"<details><summary>What the parameters do</summary><table>{rows}</table></details>"
        )


KernelLike = str | Kernel | Callable[..., Array]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(Estimator):
    """An estimator of a kernel: its parameters, and what a fit may use."""

    kernel: KernelLike = "rbf"
    gamma: float | str | None = None
    coef0: float | None = None
    degree: float | None = None
    kernel_params: Mapping[str, Any] | None = None
    max_memory: int | str = MAX_MEMORY
    n_jobs: int | None = None
    verbose: int | None = None
    random_state: RandomState = None

    def _precomputed(self) -> bool:
        """Whether the rows are those of a kernel matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        tags.input_tags.sparse = not self._precomputed()
        return tags


def describe_parameters(kind: Any) -> dict[str, str]:
    """Return what an estimator's docstring, or the one it refers to, says of each parameter."""
    section = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")[2]
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section.partition("\n\n")[0]):
        head, _, body = entry.partition("\n")
        said = " ".join(body.split())
        other = re.match(r"As in `(?:nysboost\.)?(\w+)`", said)
        theirs = describe_parameters(getattr(sys.modules["nysboost"], other[1])) if other else {}
        for name in head.partition(" : ")[0].split(", "):
            found[name] = theirs.get(name, said)
    return found


def report_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let the `verbose` of a fit and scikit-learn's callbacks, in 100 parts, see its progress."""

    @functools.wraps(fit)
    def reported(self: Any, X: Any, y: Any = None, *others: Any, **named: Any) -> Any:
        title, verbose = type(self).__name__, self.verbose
        asked = hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")
        if not asked or hasattr(self, "_callback_fit_ctx"):  # the latter: a fit inside this fit
            with report_progress(title, verbose):
                return fit(self, X, y, *others, **named)
        task, given = self._init_callback_context(max_subtasks=100), {"X": X, "y": y}
        task.call_on_fit_task_begin(estimator=self, **given)
        seen = 0

        def listen(progress: Progress) -> None:
            nonlocal seen
            while seen < int(100 * progress.share):
                seen += 1
                part = task.subcontext(task_name="part")
                part.call_on_fit_task_begin(estimator=self, **given)
                part.call_on_fit_task_end(estimator=self, **given)

        with report_progress(title, verbose, listen):
            found = fit(self, X, y, *others, **named)
        task.call_on_fit_task_end(estimator=self, **given, reconstruction_attributes=dict)
        return found

    return with_callbacks(reported)  # type: ignore[no-any-return]


def restore_on_error(method: Callable[..., Any]) -> Callable[..., Any]:
    """Call a method under NumPy's usual error settings; a fit happens wholly or not at all."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self)) if method.__name__ in FITS else None
        try:
            with np.errstate(**USUAL_ERRORS):
                return method(self, *args, **kwargs)
        except BaseException:
            if before is not None:
                vars(self).clear()
                vars(self).update(before)
            raise

    return guarded
