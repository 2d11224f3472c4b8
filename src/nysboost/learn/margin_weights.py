"""Weights of a classifier by another loss than the squared one, on landmarks that are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import KernelGram, Landmarks
from nysboost.learn.margin_losses import LOSSES
from nysboost.learn.margins import fit_margins, scores_of
from nysboost.learn.on_features import Features
from nysboost.numerics.arrays import Array, Floats, floats_on_host, like, namespace
from nysboost.numerics.memory import Budget
from nysboost.numerics.progress import Work
from nysboost.target.judged import Judged
from nysboost.target.linear import Basis, Weighed
from nysboost.target.menu import Menu
from nysboost.target.method import learn
from nysboost.target.race import SAMPLE_BYTES, SAMPLE_ROWS, drawn, taken
from nysboost.target.scale import Scaling, as_it_is

Fitted: TypeAlias = tuple[Array, Array]
"""Weights and intercepts of each problem."""

HELD_OUT = 0.1
"""Share of the rows that choose C and calibrate; all rows take part in the weights at the end."""

ROUGH = 0.1
"""Tolerance of the fits that choose C and calibrate; with three times that the log loss of the test
rows was 4 % higher on IJCNN, and the same on Pendigits and protein."""

STRENGTHS, USUAL = (0.3, 3.0, 30.0, 300.0), 2
"""C is one of these, for a kernel with k(x, x) = 1; of equally good ones that nearest to the usual
one: a few held-out rows of classes that lie apart would have any of them."""

CAPTURED = 0.04
"""Landmarks that leave less than this share of the trace stay where they are: margins gain little
more by their moves. With 500 of them, C = 10 and the γ of `SVC`, rows at random left 1 to 4 % on
Pendigits, IJCNN, protein, keggundirected, airfoil and wine, and twenty steps changed the share of
test labels right by −2 to +0.1 points; 5 to 6 % on Covertype and kin40k, by +0.5 and +1.6; 32 % on
MNIST, by +1.5; but 7 to 8 % on pol, elevators and bike, by −0.1 to +0.2."""


@dataclass(frozen=True)
class MarginLearner:
    """Finds landmarks as `learn` does, and weights that minimise a loss of margins.

    Each class is one problem against the rest. A tenth of the rows has no part in a first fit,
    chooses C by its share of right labels, and stays as what the models are judged by.

    Parameters
    ----------
    loss : str
        A name in `nysboost.learn.margin_losses.LOSSES`.
    C : float or None
        Weight of the losses beside the squared norm; None for the best of `STRENGTHS`.
    """

    loss: str
    C: float | None

    def __call__(
        self,
        rows: Rows,
        Y: Floats,
        weights: Floats | None,
        options: Menu,
        c: int | None,
        rng: np.random.Generator,
        *,
        budget: Budget,
        scaling: Scaling | None,
        work: Work,
    ) -> Judged:
        """Return the models with what held-out rows say of them; the parameters are `learn`'s."""
        if options.given is None or c is None:
            found = learn(
                rows, Y, weights, options, c, rng, budget=budget, scaling=scaling, work=work
            )
            bases = [model.basis for model in found.models]
            shares, notes = found.shares, found.notes
        else:  # with nothing to choose there is nothing to judge
            room = max(2 * c, SAMPLE_BYTES // (8 * rows.n_features))
            order = drawn(rows.n, min(rows.n, SAMPLE_ROWS, room), rng)
            _, _, sample = taken(rows, Y, weights, order, as_it_is)
            bases = [replace(options.given, captured=CAPTURED).basis(sample, c, rng)]
            shares, notes = np.ones(1), []
        return self._weighed(bases, shares, notes, rows, Y, weights, budget, rng)

    def _weighed(
        self,
        bases: Sequence[Basis],
        shares: Floats,
        notes: list[tuple[str, float]],
        rows: Rows,
        truth: Floats,
        weights: Floats | None,
        budget: Budget,
        rng: np.random.Generator,
    ) -> Judged:
        mass = np.ones(len(truth)) if weights is None else weights
        out = rng.uniform(size=len(truth)) < HELD_OUT
        if len(truth) * HELD_OUT < truth.shape[1]:
            out[:] = True  # too few rows to spare any: those that are fitted also judge
        kept = mass if out.all() else np.where(out, 0.0, mass)
        signs = 2.0 * _problems(truth) - 1.0
        models, scores = [], np.zeros((int(out.sum()), truth.shape[1]))
        for share, basis in zip(shares, bases, strict=True):
            features = _features(basis, rows, budget)
            C, fitted, found = self._chosen(features, signs, kept, truth[out], mass[out], out)
            scores += float(share) * found
            w, b = _mirrored(*fit_margins(features, signs, LOSSES[self.loss], C, mass, fitted))
            models.append(Weighed(basis, like(b, basis.N), like(w, basis.N)))
        held = None if weights is None else weights[out]
        spread = np.full_like(scores, np.nan)
        return Judged(models, shares, truth[out], scores, spread, held, notes)

    def _chosen(
        self,
        features: Features,
        signs: Floats,
        kept: Floats,
        truth: Floats,
        mass: Floats,
        out: Any,
    ) -> tuple[float, Fitted, Floats]:
        """Return the C that held-out rows prefer, its weights, and their scores of these rows."""
        strengths, usual = (STRENGTHS, USUAL) if self.C is None else ((self.C,), 0)
        path: list[Fitted] = []
        for C in strengths:
            before = path[-1] if path else None
            path.append(fit_margins(features, signs, LOSSES[self.loss], C, kept, before, ROUGH))
        tried = [_scores(features, fitted)[out] for fitted in path]
        right = np.array([_right(scores, truth, mass) for scores in tried])
        best = min(np.flatnonzero(right == right.max()), key=lambda i: abs(int(i) - usual))
        return strengths[best], path[best], tried[best]


def _problems(classes: Floats) -> Floats:
    """Return the columns that are fitted: two classes are one problem, mirrored."""
    return classes if classes.shape[1] > 2 else classes[:, 1:]


def _features(basis: Basis, rows: Rows, budget: Budget) -> Features:
    gram = KernelGram(rows, basis.kernel, budget)
    return Features(Factor(FeatureMap(gram, Landmarks(None, basis.Z), (basis.N,))))


def _mirrored(w: Array, b: Array) -> Fitted:
    """Return weights of shape (r, k) and intercepts of all classes, of p problems."""
    xp = namespace(w)
    if w.shape[0] > 1:
        return w.T, b
    return xp.concat([-w.T, w.T], axis=1), xp.concat([-b, b])


def _scores(features: Features, fitted: Fitted) -> Floats:
    return floats_on_host(scores_of(features, *_mirrored(*fitted)))


def _right(scores: Floats, truth: Floats, mass: Floats) -> float:
    """Return the weighted share of rows whose largest score is that of their class."""
    return float(mass @ (scores.argmax(axis=1) == truth.argmax(axis=1)))
