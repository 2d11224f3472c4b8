"""The paper's claims about its experiments, taken apart into "this mean is below that mean"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from nysboost.paper.replicate import BASELINE

CHECKPOINTS = (5, 10, 15, 20)
MOST = 20
LEVEL = 0.05
CLOSE = 1.10
"""Two errors are similar if one is at most this many times the other."""
DRAMATIC = 2.0
"""A time is dramatically longer from this many times on."""


@dataclass(frozen=True)
class Comparison:
    """The statement mean(left) < factor · mean(right); sides are (method, number of learners)."""

    preset: str
    left: tuple[str, int]
    right: tuple[str, int]
    factor: float = 1.0
    paired: bool = False

    def __str__(self) -> str:
        scale = "" if self.factor == 1 else f"{self.factor:.2f} × "
        (a, p), (b, q) = self.left, self.right
        return f"{self.preset}: {a} (p = {p}) < {scale}{b} (p = {q})"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its gist in a few words, and the comparisons that it amounts to."""

    number: str
    gist: str
    statement: str
    comparisons: tuple[Comparison, ...]
    level: float = LEVEL
    at_replicates: int | None = None
    """With this many replicates, a comparison that is not significant counts against it."""


def _compare(
    presets: Sequence[str],
    left: Sequence[str],
    right: Sequence[str],
    at: Sequence[int] | tuple[tuple[int, int], ...] = CHECKPOINTS,
    factor: float = 1.0,
) -> tuple[Comparison, ...]:
    """Compare every left with every right method, with as many learners or with pairs of them."""
    counts = [p if isinstance(p, tuple) else (p, p) for p in at]
    return tuple(
        Comparison(preset, (a, p), (b, q), factor)
        for preset, a, b, (p, q) in product(presets, left, right, counts)
    )


def _combine(weights: Sequence[str], clusterings: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{w}-{c}" for w in weights for c in clusterings)


def _order(weights: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[Comparison, ...]:
    """Compare clusterings at equal weights, on the simulation."""
    return tuple(
        c
        for w, (better, worse) in product(weights, pairs)
        for c in _compare(SIMULATION, [f"{w}-{better}"], [f"{w}-{worse}"])
    )


SIMULATION, RUNTIME, ENSEMBLE = ("simulation",), ("runtime",), (BASELINE,)
MNIST = ("mnist-linear", "mnist-gaussian")
GLOVE = ("glove-linear", "glove-gaussian")
SMALLER = ("covertype", "ijcnn", "pendigits")
REAL = (*MNIST, *GLOVE, *SMALLER)
CLUSTERINGS, ALL_WEIGHTS = ("mean", "med", "SF"), ("URB", "RRB", "UEB", "EEB")
RIDGE = _combine(("URB", "RRB"), CLUSTERINGS)
EXPONENTIAL = _combine(("UEB", "EEB"), CLUSTERINGS)
UNIFORM, UEB = _combine(("UUB",), CLUSTERINGS), _combine(("UEB",), CLUSTERINGS)
DRAWN_MEANS = ("UUB-mean", "UEB-mean", "URB-mean", "RRB-mean")
RIDGE_MEANS = ("URB-mean", "RRB-mean")
DRAWN_GLOVE = (*DRAWN_MEANS, "UEB-med", "URB-med")
LAST = (MOST,)

CLAIMS: tuple[Claim, ...] = (
    Claim("1", "ridge weights beat the ensemble on the simulation",
          "Simulation: every URB and RRB variant beats ensemble-ridge with the same number of "
          "learners.",
          _compare(SIMULATION, RIDGE, ENSEMBLE)),
    Claim("2", "exponential weights beat the ensemble on the simulation",
          "Simulation: so do the variants with exponential weights.",
          _compare(SIMULATION, EXPONENTIAL, ENSEMBLE)),
    Claim("3a", "k-medoids beats k-means on the simulation",
          "Simulation: k-medoids beats k-means at equal weights.",
          _order(ALL_WEIGHTS, [("med", "mean")])),
    Claim("3b", "k-medoids-SF lies between k-medoids and k-means on the simulation",
          "Simulation: k-medoids-SF lies between the two.",
          _order(ALL_WEIGHTS, [("med", "SF"), ("SF", "mean")])),
    Claim("4", "all p-values on the simulation are below 0.01",
          "Simulation: all p-values of the drawn variants against ensemble-ridge are below 0.01.",
          _compare(SIMULATION, RIDGE + EXPONENTIAL, ENSEMBLE, range(2, MOST + 1)), level=0.01,
          at_replicates=100),
    Claim("5a", "uniform weights are the fastest",
          "Runtime: the UUB variants are the fastest.",
          _compare(RUNTIME, UNIFORM, (*UEB, *RIDGE, BASELINE), LAST)),
    Claim("5b", "exponential weights are faster than the ensemble",
          "Runtime: variants with exponential weights are faster than ensemble-ridge.",
          _compare(RUNTIME, UEB, ENSEMBLE, LAST)),
    Claim("5c", "ridge weights are slower than the ensemble",
          "Runtime: variants with ridge weights are slower than ensemble-ridge.",
          _compare(RUNTIME, ENSEMBLE, RIDGE, LAST)),
    Claim("5d", "ridge weights take less than twice the ensemble's time",
          f"Runtime: but not dramatically slower (less than {DRAMATIC:g} times).",
          _compare(RUNTIME, RIDGE, ENSEMBLE, LAST, DRAMATIC)),
    Claim("6a", "k-means beats k-medoids on MNIST",
          "MNIST: k-means beats k-medoids and k-medoids-SF at equal weights.",
          _compare(MNIST, ["URB-mean"], ["URB-med", "URB-SF"])
          + _compare(MNIST, ["RRB-mean"], ["RRB-med", "RRB-SF"])),
    Claim("6b", "half the learners reach the ensemble's error on MNIST",
          "MNIST: the k-means variants, even with uniform weights, reach the error of "
          "ensemble-ridge with half the learners.",
          _compare(MNIST, DRAWN_MEANS, ENSEMBLE, ((MOST // 2, MOST),))),
    Claim("7a", "ridge weights beat exponential ones on all but IJCNN",
          "Ridge weights beat exponential weights with k-means, on all but IJCNN.",
          _compare([p for p in REAL if p != "ijcnn"], RIDGE_MEANS, ["UEB-mean"])),
    Claim("7b", "exponential weights beat ridge weights on IJCNN",
          "IJCNN: UEB-mean beats RRB-mean.",
          _compare(["ijcnn"], ["UEB-mean"], ["RRB-mean"])),
    Claim("8", "URB-mean beats RRB-mean on MNIST",
          "MNIST: URB-mean beats RRB-mean with both kernels.",
          _compare(MNIST, ["URB-mean"], ["RRB-mean"])),
    Claim("9a", "UUB-mean is close to the best on MNIST-linear, Covertype, IJCNN and Pendigits",
          "UUB-mean is close to the best drawn variant (within 10%) on MNIST-linear, Covertype, "
          "IJCNN and Pendigits.",
          _compare(("mnist-linear", *SMALLER), ["UUB-mean"], DRAWN_MEANS[1:], LAST, CLOSE)),
    Claim("9b", "UUB-mean is far from the best on GloVe and on MNIST with the Gaussian kernel",
          "UUB-mean is not close to the best (URB-mean is more than 10% better) on GloVe or "
          "MNIST-gaussian.",
          _compare((*GLOVE, "mnist-gaussian"), ["URB-mean"], ["UUB-mean"], LAST, 1 / CLOSE)),
    Claim("10a", "every variant beats the ensemble on GloVe with the Gaussian kernel",
          "GloVe-gaussian: all drawn boosting variants beat ensemble-ridge.",
          _compare(["glove-gaussian"], DRAWN_GLOVE, ENSEMBLE)),
    Claim("10b", "ridge weights with k-means beat the ensemble on GloVe with the linear kernel",
          "GloVe-linear: ridge weights with k-means beat ensemble-ridge.",
          _compare(["glove-linear"], RIDGE_MEANS, ENSEMBLE)),
    Claim("10c", "no other variant beats the ensemble on GloVe with the linear kernel",
          "GloVe-linear: the other drawn variants do not.",
          _compare(["glove-linear"], ENSEMBLE, [m for m in DRAWN_GLOVE if m not in RIDGE_MEANS])),
    Claim("11a", "every variant beats the ensemble on Covertype, IJCNN and Pendigits",
          "Covertype, IJCNN, Pendigits: all drawn variants beat ensemble-ridge.",
          _compare(SMALLER, DRAWN_MEANS, ENSEMBLE)),
    Claim("11b", "15 learners reach the ensemble's 20 on Covertype, IJCNN and Pendigits",
          "Covertype, IJCNN, Pendigits: they need fewer learners (15 against 20).",
          _compare(SMALLER, DRAWN_MEANS, ENSEMBLE, ((15, MOST),))),
    Claim("12", "Pendigits gains little after 16 learners",
          "Pendigits gains little (under 10%) after 16 learners.",
          tuple(Comparison("pendigits", (m, 16), (m, MOST), CLOSE,
          paired=True) for m in DRAWN_MEANS)),
    Claim("13", "URB-mean is better than the ensemble everywhere",
          "URB-mean is consistently better than ensemble-ridge.",
          _compare((*SIMULATION, *REAL), ["URB-mean"], ENSEMBLE)),
)  # fmt: skip


def find_methods(preset: str) -> set[str]:
    """Return the methods that some claim compares in a preset."""
    sides = (c for claim in CLAIMS for c in claim.comparisons if c.preset == preset)
    return {method for c in sides for method, _ in (c.left, c.right)}
