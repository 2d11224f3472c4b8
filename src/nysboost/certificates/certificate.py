"""Certificates: intervals for the error of an approximation, from few kernel values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from nysboost.certificates.certificate_constants import (
    BLOCK,
    GRAM_SHARE,
    LEAST_BLOCKS,
    PAIRS,
    SPENT,
    WORTH_ALL,
)
from nysboost.certificates.certificate_constants import N_ENTRIES as N_ENTRIES
from nysboost.certificates.estimates import Estimate, deviations
from nysboost.certificates.sampled_norms import (
    Findings,
    SampledNorm,
    look_at_all_rows,
    look_at_some_rows,
    squared_norm_of_gram,
)
from nysboost.features.residual import Residual, relative_error, relative_trace_error
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats
from nysboost.numerics.checks import require_count, require_fraction


@dataclass(frozen=True, repr=False)
class Certificate:
    """Confidence intervals for the error of an approximation.

    .. versionadded:: 0.2

    Attributes
    ----------
    frobenius : (float, float)
        Interval for ‖G − K̂‖_F / ‖G‖_F.
    trace : (float, float)
        Interval for ``|tr(G − K̂)| / tr G``.
    confidence : float
        At least this share of such intervals contain the true error.
    entries_evaluated : int
        Number of kernel values that were evaluated.
    rows : int
        Number of rows that the error refers to.
    rows_seen : int
        Number of rows whose features were computed.
    new_rows : bool
        Whether these are new rows rather than those of the fit.
    exact_frobenius, exact_trace : bool
        Whether the interval is a single number, because every entry that it depends on was
        evaluated.
    positive_semidefinite : bool
        Whether G − K̂ is positive semidefinite on any rows.
    bounds : (float, float) or None
        Bounds of the Frobenius error that hold with certainty. They exist if the residual is
        positive semidefinite and its whole diagonal was evaluated: its trace is then an upper bound
        of its norm.

    See Also
    --------
    Approximation.certificate : returns a certificate.
    ToleranceWarning : issued if `tol` cannot be reached.

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
        rows = f"the {self.rows:,} rows of the fit"
        if self.new_rows:
            rows = f"{self.rows:,} new rows"
        errors = (
            f"on {rows} the relative Frobenius error is "
            f"{_say_interval(self.frobenius, self.exact_frobenius)} and the trace error is "
            f"{_say_interval(self.trace, self.exact_trace)}"
        )

        source = f"from {self.entries_evaluated:,} kernel values"
        if self.rows_seen < self.rows:
            source += f" and {self.rows_seen:,} rows"

        if self.exact_frobenius:
            return f"{errors[0].upper()}{errors[1:]}: {source}."
        sentence = f"With {100 * self.confidence:g} % confidence, {errors}: {source}."
        if self.bounds is not None:
            sentence += (
                f" With certainty the Frobenius error is {_say_interval(self.bounds, False)}, "
                "because the residual is positive semidefinite."
            )
        return sentence

    __repr__ = __str__


def _say_interval(interval: tuple[float, float], exact: bool) -> str:
    low, high = interval
    if exact:
        return f"{low:.3g} exactly"
    return f"between {low:.3g} and {high:.3g}"


def _risk_of_an_end(confidence: float) -> float:
    """Return δ, the probability of a miss at either end of an interval."""
    return SPENT * (1 - confidence) / 2


def norm_of_gram(gram: Gram, confidence: float, rng: Generator) -> SampledNorm:
    """Estimate ‖G‖_F² for the certificates of several approximations, in large, fast blocks."""
    return squared_norm_of_gram(
        gram,
        gram.host_diag(),
        pairs=int(GRAM_SHARE * PAIRS),
        delta=_risk_of_an_end(confidence),
        rng=rng,
        largest=BLOCK // 2,
    )


def certify(
    residual: Residual,
    confidence: float,
    n_entries: int,
    rng: Generator,
    *,
    new_rows: bool = False,
    norm: SampledNorm | None = None,
) -> Certificate:
    """Return intervals for the relative errors on the rows of `residual`.

    Parameters
    ----------
    residual : Residual
    confidence : float
    n_entries : int
        Largest number of kernel values to evaluate.
    rng : numpy.random.Generator
    new_rows : bool
        Whether the rows are new rows rather than those of the fit.
    norm : SampledNorm or None
        An earlier estimate of ‖G‖_F.
    """
    _check(residual, confidence, n_entries)
    seen = _choose_what_to_see(residual, n_entries)
    if seen == "every entry":
        return _evaluate_every_entry(residual, confidence, new_rows)

    gram = residual.gram
    g = gram.host_diag()
    delta = _risk_of_an_end(confidence)

    # R: the diagonal of all rows and pairs, or pairs and the diagonal of their rows alone
    c = residual.n_landmarks
    landmark_entries = c**2
    left = n_entries - landmark_entries
    if seen == "all rows":
        pairs = min(PAIRS, left - gram.n * c)
        residual_pairs = int((1 - GRAM_SHARE) * pairs)
        found = look_at_all_rows(residual, g, residual_pairs, delta, rng)
    else:
        pairs = min(PAIRS, left)
        residual_entries = int(left - GRAM_SHARE * pairs)
        found = look_at_some_rows(residual, g, residual_entries, delta, rng)

    # G
    if norm is None:
        gram_pairs = int(GRAM_SHARE * pairs)
        norm = squared_norm_of_gram(gram, g, gram_pairs, delta, rng)

    # ‖R‖ / ‖G‖ and |tr R| / tr G
    noise = residual.noise
    frobenius = _bound_quotient(found, norm.squared, g, delta, noise)
    trace = _bound_trace_error(found.trace, float(g.sum()), noise)
    low, high = found.trace
    return Certificate(
        frobenius=frobenius,
        trace=trace,
        confidence=confidence,
        entries_evaluated=found.entries + norm.entries + landmark_entries,
        rows=gram.n,
        rows_seen=found.rows,
        new_rows=new_rows,
        exact_trace=low == high,
        positive_semidefinite=residual.positive_semidefinite,
        bounds=found.bounds,
    )


def _choose_what_to_see(
    residual: Residual, n_entries: int
) -> Literal["every entry", "all rows", "some rows"]:
    """Return what the allowed number of kernel values is enough for."""
    # the features of all rows have to fit in memory, except on a cluster, which never keeps them
    n = residual.gram.n
    c = residual.n_landmarks
    if not residual.gram.rows.lazy and not residual.factor.fits(n):
        return "some rows"

    # G and all features
    if n * (n + c) <= n_entries:
        return "every entry"

    # all features, with enough kernel values left for pairs
    left = n_entries - c**2
    if n * c <= max(WORTH_ALL * left, left - PAIRS):
        return "all rows"
    return "some rows"


def _evaluate_every_entry(residual: Residual, confidence: float, new_rows: bool) -> Certificate:
    """Return the exact errors, from all entries of G."""
    n = residual.gram.n
    rows = np.arange(n)
    residual.factor.keep()
    frobenius = relative_error(residual, rows)
    trace = relative_trace_error(residual, rows)
    return Certificate(
        frobenius=(frobenius, frobenius),
        trace=(trace, trace),
        confidence=confidence,
        entries_evaluated=n * (n + residual.n_landmarks),
        rows=n,
        rows_seen=n,
        new_rows=new_rows,
        exact_frobenius=True,
        exact_trace=True,
        positive_semidefinite=residual.positive_semidefinite,
    )


def _bound_trace_error(
    trace: tuple[float, float], trace_of_gram: float, noise: float
) -> tuple[float, float]:
    """Return an interval for |tr R| / tr G from one for tr R, widened by the rounding error."""
    low, high = sorted(abs(end) / trace_of_gram for end in trace)
    if trace[0] < 0 < trace[1]:
        low = 0.0
    return max(0.0, low - noise), high + noise


def _bound_quotient(
    found: Findings,
    norm: Estimate,
    g: Floats,
    delta: float,
    noise: float,
) -> tuple[float, float]:
    """Return an interval for ‖R‖_F / ‖G‖_F, within the bounds that are certain."""
    # the relative deviation of a quotient is √(r² + s²): each part has its share of it
    r = _relative_deviation(found.squared_norm)
    s = _relative_deviation(norm)
    size = math.hypot(r, s)
    shares = np.ones(2)
    if size > 0:
        shares = np.array([r, s]) / size
    of_residual, of_gram = deviations(delta, found.rows) * shares

    # Σ g_i² ≤ ‖G‖² ≤ (tr G)²
    trace = float(g.sum())
    squared_residual = found.squared_norm.interval(of_residual)
    squared_gram = norm.interval(of_gram)
    residual = np.clip(squared_residual, found.least, found.most)
    gram = np.clip(squared_gram, g @ g, trace**2)

    # the lowest and the highest quotient
    low = float(np.sqrt(residual[0] / gram[1]))
    high = float(np.sqrt(residual[1] / gram[0]))
    least_norm = float(np.sqrt(gram[0]))
    rounding = noise * trace / least_norm
    return max(0.0, low - rounding), high + rounding


def _relative_deviation(estimate: Estimate) -> float:
    """Return the standard error of an estimate relative to its value; 0 if that is 0."""
    if estimate.value <= 0:
        return 0.0
    return estimate.error / estimate.value


def _check(residual: Residual, confidence: float, n_entries: int) -> None:
    """Raise if the confidence is outside (0, 1), or if there are too few kernel values."""
    require_fraction("confidence", confidence)
    require_count("n_entries", n_entries)

    # kernel values for the smallest blocks, two rows and two columns, of R and of G
    c = residual.n_landmarks
    residual_block = (4 + 4 * c) / (1 - GRAM_SHARE)
    gram_block = 4 / GRAM_SHARE
    largest_block = max(residual_block, gram_block)
    needed = c * c + math.ceil((LEAST_BLOCKS + 1) * largest_block)

    every_entry = residual.gram.n * (residual.gram.n + c)
    if n_entries < min(needed, every_entry):
        raise ValueError(
            f"n_entries={n_entries} kernel values are too few for {c} landmarks: give at least "
            f"{needed}. A million gives a much narrower interval."
        )
