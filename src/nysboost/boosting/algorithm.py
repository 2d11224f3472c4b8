"""Boosting Nyström, Algorithm 1 of Hamm, Lu, Ouyang and Zhang, and the ensemble."""

from __future__ import annotations

from dataclasses import replace

from numpy.random import Generator

from nysboost.boosting.rules import Rule
from nysboost.boosting.selectors import Selector
from nysboost.boosting.state import Sampling, Stopwatch, Trajectory, start, uniform
from nysboost.gram import Gram
from nysboost.numerics.progress import track
from nysboost.settings import Settings

LOOKED_BACK = 3
"""Learners over which the gain is averaged before boosting stops: at times a single one gains
nothing, and the next one gains again."""


def boost(
    gram: Gram,
    settings: Settings,
    rule: Rule,
    selector: Selector,
    rng: Generator,
    *,
    final: Rule | None = None,
    sampling: Sampling = uniform,
) -> Trajectory:
    """Find learners in sequence, each on columns of G that the mixture of the others misses.

    X of "XYB-clustering" is the `rule` of the boosting step, `selector` the clustering. The strong
    approximation, step 3, is the trajectory's `mixture(final)`; `n_learners="auto"` looks at it.
    """
    # Step 1. Standard Nyström on m columns, and the validation sets V1 and V2.
    if rule.needs_whole_columns:
        settings = replace(settings, residual_rows=None)
    sizes = settings.resolve(gram.n)
    state = start(gram, settings, sizes, rng, sampling)

    # Step 2. Boosting.
    errors: list[float] = []
    for i in track(range(1, state.p), "boosting step"):
        if settings.n_learners == "auto":
            strong = (final or rule).strong(state, i)
            errors.append(state.error_on(state.V2, strong))
            if gains_little(errors, settings.min_gain):
                break
        watch = Stopwatch()

        # (a) combine the learners found so far with the mixture weights μ
        mixture = rule.mixture(state, i)
        watch.lap("a")

        # (b) resample s columns for V, among those never used
        probabilities = rule.candidate_weights(state, mixture)
        V = state.unused.sample(state.s, rng, probabilities)
        watch.lap("b")

        # (c) compute the residual on V
        e = state.residual(mixture, V)
        watch.lap("c")

        # (d) cluster the columns of the residual into m groups: the centres are the new columns
        J = V[selector(e, state.m, rng)]
        watch.lap("d")

        # (e) compute the weak Nyström approximation on them
        state.add_learner(J)
        watch.lap("e")

        step = state.note(V, J, mixture, e, watch.seconds)
        if settings.callback is not None:
            settings.callback(step)

    return Trajectory(state)


def gains_little(errors: list[float], min_gain: float) -> bool:
    """Whether the last learners lowered the error on V2 by less than a share each, on average."""
    if len(errors) <= LOOKED_BACK:
        return False
    before = errors[-1 - LOOKED_BACK]
    return errors[-1] >= before * (1 - min_gain) ** LOOKED_BACK


def ensemble(gram: Gram, settings: Settings, rng: Generator) -> Trajectory:
    """Fit p learners on columns sampled uniformly without replacement."""
    settings = replace(settings, residual_rows=None)
    sizes = settings.resolve(gram.n, boosted=False)
    state = start(gram, settings, sizes, rng, uniform)
    for _ in range(1, state.p):
        J = state.unused.draw(state.m, rng)
        state.add_learner(J)
    return Trajectory(state)
