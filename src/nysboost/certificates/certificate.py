"""Certificates: intervals for the error of an approximation, from few kernel values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nysboost.certificates import sampled_norms as sampling
from nysboost.features.residual import Residual, relative_error, relative_trace_error
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, floats_on_host
from nysboost.numerics.parameters import require_count, require_fraction

N_ENTRIES = 2 * 10**7
"""Kernel values of a certificate: about a second on one core, with the features of 54 columns."""

SPENT = 0.9
"""Share of the risk for the intervals; the rest is for the error of a normal approximation."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """What is known about the error of an approximation, and what it rests on.

    .. versionadded:: 0.2

    Attributes
    ----------
    frobenius : (float, float)
        Interval for ‖G − K̂‖_F / ‖G‖_F.
    trace : (float, float)
        Interval for ``|tr(G − K̂)| / tr G``.
    confidence : float
        At least this share of such intervals contain the truth.
    entries_evaluated : int
        Kernel values that were evaluated for it.
    rows : int
        Number of rows that it is about.
    rows_seen : int
        Number of rows whose features were looked at: where it is all rows, none was left out.
    new_rows : bool
        Whether they are other rows than those of the fit.
    exact_frobenius, exact_trace : bool
        Whether the interval is a number, because every entry that it needs was evaluated.
    positive_semidefinite : bool
        Whether G − K̂ is positive semidefinite on any rows.
    bounds : (float, float) or None
        Bounds of the Frobenius error that hold with certainty, where the residual is positive
        semidefinite and its diagonal was seen: its trace is then an upper bound of its norm.

    See Also
    --------
    Approximation.certificate : makes one.
    ToleranceWarning : what `tol` warns with.

    Examples
    --------
    >>> Certificate((0.01, 0.0123), (0.2, 0.21), 0.95, 10**6, rows=70_000, rows_seen=2500)
    With 95 % confidence, on the 70,000 rows of the fit the relative Frobenius error is between \
0.01 and 0.0123 and the trace error is between 0.2 and 0.21: from 1,000,000 kernel values and \
2,500 rows.
    """

    frobenius: tuple[float, float]
    trace: tuple[float, float]
    confidence: float
    entries_evaluated: int
    rows: int
    rows_seen: int
    new_rows: bool = False
    exact_frobenius: bool = False
    exact_trace: bool = False
    positive_semidefinite: bool = False
    bounds: tuple[float, float] | None = None

    def __str__(self) -> str:
        of = f"{self.rows:,} new rows" if self.new_rows else f"the {self.rows:,} rows of the fit"
        frobenius = _say_interval(self.frobenius, self.exact_frobenius)
        trace = _say_interval(self.trace, self.exact_trace)
        sure = "" if self.exact_frobenius else f"With {100 * self.confidence:g} % confidence, "
        said = f"{sure}on {of} the relative Frobenius error is {frobenius} and the trace error "
        said += f"is {trace}: from {self.entries_evaluated:,} kernel values"
        said += "." if self.rows_seen == self.rows else f" and {self.rows_seen:,} rows."
        if self.bounds is not None and not self.exact_frobenius:
            said += f" With certainty the Frobenius error is {_say_interval(self.bounds, False)}"
            said += ", because the residual is positive semidefinite."
        return said[0].upper() + said[1:]

    __repr__ = __str__


def _say_interval(interval: tuple[float, float], exact: bool) -> str:
    low, high = interval
    return f"{low:.3g} exactly" if exact else f"between {low:.3g} and {high:.3g}"


Norm: TypeAlias = tuple[sampling.Estimate, int]
"""An estimate of ‖G‖_F², and how many kernel values it took."""


def norm_of_gram(gram: Gram, confidence: float, rng: np.random.Generator) -> Norm:
    """Estimate ‖G‖_F² for the certificates of several approximations, in large, fast blocks."""
    g, pairs = floats_on_host(gram.diag()), int(sampling.GRAM_SHARE * sampling.PAIRS)
    group, delta = sampling.GROUP // 2, SPENT * (1 - confidence) / 2
    return sampling.squared_norm_of_gram(gram, g, pairs, delta, rng, group)


def certify(
    residual: Residual,
    confidence: float,
    n_entries: int,
    rng: np.random.Generator,
    *,
    new_rows: bool = False,
    norm: Norm | None = None,
) -> Certificate:
    """Return intervals for the relative errors on the rows of `residual`.

    With few rows every entry is evaluated. Otherwise blocks of R are drawn, rows and columns
    independently, with probability proportional to a_i, where kernel values are enough for the
    features of all rows, else to k(x_i, x_i). `norm` is what is known of ‖G‖_F already.
    """
    _check(residual, confidence, n_entries)
    gram, n, c = residual.gram, residual.gram.n, residual.n_landmarks
    known: dict[str, Any] = {"positive_semidefinite": residual.positive_semidefinite}
    known["new_rows"] = new_rows
    fits = gram.rows.lazy or residual.factor.fits(n)  # a cluster holds no features: it adds up
    if fits and n * (n + c) <= n_entries:  # every entry is evaluated: the intervals are numbers
        residual.factor.keep()
        known |= {"exact_frobenius": True, "exact_trace": True}
        f, t = (error(residual, np.arange(n)) for error in (relative_error, relative_trace_error))
        return Certificate((f, f), (t, t), confidence, n * (n + c), n, n, **known)
    g, delta, left = floats_on_host(gram.diag()), SPENT * (1 - confidence) / 2, n_entries - c * c
    if fits and n * c <= max(sampling.WORTH_ALL * left, left - sampling.PAIRS):
        pairs = min(sampling.PAIRS, left - n * c)
        drawn = int((1 - sampling.GRAM_SHARE) * pairs)
        found = sampling.look_at_all_rows(residual, g, drawn, delta, rng)
    else:
        pairs = min(sampling.PAIRS, left)
        drawn = int(left - sampling.GRAM_SHARE * pairs)
        found = sampling.look_at_some_rows(residual, g, drawn, delta, rng)
    if norm is None:
        pairs = int(sampling.GRAM_SHARE * pairs)
        norm = sampling.squared_norm_of_gram(gram, g, pairs, delta, rng)
    frobenius = _bound_quotient(found, norm[0], g, delta, residual.noise)
    low, high = sorted(abs(end) / float(g.sum()) for end in found.trace)
    low = 0.0 if found.trace[0] < 0 < found.trace[1] else low
    trace = max(0.0, low - residual.noise), high + residual.noise  # with room for rounding
    spent = found.entries + norm[1] + c * c
    known |= {"exact_trace": found.trace[0] == found.trace[1], "bounds": found.bounds}
    return Certificate(frobenius, trace, confidence, spent, n, found.rows, **known)


def _bound_quotient(
    found: sampling.Findings, norm: sampling.Estimate, g: Floats, delta: float, noise: float
) -> tuple[float, float]:
    """Return an interval for ‖R‖_F / ‖G‖_F, each within the bounds that are certain."""
    both, deviations = (found.squared_norm, norm), sampling.deviations(delta, found.rows)
    # the deviations of a quotient, √(r² + s²), are shared out among its independent parts
    parts = np.array([each.error / each.value if each.value > 0 else 0.0 for each in both])
    size = float(np.linalg.norm(parts))
    of_residual, of_gram = deviations * (parts / size if size > 0 else np.ones(2))
    residual = np.clip(found.squared_norm.interval(of_residual), found.least, found.most)
    gram = np.clip(norm.interval(of_gram), float(g @ g), float(g.sum()) ** 2)
    low, high = np.sqrt(residual / gram[::-1])
    rounding = noise * float(g.sum()) / float(np.sqrt(gram[0]))
    return max(0.0, float(low) - rounding), float(high) + rounding


def _check(residual: Residual, confidence: float, n_entries: int) -> None:
    """Refuse a confidence that is none, and too few kernel values to say anything."""
    require_fraction("confidence", confidence)
    require_count("n_entries", n_entries)
    c = residual.n_landmarks
    # blocks of two rows and two columns, and those of ‖G‖
    least = max((4 + 4 * c) / (1 - sampling.GRAM_SHARE), 4 / sampling.GRAM_SHARE)
    needed = c * c + math.ceil((sampling.LEAST_GROUPS + 1) * least)
    if n_entries < min(needed, residual.gram.n * (residual.gram.n + c)):
        raise ValueError(
            f"n_entries={n_entries} kernel values are too few to say anything about {c} "
            f"landmarks: {needed} are the least, and a million tells much more."
        )
