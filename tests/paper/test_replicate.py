import numpy as np
import pytest

from nysboost.gram import make_gram
from nysboost.kernels import Gaussian
from nysboost.paper import datasets, presets, replicate
from nysboost.user_error import UserError
from paper.helpers import tiny


def of(preset, methods=replicate.METHODS, *, seed=0, number=0, reading="columns", device=""):
    points = datasets.load("simulation")
    return replicate.Replicate(preset, points, methods, seed, number, reading, device)


def test_the_thirty_methods_are_nine_trajectories_and_one_ensemble():
    assert len(replicate.METHODS) == 30
    assert len(replicate.TRAJECTORIES) == 10


@pytest.mark.parametrize("reading", ["columns", "square"])
@pytest.mark.parametrize("method", ["URB-mean", "EUB-SF", "REB-med", "ensemble-ridge"])
def test_errors_are_those_of_the_method_run_by_itself(reading, method):
    preset = tiny()
    one = of(preset, seed=3, number=1, reading=reading)
    shared = one.measure()[method]
    gram = replicate.WholeGram(replicate.kernel_gram(preset, one.draw()))
    trajectory, final = replicate.parse_method(method)
    rng = one.generator(1 + replicate.TRAJECTORIES.index(trajectory))
    settings = replicate.settings_of(preset, reading)
    found = replicate.find_trajectory(gram, preset, trajectory, settings, rng)
    for p, error in zip(preset.counts, shared, strict=True):
        mixture = found.mixture(replicate.rules_of(preset)[final], p)
        K = np.zeros_like(gram.values)
        for w, learner in zip(mixture.weights, mixture.learners, strict=True):
            F = learner.rounded_to(gram).features()
            K += w * F @ F.T
        dense = np.linalg.norm(gram.values - K) / np.linalg.norm(gram.values)
        assert error == pytest.approx(dense, rel=1e-8)


def test_leaving_methods_out_does_not_change_the_others():
    everything = of(tiny()).measure()
    some = of(tiny(), ("RRB-SF", "ensemble-ridge")).measure()
    assert some == {name: everything[name] for name in some}


def test_replicates_draw_their_own_points_unless_told_otherwise():
    fresh, same = tiny(), tiny(redraw=False)
    assert not np.array_equal(of(fresh).draw(), of(fresh, number=1).draw())
    assert np.array_equal(of(same).draw(), of(same, number=1).draw())
    assert not np.array_equal(of(same).draw(), of(same, seed=1).draw())


def test_times_are_positive_and_measured_at_each_count():
    preset = tiny(measure="seconds", learner_counts=(1, 3))
    times = of(preset, ("UUB-mean", "ensemble-ridge")).measure()
    assert all(len(t) == 2 and min(t) > 0 for t in times.values())


def test_a_budget_beyond_the_points_is_a_sentence():
    with pytest.raises(UserError, match="need at least"):
        replicate.settings_of(tiny(n_columns=60), "columns")


def test_a_whole_gram_gives_the_blocks_of_the_gram_it_holds():
    X = np.random.default_rng(0).standard_normal((30, 3))
    gram = make_gram(X, Gaussian(sigma=1.0))
    shared = replicate.WholeGram(gram)
    rows, cols = np.array([3, 29, 0]), np.array([7, 1])
    assert np.allclose(shared.block(rows, cols), gram.block(rows, cols))
    assert np.allclose(
        shared.cross(slice(0, 5), shared.landmarks(cols)), gram.block(np.arange(5), cols)
    )
    assert shared.entries_evaluated == 6 + 10


def test_a_matrix_on_a_device_gives_the_same_record():
    pytest.importorskip("torch")
    some = ("URB-mean", "RRB-SF", "UEB-med", "ensemble-ridge")
    here = of(tiny(), some).measure()
    there = of(tiny(), some, device="cpu").measure()
    for name in some:
        assert there[name] == pytest.approx(here[name], rel=1e-8)


@pytest.mark.parametrize(
    ("reading", "errors"),
    [
        ("columns", {"RRB-mean": 0.0644688365, "URB-med": 0.0608220896, "UEB-SF": 0.0728276671}),
        ("square", {"RRB-mean": 0.0656676956, "URB-med": 0.0643238286, "UEB-SF": 0.0779130770}),
    ],
)
def test_the_papers_settings_give_the_records_of_the_ledger(reading, errors):
    """The first replicate behind docs/reproduction.md, made on another machine.

    Whatever becomes of the defaults, the paper's presets stay as they are.
    """
    made = of(presets.load("simulation"), tuple(errors), reading=reading).measure()
    assert {name: values[-1] for name, values in made.items()} == pytest.approx(errors, rel=1e-7)
