"""The statements that the paper makes about its experiments, as lists of comparisons.

Each claim is what the text says, taken apart into "this mean is below that mean"; `ledger`
decides them. Nothing here is tuned to an outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nysboost.experiments.replicate import BASELINE

CHECKPOINTS = (5, 10, 15, 20)
MOST = 20
LEVEL = 0.05
CLOSE = 1.10
"""Two errors are similar if one is at most this many times the other."""
DRAMATIC = 2.0
"""A time is dramatically longer from this many times on."""

REAL = (
    "mnist-linear",
    "mnist-gaussian",
    "glove-linear",
    "glove-gaussian",
    "covertype",
    "pendigits",
    "ijcnn",
)
DRAWN_MEANS = ("UUB-mean", "UEB-mean", "URB-mean", "RRB-mean")
DRAWN_GLOVE = (*DRAWN_MEANS, "UEB-med", "URB-med")
CLUSTERINGS = ("mean", "med", "SF")


@dataclass(frozen=True)
class Comparison:
    """The statement mean(left) < factor · mean(right), in one preset.

    Attributes
    ----------
    left, right : (method, number of learners)
        What is compared.
    factor : float
        Scales the right-hand side.
    paired : bool
        Whether both sides come from the same run, replicate by replicate.
    """

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
    """A statement of the paper, the comparisons that it amounts to, and its gist in a few words."""

    number: str
    statement: str
    comparisons: tuple[Comparison, ...]
    gist: str = ""
    level: float = LEVEL
    at_replicates: int | None = None
    """With this many replicates, a comparison that is not significant counts against it."""


def _against(
    preset: str, methods: Sequence[str], right: str, at: Sequence[int] = CHECKPOINTS
) -> Iterator[Comparison]:
    for method in methods:
        for p in at:
            yield Comparison(preset, (method, p), (right, p))


def _family(weights: Sequence[str], clusterings: Sequence[str] = CLUSTERINGS) -> list[str]:
    return [f"{w}-{c}" for w in weights for c in clusterings]


def _simulation() -> Iterator[Claim]:
    ridge, exponential = _family(("URB", "RRB")), _family(("UEB", "EEB"))
    beats = tuple(_against("simulation", ridge, BASELINE))
    yield Claim(
        "1",
        "Simulation: every URB and RRB variant beats ensemble-ridge with the same "
        "number of learners.",
        beats,
    )
    yield Claim(
        "2",
        "Simulation: so do the variants with exponential weights.",
        tuple(_against("simulation", exponential, BASELINE)),
    )
    order = [
        Comparison("simulation", (f"{w}-{better}", p), (f"{w}-{worse}", p))
        for w in ("URB", "RRB", "UEB", "EEB")
        for better, worse in (("med", "mean"), ("med", "SF"), ("SF", "mean"))
        for p in CHECKPOINTS
    ]
    medoids = tuple(c for c in order if "med" in c.left[0] and "mean" in c.right[0])
    between = tuple(c for c in order if c not in medoids)
    yield Claim("3a", "Simulation: k-medoids beats k-means at equal weights.", medoids)
    yield Claim("3b", "Simulation: k-medoids-SF lies between the two.", between)
    every = tuple(
        c
        for p in range(2, MOST + 1)
        for c in _against("simulation", ridge + exponential, BASELINE, (p,))
    )
    yield Claim(
        "4",
        "Simulation: all p-values of the drawn variants against ensemble-ridge are below 0.01.",
        every,
        level=0.01,
        at_replicates=100,
    )


def _runtime() -> Iterator[Claim]:
    uniform, ridge = _family(("UUB",)), _family(("URB", "RRB"))
    exponential = _family(("UEB",))
    others = [*exponential, *ridge, BASELINE]
    yield Claim(
        "5a",
        "Runtime: the UUB variants are the fastest.",
        tuple(Comparison("runtime", (u, MOST), (o, MOST)) for u in uniform for o in others),
    )
    yield Claim(
        "5b",
        "Runtime: variants with exponential weights are faster than ensemble-ridge.",
        tuple(_against("runtime", exponential, BASELINE, (MOST,))),
    )
    yield Claim(
        "5c",
        "Runtime: variants with ridge weights are slower than ensemble-ridge.",
        tuple(Comparison("runtime", (BASELINE, MOST), (r, MOST)) for r in ridge),
    )
    yield Claim(
        "5d",
        f"Runtime: but not dramatically slower (less than {DRAMATIC:g} times).",
        tuple(Comparison("runtime", (r, MOST), (BASELINE, MOST), DRAMATIC) for r in ridge),
    )


def _mnist() -> Iterator[Claim]:
    both = ("mnist-linear", "mnist-gaussian")
    yield Claim(
        "6a",
        "MNIST: k-means beats k-medoids and k-medoids-SF at equal weights.",
        tuple(
            Comparison(preset, (f"{w}-mean", p), (f"{w}-{other}", p))
            for preset in both
            for w in ("URB", "RRB")
            for other in ("med", "SF")
            for p in CHECKPOINTS
        ),
    )
    yield Claim(
        "6b",
        "MNIST: the k-means variants, even with uniform weights, reach the error of "
        "ensemble-ridge with half the learners.",
        tuple(
            Comparison(preset, (method, MOST // 2), (BASELINE, MOST))
            for preset in both
            for method in DRAWN_MEANS
        ),
    )
    yield Claim(
        "8",
        "MNIST: URB-mean beats RRB-mean with both kernels.",
        tuple(c for preset in both for c in _against(preset, ["URB-mean"], "RRB-mean")),
    )


def _weights() -> Iterator[Claim]:
    ridge_wins = tuple(
        Comparison(preset, (f"{x}RB-mean", p), ("UEB-mean", p))
        for preset in REAL
        if preset != "ijcnn"
        for x in "UR"
        for p in CHECKPOINTS
    )
    yield Claim(
        "7a", "Ridge weights beat exponential weights with k-means, on all but IJCNN.", ridge_wins
    )
    yield Claim(
        "7b", "IJCNN: UEB-mean beats RRB-mean.", tuple(_against("ijcnn", ["UEB-mean"], "RRB-mean"))
    )


def _similar() -> Iterator[Claim]:
    near = ("mnist-linear", "covertype", "ijcnn", "pendigits")
    far = ("glove-linear", "glove-gaussian", "mnist-gaussian")
    rivals = [m for m in DRAWN_MEANS if m != "UUB-mean"]
    yield Claim(
        "9a",
        "UUB-mean is close to the best drawn variant (within 10%) on MNIST-linear, "
        "Covertype, IJCNN and Pendigits.",
        tuple(
            Comparison(preset, ("UUB-mean", MOST), (rival, MOST), CLOSE)
            for preset in near
            for rival in rivals
        ),
    )
    yield Claim(
        "9b",
        "UUB-mean is not close to the best (URB-mean is more than 10% better) on "
        "GloVe or MNIST-gaussian.",
        tuple(
            Comparison(preset, ("URB-mean", MOST), ("UUB-mean", MOST), 1 / CLOSE) for preset in far
        ),
    )


def _glove() -> Iterator[Claim]:
    yield Claim(
        "10a",
        "GloVe-gaussian: all drawn boosting variants beat ensemble-ridge.",
        tuple(_against("glove-gaussian", DRAWN_GLOVE, BASELINE)),
    )
    winners = ("URB-mean", "RRB-mean")
    losers = [m for m in DRAWN_GLOVE if m not in winners]
    yield Claim(
        "10b",
        "GloVe-linear: ridge weights with k-means beat ensemble-ridge.",
        tuple(_against("glove-linear", winners, BASELINE)),
    )
    yield Claim(
        "10c",
        "GloVe-linear: the other drawn variants do not.",
        tuple(
            Comparison("glove-linear", (BASELINE, p), (m, p)) for m in losers for p in CHECKPOINTS
        ),
    )


def _three() -> Iterator[Claim]:
    three = ("covertype", "ijcnn", "pendigits")
    yield Claim(
        "11a",
        "Covertype, IJCNN, Pendigits: all drawn variants beat ensemble-ridge.",
        tuple(c for preset in three for c in _against(preset, DRAWN_MEANS, BASELINE)),
    )
    yield Claim(
        "11b",
        "Covertype, IJCNN, Pendigits: they need fewer learners (15 against 20).",
        tuple(
            Comparison(preset, (m, 15), (BASELINE, MOST)) for preset in three for m in DRAWN_MEANS
        ),
    )
    yield Claim(
        "12",
        "Pendigits gains little (under 10%) after 16 learners.",
        tuple(Comparison("pendigits", (m, 16), (m, MOST), CLOSE, paired=True) for m in DRAWN_MEANS),
    )
    yield Claim(
        "13",
        "URB-mean is consistently better than ensemble-ridge.",
        tuple(
            c for preset in ("simulation", *REAL) for c in _against(preset, ["URB-mean"], BASELINE)
        ),
    )


GISTS = {
    "1": "ridge weights beat the ensemble on the simulation",
    "2": "exponential weights beat the ensemble on the simulation",
    "3a": "k-medoids beats k-means on the simulation",
    "3b": "k-medoids-SF lies between k-medoids and k-means on the simulation",
    "4": "all p-values on the simulation are below 0.01",
    "5a": "uniform weights are the fastest",
    "5b": "exponential weights are faster than the ensemble",
    "5c": "ridge weights are slower than the ensemble",
    "5d": "ridge weights take less than twice the ensemble's time",
    "6a": "k-means beats k-medoids on MNIST",
    "6b": "half the learners reach the ensemble's error on MNIST",
    "7a": "ridge weights beat exponential ones on all but IJCNN",
    "7b": "exponential weights beat ridge weights on IJCNN",
    "8": "URB-mean beats RRB-mean on MNIST",
    "9a": "UUB-mean is close to the best on MNIST-linear, Covertype, IJCNN and Pendigits",
    "9b": "UUB-mean is far from the best on GloVe and on MNIST with the Gaussian kernel",
    "10a": "every variant beats the ensemble on GloVe with the Gaussian kernel",
    "10b": "ridge weights with k-means beat the ensemble on GloVe with the linear kernel",
    "10c": "no other variant beats the ensemble on GloVe with the linear kernel",
    "11a": "every variant beats the ensemble on Covertype, IJCNN and Pendigits",
    "11b": "15 learners reach the ensemble's 20 on Covertype, IJCNN and Pendigits",
    "12": "Pendigits gains little after 16 learners",
    "13": "URB-mean is better than the ensemble everywhere",
}
"""Each statement in a few words that stand by themselves, for a summary."""


def _in_order(claim: Claim) -> tuple[int, str]:
    return int(claim.number.rstrip("abcd")), claim.number


_EVERY = (*_simulation(), *_runtime(), *_mnist(), *_weights(), *_similar(), *_glove(), *_three())
CLAIMS: tuple[Claim, ...] = tuple(
    replace(claim, gist=GISTS[claim.number]) for claim in sorted(_EVERY, key=_in_order)
)


def named_in(preset: str) -> set[str]:
    """Return the methods that some claim compares in a preset."""
    sides = (c for claim in CLAIMS for c in claim.comparisons if c.preset == preset)
    return {method for c in sides for method, _ in (c.left, c.right)}
