"""The front door: all 32 methods against the paper's equations, and bad input."""

import market
import numpy as np
import oracle
import pytest
from market import MIXTURES, OTHERS, points
from scipy import sparse

import nysboost as nb
from nysboost.catalogue import FAMILIES
from nysboost.features.feature_map import features_of

SIZES = {"n_learners": 3, "n_columns": 8, "rank": 5, "n_candidates": 30, "n_fit": 6, "n_tune": 5}

NEEDS_POINTS = (*FAMILIES["cluster centres"], *FAMILIES["random features"])

UNBOUNDED = (*FAMILIES["random features"], *FAMILIES["CUR"], *FAMILIES["ensemble"], *nb.VARIANTS)
"""Methods whose error may exceed 1: features of random waves, crossings, and mixtures, whose
weights are fitted on a few columns."""


SAMPLED, SEED = SIZES | market.SAMPLED, {"random_state": 1}


def dense_oracle(G, method, run, seed):
    """The paper's equation, on the columns that the run has drawn or chosen."""
    rng = np.random.default_rng(seed)
    p, m, k = (SIZES[name] for name in ("n_learners", "n_columns", "rank"))
    if method.startswith("nystrom"):
        columns = rng.choice(len(G), size=m, replace=False)
        return (oracle.fixed_rank if method.endswith("rank") else oracle.nystrom)(G, columns, k)
    if method.startswith("ensemble"):
        letter = method.removeprefix("ensemble-")[0].upper()
        return oracle.ensemble(G, letter, p, m, k, (SIZES["n_fit"], SIZES["n_tune"]), rng)
    found = run.trajectory.state
    J = [learner.landmarks.indices for learner in run.learners]
    return oracle.boosting(G, method, J, k, (found.V1.cols, found.V2.cols))[1]


@pytest.mark.parametrize(("method", "case"), market.in_turn(oracle.METHODS, market.WITHOUT_TIES))
def test_every_method_is_the_papers_equation_in_dense_form(method, case):
    problem = market.problem(case)
    approx = nb.approximate(problem.X, method, problem.kernel, **SIZES, random_state=7)
    expected = dense_oracle(problem.G, method, approx, seed=7)
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=problem.tolerance)


@pytest.mark.parametrize(("method", "case"), market.in_turn(nb.VARIANTS, market.WITHOUT_TIES))
def test_on_a_sample_the_weights_are_the_papers_on_the_rows_observed(method, case):
    problem = market.problem(case, n=market.MANY)
    approx = nb.approximate(problem.X, method, problem.kernel, **SAMPLED, random_state=7)
    found = approx.trajectory.state
    assert len(found.rows) == market.SAMPLED["residual_rows"]
    V1, V2 = (found.sample.indices[v.cols] for v in (found.V1, found.V2))
    J = [learner.landmarks.indices for learner in approx.learners]
    parts = [oracle.nystrom(problem.G, columns, SIZES["rank"]) for columns in J]
    few = found.sample.indices[found.V1.rows]  # a few rows that stand for all
    values = [found.V1.weight * K[few] for K in (problem.G, *parts)]
    w = oracle.weights(method[1], values[0], values[1:], V1, V2)
    expected = oracle.mix(w, parts)
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=problem.tolerance)


def relative(G, K):
    return np.linalg.norm(G - K) / np.linalg.norm(G)


@pytest.mark.parametrize(
    ("method", "case", "sizes"),
    [
        *((*each, SIZES) for each in market.in_turn(OTHERS, market.NAMES)),
        *((*each, SAMPLED) for each in market.in_turn(OTHERS, market.NAMES)),
        *((*each, SAMPLED) for each in market.in_turn(sorted(MIXTURES), market.NAMES, parts=8)),
    ],
    ids=lambda value: value if isinstance(value, str) else ["whole", "sampled"][value is SAMPLED],
)
def test_every_result_on_the_whole_market_is_what_it_says_it_is(method, case, sizes):
    """Its error is that of the dense matrices, no smaller than its rank allows, its features too.

    No law of this list says that a method is good; each fails where one blows up.
    """
    n = market.MANY if sizes is SAMPLED else 80
    problem = market.problem(case, n=n)
    if method in NEEDS_POINTS and problem.kernel == "precomputed":
        method = "uniform"  # what a matrix does not have is a sentence tested elsewhere
    if method in FAMILIES["random features"] and problem.kernel == "linear":
        method = "uniform"
    if method == "optimal":  # all rows are its landmarks
        sizes = sizes | {"max_memory": 2**20}
    approx = nb.approximate(problem.X, method, problem.kernel, **sizes, random_state=3)
    scale = np.abs(problem.G).max()
    G, K = problem.G / scale, approx.to_dense().astype(np.float64) / scale
    rounding = n * problem.digits
    np.testing.assert_allclose(K, K.T, rtol=0, atol=rounding)
    error = relative(G, K)
    assert abs(approx.relative_error() - error) <= rounding * max(1, error)
    values = np.linalg.eigvalsh(G)[::-1]
    if method != "robust-cur" and approx.shift == 0:
        beyond = values[approx.rank :] if approx.rank < n else np.zeros(1)
        assert error >= np.linalg.norm(beyond) / np.linalg.norm(values) - rounding
    if method not in UNBOUNDED:  # a core knows its sample alone
        assert error <= (1.01 if sizes is SAMPLED else 1 + rounding)
    assert error <= 100  # where nothing is known nothing is said
    if approx.has_features:
        F = approx.features().astype(np.float64) / np.sqrt(scale)
        np.testing.assert_allclose(F @ F.T, market.positive_part(K), rtol=0, atol=rounding)


def test_a_result_says_what_its_method_gives():
    X, said = points(80), {}
    for method in ("uniform", "modified", "spectral-shift", "cur", "meka", "random-fourier"):
        approx = nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=8, random_state=0)
        said[method] = (approx.has_features, approx.is_psd, approx.saw_everything)
        assert (approx.shift > 0) == (method == "spectral-shift")
    assert said == {
        "uniform": (True, True, False),
        "modified": (True, True, True),
        "spectral-shift": (False, True, True),
        "cur": (True, False, True),
        "meka": (True, True, False),
        "random-fourier": (True, True, False),
    }


def test_the_paper_has_32_methods_27_of_them_variants_and_each_has_one_family():
    assert len(nb.VARIANTS) == 27
    assert len(set(oracle.METHODS)) == 32
    assert set(oracle.METHODS) <= set(nb.METHODS)
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(nb.METHODS)
    assert len(set(nb.METHODS)) == len(nb.METHODS)


@pytest.mark.parametrize("case", ["Gaussian", "few distinct rows", "doubled rows"])
@pytest.mark.parametrize("method", ["ensemble-ridge", "UUB-mean", "RRB-med", "EEB-SF"])
def test_a_run_is_a_prefix_of_a_longer_one(method, case):
    problem = market.problem(case)
    short, long = (
        nb.approximate(problem.X, method, problem.kernel, **SIZES | {"n_learners": p, **SEED})
        for p in (2, 4)
    )
    for mine, theirs in zip(short.learners, long.learners, strict=False):
        np.testing.assert_array_equal(mine.landmarks.indices, theirs.landmarks.indices)
    prefix = long.prefix(2)
    np.testing.assert_allclose(prefix.weights, short.weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(prefix.to_dense(), short.to_dense(), rtol=0, atol=1e-10)


def test_an_approximation_never_changes_what_the_user_passed_in():
    for make in (np.array, lambda X: np.asarray(X, dtype=np.float32), sparse.csr_matrix):
        X = make(points(60))
        before = X.copy()
        for kernel in ("rbf", "laplacian", "cosine", "poly", "anova", "matern", "linear"):
            approx = nb.approximate(X, "RRB-mean", kernel, n_learners=2, n_columns=5, **SEED)
            approx.relative_error(), approx.features(), approx.eigh(2)
        assert abs(X - before).max() == 0


@pytest.mark.parametrize("method", market.LEADING)
@pytest.mark.parametrize(
    ("X", "kernel", "words"),
    [
        (points(60), nb.Polynomial(degree=3, coef0=-5.0, gamma=1.0), "not positive semidefinite"),
        (points(60), nb.Polynomial(degree=2.5, gamma=1.0), "but it is negative for some points"),
        (np.zeros((60, 2)), nb.Linear(), "kernel values that were evaluated are zero"),
    ],
)
def test_what_is_no_kernel_gets_the_same_sentence_from_every_method(method, X, kernel, words):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=words):
        nb.approximate(X, method, kernel, n_learners=2, n_columns=5, random_state=0)


@pytest.mark.parametrize("method", ["ensemble-ridge", "URB-mean", "JJB-mean", "joint", "kmeans"])
def test_n_components_is_the_number_of_landmarks_of_every_method(method):
    approx = nb.approximate(points(60), method, n_components=24, n_learners=4, random_state=0)
    assert len(approx.landmarks) == 24
    few = nb.approximate(points(60), "UUB-mean", n_components=5, random_state=0)
    assert [len(learner.landmarks) for learner in few.learners] == [1] * 5


@pytest.mark.parametrize("method", ["ensemble-ridge", "URB-mean", "joint", "uniform", "nystrom"])
def test_more_components_than_rows_are_clipped_with_a_warning(method):
    X = points(60)
    with pytest.warns(UserWarning, match="landmarks were asked for, but there are only"):
        approx = nb.approximate(X, method, n_components=len(X) + 5, random_state=0)
    assert len(approx.landmarks) <= len(X)


def test_a_single_lambda_is_the_ridge_solution_for_it():
    problem = market.problem("Gaussian", n=90)
    how = {**SIZES, "random_state": 2}
    run = nb.approximate(problem.X, "ensemble-ridge", problem.kernel, lambdas=[1e-3], **how)
    found = run.trajectory.state
    V1 = np.ix_(found.V1.rows, found.V1.cols)
    values = [features_of(run.gram, learner) for learner in run.learners]
    A = np.stack([(F @ F.T)[V1].ravel() for F in values], axis=1)
    expected = oracle.ridge(A, problem.G[V1].ravel(), 1e-3 * np.linalg.norm(A, 2) ** 2)
    np.testing.assert_allclose(run.weights, expected, rtol=1e-8)
    with pytest.raises(ValueError, match="lambdas must be a positive number"):
        nb.approximate(problem.X, "ensemble-ridge", lambdas=[0.0])


@pytest.mark.parametrize("idle", [{"rank": 3}, {"rank": 3, "n_candidates": 9}])
def test_sizes_that_joint_does_not_use_are_named(idle):
    with pytest.warns(UserWarning, match=f"does not use {' and '.join(idle)}"):
        nb.approximate(points(60), "joint", n_components=8, random_state=0, **idle)
    with pytest.warns(UserWarning, match=f"does not use {' and '.join(idle)}"):
        nb.BoostedNystroem("joint", n_components=8, random_state=0, **idle).fit(points(60))
    nb.approximate(points(60), "URB-mean", n_components=8, n_learners=2, random_state=0, **idle)


@pytest.mark.parametrize(
    ("method", "unused"),
    [
        ("joint", {"n_learners": 3}),
        ("joint", {"eta": 0.5, "n_fit": 3}),
        ("kmeans", {"row_cap": 100}),
        ("nystrom", {"n_learners": 3}),
        ("block-nystrom", {"rank": 2}),
        ("ensemble-ridge", {"eta": 0.5, "n_candidates": 30}),
        ("ensemble-uniform", {"lambdas": (0.1,), "nonnegative": True}),
        ("UEB-mean", {"nonnegative": True}),
    ],
)
def test_a_setting_that_a_method_does_not_use_is_named(method, unused):
    with pytest.warns(UserWarning, match=f"{method!r} does not use {' and '.join(unused)}:"):
        nb.approximate(points(60), method, n_components=8, random_state=0, **unused)


@pytest.mark.parametrize(
    ("method", "used"),
    [
        ("joint", {"n_learners": 2, "n_columns": 4, "row_cap": 50}),
        ("density-weighted", {"n_components": 8, "rank": 4}),
        ("ensemble-exponential", {"n_columns": 4, "eta": "tune", "n_fit": 3}),
        ("RUB-SF", {"n_columns": 4, "n_learners": 2, "lambdas": [0.1], "residual_rows": 50}),
        ("URB-mean", {"n_columns": 4, "n_learners": 2, "rule": "E", "eta": 0.5}),
    ],
)
def test_settings_that_a_method_uses_raise_no_warning(method, used):
    nb.approximate(points(60), method, random_state=0, **used)


@pytest.mark.parametrize("method", ["joint", "kmeans", "ensemble-uniform"])
@pytest.mark.parametrize(
    "wrong",
    [{"eta": "x"}, {"eta": -1}, {"lambdas": (-1,)}, {"lambdas": ()}, {"lambdas": 0.1},
     {"nonnegative": "no"}, {"n_learners": 0}],
)  # fmt: skip
def test_values_are_checked_whatever_the_method(method, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        nb.approximate(points(60), method, n_components=8, **wrong)
