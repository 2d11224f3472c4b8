"""Kernels that are none, parameters out of range, precomputed matrices that cannot be."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import polynomial_kernel

import nysboost as nb
from hostile import RNG, Case, X, approximate, close_to, gaussian, has_error_of, standard

INTEGERS = np.array([[0], [1], [200]], dtype=np.uint8)
GRAM = gaussian(X, 0.3)
POSITIVE = np.abs(RNG.normal(size=(3000, 2)))
ONE_NEGATIVE = np.where(np.arange(3000)[:, None] == 1501, -3.0, POSITIVE)
DIGITS = (RNG.integers(0, 17, size=(300, 64)) * 16).astype(np.float32)


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
    "a class": nb.Gaussian,
    "the empty text": "",
    "a function of one argument": lambda A: A @ A.T,
    "a function that returns None": lambda *_: None,
    "a function that returns a number": lambda *_: 1.0,
    "a function that returns text": lambda A, B: np.full((len(A), len(B)), "a"),
    "a function of another shape": lambda A, _: A,
    "a function that returns NaN": lambda A, B: np.full((len(A), len(B)), np.nan),
    "a complex function": lambda A, B: (A @ B.T) * (1 + 1j),
    "a function that is zero": lambda A, B: np.zeros((len(A), len(B))),
    "an indefinite function": lambda A, B: -(A @ B.T),
    "an asymmetric indefinite function": lambda A, B: A[:, :1] - B[:, :1].T,
}

BAD_PARAMETERS = {
    "a negative sigma": lambda: nb.Gaussian(sigma=-1),
    "sigma = 0": lambda: nb.Gaussian(sigma=0),
    "sigma = NaN": lambda: nb.Gaussian(sigma=np.nan),
    "sigma = infinity": lambda: nb.Laplacian(sigma=np.inf),
    "sigma as an array": lambda: nb.Gaussian(sigma=np.ones(4)),
    "sigma = True": lambda: nb.Gaussian(sigma=True),
    "sigma as another rule": lambda: nb.Gaussian(sigma="mean"),
    "sigma and gamma": lambda: nb.Gaussian(sigma=1.0, gamma=1.0),
    "sigma and gamma of Matérn": lambda: nb.Matern(sigma=1.0, gamma=1.0),
    "sigma = 1e-200": lambda: nb.Gaussian(sigma=1e-200),
    "gamma = 1e308": lambda: nb.Gaussian(gamma=1e308),
    "nu = 1": lambda: nb.Matern(nu=1),
    "nu as text": lambda: nb.Matern(nu="1.5"),
    "degree = 0": lambda: nb.Polynomial(degree=0),
    "a negative degree": lambda: nb.Polynomial(degree=-2),
    "coef0 as text": lambda: nb.Polynomial(coef0="a"),
    "coef0 = NaN": lambda: nb.Polynomial(coef0=np.nan),
    "a negative gamma of ANOVA": lambda: nb.Anova(gamma=-1),
    "nonsense as gamma of Matérn": lambda: standard(kernel="matern", gamma="nonsense").fit(X),
    "nonsense as gamma of a linear kernel": lambda: standard(kernel="linear", gamma="x").fit(X),
    "nonsense as degree of a Gaussian": lambda: standard(kernel="rbf", degree="x").fit(X),
    "a rule as gamma of chi2": lambda: standard(kernel="chi2", gamma="scale").fit(np.abs(X)),
    "chi2 of negative numbers": lambda: approximate(kernel="chi2"),
    "an unknown parameter": lambda: standard(kernel_params={"sgima": 2.0}).fit(X),
    "an unknown parameter of chi2": lambda: standard(
        kernel="chi2", kernel_params={"alpha": 2.0}
    ).fit(np.abs(X)),
    "a parameter beside a kernel object": lambda: standard(kernel=nb.Gaussian(), gamma=2.0).fit(X),
    "a parameter of a precomputed kernel": lambda: standard(kernel="precomputed", gamma=2.0).fit(
        GRAM
    ),
    "parameters that are no mapping": lambda: standard(kernel_params=3).fit(X),
    "an indefinite sigmoid": lambda: approximate(kernel="sigmoid", data=X * 10),
}

PRECOMPUTED = {
    "not square": X,
    "not symmetric": changed(GRAM, (0, 1, 0.9)),
    "with NaN": changed(GRAM, (3, 4, np.nan), (4, 3, np.nan)),
    "a negative diagonal": changed(np.eye(2000) + 0.1, (1001, 1001, -5.0)),
    "an entry above the diagonal's": changed(GRAM, (3, 40, 9.0), (40, 3, 9.0)),
    "negative definite": -GRAM,
    "zero": np.zeros((60, 60)),
    "sparse": csr_matrix(GRAM),
    "integers out of range": np.full((4, 4), 10**400, dtype=object),
}

METHODS = ("joint", "uniform", "nystrom", "rpcholesky", "greedy", "rls", "URB-mean")

CASES = [
    *(Case(f"kernel: {n}", lambda k=k: approximate(kernel=k)) for n, k in BAD_KERNELS.items()),
    *(
        Case(f"a transformer with kernel: {n}", lambda k=k: standard(kernel=k).fit(X))
        for n, k in BAD_KERNELS.items()
    ),
    *(Case(name, call) for name, call in BAD_PARAMETERS.items()),
    *(
        Case(f"precomputed: {name}", lambda G=G: approximate(G, "nystrom", "precomputed"))
        for name, G in PRECOMPUTED.items()
    ),
    *(
        Case(
            f"a negative diagonal with {method}",
            lambda m=method: approximate(PRECOMPUTED["a negative diagonal"], m, "precomputed"),
            says="negative",
        )
        for method in METHODS
    ),
    *(
        Case(
            f"a polynomial of fractional degree, one row in 3000 negative, with {method}",
            lambda m=method: approximate(
                ONE_NEGATIVE, m, nb.Polynomial(degree=2.5), row_cap=100
            ).features(),
            says="NaN or infinity",
        )
        for method in ("uniform", "nystrom", "rls", "greedy")
    ),
    *(
        Case(
            f"float32 values of 1e24 with {method}",
            lambda m=method: approximate(DIGITS, m, nb.Polynomial(degree=5)),
            has_error_of(polynomial_kernel(DIGITS.astype(np.float64), degree=5)),
        )
        for method in METHODS
    ),
    *(
        Case(
            f"{kernel} of integers",
            lambda k=kernel: k(INTEGERS, INTEGERS),
            close_to(kernel(INTEGERS.astype(float), INTEGERS.astype(float))),
        )
        for kernel in (
            nb.Gaussian(sigma=3.0),
            nb.Laplacian(sigma=3.0),
            nb.Matern(sigma=3.0),
            nb.Linear(),
            nb.Polynomial(gamma=1.0),
            nb.Cosine(),
            nb.Anova(),
        )
    ),
    *(
        Case(
            f"the width by {rule} at the scale {scale:g}",
            lambda r=rule, s=scale: approximate(X * s, kernel=nb.Gaussian(r)).to_dense(),
            close_to(approximate(kernel=nb.Gaussian(rule)).to_dense(), 1e-6),
        )
        for rule in ("median", "scale")
        for scale in (1e-200, 1e-90, 1e-30, 1e30, 1e90, 1e200)
    ),
    *(
        Case(
            f"the cosine at the scale {scale:g}",
            lambda s=scale: approximate(X * s, kernel="cosine").to_dense(),
            close_to(approximate(kernel="cosine").to_dense(), 1e-6),
        )
        for scale in (1e-300, 1e-90, 1e90, 1e300)
    ),
    *(
        Case(f"a linear kernel at the scale {s:g}", lambda s=s: approximate(X * s, kernel="linear"))
        for s in (1e-200, 1e-90, 1e90, 1e200)
    ),
    Case(
        "a polynomial of 1e15 in float32, transformed",
        lambda: (
            standard(kernel="poly")
            .fit(X.astype(np.float32))
            .transform(np.full((1, 4), 1e15, np.float32))
        ),
        says="NaN or infinity",
    ),
    Case(
        "a function of sparse rows that returns a sparse matrix",
        lambda: approximate(csr_matrix(X), kernel=lambda A, B: A @ B.T),
        has_error_of(X @ X.T),
    ),
    Case(
        "a precomputed matrix of integers",
        lambda: approximate((10 * np.eye(60)).astype(int), "nystrom", "precomputed"),
        has_error_of(10 * np.eye(60)),
    ),
    Case(
        "new rows of a precomputed kernel as CSR",
        lambda: standard(kernel="precomputed").fit(GRAM).transform(csr_matrix(GRAM[:5])),
        close_to(standard(kernel="precomputed").fit(GRAM).transform(GRAM[:5])),
    ),
    Case(
        "new rows of a precomputed kernel of another width",
        lambda: standard(kernel="precomputed").fit(GRAM).transform(GRAM[:, :7]),
    ),
    Case("k-means of a precomputed kernel", lambda: approximate(GRAM, "kmeans", "precomputed")),
    Case(
        "gamma of Matérn",
        lambda: standard(kernel="matern", gamma=0.5).fit(X).approximation_.to_dense(),
        close_to(standard(kernel=nb.Matern(sigma=1.0)).fit(X).approximation_.to_dense()),
    ),
    Case(
        "gamma of type float32",
        lambda: standard(gamma=np.float32(0.25)).fit(X).approximation_.to_dense(),
        close_to(standard(gamma=0.25).fit(X).approximation_.to_dense(), 1e-6),
    ),
]
