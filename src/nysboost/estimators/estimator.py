"""What every estimator shares: its parameters, copies, what is saved, and its HTML."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Self, cast

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import Tags, estimator_html_repr

from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.budget import MAX_MEMORY, Budget
from nysboost.numerics.messages import unknown
from nysboost.numerics.parameters import RandomState

KernelLike = str | Kernel | Callable[..., Array]


class Estimator(CallbackSupportMixin, BaseEstimator):
    """A scikit-learn estimator whose kernel's parameters are set as ``kernel__sigma``."""

    kernel: KernelLike
    max_memory: int | str
    n_jobs: int | None

    def set_params(self, **params: object) -> Self:
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
        own = {name: value for name, value in params.items() if not name.startswith("kernel__")}
        super().set_params(**own)

        changed = {
            name.removeprefix("kernel__"): value
            for name, value in params.items()
            if name.startswith("kernel__")
        }
        if changed:
            self.kernel = self._changed_kernel(changed)
        return self

    def _changed_kernel(self, changed: Mapping[str, object]) -> Kernel:
        """Return the kernel with other parameters."""
        if not isinstance(self.kernel, Kernel):
            names = ", ".join(f"kernel__{name}" for name in changed)
            raise ValueError(
                f"{names} is a parameter of a kernel object, but kernel="
                f"{self.kernel!r} was given: pass one, as kernel=nysboost.Gaussian()."
            )
        known = self.kernel.get_params()
        for name in changed:
            if name not in known:
                raise ValueError(unknown(f"parameter of {self.kernel},", name, sorted(known)))
        kernel: Any = self.kernel  # a dataclass, as every kernel with parameters is
        return cast("Kernel", replace(kernel, **changed))

    def _budget(self) -> Budget:
        return Budget.of(self.max_memory, self.n_jobs)

    def __copy__(self) -> Self:
        """Return a copy with all that this one has, the training rows among it."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = copy.copy(self)
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all but the training rows."""
        state: dict[str, Any] = super().__getstate__()
        state |= self._saved_attributes()
        if "approximation_" not in state:
            return state
        return state | {"approximation_": state["approximation_"].without_data()}

    def _saved_attributes(self) -> dict[str, Any]:
        """Return the attributes that files and pickles hold."""
        return dict(vars(self))

    def _summary_lines(self) -> list[str]:
        """Return lines that say what a fit found; none before it."""
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
    kernel_params: Mapping[str, Any] | None = None
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
