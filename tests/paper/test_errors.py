import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.paper.replicate import CANCELS_BELOW, relative_errors


def dense_error(G, features, weights):
    K = sum(w * F @ F.T for w, F in zip(weights, features, strict=False))
    return np.linalg.norm(G - K) / np.linalg.norm(G)


def random_case(seed, n=40, ranks=(3, 5, 2, 4)):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    return A @ A.T / n, [rng.standard_normal((n, k)) / np.sqrt(k) for k in ranks], rng


@given(st.integers(0, 10_000))
def test_every_prefix_and_weight_agrees_with_the_dense_residual(seed):
    G, features, rng = random_case(seed)
    weights = {p: rng.standard_normal(p) for p in range(1, 5)}
    errors = relative_errors(G, features, weights)
    for p, w in weights.items():
        assert errors[p] == pytest.approx(dense_error(G, features, w), rel=1e-9)


@pytest.mark.parametrize("size", [1e-5, 1e-7, 1e-10, 1e-12])
def test_small_errors_are_right_where_the_expansion_would_cancel(size):
    _, features, rng = random_case(3)
    w = np.array([0.7, -0.2, 1.1, 0.4])
    noise = rng.standard_normal((40, 40))
    G = sum(wi * F @ F.T for wi, F in zip(w, features, strict=True))
    G = G + size * np.linalg.norm(G) * (noise + noise.T) / np.linalg.norm(noise + noise.T)
    errors = relative_errors(G, features, {"all": w, "two": w[:2]})
    assert errors["all"] == pytest.approx(size, rel=1e-3)
    assert errors["all"] < CANCELS_BELOW
    assert errors["two"] == pytest.approx(dense_error(G, features, w[:2]), rel=1e-9)


def test_small_errors_are_right_with_more_features_than_points():
    rng = np.random.default_rng(5)
    F = rng.standard_normal((12, 9))
    features = [F[:, :5], F[:, 5:], F[:, :6]]
    G = F @ F.T
    errors = relative_errors(G, features, {"exact": np.array([1.0, 1.0, 0.0])})
    assert errors["exact"] < 1e-14


def test_learners_of_different_rank_are_allowed_and_one_without_features_is_not_needed():
    G, features, _ = random_case(8, ranks=(1, 7))
    w = np.array([0.3, 0.6])
    assert relative_errors(G, features, {0: w})[0] == pytest.approx(dense_error(G, features, w))


@pytest.mark.parametrize("size", [0.1, 1e-7])
def test_arrays_of_any_namespace_give_the_same_errors(size):
    strict = pytest.importorskip("array_api_strict")
    _, features, rng = random_case(5)
    w, noise = np.array([0.7, 0.2, 1.1, 0.4]), rng.standard_normal((40, 40))
    G = sum(wi * F @ F.T for wi, F in zip(w, features, strict=True)) + size * (noise + noise.T)
    weights = {"all": w, "two": w[:2]}
    there = relative_errors(strict.asarray(G), [strict.asarray(F) for F in features], weights)
    here = relative_errors(G, features, weights)
    assert there == pytest.approx(here, rel=1e-6)
