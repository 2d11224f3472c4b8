"""Kernels that are none, parameters out of range, precomputed matrices that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import polynomial_kernel

import nysboost as nb
from hostile import RNG, X, approximate, cases, close_to, gaussian, has_error, listed, standard
from nysboost.kernels.metric import Quantiles

INTEGERS = np.array([[0], [1], [200]], dtype=np.uint8)
GRAM = gaussian(X, 0.3)
POSITIVE = np.abs(RNG.normal(size=(3000, 2)))
ONE_NEGATIVE = np.where(np.arange(3000)[:, None] == 1501, -3.0, POSITIVE)
DIGITS = (RNG.integers(0, 17, size=(300, 64)) * 16).astype(np.float32)


def quantiles(knots: list[float], heights: list[float]) -> Quantiles:
    return Quantiles((np.array(knots),), (np.array(heights),))


def changed(matrix: np.ndarray, *entries: tuple[int, int, float]) -> np.ndarray:
    matrix = matrix.copy()
    for i, j, value in entries:
        matrix[i, j] = value
    return matrix


BAD_KERNELS = {
    "a name with a typo": "rfb",
    "a list": ["rbf"],
    "None": None,
    "a number": 3,
    "a function of one argument": lambda A: A @ A.T,
    "a function that returns None": lambda *_: None,
    "a function that returns text": lambda A, B: np.full((len(A), len(B)), "a"),
    "a function of another shape": lambda A, _: A,
    "a function that returns NaN": lambda A, B: np.full((len(A), len(B)), np.nan),
    "a complex function": lambda A, B: (A @ B.T) * (1 + 1j),
    "a function that is zero": lambda A, B: np.zeros((len(A), len(B))),
    "an indefinite function": lambda A, B: -(A @ B.T),
    "an asymmetric indefinite function": lambda A, B: A[:, :1] - B[:, :1].T,
}

BAD_PARAMETERS = {
    "sigma = NaN": lambda: nb.Gaussian(sigma=np.nan),
    "sigma as an array": lambda: nb.Gaussian(sigma=np.ones(4)),
    "sigma as another rule": lambda: nb.Gaussian(sigma="mean"),
    "sigma and gamma": lambda: nb.Gaussian(sigma=1.0, gamma=1.0),
    "sigma = 1e-200": lambda: nb.Gaussian(sigma=1e-200),
    "gamma = 1e308": lambda: nb.Gaussian(gamma=1e308),
    "nu = 1": lambda: nb.Matern(nu=1),
    "degree = 0": lambda: nb.Polynomial(degree=0),
    "coef0 as text": lambda: nb.Polynomial(coef0="a"),
    "a negative gamma of ANOVA": lambda: nb.Anova(gamma=-1),
    "nonsense as gamma of Matérn": lambda: standard(kernel="matern", gamma="nonsense").fit(X),
    "nonsense as gamma of a linear kernel": lambda: standard(kernel="linear", gamma="x").fit(X),
    "a rule as gamma of chi2": lambda: standard(kernel="chi2", gamma="scale").fit(np.abs(X)),
    "chi2 of negative numbers": lambda: approximate(kernel="chi2"),
    "an unknown parameter": lambda: standard(kernel_params={"sgima": 2.0}).fit(X),
    "an unknown parameter of chi2":
        lambda: standard(kernel="chi2", kernel_params={"alpha": 2.0}).fit(np.abs(X)),
    "a parameter beside a kernel object": lambda: standard(kernel=nb.Gaussian(), gamma=2.0).fit(X),
    "a parameter of a precomputed kernel":
        lambda: standard(kernel="precomputed", gamma=2.0).fit(GRAM),
    "parameters that are no mapping": lambda: standard(kernel_params=3).fit(X),
    "an indefinite sigmoid": lambda: approximate(kernel="sigmoid", data=X * 10),
}  # fmt: skip

WARP = Quantiles.of(X[:, :3])
METRIC, RISE, WAVES = "metric", "must be finite, increasing", "Random Fourier features"
SENTENCES: dict[str, tuple[Callable[[], Any], str]] = {
    "a metric of NaN": (lambda: nb.Metric(np.nan), METRIC),
    "a metric of three axes": (lambda: nb.Metric(np.ones((2, 2, 2))), METRIC),
    "a metric that is a word": (lambda: nb.Metric("wide"), METRIC),
    "a metric of nothing": (lambda: nb.Metric([]), METRIC),
    "a metric of other features": (
        lambda: nb.Gaussian(metric=nb.Metric([1.0, 2.0, 3.0]))(X, X),
        "3 features, but these have 4"),
    "a metric and a scale": (
        lambda: nb.Gaussian(gamma="scale", metric=nb.Metric(1.0)), 'not "scale"'),
    "quantiles at one value twice": (lambda: quantiles([1.0, 1.0], [0.0, 1.0]), RISE),
    "quantiles that fall": (lambda: quantiles([0.0, 1.0], [1.0, 0.0]), RISE),
    "quantiles of another number": (lambda: quantiles([0.0], [0.0, 1.0]), RISE),
    **{
        f"{kind.__name__}'s waves after quantiles": (
            lambda k=kind: k(metric=nb.Metric(1.0, WARP)).frequencies(X[:, :3], X[:, 0]), WAVES)
        for kind in (nb.Gaussian, nb.Matern, nb.Laplacian)
    },
    **{
        f"{method} of {name}": (
            lambda m=method, k=kernel: approximate(GRAM, m, k, n_components=4), says)
        for method in ("random-fourier", "orthogonal-fourier", "quasi-fourier")
        for name, kernel, says in (
            ("a polynomial", nb.Polynomial(), r"Random Fourier features.*Gaussian, Laplacian or"),
            ("a precomputed kernel", "precomputed", "the kernel is precomputed"),
        )
    },
    "sigma of a kernel by name": (
        lambda: nb.Nystroem("rbf").set_params(kernel__sigma=2.0),
        "pass an object, such as kernel=nysboost.Gaussian"),
    "nu of a linear kernel": (lambda: nb.Nystroem(nb.Linear()).set_params(kernel__nu=2.0), "'nu'"),
}  # fmt: skip

PRECOMPUTED = {
    "not square": X,
    "not symmetric": changed(GRAM, (0, 1, 0.9)),
    "with NaN": changed(GRAM, (3, 4, np.nan), (4, 3, np.nan)),
    "a negative diagonal": changed(np.eye(2000) + 0.1, (1001, 1001, -5.0)),
    "an entry above the diagonal's": changed(GRAM, (3, 40, 9.0), (40, 3, 9.0)),
    "negative definite": -GRAM,
    "zero": np.zeros((60, 60)),
    "integers out of range": np.full((4, 4), 10**400, dtype=object),
}

METHODS = ("joint", "uniform", "nystrom", "rpcholesky", "greedy", "rls", "URB-mean")

EACH = {method: method for method in METHODS}
NO_PAIRS = {"one column": X[:, :1], "two columns": X[:, :2], "one row": X[0], "lists": X.tolist()}
KERNELS = (
    nb.Gaussian(sigma=3.0), nb.Laplacian(sigma=3.0), nb.Matern(sigma=3.0), nb.Linear(),
    nb.Polynomial(gamma=1.0), nb.Cosine(), nb.Anova(),
)  # fmt: skip


def scales(*values: float) -> dict[str, float]:
    return {f"{value:g}": value for value in values}


def dense(kernel: Any = "rbf", **how: Any) -> np.ndarray:
    return standard(kernel=kernel, **how).fit(X).approximation_.to_dense()


ON_GRAM = standard(kernel="precomputed").fit(GRAM)
SINGLE: dict[str, Any] = {
    "a polynomial of 1e15 in float32, transformed": (
        lambda: standard(kernel="poly").fit(X.astype("f4")).transform(np.full((1, 4), 1e15, "f4")),
        "NaN or infinity"),
    "a function of sparse rows that returns a sparse matrix": (
        lambda: approximate(csr_matrix(X), kernel=lambda A, B: A @ B.T), has_error(X @ X.T)),
    "a precomputed matrix of integers": (
        lambda: approximate((10 * np.eye(60)).astype(int), "nystrom", "precomputed"),
        has_error(10 * np.eye(60))),
    "a precomputed matrix as CSR": (
        lambda: approximate(csr_matrix(GRAM), "nystrom", "precomputed"), has_error(GRAM)),
    "new rows of a precomputed kernel as CSR": (
        lambda: ON_GRAM.transform(csr_matrix(GRAM[:5])), close_to(ON_GRAM.transform(GRAM[:5]))),
    "new rows of a precomputed kernel of another width": lambda: ON_GRAM.transform(GRAM[:, :7]),
    "k-means of a precomputed kernel": lambda: approximate(GRAM, "kmeans", "precomputed"),
    "gamma of Matérn": (lambda: dense("matern", gamma=0.5), close_to(dense(nb.Matern(sigma=1.0)))),
    "gamma of type float32": (
        lambda: dense(gamma=np.float32(0.25)), close_to(dense(gamma=0.25), 1e-6)),
}  # fmt: skip
SIZES = (1e-200, 1e-90, 1e-30, 1e30, 1e90, 1e200)
CASES = [
    *cases("kernel: {}", lambda kernel: approximate(kernel=kernel), BAD_KERNELS),
    *listed({**BAD_PARAMETERS, **SENTENCES, **SINGLE}),
    *cases("precomputed: {}", lambda G: approximate(G, "nystrom", "precomputed"), PRECOMPUTED),
    *cases(
        "a negative diagonal with {}",
        lambda method: approximate(PRECOMPUTED["a negative diagonal"], method, "precomputed"),
        EACH,
        says="negative",
    ),
    *cases(
        "a polynomial of fractional degree, one row in 3000 negative, with {}",
        lambda method: approximate(
            ONE_NEGATIVE, method, nb.Polynomial(degree=2.5), row_cap=100
        ).features(),
        {method: method for method in ("uniform", "nystrom", "rls", "greedy")},
        says="but it is negative for some points",
    ),
    *cases(
        "float32 values of 1e24 with {}",
        lambda method: approximate(DIGITS, method, nb.Polynomial(degree=5)),
        EACH,
        lambda _: has_error(polynomial_kernel(DIGITS.astype(np.float64), degree=5)),
    ),
    *cases(
        "kernels of {}",
        lambda pair: [kernel(*pair) for kernel in KERNELS],
        {f"{what}, first": (A, X) for what, A in NO_PAIRS.items()}
        | {f"{what}, second": (X, A) for what, A in NO_PAIRS.items()},
        says=r"shapes \(n, d\)",
    ),
    *cases(
        "{} of integers",
        lambda kernel: kernel(INTEGERS, INTEGERS),
        {str(kernel): kernel for kernel in KERNELS},
        lambda kernel: close_to(kernel(INTEGERS.astype(float), INTEGERS.astype(float))),
    ),
    *(
        case
        for name, kernel, sizes in (
            ("the width by median", nb.Gaussian("median"), SIZES),
            ("the width by scale", nb.Gaussian("scale"), SIZES),
            ("the cosine", "cosine", (1e-300, 1e-90, 1e90, 1e300)),
        )
        for case in cases(
            f"{name} at the scale {{}}",
            lambda scale, kernel=kernel: approximate(X * scale, kernel=kernel).to_dense(),
            scales(*sizes),
            lambda _, kernel=kernel: close_to(approximate(kernel=kernel).to_dense(), 1e-6),
            "is outside the range of floating point",
        )
    ),
    *cases(
        "a linear kernel at the scale {}",
        lambda scale: approximate(X * scale, kernel="linear"),
        scales(1e-200, 1e-90, 1e90, 1e200),
    ),
]
