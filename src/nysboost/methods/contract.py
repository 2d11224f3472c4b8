"""What a method is, and its kinds: of a size, of one learner, of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.boosting.state import Sampling, uniform
from nysboost.boosting.variants import ENSEMBLES, find_learners, parse_method
from nysboost.features.feature_map import FeatureMap
from nysboost.features.nystrom import Mixture, fit_learner, truncate
from nysboost.gram import Gram, Landmarks
from nysboost.methods import first_columns, leverage
from nysboost.methods.block_nystrom import block_nystrom
from nysboost.numerics.arrays import Indices
from nysboost.numerics.messages import unknown
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


SAMPLINGS: dict[str, Sampling] = {
    "uniform": uniform,
    "leverage": leverage.rls,
    "kmeans": first_columns.nearest_to_centres,
    "rpcholesky": first_columns.by_pivots,
}
"""How boosting draws the columns of its first learner, by name."""


@dataclass(frozen=True)
class StandardNystrom(Method):
    """C W_k⁺ Cᵀ on uniform columns or, with the rank fixed at the end, (C W⁺ Cᵀ)_k."""

    fixed_rank: bool = False

    @property
    def uses(self) -> frozenset[str]:
        """The number of columns, and the rank."""
        return frozenset(("n_components", "n_columns", "rank"))

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> FeatureMap:
        """Fit one learner."""
        single = replace(settings, n_learners=1)
        sizes = single.resolve(gram.n, validated=False, boosted=False)
        m = sizes.n_columns
        columns = rng.choice(gram.n, size=m, replace=False)
        landmarks = gram.landmarks(columns)
        if self.fixed_rank:
            whole = fit_learner(gram, landmarks, m)
            return truncate(gram, whole, sizes.rank)
        return fit_learner(gram, landmarks, sizes.rank)


MIXTURE = SIZE | {"rank"}
VALIDATION = frozenset(("n_fit", "n_tune", "validation_shape", "row_cap", "rule"))
BOOSTING = frozenset(
    (
        "n_candidates", "candidates_per_column", "residual_shape", "residual_rows",
        "selector", "sampling", "min_gain", "callback",
    )
)  # fmt: skip
RULE = {"E": frozenset(("eta",)), "R": frozenset(("nonnegative", "lambdas"))}
"""The settings that mixtures, validation sets, boosting steps and weight rules read."""


@dataclass(frozen=True)
class MixtureOfLearners(Method):
    """Σ μ_i G_i over learners of an ensemble, or of Algorithm 1, as the name says."""

    name: str

    @property
    def uses(self) -> frozenset[str]:
        """The settings of the mixture, of its rules and, if it boosts, of boosting steps."""
        uses = MIXTURE | VALIDATION
        if self.name not in ENSEMBLES:
            uses |= BOOSTING
        for letter in ENSEMBLES.get(self.name, self.name[:2]):
            uses |= RULE.get(letter, frozenset())
        return uses

    def find_unused(self, named: Collection[str]) -> list[str]:
        """Return the settings without effect; a rule that was given may use any of the rules'."""
        unused = super().find_unused(named)
        if "rule" not in named:
            return unused
        of_rules = frozenset.union(*RULE.values())
        return [name for name in unused if name not in of_rules]

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Approximation:
        """Find the learners, and combine them."""
        if "J" in self.name[:2]:
            settings = settings.with_sampling()
        parts, final = parse_method(self.name, settings)
        sampling = as_sampling(settings.sampling)
        trajectory = find_learners(gram, settings, parts, rng, final, sampling)
        mixture = trajectory.mixture(final)
        return Approximation(gram, mixture, trajectory, final)


def as_sampling(given: str | Sampling) -> Sampling:
    """Return how the columns of the first learner are drawn."""
    if isinstance(given, str):
        if given not in SAMPLINGS:
            raise ValueError(unknown("sampling", given, SAMPLINGS))
        return SAMPLINGS[given]
    if callable(given):
        return given
    raise TypeError(
        "sampling is a function (gram, m, rng) ↦ m row numbers, or one of the names "
        f"{', '.join(SAMPLINGS)}, but {given!r} was given."
    )


@dataclass(frozen=True)
class BlockNystrom(Method):
    """The mean of n_learners small Nyström approximations."""

    @property
    def uses(self) -> frozenset[str]:
        """The number of blocks and of their columns."""
        return SIZE

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Mixture:
        """Fit the blocks."""
        blocks = replace(settings, rank=None)  # of full rank
        sizes = blocks.resolve(gram.n, validated=False, boosted=False)
        return block_nystrom(gram, sizes.n_learners, sizes.n_columns, rng)
