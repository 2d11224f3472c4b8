import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

import nysboost as nb
from nysboost import approximate
from nysboost.boosting.algorithm import find_learners
from nysboost.boosting.variants import parse_method
from nysboost.features.feature_map import features_of
from nysboost.gram import make_gram
from nysboost.kernels import Gaussian
from nysboost.paper import datasets, presets, replicate
from nysboost.paper.presets import Reading
from nysboost.paper.replicate import MIXTURES, relative_errors
from paper.helpers import tiny

COLUMNS = Reading("columns", "columns")


def of(preset, methods=MIXTURES, *, seed=0, number=0, device=""):
    points = datasets.load("simulation")
    return replicate.Replicate(preset, points, methods, seed, number, device)


def measure(one, reading=COLUMNS):
    return one.measure(reading).values


def test_the_thirty_mixtures_are_nine_trajectories_and_one_ensemble():
    assert len(MIXTURES) == 30
    groups = replicate.group_by_trajectory(MIXTURES)
    assert len(groups) == 10
    for names in groups:
        assert len({parse_method(name, nb.Settings())[0] for name in names}) == 1


@pytest.mark.parametrize("reading", tiny().readings, ids=str)
@pytest.mark.parametrize("method", ["URB-mean", "EUB-SF", "REB-med", "ensemble-ridge"])
def test_errors_are_those_of_the_method_run_by_itself(reading, method):
    preset = tiny()
    one = of(preset, seed=3, number=1)
    shared = measure(one, reading)[method]
    G = replicate.kernel_gram(preset, one.draw()).whole()
    gram, settings = make_gram(G, "precomputed"), replicate.settings_of(preset, reading)
    steps, final = parse_method(method, settings)
    found = find_learners(gram, settings, steps, final, one.generator(replicate.LEARNERS))
    for p, error in zip(preset.counts, shared, strict=True):
        mixture = found.mixture(final, p)
        features = [features_of(gram, learner) for learner in mixture.learners]
        assert error == pytest.approx(dense_error(G, features, mixture.weights), rel=1e-8)


def test_all_mixtures_of_a_replicate_share_the_first_learner():
    errors = measure(of(tiny()))
    first = {
        errors[f"{name}B-{c}"][0] for name in ("UU", "EU", "RU") for c in ("mean", "med", "SF")
    }
    assert len(first | {errors["ensemble-uniform"][0]}) == 1


def test_pooled_methods_are_nystrom_on_as_many_columns_as_p_learners_have():
    preset = tiny(n_learners=5, n_points=200)
    one = of(preset, ("nystrom-k", "nystrom-pk", "adaptive-pk", "ensemble-ridge"))
    found = one.measure(None)
    at = preset.counts.index(5)
    G = replicate.kernel_gram(preset, one.draw()).whole()
    I = one.generator(replicate.UNIFORM).choice(200, size=30, replace=False)  # noqa: E741
    for name, rank in (("nystrom-k", 5), ("nystrom-pk", 25)):
        eigenvalues, U = np.linalg.eigh(G[np.ix_(I, I)])
        F = G[:, I] @ (U[:, -rank:] / np.sqrt(eigenvalues[-rank:]))
        dense = np.linalg.norm(G - F @ F.T) / np.linalg.norm(G)
        assert found.values[name][at] == pytest.approx(dense, rel=1e-5)
    assert found.values["adaptive-pk"][at] < found.values["nystrom-pk"][at]
    assert np.isnan(found.values["nystrom-k"][0])


def test_properties_of_a_matrix_are_those_of_its_eigenvalues_and_vectors():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 60)))[0]
    G = (Q * np.r_[50.0, 30.0, 15.0, 4.5, np.full(56, 0.5 / 56)]) @ Q.T
    assert replicate.measure_matrix("rank_99", G, 2) == 4
    expected = 60 / 2 * np.square(Q[:, :2]).sum(axis=1).max()
    assert replicate.measure_matrix("coherence", G, 2) == pytest.approx(expected)


def test_slopes_of_the_time_are_measured_once_for_all_methods():
    preset = tiny(measure="seconds", learner_counts=(1,), properties=presets.PROPERTIES[2:])
    found = of(preset, ("UUB-mean",)).measure(None)
    assert set(found.properties) == {"slope_n", "slope_p", "slope_m"}
    assert np.isfinite(list(found.properties.values())).all()


def test_leaving_methods_out_does_not_change_the_others():
    everything = measure(of(tiny()))
    some = measure(of(tiny(), ("RRB-SF", "ensemble-ridge")))
    for name, errors in some.items():  # R of a QR factorisation of more columns is rounded anew
        assert errors == pytest.approx(everything[name], rel=1e-12)


def test_replicates_draw_their_own_points_unless_told_otherwise():
    fresh, same = tiny(), tiny(redraw=False)
    assert not np.array_equal(of(fresh).draw(), of(fresh, number=1).draw())
    assert np.array_equal(of(same).draw(), of(same, number=1).draw())
    assert not np.array_equal(of(same).draw(), of(same, seed=1).draw())


def test_times_are_positive_and_measured_at_each_count():
    preset = tiny(measure="seconds", learner_counts=(1, 3))
    times = measure(of(preset, ("UUB-mean", "ensemble-ridge")))
    assert all(len(t) == 2 and min(t) > 0 for t in times.values())


def test_a_matrix_on_a_device_gives_the_same_record():
    pytest.importorskip("torch")
    some = ("URB-mean", "RRB-SF", "UEB-med", "ensemble-ridge")
    here = measure(of(tiny(), some))
    there = measure(of(tiny(), some, device="cpu"))
    for name in some:
        assert there[name] == pytest.approx(here[name], rel=1e-8)


@pytest.mark.parametrize(
    ("reading", "errors"),
    [
        ("columns", {"RRB-mean": 0.0635204117, "URB-med": 0.0587882450, "UEB-SF": 0.0764458221}),
        ("square", {"RRB-mean": 0.0652686647, "URB-med": 0.0660218080, "UEB-SF": 0.0775781229}),
    ],
)
def test_the_papers_settings_give_the_records_of_the_ledger(reading, errors):
    """The first replicate behind docs/reproduction.md.

    Whatever becomes of the defaults, the paper's presets stay as they are.
    """
    made = measure(of(presets.load("simulation"), tuple(errors)), Reading(reading, "columns"))
    assert {name: values[-1] for name, values in made.items()} == pytest.approx(errors, rel=1e-7)


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


@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
@pytest.mark.parametrize("size", [5e-6, 1e-7, 1e-10, 1e-12])
def test_small_errors_are_right_where_the_expansion_would_cancel(size, library):
    xp = pytest.importorskip(library)
    _, features, rng = random_case(3)
    w = np.array([0.7, -0.2, 1.1, 0.4])
    noise = rng.standard_normal((40, 40))
    G = sum(wi * F @ F.T for wi, F in zip(w, features, strict=True))
    G = G + size * np.linalg.norm(G) * (noise + noise.T) / np.linalg.norm(noise + noise.T)
    there = [xp.asarray(F) for F in features]
    errors = relative_errors(xp.asarray(G), there, {"all": w, "two": w[:2]})
    assert errors["all"] == pytest.approx(size, rel=1e-3)
    assert errors["all"] < replicate.CANCELS_BELOW
    assert errors["two"] == pytest.approx(dense_error(G, features, w[:2]), rel=1e-9)


def test_small_errors_are_right_with_more_features_than_points():
    rng = np.random.default_rng(5)
    F = rng.standard_normal((12, 9))
    features = [F[:, :5], F[:, 5:], F[:, :6]]
    G = F @ F.T
    errors = relative_errors(G, features, {"exact": np.array([1.0, 1.0, 0.0])})
    assert errors["exact"] < 1e-14


SIZES = {"n_learners": 8, "n_columns": 10, "rank": 10, "n_candidates": 100, "n_fit": 20}
SIZES["n_tune"] = 20


def errors(method):
    """Relative errors of 20 replicates, each on its own data."""
    found = []
    for seed in range(20):
        X = np.random.default_rng([2020, seed]).normal(size=(1000, 2))
        approx = approximate(X, method, Gaussian(sigma=1.0), **SIZES, random_state=seed)
        found.append(approx.relative_error())
    return np.array(found)


@pytest.mark.slow
def test_boosting_beats_the_ridge_ensemble_in_the_papers_simulation():
    ensemble = errors("ensemble-ridge")
    for method in ("URB-mean", "URB-med", "RRB-mean"):
        test = ttest_ind(errors(method), ensemble, equal_var=False, alternative="less")
        assert test.pvalue < 0.01, method
