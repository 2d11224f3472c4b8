"""The race of candidates on samples of many rows."""

import numpy as np
import pytest

from nysboost.data.recognise import rows_of
from nysboost.engine.moments import Moments
from nysboost.numerics.memory import Budget
from nysboost.numerics.progress import Work
from nysboost.target import many
from nysboost.target.candidates import MATERN12, MATERN32, Candidate
from nysboost.target.linear import LinearModel
from nysboost.target.many import learn_many
from nysboost.target.plain import SIMPLEST
from nysboost.target.scale import each_alone


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1))


@pytest.fixture
def small_samples(monkeypatch):
    for name in ("FIRST_ROWS", "BATCH_ROWS", "FIT_ROWS"):
        monkeypatch.setattr(many, name, (100, 2))
    monkeypatch.setattr(many, "JUDGE_ROWS", 80)


def run(X, Y, **more):
    options = {
        "scaling": each_alone,
        "budget": Budget(),
        "work": more.pop("work", Work()),
    }
    candidates = more.pop("candidates", (Candidate(MATERN32, "each"),))
    rng = np.random.default_rng(0)
    return learn_many(rows_of(X), Y, None, SIMPLEST, candidates, 10, rng, **options)


def test_the_samples_do_not_grow_with_the_rows_but_all_rows_give_weights(
    small_samples, monkeypatch
):
    seen = []
    plain = many.moved
    monkeypatch.setattr(many, "moved", lambda f, s, *rest: seen.append(s.n) or plain(f, s, *rest))
    for n in (1000, 5000):
        judged = run(*table(n))
        assert float(judged.models[0].moments.weight) == n
        assert len(judged.truth) == 80
    assert set(seen) == {100}


def test_the_judge_takes_no_part(small_samples, monkeypatch):
    X, Y = table(1000)
    rows = {}
    plain_of = many._Race.of
    monkeypatch.setattr(many._Race, "of", lambda *a: rows.setdefault("race", plain_of(*a)))
    run(X, Y)
    race = rows["race"]
    held = {tuple(row) for row in np.round(race.judge.X, 12)}
    for sample in (race.first, race.fit, race.sample):
        assert not held & {tuple(row) for row in np.round(sample.X, 12)}


def test_steps_that_make_things_worse_are_taken_back(small_samples, monkeypatch):
    X, Y = table(1000)
    good = run(X, Y)
    plain = many.settled

    def spoilt(*given):
        after = plain(*given)
        point = type(after.point)(after.point.Z * 0 + 100, after.point.A, after.point.log_gamma)
        return type(after)(after.name, after.kernel, point, after.gammas)

    monkeypatch.setattr(many, "settled", spoilt)
    judged = run(X, Y)
    miss = [np.sqrt(np.mean((j.mean - j.truth) ** 2)) for j in (good, judged)]
    assert miss[1] < 2 * miss[0]


def test_candidates_of_one_metric_share_their_start(small_samples, monkeypatch):
    starts, plain = [], Candidate.start
    monkeypatch.setattr(Candidate, "start", lambda *a: starts.append(a[0]) or plain(*a))
    monkeypatch.setattr(many, "LATER_STEPS", 1)
    shared = (Candidate(MATERN12, "full"), Candidate(MATERN32, "full"), Candidate(MATERN32, "each"))
    judged = run(*table(500), candidates=shared)
    assert [s.shape for s in starts] == ["full", "each"]
    assert len(judged.notes) == 5  # the simplest model, three candidates, the best settled


def test_the_judge_joins_once_it_has_judged(small_samples, monkeypatch):
    seen, plain = [], many.settled
    monkeypatch.setattr(many, "LATER_STEPS", 10)
    monkeypatch.setattr(many, "settled", lambda f, s, *a: seen.append((f, s, a)) or plain(f, s, *a))
    X, Y = table(500)
    judged = run(X, Y)
    (_, alone, (_, _, steps, *_)), (after, every, (_, _, more, _, pace)) = seen
    assert (alone.n, every.n) == (420, 500)
    assert (steps, more, pace) == (10, 2, many.JOINED)
    last = plain(after, every, *seen[1][2])  # where the last steps end
    scale = many.taken(rows_of(X), Y, None, np.arange(500), each_alone)[1]
    model = judged.models[-1]
    np.testing.assert_allclose(model.basis.Z, scale.undone(last).Z)
    # γ is as far from the loss's own as the judge said before, whose predictions are kept
    held = LinearModel.fit(after.basis(), Moments.of(after.basis()(alone.X), alone.Y), 1.0)
    errors = many.errors_along(
        held.moments, after.basis()(every.X[:80]), every.Y[:80], None, after.gammas
    )
    at = many.chosen(after.gammas, errors)
    assert model.gamma == pytest.approx(last.gammas[at])
    expected = LinearModel.fit(after.basis(), held.moments, after.gammas[at])
    np.testing.assert_allclose(judged.mean, expected.predict(after.basis()(every.X[:80])))


def test_a_judge_of_few_among_many_does_not_join(small_samples, monkeypatch):
    seen, plain = [], many.settled
    monkeypatch.setattr(many, "LATER_STEPS", 10)
    monkeypatch.setattr(many, "settled", lambda f, s, *a: seen.append(s.n) or plain(f, s, *a))
    run(*table(1601))  # 80 of them judge
    assert seen == [1521]


def test_nobody_joins_steps_that_are_taken_back(small_samples, monkeypatch):
    seen, plain = [], many.settled
    monkeypatch.setattr(many, "WORSE", 0.0)
    monkeypatch.setattr(many, "LATER_STEPS", 1)
    monkeypatch.setattr(many, "settled", lambda f, s, *a: seen.append(s.n) or plain(f, s, *a))
    run(*table(500))
    assert seen == [420]


def test_a_batch_and_the_sample_stay_within_their_sizes(small_samples, monkeypatch):
    seen, plain = [], many.settled
    monkeypatch.setattr(many, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(many, "LATER_STEPS", 2)
    monkeypatch.setattr(
        many, "settled", lambda f, s, *a: seen.append((s.n, a[1])) or plain(f, s, *a)
    )
    run(*table(1000))
    run(*table(3000))
    assert seen == [(300, 100), (300, 100)]


def test_progress_is_reported(small_samples):
    lines = []
    run(*table(500), work=Work(lines.append))
    assert any("held-out error" in line for line in lines)
    assert lines[-1] == "Weights from all rows, about 0 s left"


def test_the_simplest_model_is_weighed_only_where_it_could_win(small_samples, monkeypatch):
    X, Y = table(1000)
    weighed, plain = [], many._Race.finished

    def finished(race, found, *last, **rest):
        weighed.append(found.name)
        return plain(race, found, *last, **rest)

    monkeypatch.setattr(many._Race, "finished", finished)
    run(X, Y)
    assert weighed == ["Matérn 1.5, a scale per feature"]
    weighed.clear()
    noise = np.random.default_rng(1).normal(size=(1000, 1))
    run(X, noise)
    assert weighed[1:] == ["Gaussian, uniform landmarks"]


def test_where_the_simplest_model_is_not_clearly_behind_the_judge_mixes(small_samples, monkeypatch):
    X, _ = table(1000)
    Y = np.sin(2 * X).sum(axis=1, keepdims=True)  # of which ten landmarks know little
    finished, plain = [], many._Race.finished
    monkeypatch.setattr(
        many._Race, "finished", lambda *a, **k: finished.append(plain(*a, **k)) or finished[-1]
    )
    monkeypatch.setattr(many, "CLEAR", 0.0)
    monkeypatch.setattr(many, "FIRST_STEPS", 1)
    monkeypatch.setattr(many, "LATER_STEPS", 1)
    judged = run(X, Y, candidates=(Candidate(MATERN32, "one"),))
    assert len(judged.models) == len(finished) == 2
    assert judged.shares.sum() == pytest.approx(1)
    assert judged.models == [finished[1].model, finished[0].model]  # the simplest first
    means = [one.held_out.predict(one.features) for one in finished[::-1]]
    mixed = sum(share * mean for share, mean in zip(judged.shares, means, strict=True))
    np.testing.assert_allclose(judged.mean, mixed)
    assert np.mean((judged.mean - judged.truth) ** 2) < min(one.error for one in finished)


def test_the_trace_is_a_landmark_for_each_row_of_the_sample(small_samples, monkeypatch):
    seen, plain = set(), many.settled
    monkeypatch.setattr(many, "SAMPLE_ROWS", 400)
    monkeypatch.setattr(many, "LATER_STEPS", 1)
    monkeypatch.setattr(many, "settled", lambda f, s, *a: seen.add(a[0]) or plain(f, s, *a))
    run(*table(1000))
    assert seen == {10 / 400}


def test_landmarks_apart_from_the_metric_begin_again(small_samples, monkeypatch):
    rng, seen, plain = np.random.default_rng(0), [], many.settled
    X = rng.normal(size=(400, 100))
    Y = np.sin(X[:, :1])
    monkeypatch.setattr(many, "FIRST_STEPS", 2)
    monkeypatch.setattr(many, "LATER_STEPS", 1)
    monkeypatch.setattr(many, "settled", lambda f, *a: seen.append(f) or plain(f, *a))
    run(X, Y, candidates=(Candidate(MATERN32, "full"),))
    run(X, Y, candidates=(Candidate(MATERN32, "each"),))
    assert [(found.apart, found.point is found.begun) for found in seen] == [
        (True, True),
        (False, False),
    ]
