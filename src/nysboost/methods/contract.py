"""What a method is: the contract between the catalogue and every method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.features.feature_map import FeatureMap
from nysboost.features.nystrom import Mixture
from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Indices
from nysboost.settings import Settings

Found: TypeAlias = Indices | Landmarks | FeatureMap | Mixture | Approximation
"""What a method returns: columns or landmarks for plain Nyström, C W⁺ Cᵀ, or more than these."""

SIZE = frozenset(("n_components", "n_columns", "n_learners"))
"""The settings that say how many landmarks there are."""


class Method(ABC):
    """A method under its name, as the catalogue runs it."""

    @property
    @abstractmethod
    def uses(self) -> frozenset[str]:
        """The names of the fields of `Settings` that the method reads."""

    @abstractmethod
    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Found:
        """Return what the method finds in a Gram matrix."""

    def find_unused(self, named: Collection[str]) -> list[str]:
        """Return those of some settings that were given and make no difference."""
        return [name for name in named if name not in self.uses]


@dataclass(frozen=True)
class MethodOfSize(Method):
    """A method of c landmarks: a function (gram, c, rng) that chooses them or fits a map on them.

    Parameters
    ----------
    function : callable
        Called as ``function(gram, c, rng)``, and with each of `further` by name.
    further : tuple of str
        The names of further settings that the function takes.
    """

    function: Callable[..., Found]
    further: tuple[str, ...] = ()

    @property
    def uses(self) -> frozenset[str]:
        """The settings that say how many landmarks there are, and those of the function."""
        return SIZE | set(self.further)

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Found:
        """Call the function with the number of landmarks that was asked for."""
        c = settings.landmarks(gram.n)
        further = {name: getattr(settings, name) for name in self.further}
        return self.function(gram, c, rng, **further)

    def find_unused(self, named: Collection[str]) -> list[str]:
        """Return the settings without effect: c is p·m only where m is given and c is not."""
        unused = super().find_unused(named)
        is_product = "n_columns" in named and "n_components" not in named
        if not is_product:
            factors = ("n_columns", "n_learners")
            unused += [name for name in factors if name in named]
        return unused
